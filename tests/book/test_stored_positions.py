"""What chapter 10 stores instead of computing it is what its script gives."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

DATA = Path(__file__).parents[2] / "book" / "_data"
CLOSE = 0.03  # between machines; neighbouring results are at least 0.1 apart
LIMIT = 0.317  # of reading 8 letters out of 10 backwards without their order

spec = importlib.util.spec_from_file_location(
    "trained_positions", DATA / "trained_positions.py"
)
trained = importlib.util.module_from_spec(spec)
spec.loader.exec_module(trained)

TABLE = json.loads(trained.STORE.read_text(encoding="utf-8"))


def inside(name):
    return np.array(TABLE[name])[:, 0]


def beyond(name):
    return np.array(TABLE[name])[:, 1]


# By hand


def test_the_tasks_read_backwards_and_say_the_letter_before():
    letters = torch.tensor([[3, 1, 4, 2]])
    assert trained.TASKS["reverse"](letters).tolist() == [[2, 4, 1, 3]]
    assert trained.TASKS["previous"](letters).tolist() == [[3, 3, 1, 4]]


def test_the_limit_is_the_most_frequent_of_the_seven_others():
    counts = np.random.default_rng(1).multinomial(7, [0.1] * 10, size=400_000)
    assert abs(counts.max(1).mean() / 7 - LIMIT) < 0.001


def test_the_bug_gives_all_letters_of_a_sequence_one_position():
    letters, table = torch.zeros(5, 7, dtype=int), torch.zeros(64, trained.D_MODEL)
    added = trained.where("same for all", letters, table)
    assert added.shape == (5, 1, trained.D_MODEL)
    right = trained.where("sinusoids", letters, table)
    torch.testing.assert_close(added[:, 0], right[:5])


# Laws


def test_turned_queries_and_keys_meet_by_their_offset_alone():
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 8, dtype=torch.float64)
    S = trained.turn(q.expand(11, 8)) @ trained.turn(k.expand(11, 8)).T
    torch.testing.assert_close(S[1:, 1:], S[:-1, :-1], rtol=0, atol=1e-6)
    assert (S[0, 0] - S[0, 1:]).abs().min() > 1e-3


@pytest.mark.parametrize("way", ["none", "same for all"])
def test_without_an_order_the_limit_is_reached_and_not_passed(way):
    assert abs(inside(f"reverse {way}") - LIMIT).max() < 0.01


@pytest.mark.parametrize("way", ["learned", "sinusoids"])
@pytest.mark.parametrize("task", ["reverse", "previous"])
def test_positions_that_are_added_serve_the_trained_length_and_no_other(task, way):
    assert inside(f"{task} {way}").min() > 0.99
    assert beyond(f"{task} {way}").max() < 0.4


def test_turning_finds_the_letter_before_everywhere_and_learns_to_reverse_slowly():
    assert beyond("previous turned").min() > 0.99
    assert 0.5 < inside("reverse turned").min() <= inside("reverse turned").max() < 0.8
    assert np.min(TABLE["curve turned"]) > 0.95
    after = np.array(TABLE["reverse turned, longer"])
    assert (np.diff(after) > 0.05).all() and after[:, -1].min() > 0.9


def test_sinusoids_hold_one_step_longer_than_a_learned_table():
    first = trained.LONG - trained.LONG // 2  # place of the first new position
    sinusoids, learned = (
        np.array(TABLE[f"curve {way}"]) for way in ("sinusoids", "learned")
    )
    assert learned[:, first:].mean() < 0.15
    assert sinusoids[:, first].min() > 0.7
    assert sinusoids[:, first + 2].mean() < 0.5


# Agreement


def test_the_table_holds_five_seeds_of_every_cell():
    tasks = [f"{task} {way}" for task in trained.TASKS for way in trained.WAYS]
    curves = [f"curve {way}" for way in trained.WAYS[2:]]
    assert list(TABLE) == [*tasks, *curves, "reverse turned, longer"]
    long = np.shape(TABLE["reverse turned, longer"])
    assert long == (len(trained.FEW_SEEDS), len(trained.MILESTONES))
    assert {len(TABLE[name]) for name in [*tasks, *curves]} == {len(trained.SEEDS)}


def test_the_table_stands_as_the_script_writes_it():
    assert trained.STORE.read_text(encoding="utf-8") == trained.text_of(TABLE)


def test_training_again_gives_what_is_stored():
    again = trained.run("turned", "previous", seed=2)
    np.testing.assert_allclose(again, TABLE["previous turned"][2], rtol=0, atol=CLOSE)


def test_a_long_run_begins_like_a_short_one(monkeypatch):
    first = trained.MILESTONES[:1]
    short = [row[0] for row in TABLE["reverse turned"][: len(trained.FEW_SEEDS)]]
    long = [row[0] for row in TABLE["reverse turned, longer"]]
    np.testing.assert_allclose(long, short, rtol=0, atol=CLOSE)
    monkeypatch.setattr(trained, "MILESTONES", first)
    again = trained.patience("turned", seed=1)
    np.testing.assert_allclose(again, long[1], rtol=0, atol=CLOSE)
