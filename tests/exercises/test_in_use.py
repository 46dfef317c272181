"""What answers to the exercises of chapters 10 to 18 do in use: words, texts, maps."""

import json
import re

import numpy as np
import pytest

from exercises import (
    encoder_layer,
    in_use,
    laws,
    long,
    positions,
    real_encoder,
    real_task,
    since_2017,
    what_heads_learn,
)

SHOWN = {
    "positions.turn_by": (positions.turn_by, "k = -3"),
    "encoder_layer.wire_layer": (encoder_layer.wire_layer, "32 of your layers"),
    "real_task.stress_scores": (real_task.stress_scores, "photOgraphy photogrAphic"),
    "laws.shrink": (laws.shrink, "3 numbers show"),
    "long.attend_in_blocks": (long.attend_in_blocks, "65,536 keys: 0.3 MB"),
    "long.decode_step": (long.decode_step, "the same text in"),
    "since_2017.rotate": (since_2017.rotate, "offset alone"),
}


@pytest.mark.parametrize(("exercise", "words"), SHOWN.values(), ids=SHOWN)
def test_a_passed_exercise_shows_what_the_answer_does(exercise, words):
    shown = exercise(exercise.right)._repr_html_()
    assert words in re.sub(r"<[^>]+>", " ", shown)


def test_the_score_of_a_reader_finds_the_head_without_which_a_model_cannot_copy():
    shown = what_heads_learn.induction_score(what_heads_learn.induction_score.right)
    text = shown._repr_html_()
    found = re.search(r"guesses (\d+)% of the letters rightly, and (\d+)% when", text)
    assert int(found[1]) > 95 and int(found[2]) < 80


def test_weights_of_a_training_are_what_the_live_encoder_opens(tmp_path, capsys):
    file = tmp_path / "mine.json"
    answer = real_task.score_letters.right
    real_task.train(answer, "photograph", epochs=1, file=file)
    printed = capsys.readouterr().out
    assert "the same answer to 500 of 500 words" in printed
    model = json.loads(file.read_text(encoding="utf-8"))
    arrays = {**in_use.unpacked(model)}
    assert {*arrays} == {*in_use.stress_finder()}
    shapes = [np.shape(m["layers"][0]["W_1"]) for m in (model, in_use.stress_finder())]
    assert shapes[0] == shapes[1]


def test_the_stored_writer_needs_the_bits_that_are_stored():
    torch = pytest.importorskip("torch")
    from _data import writer

    stored, model = in_use.writer(), in_use.all_at_once()
    data = writer.novel()[1][:200].tolist()
    bits = []
    for n in range(1, len(data)):
        logits = torch.tensor(model(data[:n]))
        bits.append(-torch.log_softmax(logits, -1)[data[n]].item() / np.log(2))
    assert abs(np.mean(bits) - stored["bits per character"]) < 0.4


def test_a_stub_is_told_to_pass_first(capsys):
    real_task.stress(None, "potato")
    real_task.train(None, "potato")
    real_encoder.search(None, "Why?", ["A dog."])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all(x.startswith("not attempted yet") for x in lines)
