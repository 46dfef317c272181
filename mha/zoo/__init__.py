"""The zoo: correct attention, and versions of it that are wrong in one step each.

A member is the staircase of `mha` with one step replaced, a sentence that says what is
wrong, and a link to where that was seen. In a wrong step, ``mha.softmax`` and the
others are the correct ones. `STEPS` are wrong in a step that a plain call shows, and
`WRONG` also holds those that are right in a plain call and wrong in what a call may
ask besides: batches, other masks, gradients, lengths, dtypes, a second call. `ALL`
starts with the correct one. `ENCODERS` attend correctly and are wrong around it.

The zoo imports no law: `mha.laws` is what catches its members.
"""

import math

import numpy as np

import mha
from mha.zoo._copies import with_steps
from mha.zoo._member import MEMBERS, Member, bug, registered, seen
from mha.zoo._mode import train_mode

# The members are here by their names, and what there is of each kind in these lists.
__all__ = ["ALL", "ENCODERS", "STEPS", "WRONG", "Member", "with_steps"]

right = registered(Member("right", {}, seen=""))


def visible(mask):
    """Return where a mask leaves a score open."""
    return mask if mask.dtype == bool else ~np.isneginf(mask)


@bug("scaled_dot_product_attention", "PAIR-code/tiny-transformers/issues/71")
@seen("It is missing from a library of small transformers; the issue is open.")
def no_scale(Q, K, V, mask=None, *, scale=None, **options):
    """The scores are not divided by √d_k."""
    scale = 1.0 if scale is None else scale
    return mha.scaled_dot_product_attention(Q, K, V, mask, scale=scale, **options)


@bug("scaled_dot_product_attention")
@seen("A library's manual says it, its code does not; no public bug known.")
def scale_sqrt_n(Q, K, V, mask=None, *, scale=None, **options):
    """The scores are divided by √n, the length of the sequence."""
    scale = 1 / math.sqrt(K.shape[-2]) if scale is None else scale
    return mha.scaled_dot_product_attention(Q, K, V, mask, scale=scale, **options)


@bug("scaled_dot_product_attention", "karpathy/ng-video-lecture/pull/6")
@seen("It stood in the code of a well-known lecture.")
def scale_sqrt_d_model(Q, K, V, mask=None, *, scale=None, **options):
    """The scores are divided by √d_model, the width of all heads together."""
    d_model = Q.shape[-1] * (Q.shape[-3] if Q.ndim > 2 else 1)
    scale = 1 / math.sqrt(d_model) if scale is None else scale
    return mha.scaled_dot_product_attention(Q, K, V, mask, scale=scale, **options)


@bug("scaled_dot_product_attention", "delzac/cntkx/issues/10")
@seen("A library for CNTK divided by the width until a reader asked.")
def scale_by_d_k(Q, K, V, mask=None, *, scale=None, **options):
    """The scores are divided by d_k, without the root."""
    scale = 1 / Q.shape[-1] if scale is None else scale
    return mha.scaled_dot_product_attention(Q, K, V, mask, scale=scale, **options)


@bug("scaled_dot_product_attention", "FrancescoSaverioZuppichini/ViT/issues/2")
@seen("A vision transformer tutorial; one of its five copies was mended.")
def scale_after_softmax(Q, K, V, mask=None, *, return_weights=False, **options):
    """The weights are divided by √d_k, after the softmax."""
    options = {**options, "scale": 1.0, "return_weights": True}
    _, A = mha.scaled_dot_product_attention(Q, K, V, mask, **options)
    A = A * (1 / math.sqrt(Q.shape[-1]))
    return (A @ V, A) if return_weights else A @ V


@bug("dot_product_scores")
def key_reshaped(Q, K):
    """The keys are reshaped to (d_k, n) where they must be transposed."""
    *leading, n, d_k = K.shape
    return Q @ K.reshape(*leading, d_k, n)


@bug("softmax", "labmlai/annotated_deep_learning_paper_implementations/issues/146")
@seen("An annotated implementation had it, with no difference in the FID score.")
def softmax_over_queries(x, axis=-1):
    """The softmax runs down the columns, over the queries."""
    return mha.softmax(x, axis=-2)


@bug("softmax", "CAMMA-public/rendezvous/issues/10")
@seen("The PyTorch version of a network for videos; its author says: a typo.")
def softmax_over_heads(x, axis=-1):
    """The softmax runs over the heads, the axis in front of the tokens."""
    return mha.softmax(x if x.ndim > 2 else x[None], axis=-3).reshape(x.shape)


@bug("softmax")
def no_max_subtraction(x, axis=-1):
    """The softmax does not subtract the largest score, and overflows."""
    e = np.exp(x)
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@bug("softmax", "pytorch/pytorch/issues/41508")
@seen("PyTorch's own layer; the report dates from 2020 and is open.")
def nan_on_empty_rows(x, axis=-1):
    """A row that may attend to nothing is divided by its sum, 0."""
    e = np.exp(x - np.max(x, axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@bug("masked_softmax", "tensorflow/addons/pull/133")
@seen("A library masked no scores, and its tests had recorded the wrong numbers.")
def mask_ignored(S, mask=None, axis=-1):
    """The mask is taken as an argument and never used."""
    return mha.softmax(S, axis)


@bug("masked_softmax", "rasbt/LLMs-from-scratch/issues/1061")
@seen("A book's notebook let tokens attend to the future only.")
def mask_inverted(S, mask=None, axis=-1):
    """True is read as hidden, where it means may attend."""
    if mask is not None and mask.dtype == bool:
        mask = ~mask
    return mha.masked_softmax(S, mask, axis)


@bug("masked_softmax")
def mask_after_softmax(S, mask=None, axis=-1):
    """The weights are multiplied by the mask, after the softmax."""
    A = mha.softmax(S, axis)
    return A if mask is None else A * visible(mask)


@bug("masked_softmax", "georg-wolflein/good-features/pull/1")
@seen("A public implementation multiplied its scores by the mask.")
def mask_zero_score(S, mask=None, axis=-1):
    """Hidden scores are set to 0, and exp(0) is 1."""
    return mha.softmax(S if mask is None else np.where(visible(mask), S, 0.0), axis)


@bug("masked_softmax", "bentrevett/pytorch-seq2seq/issues/191")
@seen("A tutorial's -1e10 does not fit into 16 bits, and −∞ gave its reader NaN.")
def minus_1e9_mask(S, mask=None, axis=-1):
    """Hidden scores are set to -1e9, so that an empty row attends everywhere."""
    if mask is not None and mask.dtype == bool:
        S, mask = np.where(mask, S, -1e9), None
    return mha.masked_softmax(S, mask, axis)


@bug("causal_mask")
def causal_without_diagonal(n_q, n_k=None):
    """The causal mask hides the token itself, not only its future."""
    return np.tri(n_q, n_k, k=-1, dtype=bool)


@bug("masked_softmax", "hyunwoongko/transformer/pull/40")
@seen("A tutorial hides rows in its target mask; −10000 for −∞ hides the bug.")
def padding_hides_queries(S, mask=None, axis=-1):
    """The padding mask hides rows, the queries, where it must hide keys."""
    if mask is not None and mask.shape[-2] == 1 and S.shape[-2] == mask.shape[-1]:
        mask = mask.swapaxes(-1, -2)
    return mha.masked_softmax(S, mask, axis)


@bug("masked_softmax", "lsdefine/attention-is-all-you-need-keras/issues/36")
@seen("A reader found the two orders mixed in a Keras implementation.")
def mask_in_wrong_order(S, mask=None, axis=-1):
    """Masks are repeated sample by sample, while the heads come head by head."""
    if mask is not None and S.ndim == mask.ndim == 4 and mask.shape[1] == 1:
        batch, n_heads = S.shape[:2]
        folded = np.arange(n_heads) * batch + np.arange(batch)[:, None]
        mask = mask[:, 0][folded // n_heads]
    return mha.masked_softmax(S, mask, axis)


@bug("masked_softmax")
def writes_into_its_input(S, mask=None, axis=-1):
    """The mask is turned round in place, so the next call gets its opposite."""
    if mask is not None and mask.dtype == bool:
        mask ^= True
        mask = ~mask
    return mha.masked_softmax(S, mask, axis)


@bug("masked_softmax")
def promotes_to_float64(S, mask=None, axis=-1):
    """A float64 array of 0 and -∞ is added to float32 scores."""
    if mask is not None and mask.dtype == bool:
        S, mask = S + np.where(mask, 0.0, -np.inf), None
    return mha.masked_softmax(S, mask, axis)


@bug("split_heads", "harvardnlp/annotated-transformer/issues/17")
@seen("A reader took the right split for a mistake and proposed this one.")
def split_without_transpose(x, n_heads):
    """The heads are cut out of the whole array, across the tokens."""
    *leading, n, d_model = x.shape
    return x.reshape(*leading, n_heads, n, d_model // n_heads)


@bug("merge_heads", "jsbaan/transformer-from-scratch/pull/6")
@seen("Its author asks: why did the training test still pass?")
def merge_without_transpose(heads):
    """The heads are laid out one after the other, across the tokens."""
    *leading, n_heads, n, d_head = heads.shape
    return heads.reshape(*leading, n, n_heads * d_head)


both_without_transpose = registered(
    Member(
        "both_without_transpose",
        split_without_transpose.steps | merge_without_transpose.steps,
        "Heads are cut out across the tokens, and laid out again the same way.",
        "A text classifier for Chinese; readers ask since 2019 whether it is right.",
        "https://github.com/649453932/Chinese-Text-Classification-Pytorch/issues/53",
    )
)


@bug("multi_head_attention", "MarcoMeter/episodic-transformer-memory-ppo/pull/22")
@seen("An agent's transformer memory had it until a reader sent the repair.")
def input_split_before_projection(
    X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, X_v=None, **options
):
    """The tokens are cut into heads first, and all heads share one projection."""

    def project(x, W):
        d_head = x.shape[-1] // n_heads
        return mha.merge_heads(mha.split_heads(x, n_heads) @ W[:d_head, :d_head])

    X_k = X if X_k is None else X_k
    X_v = X_k if X_v is None else X_v
    Q, K, V = project(X, W_Q), project(X_k, W_K), project(X_v, W_V)
    eye = np.eye(X.shape[-1], dtype=X.dtype)
    return mha.multi_head_attention(
        Q, eye, eye, eye, W_O, n_heads, mask, X_k=K, X_v=V, **options
    )


@bug("multi_head_attention")
def tied_query_key(X, W_Q, W_K, *args, **options):
    """The keys are made with W_Q, the matrix of the queries."""
    return mha.multi_head_attention(X, W_Q, W_Q, *args, **options)


@bug("scaled_dot_product_attention", "IBM/TabFormer/pull/14")
@seen("A published model handed its batch to PyTorch in the wrong order.")
def attends_across_batch(Q, K, V, mask=None, *, return_weights=False, **options):
    """Batch and tokens are swapped: a token attends to other sentences."""
    swapped = [x.swapaxes(0, -2) if x.ndim > 3 else x for x in (Q, K, V)]
    options["return_weights"] = True
    Y, A = mha.scaled_dot_product_attention(*swapped, mask, **options)
    Y = Y.swapaxes(0, -2) if Y.ndim > 3 else Y
    return (Y, A) if return_weights else Y


@bug("merge_heads")
def heads_averaged(heads):
    """The heads are averaged, and each is replaced by their mean."""
    return mha.merge_heads(0 * heads + heads.mean(-3, keepdims=True))


@bug("multi_head_attention")
def output_within_heads(X, W_Q, W_K, W_V, W_O, n_heads, *args, **options):
    """W_O is applied head by head: only its diagonal blocks are used."""
    d = W_O.shape[0] // n_heads
    same_head = np.kron(np.eye(n_heads), np.ones((d, d))) > 0
    W_O = np.where(same_head, W_O, 0)
    return mha.multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, *args, **options)


@bug("multi_head_attention", "Kyubyong/transformer/issues/117")
@seen("A popular TensorFlow version still lacks the matrix, though readers asked.")
def no_output_projection(X, W_Q, W_K, W_V, W_O, n_heads, *args, **options):
    """The concatenated heads are returned without W_O."""
    eye = np.eye(len(W_O), dtype=W_O.dtype)
    return mha.multi_head_attention(X, W_Q, W_K, W_V, eye, n_heads, *args, **options)


@bug("softmax", sometimes=True)
def softmax_over_axis_2(x, axis=-1):
    """The softmax axis is counted from the front, and a batch moves it."""
    return mha.softmax(x, axis=min(2, x.ndim - 1))


@bug("masked_softmax", sometimes=True)
def mask_of_first_sequence(S, mask=None, axis=-1):
    """The mask of the first sequence is used for the whole batch."""
    mask = mask[:1] if mask is not None and mask.ndim == 4 else mask
    return mha.masked_softmax(S, mask, axis)


@bug("join_masks", sometimes=True)
def causal_replaces_mask(mask, causal):
    """Where the causal mask is asked for too, the mask of the caller is dropped."""
    return causal


@bug("causal_mask", sometimes=True)
def causal_from_neither_corner(n_q, n_k=None):
    """With other numbers of queries and keys, the causal mask starts in between."""
    return np.tri(n_q, n_k, (n_k - n_q) // 2, dtype=bool)


@bug("softmax", sometimes=True, on_tensors=True)
def gradient_stopped(x, axis=-1):
    """The weights are detached: W_Q and W_K get no gradient and never learn."""
    A = mha.softmax(x, axis)
    return A.detach() if hasattr(A, "detach") else A


@bug("scaled_dot_product_attention", sometimes=True)
def returns_unmasked_weights(Q, K, V, mask=None, *, return_weights=False, **options):
    """The weights that are returned are those from before the mask."""
    Y = mha.scaled_dot_product_attention(Q, K, V, mask, **options)
    A = mha.softmax(mha.dot_product_scores(Q, K) / math.sqrt(Q.shape[-1]))
    return (Y, A) if return_weights else Y


@bug("scaled_dot_product_attention", sometimes=True)
def returns_scores(Q, K, V, mask=None, *, return_weights=False, **options):
    """The scores are returned where the weights are due."""
    Y = mha.scaled_dot_product_attention(Q, K, V, mask, **options)
    S = mha.dot_product_scores(Q, K) / math.sqrt(Q.shape[-1])
    return (Y, S) if return_weights else Y


@bug("linear", sometimes=True)
def ignores_strides(x, W, b=None):
    """An array is read in the order of its memory, though it was transposed."""
    return mha.linear(np.ravel(x, order="K").reshape(x.shape), W, b)


@bug("masked_softmax", sometimes=True)
def window_of_256(S, mask=None, axis=-1):
    """A token sees those less than 256 tokens away, and nobody said so."""
    n_q, n_k = S.shape[-2:]
    near = np.tri(n_q, n_k, 255) > np.tri(n_q, n_k, -256)
    return mha.masked_softmax(np.where(near, S, -np.inf), mask, axis)


@bug("masked_softmax", sometimes=True)
def window_of_4096(S, mask=None, axis=-1):
    """A token sees those less than 4096 tokens away, and nobody said so."""
    n_q, n_k = S.shape[-2:]
    near = np.tri(n_q, n_k, 4095) > np.tri(n_q, n_k, -4096)
    return mha.masked_softmax(np.where(near, S, -np.inf), mask, axis)


@bug("masked_softmax", sometimes=True)
def drops_last_block(S, mask=None, axis=-1):
    """Keys come in blocks of 64, and what does not fill the last one is lost."""
    n_k = S.shape[-1]
    seen = np.arange(n_k) < (n_k // 64 * 64 or n_k)
    return mha.masked_softmax(np.where(seen, S, -np.inf), mask, axis)


@bug("masked_softmax", sometimes=True)
def drops_full_block(S, mask=None, axis=-1):
    """Keys come in blocks of 64, and the last one is lost where it is full."""
    n_k = S.shape[-1]
    seen = np.arange(n_k) < n_k - 64 * (n_k > 64 and n_k % 64 == 0)
    return mha.masked_softmax(np.where(seen, S, -np.inf), mask, axis)


@bug("masked_softmax", sometimes=True)
def float_mask_only_hides(S, mask=None, axis=-1):
    """A float mask hides where it is −∞, and its other numbers are not added."""
    return mha.masked_softmax(S, None if mask is None else visible(mask), axis)


@bug("read_mask", sometimes=True)
def integer_mask_added(mask):
    """A mask of 0 and 1 is added to the scores, and hides nothing."""
    return mask if mask.dtype == bool else mask.astype(float)


@bug("softmax", sometimes=True)
def dropout_in_evaluation(x, axis=-1):
    """A tenth of the weights is dropped in every call, not in training alone."""
    A = mha.softmax(x, axis)
    kept = np.random.default_rng().random(A.shape) < 0.9
    return np.where(kept, A / 0.9, 0)


last_mask: dict = {}  # of arrays, and of tensors


@bug("masked_softmax", sometimes=True)
def remembers_the_mask(S, mask=None, axis=-1):
    """A mask is kept, and the next call without one gets it again."""
    if mask is None and np.shape(last_mask.get(type(S)))[-2:] == S.shape[-2:]:
        mask = last_mask[type(S)]
    last_mask[type(S)] = mask
    return mha.masked_softmax(S, mask, axis)


@bug("dot_product_scores", sometimes=True)
def clips_scores(Q, K):
    """Scores are cut to the range from −50 to 50 before the softmax."""
    limit = 50 * math.sqrt(Q.shape[-1])
    return np.clip(mha.dot_product_scores(Q, K), -limit, limit)


@bug("softmax", sometimes=True)
def subtracts_one_maximum(x, axis=-1):
    """The largest of all scores is subtracted, where each row needs its own."""
    e = np.exp(x - x.max())
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@bug("softmax", sometimes=True)
def computes_in_float32(x, axis=-1):
    """The softmax is computed in float32, also where float64 was handed in."""
    return mha.softmax(x.astype(np.float32), axis).astype(x.dtype)


@bug("softmax", sometimes=True)
def rounds_float32_scores(x, axis=-1):
    """Scores in float32 are rounded to 16 bits on their way to the softmax."""
    if x.dtype == np.float32:
        x = x.astype(np.float16).astype(x.dtype)
    return mha.softmax(x, axis)


@bug("share_heads", sometimes=True, says={"n_kv_heads": 2})
def groups_interleaved(x, n_heads):
    """Keys are repeated in turn, so a query head gets those of another group."""
    return np.concatenate([x] * (n_heads // x.shape[-3]), -3)


right_encoder = registered(Member("right_encoder", {}, seen="", encoder=True))


def stretched(y, gain, bias):
    """Return what a norm makes of normalised tokens."""
    y = y if gain is None else y * gain
    return y if bias is None else y + bias


@bug("layer_norm", "Kyubyong/transformer/issues/40")
@seen("A reader took the right axis for a mistake and proposed this one.")
def batch_norm(x, gain=None, bias=None, eps=1e-5):
    """Batch norm: each feature is normalised over all tokens of the batch."""
    # Fresh running statistics are mean 0 and variance 1.
    tokens = x.reshape(-1, x.shape[-1])
    y = mha.layer_norm(tokens.T, eps=eps).T.reshape(x.shape) if train_mode.get() else x
    return stretched(y, gain, bias)


@bug("layer_norm", "jadore801120/attention-is-all-you-need-pytorch/issues/19")
@seen("98 % accuracy, reported in 2017; its norm let the future in.")
def norm_over_tokens(x, gain=None, bias=None, eps=1e-5):
    """Each feature is normalised over the tokens of the sequence."""
    y = mha.layer_norm(x.swapaxes(-1, -2), eps=eps).swapaxes(-1, -2)
    return stretched(y, gain, bias)


@bug("layer_norm", "Qualcomm-AI-research/geometric-algebra-transformer/pull/8")
@seen("The baseline transformer of a research library.")
def norm_over_all(x, gain=None, bias=None, eps=1e-5):
    """The whole sequence is normalised at once, over tokens and features."""
    y = mha.layer_norm(x.reshape(*x.shape[:-2], -1), eps=eps).reshape(x.shape)
    return stretched(y, gain, bias)


@bug("layer_norm", "harvardnlp/annotated-transformer/pull/119")
@seen("The best known annotated transformer, where std() has this default.")
def unbiased_std(x, gain=None, bias=None, eps=1e-5):
    """The norm divides by the unbiased standard deviation, plus ε."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).sum(-1, keepdims=True) / (x.shape[-1] - 1)
    y = centred / (np.sqrt(variance) + eps)
    return stretched(y, gain, bias)


@bug("encoder_layer", "allenai/OLMo/issues/222")
@seen("A language model trained with it, with little difference until then.")
def one_norm_for_both(X, weights, *args, **options):
    """Both norms are the first one: its gain and bias are used twice."""
    first = {f"{name}_2": weights.get(f"{name}_1") for name in ("gain", "bias")}
    return mha.encoder_layer(X, {**weights, **first}, *args, **options)


@bug("add_and_norm")
@seen("A common version ends the layer there; no public issue known.")
def one_add_and_norm(X, norm_first, attend, feed, norm_1, norm_2):
    """The layer ends with feed-forward: the second Add & Norm is missing."""
    if norm_first:
        return feed(norm_2(X + attend(norm_1(X))))
    return feed(norm_1(X + attend(X)))


@bug("add_and_norm", "lucidrains/audiolm-pytorch/issues/150")
@seen("An audio model lacked the path around its cross-attention.")
def no_residual(X, norm_first, attend, feed, norm_1, norm_2):
    """What attention returns replaces the token; it must be added."""
    Z = attend(norm_1(X)) if norm_first else norm_1(attend(X))
    return Z + feed(norm_2(Z)) if norm_first else norm_2(Z + feed(Z))


@bug("add_and_norm", "ChristophReich1996/MaxViT/issues/8")
@seen("A re-implementation of a vision transformer; its author: a severe bug.")
def residual_multiplied(X, norm_first, attend, feed, norm_1, norm_2):
    """Feed-forward is multiplied with the token; it must be added."""
    Z = X + attend(norm_1(X)) if norm_first else norm_1(X + attend(X))
    return Z * feed(norm_2(Z)) if norm_first else norm_2(Z * feed(Z))


@bug("add_and_norm", "strutive07/transformer-tensorflow2.0/issues/14")
@seen("A transformer in TensorFlow, until a reader sent the repair.")
def residual_from_the_input(X, norm_first, attend, feed, norm_1, norm_2):
    """Feed-forward is added to the input, and attention's own part is lost."""
    Z = X + attend(norm_1(X)) if norm_first else norm_1(X + attend(X))
    return X + feed(norm_2(Z)) if norm_first else norm_2(X + feed(Z))


@bug("add_and_norm", "Howuhh/faster-trajectory-transformer/issues/3")
@seen("The author found it; the repair came ten months later.")
def residual_after_norm(X, norm_first, attend, feed, norm_1, norm_2):
    """Pre-norm adds to the normalised token; it must add to the token itself."""
    Z = norm_1(X) + attend(norm_1(X)) if norm_first else norm_1(X + attend(X))
    return norm_2(Z) + feed(norm_2(Z)) if norm_first else norm_2(Z + feed(Z))


@bug("feed_forward", "goruck/nilm/issues/1")
@seen("A network for electricity meters, until a reader asked.")
def bend_at_the_end(x, W_1, b_1, W_2, b_2, activation="relu"):
    """Feed-forward bends after its second matrix: two matrices make one."""
    y = mha.linear(mha.linear(x, W_1, b_1), W_2, b_2)
    eye = np.eye(y.shape[-1], dtype=y.dtype)
    return mha.feed_forward(y, eye, None, eye, None, activation)


@bug("encoder_layer", "imperial-qore/TranAD/issues/10")
@seen("A model of time series; a reader asks whether it needs no mask.")
def mask_not_handed_on(X, weights, n_heads, mask=None, *, is_causal=False, **options):
    """The layer takes a mask and does not hand it to its attention."""
    return mha.encoder_layer(X, weights, n_heads, **options)


@bug("encoder", "espnet/espnet/issues/1278")
@seen("A reader's simplification of a speech toolkit: the result is very bad.")
def layers_share_weights(X, layers, *args, **options):
    """One layer is run several times, where each should have its own weights."""
    return mha.encoder(X, [layers[0] for _ in layers], *args, **options)


@bug("encoder", "Atcold/NYU-DLSP20/issues/270")
@seen("The notebook of a deep learning course at a university.")
def only_last_layer(X, layers, *args, **options):
    """Every layer reads the embeddings, so only the last one counts."""
    return mha.encoder(X, layers[-1:], *args, **options)


STEPS = tuple(m for m in MEMBERS if m.steps and not (m.encoder or m.sometimes))
WRONG = (*STEPS, *(m for m in MEMBERS if m.sometimes))
ALL = (right, *WRONG)
ENCODERS = tuple(m for m in MEMBERS if m.encoder)
