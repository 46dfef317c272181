"""What chapter 16 says attention costs is what its script measures."""

import importlib.util
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.conftest import KEPT
from tests.tolerances import FLOAT32, assert_close

SCRIPT = Path(__file__).parents[2] / "book" / "_data" / "cost.py"

spec = importlib.util.spec_from_file_location("cost", SCRIPT)
cost = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cost)

TABLE = json.loads(cost.STORE.read_text(encoding="utf-8"))
ONE_MB = 1.0  # libraries differ by the work space that they lay out


@pytest.fixture(autouse=True)
def pages_go_back_at_once(monkeypatch):
    """Measure as the script does: tests/conftest.py lets processes keep memory."""
    for name in KEPT:
        monkeypatch.delenv(name, raising=False)


def stored(way, n):
    """Return the megabytes."""
    return TABLE[f"{way}, n = {n}"]["MB"]


def seconds(way, n):
    """Return the least processor time of a call that is not the first."""
    return TABLE[f"{way}, n = {n}"]["later"][0]


@cache
def megabytes_again(way, n):
    """Return the megabytes that a process of its own finds now."""
    return cost.measured(way, n)["MB"]


def scores(n):
    """Return the megabytes of all scores in float32."""
    return 4 * n**2 / cost.MB


# By hand


def test_two_tokens_cost_nothing_and_know_the_answer():
    """Keys of zeros weigh the same: the mean of 3 and 5 is 4, in every way to it."""
    zeros, V = np.zeros((2, 64), np.float32), np.ones((2, 64), np.float32)
    V[:] = [[3], [5]]
    for way, attend in cost.WAYS.items():
        first = 3 if "causal" in way else 4
        assert_close(attend(zeros, zeros, V)[:, 0], [first, 4], FLOAT32)


# Laws


@pytest.mark.parametrize(
    ("way", "arrays"), [("by hand", 3), ("by hand, float64", 6), ("in place", 1)]
)
@pytest.mark.parametrize("n", [2048, 8192])
def test_memory_is_that_of_the_arrays_of_scores_that_live_together(way, arrays, n):
    """S, E and A; the same, twice as wide; the one that is overwritten."""
    assert arrays * scores(n) <= stored(way, n) <= (arrays + 0.2) * scores(n) + ONE_MB


@pytest.mark.parametrize("way", ["chunked", "chunked, causal"])
def test_chunks_need_the_answer_a_block_and_little_else(way):
    for n in cost.SIZES:
        answer, block = 4 * n * cost.WIDTH / cost.MB, scores(min(n, 512))
        assert stored(way, n) <= answer + block + 1.5 * ONE_MB


def test_the_longest_text_keeps_what_is_promised():
    assert stored("chunked", 16384) <= 12
    assert stored("chunked", 16384) / stored("chunked", 8192) <= 2.2
    assert seconds("chunked", 16384) / seconds("chunked", 8192) <= 4.4


@pytest.mark.parametrize("n", [4096, 8192, 16384])
def test_chunks_are_as_fast_as_is_promised(n):
    chunked = seconds("chunked", n)
    assert chunked <= 1.6 * seconds("torch kernel", n)
    assert chunked <= 0.9 * seconds("in place", n)
    assert seconds("chunked, causal", n) <= 0.65 * chunked


@pytest.mark.parametrize("n", [2048, 4096])
def test_the_float64_of_a_root_costs_twice_the_memory_and_more_time(n):
    assert 1.8 <= stored("by hand, float64", n) / stored("by hand", n) <= 2.2
    assert seconds("by hand, float64", n) > 1.2 * seconds("by hand", n)


@pytest.mark.parametrize("what", ["first", "later"])
def test_the_least_stands_before_the_most(what):
    for name, row in TABLE.items():
        if name != "where":
            assert 0 < row[what][0] <= row[what][1]


# Agreement


@pytest.mark.parametrize("way", cost.WAYS)
def test_every_way_ends_at_the_same_numbers(way):
    Q, K, V = cost.draw(613)
    expected = cost.by_hand(Q, K, V)
    if "causal" in way:
        expected[:-1] = cost.kernel(Q, K, V, is_causal=True)[:-1]
    assert_close(cost.WAYS[way](Q, K, V), expected, FLOAT32)


def test_the_table_holds_every_way_at_every_size():
    keys = [f"{way}, n = {n}" for way in cost.WAYS for n in cost.sizes_of(way)]
    assert list(TABLE) == ["where", *keys]


def test_the_table_stands_as_the_script_writes_it():
    assert cost.STORE.read_text(encoding="utf-8") == cost.text_of(TABLE)


def test_the_table_names_the_machine_and_the_versions():
    assert list(TABLE["where"]) == [
        "processor", "vector extensions", "Python", "NumPy", "torch"
    ]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak anew")
@pytest.mark.parametrize("way", ["by hand", "chunked"])
def test_measuring_memory_again_gives_what_is_stored(way):
    found = megabytes_again(way, 2048)
    assert abs(found - stored(way, 2048)) <= ONE_MB + 0.1 * found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak anew")
def test_measured_again_twice_the_text_takes_less_than_twice_the_memory():
    half, whole = (megabytes_again("chunked", n) for n in (2048, 4096))
    assert whole / half <= 2


# Refusals


def test_a_way_that_does_not_exist_is_an_error():
    line = [sys.executable, cost.__file__, "by foot", "64"]
    assert subprocess.run(line, capture_output=True).returncode == 1
