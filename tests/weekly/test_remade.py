"""The scripts of `book/_data` make again what they have stored, a part of each."""

import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

import torch

from _data import (
    cost,
    digits,
    induction,
    live_encoder,
    stress_runs,
    trained_positions,
    two_dragons,
    warm_up,
)
from _data.training import stored
from tests.conftest import KEPT

IMAGE = 1 / 500  # what one image of the test set of chapter 14 is worth
ONE_MB = 1.0  # libraries differ by the work space that they lay out


@pytest.fixture(autouse=True)
def one_thread():
    """Fix the order of sums, as the scripts do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def is_close(found, wanted, atol):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)


@pytest.mark.parametrize(
    "name",
    ["u=2 h=1", "u=4 h=2", "contents ±1, deep readout", "non-linear layer first, u=2"],
)
def test_two_dragons(name):
    again = two_dragons.run(seed=1, **two_dragons.cells()[name])
    is_close(again, stored("two_dragons")[name][1], 0.02)


def test_digits():
    again, table = digits.run(1), stored("digits")
    assert set(again) == set(table)
    for name, found in again.items():
        is_close(found, table[name][1], 16 * IMAGE if "," in name else 8 * IMAGE)


def test_induction():
    again, table = induction.run(1), stored("induction")
    assert set(again) == set(table)
    for name, found in again.items():
        is_close(found, table[name][1], 0.1)


@pytest.mark.parametrize("name", ["post 0.003 warm-up 0", "pre 0.001 warm-up 100"])
def test_warm_up(name):
    assert list(stored("warm_up")) == list(warm_up.cells())
    accuracy, curve = warm_up.run(0, *warm_up.cells()[name])
    wanted, climb = stored("warm_up")[name][0]
    is_close(accuracy, wanted, 0.03)
    is_close(curve[:3], climb[:3], 0.2)


@pytest.mark.parametrize("name", ["one_layer", "merge_without_transpose"])
def test_stress(name):
    _, again = stress_runs.run(name, seed=0)
    wanted, *_ = stress_runs.select(stress_runs.stored(), name)
    is_close(again["fixed"], wanted["fixed"], 0.02)
    is_close(again["alone"], wanted["alone"], 0.05)


@pytest.mark.parametrize("name", ["previous turned", "reverse sinusoids"])
def test_trained_positions(name):
    task, way = name.split(" ")
    again = trained_positions.run(way, task, seed=2)
    is_close(again, stored("trained_positions")[name][2], 0.03)


def test_longer_training_begins_like_a_short_one(monkeypatch):
    monkeypatch.setattr(trained_positions, "MILESTONES", (600,))
    (again,) = trained_positions.patience("turned", seed=1)
    is_close(again, stored("trained_positions")["reverse turned, longer"][1][0], 0.03)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak anew")
@pytest.mark.parametrize("way", ["by hand", "in place", "chunked"])
def test_the_memory_of_attention(way, monkeypatch):
    for (
        name
    ) in KEPT:  # tests/conftest.py lets processes keep memory, the script does not
        monkeypatch.delenv(name, raising=False)
    again, wanted = cost.measured(way, 2048)["MB"], stored("cost")[f"{way}, n = 2048"]
    is_close(again, wanted["MB"], ONE_MB + 0.1 * again)


def test_a_model_of_the_live_encoder():
    _, facts = stress_runs.run("right", live_encoder.SEED)
    wanted = stored("live_encoder")["models"]["right"]
    is_close(facts["alone"], wanted["alone"], 0.02)
