"""Right answers to the exercises of one chapter, written in other ways."""

import numpy as np

from mha import laws


def by_loops(n, n_heads):
    mirrors = [n - 1 - i for i in range(n) for _ in range(n_heads)]
    return [mirrors[r * n : (r + 1) * n] for r in range(n_heads)]


def flipped(n, weight):
    score = np.log((n - 1) * weight / (1 - weight))
    return np.fliplr(np.eye(n)) * score * n**0.5


def with_numpy(n_target, lengths):
    source = np.arange(lengths.max()) < lengths[:, None, None, None]
    return np.tril(np.ones((n_target, n_target), dtype=bool)), source


WAYS = {
    "detour": (by_loops,),
    "mirror_queries": (flipped,),
    "catch_ten": (
        [
            laws.scores_keep_unit_variance,
            laws.parameters_ignore_heads,
            laws.padding_changes_nothing,
        ],
    ),
    "decoder_masks": (with_numpy,),
}
