"""Versions that are right in a plain call, and wrong in what a call may ask besides.

Batches, masks of other kinds, gradients, lengths, dtypes, a second call: every member
overrides one method of `Member` here too.
"""

from types import MappingProxyType

import numpy as np

from mha.zoo import _attention
from mha.zoo._arrays import _as_it_lies, _cast, _clip, _detached, _exp, _like, _softmax
from mha.zoo._attention import Member
from mha.zoo._exhibit import exhibit

__all__ = [
    "ALL", "WRONG", "causal_from_neither_corner", "causal_replaces_mask",
    "clips_scores", "computes_in_float32", "dropout_in_evaluation", "drops_full_block",
    "drops_last_block", "float_mask_only_hides", "gradient_stopped",
    "groups_interleaved", "ignores_strides", "integer_mask_added",
    "mask_of_first_sequence", "remembers_the_mask", "returns_scores",
    "returns_unmasked_weights", "rounds_float32_scores", "softmax_over_axis_2",
    "subtracts_one_maximum", "window_of_256", "window_of_4096",
]  # fmt: skip


def _closed(S, mask, open_):
    """Return the mask, with those keys hidden too that are not open."""
    open_ = _like(S, open_)
    return open_ if mask is None else mask & open_


def _near(S, width):
    """Return what lies less than `width` tokens away."""
    i, j = np.ogrid[: S.shape[-2], : S.shape[-1]]
    return abs(i - j) < width


@exhibit
class softmax_over_axis_2(Member):
    wrong = "The softmax axis is counted from the front, and a batch moves it."

    def normalise(self, S):
        return _softmax(S, axis=min(2, S.ndim - 1))


@exhibit
class mask_of_first_sequence(Member):
    wrong = "The mask of the first sequence is used for the whole batch."

    def hide(self, S, mask):
        return super().hide(S, mask[:1] if mask.ndim == 4 else mask)


@exhibit
class causal_replaces_mask(Member):
    wrong = "Where the causal mask is asked for too, the mask of the caller is dropped."

    def both(self, mask, causal):
        return causal


@exhibit
class causal_from_neither_corner(Member):
    wrong = "With other numbers of queries and keys, the causal mask starts in between."

    def causal(self, n_q, n_k):
        return np.tri(n_q, n_k, (n_k - n_q) // 2, dtype=bool)


@exhibit
class gradient_stopped(Member):
    wrong = "The weights are detached: W_Q and W_K get no gradient and never learn."
    on_tensors = True

    def normalise(self, S):
        return _detached(super().normalise(S))


@exhibit
class returns_unmasked_weights(Member):
    wrong = "The weights that are returned are those from before the mask."

    def shown(self, S, scale, A):
        return self.normalise(S * scale)


@exhibit
class returns_scores(Member):
    wrong = "The scores are returned where the weights are due."

    def shown(self, S, scale, A):
        return S * scale


@exhibit
class ignores_strides(Member):
    wrong = "An array is read in the order of its memory, though it was transposed."

    def project(self, X, W, n_heads):
        return _as_it_lies(X) @ W


@exhibit
class window_of_256(Member):
    wrong = "A token sees those less than 256 tokens away, and nobody said so."

    def weights(self, S, scale, mask):
        return super().weights(S, scale, _closed(S, mask, _near(S, 256)))


@exhibit
class window_of_4096(Member):
    wrong = "A token sees those less than 4096 tokens away, and nobody said so."

    def weights(self, S, scale, mask):
        return super().weights(S, scale, _closed(S, mask, _near(S, 4096)))


@exhibit
class drops_last_block(Member):
    wrong = "Keys come in blocks of 64, and what does not fill the last one is lost."

    def weights(self, S, scale, mask):
        n_k = S.shape[-1]
        seen = np.arange(n_k) < (n_k // 64 * 64 or n_k)
        return super().weights(S, scale, _closed(S, mask, seen))


@exhibit
class drops_full_block(Member):
    wrong = "Keys come in blocks of 64, and the last one is lost where it is full."

    def weights(self, S, scale, mask):
        n_k = S.shape[-1]
        seen = np.arange(n_k) < n_k - 64 * (n_k > 64 and n_k % 64 == 0)
        return super().weights(S, scale, _closed(S, mask, seen))


@exhibit
class float_mask_only_hides(Member):
    wrong = "A float mask hides where it is −∞, and its other numbers are not added."

    def read(self, S, mask, scale):
        return S, super().read(S, mask, scale)[1]


@exhibit
class integer_mask_added(Member):
    wrong = "A mask of 0 and 1 is added to the scores, and hides nothing."

    def read(self, S, mask, scale):
        mask = mask * 1.0 if "int" in str(mask.dtype) else mask
        return super().read(S, mask, scale)


@exhibit
class dropout_in_evaluation(Member):
    wrong = "A tenth of the weights is dropped in every call, not in training alone."

    def normalise(self, S):
        A = super().normalise(S)
        kept = np.random.default_rng().random(A.shape) < 0.9
        return A * _like(A, kept) / 0.9


@exhibit
class remembers_the_mask(Member):
    wrong = "A mask is kept, and the next call without one gets it again."
    kept = None

    def weights(self, S, scale, mask):
        fits = self.kept is not None and self.kept.shape[-2:] == S.shape[-2:]
        if mask is None and fits:
            mask = _like(S, self.kept)
        self.kept = mask
        return super().weights(S, scale, mask)


@exhibit
class clips_scores(Member):
    wrong = "Scores are cut to the range from −50 to 50 before the softmax."

    def weights(self, S, scale, mask):
        return super().weights(_clip(S * scale, 50), 1.0, mask)


@exhibit
class subtracts_one_maximum(Member):
    wrong = "The largest of all scores is subtracted, where each row needs its own."

    def normalise(self, S):
        E = _exp(S - S.max())
        total = E.sum(-1, keepdims=True)
        return E / (total + (total == 0))


@exhibit
class computes_in_float32(Member):
    wrong = "The softmax is computed in float32, also where float64 was handed in."

    def normalise(self, S):
        return _cast(super().normalise(_cast(S, "float32")), S)


@exhibit
class rounds_float32_scores(Member):
    wrong = "Scores in float32 are rounded to 16 bits on their way to the softmax."

    def normalise(self, S):
        S = _cast(_cast(S, "float16"), S) if "float32" in str(S.dtype) else S
        return super().normalise(S)


@exhibit
class groups_interleaved(Member):
    wrong = "Keys are repeated in turn, so a query head gets those of another group."
    says = MappingProxyType({"n_kv_heads": 2})

    def groups(self, n_heads, n_groups):
        return [r % n_groups for r in range(n_heads)]


_named = [*vars(_attention).values(), *globals().values()]
ALL: tuple[Member, ...] = tuple(x for x in _named if isinstance(x, Member))
WRONG = ALL[1:]
