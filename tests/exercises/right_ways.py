"""Right answers to the exercises, written differently from those in the book."""

import math

import numpy as np
import torch

import mha
from exercises import random_arrays
from mha import laws


def with_nan_to_num(Q, K):
    lengths = np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(K, axis=1)
    return np.nan_to_num(Q @ K.T / lengths)


def softmax_by_logarithms(x, axis):
    return np.exp(x - np.logaddexp.reduce(x, axis, keepdims=True))


def temperature_by_logarithms(gap, n, share):
    rival = (1 - share) / (n - 1)
    return gap / (np.log(share) - np.log(rival))


def jacobian_by_einsum(s):
    p = torch.softmax(torch.from_numpy(s), -1)
    return torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p)


def scaled_queries(Q, K):
    return np.einsum("...ic,...jc->...ij", Q * float(Q.shape[-1] ** -0.5), K)


def doubling_by_repeat(attend):
    rng = np.random.default_rng(3)
    Q, K, V = (rng.normal(size=(n, 3)) for n in (2, 5, 5))
    gap = attend(Q, K.repeat(2, 0), V.repeat(2, 0)) - attend(Q, K, V)
    return abs(gap).max() < 1e-9


def masks_by_torch(S, mask):
    S, mask = torch.from_numpy(S), torch.from_numpy(mask)
    return S.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)


def borrowed(lengths):
    n = max(lengths)
    future = np.triu(np.ones((n, n), dtype=bool), k=1)
    filler = np.arange(n) < n - np.reshape(lengths, (-1, 1, 1, 1))
    return future | filler


def by_steps(n_q, n_k):
    return [[j - n_k <= i - n_q for j in range(n_k)] for i in range(n_q)]


def attention_by_einsum(Q, K, V):
    A = mha.softmax(np.einsum("ic,jc->ij", Q, K) / np.sqrt(Q.shape[-1]))
    return np.einsum("ij,jb->ib", A, V)


def by_torch_permutation(attend):
    torch.manual_seed(1)
    Q, K, V = (torch.randn(s, 3).numpy() for s in (2, 7, 7))
    order = torch.randperm(7).numpy()
    return bool(np.abs(attend(Q, K[order], V[order]) - attend(Q, K, V)).max() < 1e-5)


def by_normal_equations(outputs, contents, new_outputs):
    return new_outputs @ np.linalg.solve(outputs.T @ outputs, outputs.T @ contents)


def winner_takes_all(contents):
    return np.eye(2)[contents.argmax(1)], 1


def by_slices(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=-3)


def output_by_einsum(heads, W_O):
    blocks = W_O.reshape(heads.shape[-3], heads.shape[-1], -1)
    return np.einsum("...hnv,hvd->...nd", heads, blocks)


def matrix_by_matrix(d_model, n_heads, d_k, d_v, bias):
    shapes = [(d_model, d_k), (d_model, d_k), (d_model, d_v)] * n_heads
    shapes += [(n_heads * d_v, d_model)]
    return sum((rows + bias) * columns for rows, columns in shapes)


def by_inverse(before, after, W_O, n_heads):
    concat = (after - before) @ np.linalg.inv(W_O)
    return np.abs(concat).reshape(len(before), n_heads, -1).sum((0, 2)).argmax()


def multi_head_by_einsum(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    Q, K, V = ((X @ W).reshape(len(X), n_heads, -1) for W in (W_Q, W_K, W_V))
    S = np.einsum("ihc,jhc->hij", Q, K) / np.sqrt(Q.shape[-1])
    A = mha.masked_softmax(S, mask)
    return np.einsum("hij,jhc->ihc", A, V).reshape(len(X), -1) @ W_O


def positions_by_complex_numbers(n, d_model):
    rate = np.exp(-np.arange(0, d_model, 2) * math.log(10000) / d_model)
    z = np.exp(1j * np.outer(np.arange(n), rate))
    return np.stack([z.imag, z.real], axis=-1).reshape(n, d_model)


def turn_by_blocks(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = torch.tensor(k / 10000 ** (2 * i / d_model), dtype=torch.float64)
        blocks.append(torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()]).view(2, 2))
    return torch.block_diag(*blocks)


def by_undoing(model):
    """Shuffle, and put the outputs back with the inverse order."""
    X = np.random.default_rng(1).normal(size=(7, 4))
    order = np.array([2, 4, 6, 0, 1, 3, 5])
    back = np.argsort(order)
    return bool(np.abs(model(X[order])[back] - model(X)).max() > 1e-9)


def norm_of_torch(x, gain, bias, eps):
    x, gain, bias = map(torch.from_numpy, (x, gain, bias))
    return torch.nn.functional.layer_norm(x, gain.shape, gain, bias, eps)


def counted(d_model, d_ff):
    layer = torch.nn.TransformerEncoderLayer(d_model, 1, d_ff, device="meta")
    return sum(p.numel() for p in layer.parameters())


def loop(X, attend, feed, norm_1, norm_2, norm_first):
    for part, norm in ((attend, norm_1), (feed, norm_2)):
        X = X + part(norm(X)) if norm_first else norm(X + part(X))
    return X


def alone(norm):
    x = np.random.default_rng(3).normal(size=(3, 2, 7))
    return all(np.allclose(norm(x[[b]])[0], norm(x)[b]) for b in range(3))


def by_loops(n, n_heads):
    mirrors = [n - 1 - i for i in range(n) for _ in range(n_heads)]
    return [mirrors[r * n : (r + 1) * n] for r in range(n_heads)]


def flipped(n, weight):
    score = np.log((n - 1) * weight / (1 - weight))
    return np.fliplr(np.eye(n)) * score * n**0.5


def with_numpy(n_target, lengths):
    source = np.arange(lengths.max()) < lengths[:, None, None, None]
    return np.tril(np.ones((n_target, n_target), dtype=bool)), source


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


def by_where(Y, mask):
    mean = Y.mean(1, where=mask[..., None])
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def by_diagonal(A, lengths):
    total = 0
    for maps, n in zip(A, lengths, strict=True):
        total = total + np.diagonal(maps[:, :n, :n], -1, 1, 2)[:, :-1].sum(-1)
    return total / (np.array(lengths) - 2).sum()


def real_encoder_by_torch(right):
    right = torch.from_numpy(right).double()
    return right[1::2, int(right[::2].sum(0).numpy().argmax())].mean()


def by_recursion(numbers, fails, k=0):
    if k == len(numbers):
        return numbers
    attempt = np.where(np.arange(len(numbers)) == k, 0, numbers)
    return by_recursion(attempt if fails(attempt) else numbers, fails, k + 1)


def by_arrays(n, n_layers, n_heads, n_kv_heads, d_head, n_bytes):
    K = np.broadcast_to(np.zeros(1), (n_layers, n_kv_heads, n, d_head))
    return 2 * K.size * n_bytes


def by_softmax(Y_a, lse_a, Y_b, lse_b):
    a, b = mha.softmax(np.stack([lse_a, lse_b]), axis=0)[..., None]
    return a * Y_a + b * Y_b, np.logaddexp(lse_a, lse_b)


def by_concatenation(x, K, V, W_Q, W_K, W_V):
    K = np.concatenate([K, (x @ W_K)[None]])
    V = np.concatenate([V, (x @ W_V)[None]])
    A = mha.softmax(K @ (x @ W_Q) / np.sqrt(len(x)))
    return A @ V, K, V


def with_a_reference(attend):
    Q, K, V = random_arrays((7, 8), (2000, 8), (2000, 8), seed=5)
    order = np.argsort(K @ Q[0])
    expected = mha.scaled_dot_product_attention(Q, K[order], V[order])
    return np.allclose(attend(Q, K[order], V[order]), expected)


def since_2017_by_complex_numbers(x, positions):
    d = x.shape[-1]
    speeds = 10000.0 ** (-np.arange(0, d, 2) / d)
    turned = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(positions, speeds))
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def by_index(K, n_heads):
    return K[..., np.arange(n_heads) // (n_heads // K.shape[-3]), :, :]


def as_a_test(attend):
    A = attend(np.ones((8, 2)), np.ones((8, 2)), np.eye(8))
    i, j = np.nonzero(A)
    assert (abs(i - j) < 3).all()
    return True


WAYS = {
    "dot_product.scores": (
        lambda Q, K: np.einsum("ic,jc->ij", Q, K),
        lambda Q, K: torch.from_numpy(Q) @ torch.from_numpy(K).T,
    ),
    "dot_product.spread_of_thirds": (5.77, np.sqrt(300 / 9)),
    "dot_product.cosine": (with_nan_to_num,),
    "dot_product.best_unit_key": (
        lambda q: q / np.linalg.norm(q),
        lambda q: torch.nn.functional.normalize(torch.from_numpy(q), dim=0),
    ),
    "softmax.stable_softmax": (softmax_by_logarithms,),
    "softmax.score_for_half": (4.1, 4.099),
    "softmax.temperature_for": (temperature_by_logarithms,),
    "softmax.softmax_jacobian": (jacobian_by_einsum,),
    "scale.variance_left": (0.125, np.float32(0.125)),
    "scale.scaled_scores": (scaled_queries,),
    "scale.mystery_divisor": ("D_K", " d_k "),
    "scale.scale_for_variance": (
        lambda variance, d_k: 1 / math.sqrt(d_k * variance**2),
        lambda variance, d_k: torch.tensor(variance * d_k**0.5) ** -1,
    ),
    "scale.doubling_law": (doubling_by_repeat,),
    "masks.causal_row": ([0.22, 0.67, 0.11, 0], np.array([2, 6, 1, 0]) / 9),
    "masks.safe_masked_softmax": (masks_by_torch,),
    "masks.batch_mask": (lambda lengths: ~borrowed(lengths),),
    "masks.last_rows_mask": (by_steps,),
    "attention.attend": (attention_by_einsum,),
    "attention.weight_of_the_middle": (np.sqrt(0.36 * 0.16), 0.6 * 0.4),
    "attention.self_attention": (
        lambda X, W_Q, W_K, W_V: mha.multi_head_attention(
            X, W_Q, W_K, W_V, np.eye(W_V.shape[1]), 1
        ),
    ),
    "attention.key_order_law": (by_torch_permutation,),
    "why_heads.two_of_three": (0.667, 0.67),
    "why_heads.rebuild": (by_normal_equations,),
    "why_heads.unmix": (
        lambda A: np.linalg.solve(A.T, np.eye(len(A))),
        lambda A: torch.linalg.inv(torch.from_numpy(A.T.copy())),
    ),
    "why_heads.heads_needed": (
        lambda wanted: int((np.linalg.svd(wanted)[1] > 1e-9).sum()),
        lambda wanted: torch.linalg.matrix_rank(torch.from_numpy(wanted)),
    ),
    "why_heads.break_the_theorem": (winner_takes_all,),
    "split.head_and_column": (divmod(389, 768 // 12), [6, 5]),
    "split.to_heads": (by_slices,),
    "split.strides_of_heads": (
        torch.zeros(2, 5, 12).unflatten(-1, (3, 4)).transpose(1, 2).stride(),
    ),
    "split.wrong_step": ("Split without swap", " split without swap "),
    "split.fuse": (
        mha.merge_heads,
        lambda small: torch.cat(tuple(torch.from_numpy(small)), dim=1),
    ),
    "output.sum_of_heads": (output_by_einsum,),
    "output.count_parameters": (matrix_by_matrix,),
    "output.fold_value_bias": (
        lambda b_V, W_O, b_O: W_O.T @ b_V + b_O,
        lambda b_V, W_O, b_O: torch.from_numpy(b_V @ W_O) + torch.from_numpy(b_O),
    ),
    "output.head_that_wrote": (by_inverse,),
    "multi_head.row_without_mask": (
        np.array([39, 57, -3, 15]) / 14,
        ["39/14", "57/14", "-3/14", "15/14"],
    ),
    "multi_head.many_heads": (multi_head_by_einsum,),
    "multi_head.farthest_head": (
        lambda A: int(torch.from_numpy(A - A.mean(0)).abs().flatten(1).sum(1).argmax()),
        lambda A: np.abs(len(A) * A - A.sum(0)).mean((-1, -2)).argmax(),
    ),
    "multi_head.matrices_of_torch": (
        lambda w: tuple(np.split(w.T, 3, axis=1)),
        lambda w: tuple(w.reshape(3, w.shape[1], w.shape[1]).swapaxes(1, 2)),
    ),
    "positions.encode_positions": (positions_by_complex_numbers,),
    "positions.likeness_of_positions": (math.cos(100) + math.cos(1), 1.4),
    "positions.turn_by": (turn_by_blocks,),
    "positions.position_ids": (
        lambda mask: (np.cumsum(mask, axis=1) - 1) * mask,
        lambda mask: (torch.from_numpy(mask).cumsum(-1) - 1) * torch.from_numpy(mask),
    ),
    "positions.tells_order": (by_undoing,),
    "encoder_layer.length_after_norm": (8, np.sqrt(64)),
    "encoder_layer.normalise_tokens": (norm_of_torch,),
    "encoder_layer.layer_parameters": (counted,),
    "encoder_layer.wire_layer": (loop,),
    "encoder_layer.batch_law": (alone,),
    "encoder.detour": (by_loops,),
    "encoder.mirror_queries": (flipped,),
    "encoder.catch_ten": (
        [
            laws.scores_keep_unit_variance,
            laws.parameters_ignore_heads,
            laws.padding_changes_nothing,
        ],
    ),
    "encoder.decoder_masks": (with_numpy,),
    "what_heads_learn.silence_head": (by_a_factor,),
    "what_heads_learn.effective_keys": (as_a_product,),
    "what_heads_learn.drop_twin": (by_a_matrix,),
    "what_heads_learn.heads_to_spare": (by_running_minimum,),
    "real_encoder.share_used": (10_657_152.0,),
    "real_encoder.sentence_vectors": (by_where,),
    "real_encoder.previous_score": (by_diagonal,),
    "real_encoder.honest_score": (real_encoder_by_torch,),
    "laws.inputs_needed": (math.ceil(math.log(0.01) / math.log(0.99)), 459.0),
    "laws.shrink": (by_recursion,),
    "long.scores_memory": (65536**2 * 4 / 2**30, np.float32(16)),
    "long.cache_bytes": (by_arrays,),
    "long.merge_outputs": (by_softmax,),
    "long.decode_step": (by_concatenation,),
    "long.long_text_law": (with_a_reference,),
    "since_2017.cache_with_windows": (37_888 / 196_608, 0.19),
    "since_2017.rotate": (since_2017_by_complex_numbers,),
    "since_2017.share_heads": (by_index,),
    "since_2017.far_keys_law": (as_a_test,),
}
