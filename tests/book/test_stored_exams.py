"""The two harder exams of chapter 12: what they store is what their scripts give."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

DATA = Path(__file__).parents[2] / "book" / "_data"
CLOSE = 0.03  # between machines: accuracies, and bits per letter after few steps


def load(name):
    spec = importlib.util.spec_from_file_location(name, DATA / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cards, letters = load("cards"), load("letters")
CARDS, LETTERS = (
    json.loads(module.STORE.read_text(encoding="utf-8")) for module in (cards, letters)
)
NAMES = [member.name for member in cards.wrong_attention.MEMBERS]
LEAKS = "softmax_over_queries", "merge_without_transpose", "split_without_transpose"


@pytest.fixture(autouse=True)
def one_thread():
    """Fix the order of sums, as the scripts do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# The tasks


def test_the_answer_is_the_digit_of_the_card_with_the_next_letter():
    for bag in zip(*cards.deal(3, rng=torch.Generator().manual_seed(0)), strict=True):
        places = torch.stack(bag, 1).tolist()
        digit = {letter: shown for letter, shown, answer in places if answer < 0}
        questions = [(a, answer) for a, _, answer in places if answer >= 0]
        assert len(digit) == len(questions) == cards.CARDS
        assert all(digit[(a + 1) % cards.LETTERS] == answer for a, answer in questions)


def test_a_question_shows_no_digit():
    _, shown, answers = cards.deal(5, rng=torch.Generator().manual_seed(0))
    assert (shown[answers >= 0] == cards.DIGITS).all()
    assert (shown[answers < 0] < cards.DIGITS).all()


def test_padding_is_hidden_and_asks_nothing():
    _, _, answers, mask = cards.CONDITIONS["padded"](torch.Generator().manual_seed(0))
    assert mask.sum() == 2 * cards.CARDS
    assert len(mask) == 2 * cards.CARDS + cards.PADDING
    assert (answers[:, ~mask] == -1).all()


def test_the_novel_is_judged_on_chapters_that_no_model_trained_on():
    known, fresh = letters.letters()
    known, fresh = ("".join(letters.ALPHABET[i] for i in x) for x in (known, fresh))
    assert "down the rabbit hole" in known
    assert "alice s evidence" in fresh
    assert "alice s evidence" not in known


def test_each_letter_of_a_window_is_followed_by_its_target():
    x, y = letters.windows(torch.arange(100), 3, torch.Generator().manual_seed(0))
    assert x.shape == y.shape == (3, letters.N)
    np.testing.assert_array_equal(x + 1, y)


# What chapter 12 says of the tables


def test_six_members_are_perfect_on_the_cards_as_trained():
    exam = CARDS["exam"]["as trained"]
    perfect = [name for name in NAMES if min(exam[name]) > 0.999]
    assert set(NAMES) - set(perfect) == {
        "no_attention",
        "merge_without_transpose",
        "split_without_transpose",
        "input_split_before_projection",
        "tied_query_key",
    }


def test_conditions_that_training_did_not_have_reveal_two_more():
    longer, single = CARDS["exam"]["four times as long"], CARDS["exam"]["one question"]
    assert max(longer["scale_sqrt_n"]) < 0.8
    assert max(single["softmax_over_queries"]) < 0.7
    assert min(*longer["right"], *single["right"]) > 0.99


def test_two_are_late_and_two_do_not_get_there():
    late = CARDS["late"]["as trained"]
    assert min(late["input_split_before_projection"] + late["tied_query_key"]) > 0.99
    assert max(late["merge_without_transpose"] + late["split_without_transpose"]) < 0.6


def test_what_no_exam_reveals_is_ruined_by_its_repair():
    exam = CARDS["exam"]
    for condition in cards.CONDITIONS:
        assert min(exam[condition]["no_output_projection"]) > 0.99
    assert max(exam["repaired"]["no_output_projection"]) < 0.25


def test_a_wide_head_that_starts_with_variance_1_needs_the_scale():
    steps = CARDS["wide head"]["Xavier"]
    assert max(steps["right"]) <= 60
    assert steps["no_scale"] == [None] * len(cards.SEEDS)


def test_three_look_better_than_correct_attention_until_the_future_is_missing():
    whole, used = (LETTERS["trained"][x] for x in ("whole windows", "letter by letter"))
    for name in LEAKS:
        assert max(whole[name]) < min(whole["right"]) - 0.9
        assert min(used[name]) > max(used["no_attention"])
    assert whole["right"] == used["right"]


# Agreement


def test_the_tables_hold_every_member_and_five_seeds_each():
    for table in CARDS["exam"], LETTERS["trained"]:
        for rows in table.values():
            assert list(rows) == NAMES
            assert {len(row) for row in rows.values()} == {5}


@pytest.mark.parametrize(("module", "table"), [(cards, CARDS), (letters, LETTERS)])
def test_the_tables_stand_as_the_scripts_write_them(module, table):
    assert module.STORE.read_text(encoding="utf-8") == module.text_of(table)


def test_training_on_cards_again_gives_what_is_stored():
    found = cards.judge(cards.train(cards.zoo.softmax_over_queries, seed=0))
    stored = {name: CARDS["exam"][name]["softmax_over_queries"][0] for name in found}
    for name in ("as trained", "padded", "four times as long"):
        assert abs(found[name] - stored[name]) < CLOSE
    assert found["one question"] < 0.7
    assert found["repaired"] < 0.9


def test_training_on_letters_again_gives_what_is_stored():
    known, fresh = letters.letters()
    for member in (letters.zoo.right, letters.zoo.softmax_over_queries):
        model = letters.train(member, 0, known, letters.SHORT)
        for name, value in letters.judge(model, fresh).items():
            assert abs(value - LETTERS["short"][name][member.name][0]) < CLOSE


# The maps that chapter 12 shows

learned = load("learned")
LEARNED = json.loads(learned.STORE.read_text(encoding="utf-8"))


def test_the_maps_are_those_of_eleven_members_as_their_script_writes_them():
    assert list(LEARNED) == NAMES[1:]
    assert learned.STORE.read_text(encoding="utf-8") == learned.text_of(LEARNED)
    for facts in LEARNED.values():
        assert facts["accuracy"] > 0.999
        assert {len(letters) for letters in facts["maps"]} == {144}


def test_a_weight_is_stored_as_the_nearest_of_sixteen_letters():
    assert learned.letters([[0, 1], [0.51, 0.03]]) == "0f80"


def test_learning_again_gives_what_is_stored():
    """The front page stores the same run, with losses and an example."""
    hook = json.loads(learned.hook.STORE.read_text(encoding="utf-8"))
    for name, facts in hook.items():
        stored = LEARNED[name]
        assert abs(facts["repaired"] - stored["repaired"]) < CLOSE
        assert [learned.letters(weights) for weights in facts["maps"]] == stored["maps"]


def test_five_versions_are_ruined_by_their_repair():
    ruined = [name for name, facts in LEARNED.items() if facts["repaired"] < 0.6]
    assert ruined == [
        "merge_without_transpose",
        "split_without_transpose",
        "input_split_before_projection",
        "tied_query_key",
        "no_output_projection",
    ]


def test_training_a_wide_head_again_needs_as_many_steps_as_stored():
    stored = CARDS["wide head"]["Xavier"]["right"][3]
    assert abs(cards.steps_needed(cards.zoo.right, 3, "Xavier") - stored) <= 10
