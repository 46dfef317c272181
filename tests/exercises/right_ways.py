"""Right answers to the exercises, written differently from those in the book.

Numbers that agree are right whatever computes them, see tests/exercises/test_engine.py;
here stand laws, masks, texts and rounded values.
"""

import math

import numpy as np
import torch

import mha
from exercises import random_arrays
from mha import laws


def doubling_by_repeat(attend):
    rng = np.random.default_rng(3)
    Q, K, V = (rng.normal(size=(n, 3)) for n in (2, 5, 5))
    gap = attend(Q, K.repeat(2, 0), V.repeat(2, 0)) - attend(Q, K, V)
    return abs(gap).max() < 1e-9


def masks_by_torch(S, mask):
    S, mask = torch.from_numpy(S), torch.from_numpy(mask)
    return S.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)


def by_torch_permutation(attend):
    torch.manual_seed(1)
    Q, K, V = (torch.randn(s, 3).numpy() for s in (2, 7, 7))
    order = torch.randperm(7).numpy()
    return bool(np.abs(attend(Q, K[order], V[order]) - attend(Q, K, V)).max() < 1e-5)


def winner_takes_all(contents):
    return np.eye(2)[contents.argmax(1)], 1


def by_undoing(model):
    """Shuffle, and put the outputs back with the inverse order."""
    X = np.random.default_rng(1).normal(size=(7, 4))
    order = np.array([2, 4, 6, 0, 1, 3, 5])
    back = np.argsort(order)
    return bool(np.abs(model(X[order])[back] - model(X)).max() > 1e-9)


def alone(norm):
    x = np.random.default_rng(3).normal(size=(3, 2, 7))
    return all(np.allclose(norm(x[[b]])[0], norm(x)[b]) for b in range(3))


def by_recursion(numbers, fails, k=0):
    if k == len(numbers):
        return numbers
    attempt = np.where(np.arange(len(numbers)) == k, 0, numbers)
    return by_recursion(attempt if fails(attempt) else numbers, fails, k + 1)


def with_a_reference(attend):
    Q, K, V = random_arrays((7, 8), (2000, 8), (2000, 8), seed=5)
    order = np.argsort(K @ Q[0])
    expected = mha.scaled_dot_product_attention(Q, K[order], V[order])
    return np.allclose(attend(Q, K[order], V[order]), expected)


def as_a_test(attend):
    A = attend(np.ones((8, 2)), np.ones((8, 2)), np.eye(8))
    i, j = np.nonzero(A)
    assert (abs(i - j) < 3).all()
    return True


WAYS = {
    "dot_product.spread_of_thirds": (5.77, np.sqrt(300 / 9)),
    "softmax.score_for_half": (4.1, 4.099),
    "scale.variance_left": (0.125, np.float32(0.125)),
    "scale.mystery_divisor": ("D_K", " d_k "),
    "scale.doubling_law": (doubling_by_repeat,),
    "masks.causal_row": ([0.22, 0.67, 0.11, 0], np.array([2, 6, 1, 0]) / 9),
    "masks.safe_masked_softmax": (masks_by_torch,),
    "attention.weight_of_the_middle": (np.sqrt(0.36 * 0.16), 0.6 * 0.4),
    "attention.self_attention": (
        lambda X, W_Q, W_K, W_V: mha.multi_head_attention(
            X, W_Q, W_K, W_V, np.eye(W_V.shape[1]), 1
        ),
    ),
    "attention.key_order_law": (by_torch_permutation,),
    "why_heads.two_of_three": (0.667, 0.67),
    "why_heads.break_the_theorem": (winner_takes_all,),
    "split.head_and_column": (divmod(389, 768 // 12), [6, 5]),
    "split.strides_of_heads": (
        torch.zeros(2, 5, 12).unflatten(-1, (3, 4)).transpose(1, 2).stride(),
    ),
    "split.wrong_step": ("Split without swap", " split without swap "),
    "output.fold_value_bias": (
        lambda b_V, W_O, b_O: W_O.T @ b_V + b_O,
        lambda b_V, W_O, b_O: torch.from_numpy(b_V @ W_O) + torch.from_numpy(b_O),
    ),
    "multi_head.row_without_mask": (
        np.array([39, 57, -3, 15]) / 14,
        ["39/14", "57/14", "-3/14", "15/14"],
    ),
    "positions.likeness_of_positions": (math.cos(100) + math.cos(1), 1.4),
    "positions.position_ids": (
        lambda mask: (np.cumsum(mask, axis=1) - 1) * mask,
        lambda mask: (torch.from_numpy(mask).cumsum(-1) - 1) * torch.from_numpy(mask),
    ),
    "positions.tells_order": (by_undoing,),
    "encoder_layer.length_after_norm": (8, np.sqrt(64)),
    "encoder_layer.batch_law": (alone,),
    "encoder.catch_ten": (
        [
            laws.scores_keep_unit_variance,
            laws.parameters_ignore_heads,
            laws.padding_changes_nothing,
        ],
    ),
    "real_encoder.share_used": (10_657_152.0,),
    "laws.inputs_needed": (math.ceil(math.log(0.01) / math.log(0.99)), 459.0),
    "laws.shrink": (by_recursion,),
    "long.scores_memory": (65536**2 * 4 / 2**30, np.float32(16)),
    "long.long_text_law": (with_a_reference,),
    "since_2017.cache_with_windows": (37_888 / 196_608, 0.19),
    "since_2017.far_keys_law": (as_a_test,),
}
