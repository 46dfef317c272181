"""Right answers to the exercises of one chapter, written in other ways."""

import math

import numpy as np
import torch


def scaled_queries(Q, K):
    return np.einsum("...ic,...jc->...ij", Q * float(Q.shape[-1] ** -0.5), K)


def doubling_by_repeat(attend):
    rng = np.random.default_rng(3)
    Q, K, V = (rng.normal(size=(n, 3)) for n in (2, 5, 5))
    gap = attend(Q, K.repeat(2, 0), V.repeat(2, 0)) - attend(Q, K, V)
    return abs(gap).max() < 1e-9


WAYS = {
    "variance_left": (0.125, np.float32(0.125)),
    "scaled_scores": (scaled_queries,),
    "mystery_divisor": ("D_K", " d_k "),
    "scale_for_variance": (
        lambda variance, d_k: 1 / math.sqrt(d_k * variance**2),
        lambda variance, d_k: torch.tensor(variance * d_k**0.5) ** -1,
    ),
    "doubling_law": (doubling_by_repeat,),
}
