"""The laws with other seeds, and all laws where tests/laws asks a few of them."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from mha import laws, zoo
from tests.laws import right, zoo_laws
from tests.laws import test_blind as blind
from tests.laws import test_designs as designs
from tests.laws import test_encoders as encoders
from tests.laws import test_modules as modules
from tests.laws import test_words as sayings
from tests.laws.reports import STORED, broken
from tests.laws.right import as_function, cut_into_heads, hidden_by_where
from tests.laws.test_blind import (
    ROWS,
    first_keys_with_minus_1e9,
    first_length_for_all,
)

# What is right, too


def one_by_one(Q, K, V, mask=None):
    """A loop over the batch, with a mask for each sequence."""
    masks = [None] * len(Q) if mask is None else mask
    return np.stack(
        [hidden_by_where(*given) for given in zip(Q, K, V, masks, strict=True)]
    )


def with_every_option(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
    need_weights=False,
):  # fmt: skip
    """PyTorch's signature; the mask is of booleans."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    S = torch.einsum("bhqd,bhkd->bhqk", query * scale, key)
    if is_causal:
        S = S.masked_fill(~torch.ones(S.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    if attn_mask is not None:
        S = S.masked_fill(~attn_mask, -math.inf)
    A = torch.nan_to_num(S.softmax(-1))
    Y = F.dropout(A, dropout_p) @ value
    return (Y, A) if need_weights else Y


def on_three_axes(Q, K, V):
    """(batch, n, d) and nothing else."""
    S = torch.bmm(Q, K.transpose(1, 2)) / K.shape[-1] ** 0.5
    return torch.bmm(S.softmax(2), V)


def refuses_strides(X, weights, n_heads, mask=None):
    """A layer with `view`, which raises where an array is not contiguous."""
    X = X.view(-1).view(X.shape)
    Y = F.scaled_dot_product_attention(*cut_into_heads(X, weights, n_heads), mask)
    return Y.transpose(1, 2).flatten(2) @ weights["W_O"]


RIGHT = right.RIGHT | {
    "on three axes": on_three_axes,
    "one by one": one_by_one,
    "one by one, as said": as_function(one_by_one, mask_shape="bqk", batch_first=True),
    "with every option": with_every_option,
    "refuses strides": laws.Adapter(refuses_strides, batch_first=True),
}

# These two are what the zoo has, too.
NAMED = {
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


@pytest.mark.parametrize(("subject", "words", "slugs"), ROWS)
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


def test_the_encoder_without_the_slip_is_right():
    assert broken(laws.check(blind.as_encoder(blind.encoder_layer))) == []


def test_nan_is_never_expected():
    blind.test_nan_is_never_expected(None)


@sayings.NAMED
def test_a_bug_in_an_adapter_is_named(run, words, name):
    sayings.test_a_bug_in_an_adapter_is_named(run, words, name, None)


@pytest.mark.parametrize("design", designs.DESIGNS)
def test_the_right_function_of_a_design_breaks_no_law(design):
    _, options, _ = designs.DESIGNS[design]
    assert broken(laws.check(designs.attention(**options), design=design)) == []


@pytest.mark.parametrize("name", sayings.LAWFUL)
def test_what_is_right_breaks_no_law_once_its_word_is_said(name):
    sayings.test_what_is_right_breaks_no_law_once_its_word_is_said(name, None)


def test_a_design_is_hinted_at_where_all_that_is_broken_holds_under_it():
    asked = ["equals_reference", "self_only_mask", "dtype_is_kept", "rising_scores"]
    hinted = laws.check(designs.Llama(), asked).hinted.replace("\n    ", " ")
    assert "causal='built in', design=\"rotary(" in hinted


@pytest.mark.parametrize(
    "layer",
    [
        modules.Attn(8, 2).half(),
        modules.Attn(64, 4),
        modules.hooked(hook=lambda m, x, y: None),
        modules.changed(modules.Attn(8, 2), note="mine", calls=3),
    ],
)
def test_a_right_layer_breaks_no_law_however_it_is_built(layer):
    assert broken(laws.check(layer, modules.FEW)) == []


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
