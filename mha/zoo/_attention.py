"""Correct attention, and versions of it that are wrong in one step each.

Every member overrides one method of `Member`, so its source *is* the mistake.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mha.zoo._arrays import _exp, _like, _max, _plus, _softmax, _where
from mha.zoo._exhibit import Array, Exhibit, exhibit

__all__ = [
    "Member", "attends_across_batch", "both_without_transpose",
    "causal_without_diagonal", "heads_averaged", "input_split_before_projection",
    "key_reshaped", "mask_after_softmax", "mask_ignored", "mask_in_wrong_order",
    "mask_inverted", "mask_zero_score", "merge_without_transpose", "minus_1e9_mask",
    "nan_on_empty_rows", "no_max_subtraction", "no_output_projection", "no_scale",
    "output_within_heads", "padding_hides_queries", "promotes_to_float64", "right",
    "scale_after_softmax", "scale_by_d_k", "scale_sqrt_d_model", "scale_sqrt_n",
    "softmax_over_heads", "softmax_over_queries", "split_without_transpose",
    "tied_query_key", "writes_into_its_input",
]  # fmt: skip


class Member(Exhibit):
    """Compute multi-head attention, one method a step.

    Equation: Concat(head_1, …, head_h) W_O with
    head_r = softmax(Q_r K_rᵀ / √d_k) V_r  (chapters attention to multi_head)

    A member is called like `mha.multi_head_attention`, and its `attention` like
    `mha.scaled_dot_product_attention`; a bool mask is True where a query may attend.
    Arguments are not checked: the zoo is there to be read, and not to be fast.

    Examples
    --------
    >>> X, eye = np.array([[9.0, 2.0], [-9.0, 2.0]]), np.eye(2)
    >>> right(X, eye, eye, eye, eye, n_heads=2).round(3)
    array([[ 9.,  2.],
           [-9.,  2.]])
    >>> no_scale.wrong
    'The scores are not divided by √d_k.'
    """

    def __call__(
        self, X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, n_heads: int,
        mask: Array | None = None, *, X_k: Array | None = None,
        X_v: Array | None = None, b_Q: Array | None = None, b_K: Array | None = None,
        b_V: Array | None = None, b_O: Array | None = None, is_causal: bool = False,
        return_weights: bool = False,
    ) -> Any:  # fmt: skip
        """Return what this member takes for `mha.multi_head_attention`."""
        X_k = X if X_k is None else X_k
        X_v = X_k if X_v is None else X_v
        W_Q, W_K, W_V = self.matrices(W_Q, W_K, W_V)
        # Narrower keys are those of fewer heads, which groups of queries share.
        n_groups = n_heads * W_K.shape[-1] // W_Q.shape[-1]
        Q, K, V = (
            self.split(_plus(self.project(x, W, n_heads), b), n)
            for x, W, b, n in (
                (X, W_Q, b_Q, n_heads),
                (X_k, W_K, b_K, n_groups),
                (X_v, W_V, b_V, n_groups),
            )
        )
        heads, A = self.attention(
            Q, K, V, mask, is_causal=is_causal, return_weights=True
        )
        Y = _plus(self.output(self.merge(heads), W_O, n_heads), b_O)
        return (Y, A) if return_weights else Y

    def attention(
        self, Q: Array, K: Array, V: Array, mask: Array | None = None, *,
        is_causal: bool = False, scale: float | None = None,
        return_weights: bool = False,
    ) -> Any:  # fmt: skip
        """Return the weighted mean of the values for every query.

        Equation: Y = A V with A = softmax(Q Kᵀ / √d_k)  (chapter attention)

        Parameters
        ----------
        Q, K, V : ndarray or Tensor of shape (..., n, d)
            Queries, keys and values; heads stand in front of the tokens.
        mask, is_causal, scale, return_weights
            As for `mha.scaled_dot_product_attention`.

        Returns
        -------
        Y : ndarray or Tensor of shape (..., n_q, d_v)
            What this member takes for attention.
        A : ndarray or Tensor of shape (..., n_q, n_k)
            Only with `return_weights`.
        """
        if scale is None:
            n_heads = Q.shape[-3] if Q.ndim > 2 else 1
            scale = self.factor(Q.shape[-1], n_heads, K.shape[-2])
        if Q.ndim > 2 and Q.shape[-3] != K.shape[-3]:
            groups = self.groups(Q.shape[-3], K.shape[-3])
            K, V = K[..., groups, :, :], V[..., groups, :, :]
        S, visible = self.scores(Q, K), None
        if mask is not None:
            S, visible = self.read(S, _like(S, mask), scale)
        if is_causal:
            causal = _like(S, self.causal(*S.shape[-2:]))
            visible = causal if visible is None else self.both(visible, causal)
        A = self.weights(S, scale, visible)
        return (A @ V, self.shown(S, scale, A)) if return_weights else A @ V

    def matrices(
        self, W_Q: Array, W_K: Array, W_V: Array
    ) -> tuple[Array, Array, Array]:
        """Return the matrices that make queries, keys and values."""
        return W_Q, W_K, W_V

    def project(self, X: Array, W: Array, n_heads: int) -> Array:
        """Return X W."""
        return X @ W

    def split(self, x: Array, n_heads: int) -> Array:
        """Cut (..., n, d_model) into (..., n_heads, n, d_head)."""
        *leading, d_model = x.shape
        return x.reshape(*leading, n_heads, d_model // n_heads).swapaxes(-3, -2)

    def groups(self, n_heads: int, n_groups: int) -> list[int]:
        """Return, for every query head, which head of keys and values it reads."""
        return [r * n_groups // n_heads for r in range(n_heads)]

    def scores(self, Q: Array, K: Array) -> Array:
        """Return Q Kᵀ."""
        return Q @ K.swapaxes(-1, -2)

    def factor(self, d_k: int, n_heads: int, n_k: int) -> float:
        """Return what the scores are multiplied by."""
        return 1 / math.sqrt(d_k)

    def read(self, S: Array, mask: Array, scale: float) -> tuple[Array, Array]:
        """Return the scores, a float mask added, and what the mask leaves visible."""
        if "float" not in str(mask.dtype):
            return S, mask if "bool" in str(mask.dtype) else mask != 0
        visible = mask > -math.inf
        # The scores are still to be scaled, and the mask is not.
        return S + _where(visible, mask / scale, 0 * S), visible

    def causal(self, n_q: int, n_k: int) -> npt.NDArray[np.bool_]:
        """Return the mask that hides the future."""
        return np.tri(n_q, n_k, dtype=bool)

    def both(self, mask: Array, causal: Array) -> Array:
        """Return what neither hides."""
        return mask & causal

    def weights(self, S: Array, scale: float, mask: Array | None) -> Array:
        """Turn scores into weights."""
        S = S * scale
        return self.normalise(S if mask is None else self.hide(S, mask))

    def hide(self, S: Array, mask: Array) -> Array:
        """Close the scores that the bool mask forbids."""
        return _where(mask, S, -math.inf)

    def normalise(self, S: Array) -> Array:
        """Return the softmax of every row."""
        return _softmax(S, axis=-1)

    def shown(self, S: Array, scale: float, A: Array) -> Array:
        """Return the weights that are handed back beside the output."""
        return A

    def merge(self, heads: Array) -> Array:
        """Lay the heads side by side."""
        *leading, n_heads, n, d_head = heads.shape
        return heads.swapaxes(-3, -2).reshape(*leading, n, n_heads * d_head)

    def output(self, concat: Array, W_O: Array, n_heads: int) -> Array:
        """Mix the heads."""
        return concat @ W_O


@exhibit
class right(Member):
    seen = ""


@exhibit
class no_scale(Member, chapter="scale"):
    wrong = "The scores are not divided by √d_k."
    seen = "It is missing from a library of small transformers; the issue is open."
    link = "https://github.com/PAIR-code/tiny-transformers/issues/71"

    def factor(self, d_k, n_heads, n_k):
        return 1.0


@exhibit
class scale_sqrt_n(Member, chapter="scale"):
    wrong = "The scores are divided by √n, the length of the sequence."
    seen = "A library's manual says it, its code does not; no public bug known."

    def factor(self, d_k, n_heads, n_k):
        return 1 / math.sqrt(n_k)


@exhibit
class scale_sqrt_d_model(Member, chapter="scale"):
    wrong = "The scores are divided by √d_model, the width of all heads together."
    seen = "It stood in the code of a well-known lecture."
    link = "https://github.com/karpathy/ng-video-lecture/pull/6"

    def factor(self, d_k, n_heads, n_k):
        return 1 / math.sqrt(n_heads * d_k)


@exhibit
class scale_by_d_k(Member, chapter="scale"):
    wrong = "The scores are divided by d_k, without the root."
    seen = "A library for CNTK divided by the width until a reader asked."
    link = "https://github.com/delzac/cntkx/issues/10"

    def factor(self, d_k, n_heads, n_k):
        return 1 / d_k


@exhibit
class scale_after_softmax(Member, chapter="scale"):
    wrong = "The weights are divided by √d_k, after the softmax."
    seen = "A vision transformer tutorial; one of its three copies was mended."
    link = "https://github.com/FrancescoSaverioZuppichini/ViT/issues/2"

    def weights(self, S, scale, mask):
        return self.normalise(S if mask is None else self.hide(S, mask)) * scale


@exhibit
class key_reshaped(Member, chapter="dot_product"):
    wrong = "The keys are reshaped to (d_k, n) where they must be transposed."

    def scores(self, Q, K):
        *leading, n, d_k = K.shape
        return Q @ K.reshape(*leading, d_k, n)


@exhibit
class softmax_over_queries(Member, chapter="softmax"):
    wrong = "The softmax runs down the columns, over the queries."
    seen = "An annotated implementation had it, with no difference in the FID score."
    link = "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146"

    def normalise(self, S):
        return _softmax(S, axis=-2)


@exhibit
class softmax_over_heads(Member, chapter="softmax"):
    wrong = "The softmax runs over the heads, the axis in front of the tokens."
    seen = "A network for videos of surgery; its author calls the axis a typo."
    link = "https://github.com/CAMMA-public/rendezvous/issues/10"

    def normalise(self, S):
        return _softmax(S if S.ndim > 2 else S[None], axis=-3).reshape(S.shape)


@exhibit
class no_max_subtraction(Member, chapter="softmax"):
    wrong = "The softmax does not subtract the largest score, and overflows."

    def normalise(self, S):
        E = _exp(S)
        total = E.sum(-1, keepdims=True)
        return E / (total + (total == 0))


@exhibit
class nan_on_empty_rows(Member, chapter="masks"):
    wrong = "A row that may attend to nothing is divided by its sum, 0."
    seen = "PyTorch's own layer; the report dates from 2020 and is open."
    link = "https://github.com/pytorch/pytorch/issues/41508"

    def normalise(self, S):
        E = _exp(S - _max(S, axis=-1))
        return E / E.sum(-1, keepdims=True)


@exhibit
class mask_ignored(Member, chapter="masks"):
    wrong = "The mask is taken as an argument and never used."
    seen = "A library masked no scores, and its tests had recorded the wrong numbers."
    link = "https://github.com/tensorflow/addons/pull/133"

    def hide(self, S, mask):
        return S


@exhibit
class mask_inverted(Member, chapter="masks"):
    wrong = "True is read as hidden, where it means may attend."
    seen = "A book's notebook let tokens attend to the future only."
    link = "https://github.com/rasbt/LLMs-from-scratch/issues/1061"

    def hide(self, S, mask):
        return _where(mask, -math.inf, S)


@exhibit
class mask_after_softmax(Member, chapter="masks"):
    wrong = "The weights are multiplied by the mask, after the softmax."
    seen = "A library masked after the softmax until a reader asked."
    link = "https://github.com/lucidrains/memory-compressed-attention/issues/2"

    def weights(self, S, scale, mask):
        A = self.normalise(S * scale)
        return A if mask is None else A * mask


@exhibit
class mask_zero_score(Member, chapter="masks"):
    wrong = "Hidden scores are set to 0, and exp(0) is 1."
    seen = "A public implementation multiplied its scores by the mask."
    link = "https://github.com/georg-wolflein/good-features/pull/1"

    def hide(self, S, mask):
        return _where(mask, S, 0.0)


@exhibit
class minus_1e9_mask(Member, chapter="masks"):
    wrong = "Hidden scores are set to -1e9, so that an empty row attends everywhere."
    seen = "A tutorial's -1e10 does not fit into 16 bits, and −∞ gave its reader NaN."
    link = "https://github.com/bentrevett/pytorch-seq2seq/issues/191"

    def hide(self, S, mask):
        return _where(mask, S, -1e9)


@exhibit
class causal_without_diagonal(Member, chapter="masks"):
    wrong = "The causal mask hides the token itself, not only its future."

    def causal(self, n_q, n_k):
        return np.tri(n_q, n_k, k=-1, dtype=bool)


@exhibit
class padding_hides_queries(Member, chapter="masks"):
    wrong = "The padding mask hides rows, the queries, where it must hide keys."
    seen = "A tutorial hides rows in its target mask; −10000 for −∞ hides the bug."
    link = "https://github.com/hyunwoongko/transformer/pull/40"

    def hide(self, S, mask):
        if mask.shape[-2] == 1 and S.shape[-2] == mask.shape[-1]:
            mask = mask.swapaxes(-1, -2)
        return _where(mask, S, -math.inf)


@exhibit
class mask_in_wrong_order(Member, chapter="masks"):
    wrong = "Masks are repeated sample by sample, while the heads come head by head."
    seen = "A reader found the two orders mixed in a Keras implementation."
    link = "https://github.com/lsdefine/attention-is-all-you-need-keras/issues/36"

    def hide(self, S, mask):
        if S.ndim == 4 and mask.ndim == 4 and mask.shape[1] == 1:
            batch, n_heads = S.shape[:2]
            folded = np.arange(n_heads) * batch + np.arange(batch)[:, None]
            mask = mask[:, 0][_like(mask, folded // n_heads)]
        return super().hide(S, mask)


@exhibit
class writes_into_its_input(Member, chapter="attention"):
    wrong = "The mask is turned round in place, so the next call gets its opposite."

    def hide(self, S, mask):
        mask ^= True
        return _where(mask, -math.inf, S)


@exhibit
class promotes_to_float64(Member, chapter="attention"):
    wrong = "A float64 array of 0 and -∞ is added to float32 scores."

    def hide(self, S, mask):
        return S + _where(mask, 0.0, -math.inf)


@exhibit
class split_without_transpose(Member, chapter="split"):
    wrong = "The heads are cut out of the whole array, across the tokens."
    seen = "A reader took the right split for a mistake and proposed this one."
    link = "https://github.com/harvardnlp/annotated-transformer/issues/17"

    def split(self, x, n_heads):
        *leading, n, d_model = x.shape
        return x.reshape(*leading, n_heads, n, d_model // n_heads)


@exhibit
class merge_without_transpose(Member, chapter="split"):
    wrong = "The heads are laid out one after the other, across the tokens."
    seen = "Its author asks: why did the training test still pass?"
    link = "https://github.com/jsbaan/transformer-from-scratch/pull/6"

    def merge(self, heads):
        *leading, n_heads, n, d_head = heads.shape
        return heads.reshape(*leading, n, n_heads * d_head)


@exhibit
class both_without_transpose(Member, chapter="split"):
    wrong = "Heads are cut out across the tokens, and laid out again the same way."
    seen = "A text classifier for Chinese; readers ask since 2019 whether it is right."
    link = "https://github.com/649453932/Chinese-Text-Classification-Pytorch/issues/53"

    def split(self, x, n_heads):
        *leading, n, d_model = x.shape
        return x.reshape(*leading, n_heads, n, d_model // n_heads)

    def merge(self, heads):
        *leading, n_heads, n, d_head = heads.shape
        return heads.reshape(*leading, n, n_heads * d_head)


@exhibit
class input_split_before_projection(Member, chapter="split"):
    wrong = "The tokens are cut into heads first, and all heads share one projection."
    seen = "An agent's transformer memory had it until a reader sent the repair."
    link = "https://github.com/MarcoMeter/episodic-transformer-memory-ppo/pull/22"

    def project(self, X, W, n_heads):
        d_head = X.shape[-1] // n_heads
        return self.merge(self.split(X, n_heads) @ W[:d_head, :d_head])


@exhibit
class tied_query_key(Member, chapter="attention"):
    wrong = "The keys are made with W_Q, the matrix of the queries."

    def matrices(self, W_Q, W_K, W_V):
        return W_Q, W_Q, W_V


@exhibit
class attends_across_batch(Member, chapter="attention"):
    wrong = "Batch and tokens are swapped: a token attends to other sentences."
    seen = "A published model handed its batch to PyTorch in the wrong order."
    link = "https://github.com/IBM/TabFormer/pull/14"

    def attention(self, Q, K, V, mask=None, **options):
        if Q.ndim < 4:
            return super().attention(Q, K, V, mask, **options)
        Q, K, V = (x.swapaxes(0, -2) for x in (Q, K, V))
        Y, A = super().attention(Q, K, V, mask, **(options | {"return_weights": True}))
        Y = Y.swapaxes(0, -2)
        return (Y, A) if options.get("return_weights") else Y


@exhibit
class heads_averaged(Member, chapter="output"):
    wrong = "The heads are averaged, and each is replaced by their mean."

    def merge(self, heads):
        return super().merge(0 * heads + heads.sum(-3, keepdims=True) / heads.shape[-3])


@exhibit
class output_within_heads(Member, chapter="output"):
    wrong = "W_O is applied head by head: only its diagonal blocks are used."

    def output(self, concat, W_O, n_heads):
        d = W_O.shape[0] // n_heads
        same_head = np.kron(np.eye(n_heads), np.ones((d, d))) > 0
        return concat @ _where(_like(W_O, same_head), W_O, 0.0)


@exhibit
class no_output_projection(Member, chapter="output"):
    wrong = "The concatenated heads are returned without W_O."
    seen = "A popular TensorFlow version still lacks the matrix, though readers asked."
    link = "https://github.com/Kyubyong/transformer/issues/117"

    def output(self, concat, W_O, n_heads):
        return concat
