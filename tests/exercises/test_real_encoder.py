"""The exercises of chapter 14 tell right answers from mistakes, without the weights."""

import numpy as np
import torch

from exercises import real_encoder as check
from tests.exercises.proof import prove


def test_share_used_accepts_the_exact_number_and_names_each_slip():
    tokens, layers = 12, 10_646_784
    prove(
        check.share_used,
        layers + tokens * 2 * 384 + 384 + 2 * 384,
        10_657_152.0,
        wrong_ways={
            "the layers alone": [layers, 6 * 1_774_464],
            "all but the pooler": [22_713_216 - 384 * 384 - 384],
            "a share": [10_657_152 / 22_713_216],
            "T once per token": [layers + tokens * 3 * 384 + 2 * 384],
        },
    )


def test_sentence_vectors_accepts_loops_means_and_torch_and_names_each_mistake():
    def by_loops(Y, mask):
        vectors = []
        for rows, real in zip(Y, mask, strict=True):
            mean = sum(row for row, r in zip(rows, real, strict=True) if r) / real.sum()
            vectors.append(mean / np.sqrt((mean**2).sum()))
        return np.array(vectors)

    def by_where(Y, mask):
        mean = Y.mean(1, where=mask[..., None])
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def by_torch(Y, mask):
        real = torch.from_numpy(mask)[..., None]
        total = torch.from_numpy(Y).masked_fill(~real, 0).sum(1)
        return torch.nn.functional.normalize(total, dim=-1)

    def product(Y, mask):
        total = np.einsum("bnd,bn->bd", Y, mask)
        return total / np.linalg.norm(total, axis=1, keepdims=True)

    prove(
        check.sentence_vectors,
        by_loops,
        by_where,
        by_torch,
        wrong_ways={
            "padding times zero": [product],
            "padding in the mean": [
                lambda Y, mask: by_where(Y, np.ones_like(mask)),
            ],
            "not divided by the length": [
                lambda Y, mask: Y.mean(1, where=mask[..., None])
            ],
            "the first token": [
                lambda Y, mask: Y[:, 0] / np.sqrt((Y[:, 0] ** 2).sum(-1))[:, None]
            ],
        },
    )


def test_previous_score_accepts_masks_and_diagonals_and_names_each_mistake():
    def by_diagonal(A, lengths):
        total = 0
        for maps, n in zip(A, lengths, strict=True):
            total = total + np.diagonal(maps[:, :n, :n], -1, 1, 2)[:, :-1].sum(-1)
        return total / (np.array(lengths) - 2).sum()

    def by_mask(A, lengths):
        i = np.arange(1, A.shape[-1])
        is_word = i < np.array(lengths)[:, None] - 1
        weights = A[:, :, i, i - 1] * is_word[:, None]
        return weights.sum((0, -1)) / is_word.sum()

    def by_torch(A, lengths):
        found = [
            torch.from_numpy(A[b, :, i, i - 1])
            for b, n in enumerate(lengths)
            for i in range(1, int(n) - 1)
        ]
        return torch.stack(found).mean(0)

    def transposed(A, lengths):
        return by_diagonal(A.swapaxes(-1, -2), lengths)

    def after(A, lengths):
        found = [
            A[b, :, i, i + 1] for b, n in enumerate(lengths) for i in range(1, n - 1)
        ]
        return sum(found) / len(found)

    prove(
        check.previous_score,
        by_diagonal,
        by_mask,
        by_torch,
        wrong_ways={
            "the next token": [after],
            "heads averaged": [lambda A, lengths: by_mask(A, lengths).mean()],
            "rows and columns exchanged": [transposed],
        },
    )


def test_shares_brought_accepts_loops_and_torch_and_names_each_mistake():
    def by_loops(A, V, W_O):
        shares = np.zeros(A.shape)
        for i, row in enumerate(A):
            for j, weight in enumerate(row):
                shares[i, j] = np.sqrt(((weight * V[j] @ W_O) ** 2).sum())
            shares[i] /= shares[i].sum()
        return shares

    def by_torch(A, V, W_O):
        A, V, W_O = map(torch.from_numpy, (A, V, W_O))
        lengths = (A[..., None] * (V @ W_O)).norm(dim=-1)
        return lengths / lengths.sum(-1, keepdim=True)

    prove(
        check.shares_brought,
        by_loops,
        by_torch,
        wrong_ways={
            "the weights alone": [lambda A, V, W_O: A / A.sum(-1, keepdims=True)],
            "lengths before W_O": [
                lambda A, V, W_O: by_loops(A, V, np.eye(V.shape[1]))
            ],
        },
    )


def test_honest_score_accepts_loops_and_lists_and_names_each_mistake():
    def by_loops(right):
        counts = [sum(column) for column in right[0::2].T.tolist()]
        chosen = counts.index(max(counts))
        answers = right[1::2, chosen].tolist()
        return sum(answers) / len(answers)

    def by_torch(right):
        right = torch.from_numpy(right).double()
        return right[1::2, int(right[::2].sum(0).numpy().argmax())].mean()

    prove(
        check.honest_score,
        by_loops,
        by_torch,
        wrong_ways={
            "the colleague's number": [lambda right: right.sum(0).max() / len(right)],
            "the last of the best": [
                lambda right: right[1::2, np.argsort(right[::2].sum(0), kind="stable")][
                    :, -1
                ].mean()
            ],
            "a mean over all heads": [lambda right: right[1::2].mean(0).mean()],
        },
    )
