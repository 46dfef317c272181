"""Heads on different machines: each brings its share of the sum, and nobody notices."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from mha.nn import MultiHeadAttention
from tests.tolerances import NUMPY

SCRIPT = Path(__file__).parents[2] / "book" / "_data" / "parallel.py"
STORED = json.loads(SCRIPT.with_suffix(".json").read_text(encoding="utf-8"))
SHARED = [name for name in STORED if isinstance(STORED[name], dict)]

B, H, N, D_HEAD = 2, 6, 7, 5
D_MODEL = H * D_HEAD


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return what two processes find that share heads, or a batch."""
    if not (dist.is_available() and dist.is_gloo_available()):
        pytest.skip("this PyTorch has no gloo, through which processes talk")
    store = tmp_path_factory.mktemp("parallel") / "report.json"
    subprocess.run([sys.executable, SCRIPT, store], check=True, timeout=300)
    return json.loads(store.read_text(encoding="utf-8"))


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return MultiHeadAttention(D_MODEL, H, dtype=torch.float64)


@pytest.fixture
def X():
    return torch.randn(B, N, D_MODEL, dtype=torch.float64)


def share_of(layer, heads):
    """Return the layer as a machine has it that holds some heads only."""
    share, columns = copy.deepcopy(layer), slice(heads.start * 5, heads.stop * 5)
    for W in (share.W_Q, share.W_K, share.W_V):
        W.weight.data, W.bias.data = W.weight.data[columns], W.bias.data[columns]
    share.W_O.weight.data = share.W_O.weight.data[:, columns]
    share.W_O.bias.data /= 3  # each of three machines brings a third
    return share


SHARES = slice(0, 1), slice(1, 4), slice(4, 6)


# By hand


def test_of_six_heads_each_of_two_processes_holds_three(report):
    assert (report["processes"], report["heads"]) == (2, 6)
    assert report["heads in each process"] == 3


def test_each_process_holds_half_of_the_columns_and_half_of_the_rows(report):
    assert report["W_Q in each process"] == [24, 12]
    assert report["W_O in each process"] == [12, 24]


def test_processes_talk_once_in_a_call(report):
    """The sum over the heads; its gradient goes through W_Q, W_K and W_V back to X."""
    assert report["sums in a call"] == 1
    assert report["sums in its gradients"] == 3


def test_a_layer_talks_once_more_for_feed_forward(report):
    """Forward 1 + 1; backward 3 for W_Q, W_K and W_V, and 1 for W_1."""
    assert report["sums in a call of a layer"] == 2
    assert report["sums in the gradients of a layer"] == 4


# Laws


@pytest.mark.parametrize("options", [{}, {"is_causal": True}], ids=str)
def test_unequal_shares_of_the_heads_add_up_to_the_layer(layer, X, options):
    """Without any other process: three machines with one, three and two heads."""
    mask = torch.rand(B, 1, N, N) < 0.6
    whole = layer(X, mask=mask, **options)
    parts = [share_of(layer, heads)(X, mask=mask, **options) for heads in SHARES]
    torch.testing.assert_close(sum(parts), whole, rtol=0, atol=NUMPY)


def test_each_share_has_the_weights_of_its_heads(layer, X):
    _, whole = layer(X, return_weights=True)
    for heads in SHARES:
        _, A = share_of(layer, heads)(X, return_weights=True)
        torch.testing.assert_close(A, whole[:, heads], rtol=0, atol=NUMPY)


# Agreement


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("what", ["output", "gradients"])
def test_two_processes_find_what_one_finds(report, name, what):
    """Heads, then heads and hidden columns of an encoder, then halves of a batch."""
    assert report[name][what] <= NUMPY


def test_two_processes_see_the_weights_that_one_sees(report):
    assert report["weights"] <= NUMPY


def test_the_stored_report_is_what_the_script_gives_but_for_rounding(report):
    assert list(report) == list(STORED)
    for name, found in report.items():
        if name not in SHARED and name != "weights":
            assert found == STORED[name]


@pytest.mark.parametrize("name", SHARED)
def test_the_stored_differences_are_rounding(name):
    assert max(STORED[name].values()) <= NUMPY


# Refusals


def test_a_mask_for_each_head_is_refused_where_some_heads_are_elsewhere(layer, X):
    """Cut it like the heads; one for all heads fits everywhere."""
    share, mask = share_of(layer, SHARES[1]), torch.ones(B, H, N, N, dtype=torch.bool)
    with pytest.raises(ValueError, match="does not broadcast") as refusal:
        share(X, mask=mask)
    assert f"{(B, H, N, N)}" in str(refusal.value)
    assert f"{(B, 3, N, N)}" in str(refusal.value)
    assert share(X, mask=mask[:, SHARES[1]]).shape == X.shape
