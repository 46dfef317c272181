"""Right answers to the exercises of one chapter, written in other ways."""

import numpy as np
import torch


def by_torch(S, mask):
    S, mask = torch.from_numpy(S), torch.from_numpy(mask)
    return S.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)


def borrowed(lengths):
    n = max(lengths)
    future = np.triu(np.ones((n, n), dtype=bool), k=1)
    filler = np.arange(n) < n - np.reshape(lengths, (-1, 1, 1, 1))
    return future | filler


def by_steps(n_q, n_k):
    return [[j - n_k <= i - n_q for j in range(n_k)] for i in range(n_q)]


def inputs(n=5):
    rng = np.random.default_rng(11)
    return rng.normal(size=(3, n, 2))


def the_rest_gets_the_whole_unit(attend):
    Q, K, V = inputs()
    M = np.array([True, True, False, True, False])
    _, A = attend(Q, K, V, mask=M, return_weights=True)
    return bool(np.isclose(A[:, M].sum(-1), 1, atol=1e-5).all())


WAYS = {
    "causal_row": ([0.22, 0.67, 0.11, 0], np.array([2, 6, 1, 0]) / 9),
    "safe_masked_softmax": (by_torch,),
    "batch_mask": (lambda lengths: ~borrowed(lengths),),
    "last_rows_mask": (by_steps,),
    "denominator_law": (the_rest_gets_the_whole_unit,),
}
