"""Right answers to the exercises of one chapter, written in other ways."""

import numpy as np


def by_a_factor(W_O, n_heads, head):
    keeps = np.arange(n_heads) != head
    return W_O * np.repeat(keeps, len(W_O) // n_heads)[:, None]


def as_a_product(A):
    """Each weight to its own power; 0 to the power 0 is 1."""
    return 1 / np.prod(A**A, axis=-1)


def by_a_matrix(W_O, n_heads, keep, drop):
    move = np.eye(n_heads)
    move[keep, drop], move[drop, drop] = 1, 0
    return np.kron(move, np.eye(len(W_O) // n_heads)) @ W_O


def by_running_minimum(curve, tolerance):
    worst = np.minimum.accumulate(curve)
    return int((worst >= curve[0] - tolerance - 1e-9).sum()) - 1


WAYS = {
    "silence_head": (by_a_factor,),
    "effective_keys": (as_a_product,),
    "drop_twin": (by_a_matrix,),
    "heads_to_spare": (by_running_minimum,),
}
