"""Bugs that somebody wrote who had read the README alone, in small."""

import math

import numpy as np
import pytest
import torch

import mha
from mha import laws
from tests.laws.reports import broken


def weights(Q, K, mask=None):
    return mha.scaled_dot_product_attention(Q, K, K, mask, return_weights=True)[1]


def found(function, *only, **said):
    return set(broken(laws.check(function, only or None, **said)))


# Laws


def test_a_function_of_sequences_is_asked_about_a_batch():
    def values_of_all(Q, K, V, mask=None):
        _b, _n, _d = Q.shape
        return np.einsum("bqk,ckd->bqd", weights(Q, K, mask), V)

    def mask_of_the_first(Q, K, V, mask=None):
        _b, _n, _d = Q.shape
        return weights(Q, K, None if mask is None else mask[:1]) @ V

    assert "batches_and_heads_stay_apart" in found(values_of_all)
    assert found(mask_of_the_first) == {"batch_masks_reach_their_own"}
