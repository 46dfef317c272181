"""Right answers to the exercises of one chapter, written in other ways."""

import numpy as np
import torch


def by_where(Y, mask):
    mean = Y.mean(1, where=mask[..., None])
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def by_diagonal(A, lengths):
    total = 0
    for maps, n in zip(A, lengths, strict=True):
        total = total + np.diagonal(maps[:, :n, :n], -1, 1, 2)[:, :-1].sum(-1)
    return total / (np.array(lengths) - 2).sum()


def shares_by_torch(A, V, W_O):
    brought = torch.from_numpy(A)[..., None] * torch.from_numpy(V @ W_O)
    return torch.nn.functional.normalize(brought.norm(dim=-1), p=1, dim=-1)


def best_by_torch(right):
    right = torch.from_numpy(right).double()
    return right[1::2, int(right[::2].sum(0).numpy().argmax())].mean()


WAYS = {
    "share_used": (10_657_152.0,),
    "sentence_vectors": (by_where,),
    "previous_score": (by_diagonal,),
    "shares_brought": (shares_by_torch,),
    "honest_score": (best_by_torch,),
}
