"""Two processes share the heads of a layer: what they find is what one finds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist

from tests.tolerances import NUMPY

SCRIPT = Path(__file__).parents[2] / "book" / "_data" / "parallel.py"
STORED = json.loads(SCRIPT.with_suffix(".json").read_text(encoding="utf-8"))
SHARED = [name for name in STORED if isinstance(STORED[name], dict)]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return what two processes find that share heads."""
    if not (dist.is_available() and dist.is_gloo_available()):
        pytest.skip("this PyTorch has no gloo, through which processes talk")
    store = tmp_path_factory.mktemp("parallel") / "report.json"
    subprocess.run([sys.executable, SCRIPT, store], check=True, timeout=300)
    return json.loads(store.read_text(encoding="utf-8"))


def test_each_process_holds_half_of_the_heads_columns_and_rows(report):
    assert (report["processes"], report["heads"]) == (2, 6)
    assert report["heads in each process"] == 3
    assert report["W_Q in each process"] == [24, 12]
    assert report["W_O in each process"] == [12, 24]


def test_processes_talk_once_in_a_call(report):
    """The sum over the heads; its gradient goes through W_Q, W_K and W_V back to X."""
    assert report["sums in a call"] == 1
    assert report["sums in its gradients"] == 3


@pytest.mark.parametrize("what", ["output", "gradients"])
@pytest.mark.parametrize("name", SHARED)
def test_two_processes_find_what_one_finds(report, name, what):
    """Heads, then heads and hidden columns of an encoder."""
    assert report[name][what] <= NUMPY
    assert max(STORED[name].values()) <= NUMPY


def test_the_stored_report_is_what_the_script_gives_but_for_rounding(report):
    assert list(report) == list(STORED) and report["weights"] <= NUMPY
    for name, found in report.items():
        if name not in SHARED and name != "weights":
            assert found == STORED[name]
