"""The laws with other seeds, and all laws where tests/laws asks a few of them."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch.nn.functional as F
from torch import nn

import mha
from mha import laws, zoo
from tests.laws import test_blind as blind
from tests.laws import test_designs as designs
from tests.laws import test_encoders as encoders
from tests.laws import test_modules as modules
from tests.laws import test_words as sayings
from tests.laws import zoo_laws
from tests.laws.reports import STORED, broken
from tests.laws.right import RIGHT
from tests.laws.test_blind import (
    CROSSED,
    ROWS,
    attend,
    cut,
    first_keys_with_minus_1e9,
    first_length_for_all,
    mask_of_the_first,
    merged,
)
from tests.weekly.right import MORE

RIGHT = RIGHT | MORE


class Cross(nn.Module):
    """Other tokens must be given; a slip projects the values from the keys."""

    def __init__(self, d_model, n_heads, slip=False):
        super().__init__()
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d_model, d_model))
        self.n_heads, self.slip = n_heads, slip

    def forward(self, query, key, value, mask=None):
        value = key if self.slip else value
        given = (self.W_Q(query), self.W_K(key), self.W_V(value))
        return self.W_O(merged(attend(*(cut(x, self.n_heads) for x in given), mask)))


# These three are what the zoo has, too.
NAMED = {
    mask_of_the_first: "mask_of_first_sequence",
    first_length_for_all: "mask_of_first_sequence",
    first_keys_with_minus_1e9: "minus_1e9_mask",
}


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_breaks_no_law(name, seed):
    assert broken(laws.check(RIGHT[name], seed=seed)) == []


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("member", zoo.WRONG, ids=lambda member: member.name)
def test_a_bug_breaks_a_law_whatever_the_seed(member, seed):
    found = set(broken(laws.check(member, seed=seed)))
    assert found
    assert found & set(STORED[member.name])


@pytest.mark.parametrize("name", STORED)
def test_a_member_breaks_the_stored_laws_and_no_other(name):
    assert zoo_laws.computed()[name] == STORED[name]


@pytest.mark.parametrize(
    ("subject", "words", "slugs"), [*ROWS, (Cross(8, 2, slip=True), {}, CROSSED)]
)
def test_a_bug_breaks_the_laws_of_its_row_and_nobody_is_named_falsely(
    subject, words, slugs
):
    report, (first, *_) = laws.check(subject, **words), slugs.split()
    if first == "…":
        assert {*slugs.split()[1:]} <= {*broken(report)}
    else:
        assert broken(report) == slugs.split()
    like = report.looks_like
    assert (like and like.name) == NAMED.get(subject)


@pytest.mark.parametrize("right", [Cross(8, 2), blind.as_encoder(blind.encoder_layer)])
def test_the_same_without_the_slip_is_right(right):
    assert broken(laws.check(right)) == []


def test_nan_is_expected_by_no_law():
    report = laws.check(blind.lost_in_half, dtype="float16")
    assert len(report.broken) > 3
    for finding in report.broken:
        assert isinstance(finding.expected, str) or not np.isnan(finding.expected).any()


@pytest.mark.parametrize("name", sayings.LAWFUL)
def test_what_is_right_breaks_no_law_once_its_word_is_said(name):
    sayings.test_what_is_right_breaks_no_law_once_its_word_is_said(name, None)


@pytest.mark.parametrize(
    ("run", "words", "name"),
    [
        (sayings.unscaled_fused, sayings.GPT, "no_scale"),
        (sayings.sideways, {"batch_first": False}, "mask_inverted"),
    ],
)
def test_a_bug_in_an_adapter_is_named(run, words, name):
    sayings.test_a_bug_in_an_adapter_is_named(run, words, name, None)


@pytest.mark.parametrize("design", designs.DESIGNS)
def test_the_right_function_of_a_design_breaks_no_law_and_a_wrong_one_does(design):
    own, right, wrong = designs.DESIGNS[design]
    assert broken(laws.check(designs.attention(**right), design=design)) == []
    for options in wrong:
        function = designs.attention(**options)
        assert broken(laws.check(function, ["equals_reference", own], design=design))


def test_a_design_is_hinted_at_where_all_that_is_broken_holds_under_it():
    asked = ["equals_reference", "self_only_mask", "dtype_is_kept", "rising_scores"]
    hinted = laws.check(designs.Llama(), asked).hinted.replace("\n    ", " ")
    assert "causal='built in', design=\"rotary(" in hinted


# From chapter 16: blocks of up to 512 keys


def in_blocks(Q, K, V, mask=None, *, is_causal=False, forgets=False, leaks=False):
    i, j = np.ogrid[: len(Q), : len(K)]
    if is_causal:
        inside = j % 512 <= i % 512 if leaks else j <= i
        mask = inside if mask is None else mask & inside
    if not forgets:
        return mha.scaled_dot_product_attention(Q, K, V, mask)
    S = Q @ K.T / math.sqrt(K.shape[-1])
    S = S if mask is None else np.where(mask, S, -np.inf)
    top, total, mix = np.finfo(float).min, 0.0, 0.0
    for keys in np.split(np.arange(len(K)), range(512, len(K), 512)):
        top = np.maximum(top, S[:, keys].max(1, keepdims=True))
        E = np.exp(S[:, keys] - top)
        total, mix = total + E.sum(1, keepdims=True), mix + E @ V[keys]
    return mix / np.where(total == 0, 1, total)


@pytest.mark.parametrize(
    ("slip", "slugs"),
    [({}, []), ({"forgets": True}, ["rising_scores"]),
     ({"leaks": True}, ["running_means"])],
)  # fmt: skip
def test_a_second_block_is_reached(slip, slugs):
    def run(Q, K, V, mask=None, *, is_causal=False):
        return in_blocks(Q, K, V, mask, is_causal=is_causal, **slip)

    assert broken(laws.check(run, ["rising_scores", "running_means"])) == slugs


class DropsByNumber(modules.Attn):
    def drop(self, Y):
        return F.dropout(Y, 0.1, self.training)


@pytest.mark.parametrize(
    "layer",
    [
        DropsByNumber(8, 2),
        modules.Attn(8, 2).half(),
        modules.Attn(64, 4),
        modules.hooked(hook=lambda m, x, y: None),
        modules.changed(modules.Attn(8, 2), note="mine", calls=3),
    ],
)
def test_a_right_layer_breaks_no_law_however_it_is_built(layer):
    assert broken(laws.check(layer, modules.FEW)) == []


@modules.JUDGED
def test_the_layer_that_was_handed_in_is_the_one_that_is_judged(layer, slugs):
    assert {*slugs} <= {*broken(laws.check(layer, modules.FEW))}


@pytest.mark.parametrize("name", encoders.LAWFUL)
def test_a_right_encoder_breaks_no_law(name):
    encoders.test_a_right_encoder_breaks_no_law(name)


@pytest.mark.parametrize("member", zoo.ENCODERS[1:], ids=lambda member: member.name)
def test_a_wrong_encoder_is_named_and_breaks_the_same_laws_on_tensors(member):
    encoders.test_a_wrong_encoder_is_named_and_breaks_the_same_laws_on_tensors(member)


def test_the_kill_matrix_does_not_ask_who_has_imported_torch_before():
    code = "from mha import laws, zoo; print(laws.kill_matrix([laws."
    code += "gradients_are_slopes], [zoo.gradient_stopped]).killed.tolist())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.stdout == "[[True]]\n", done.stderr
