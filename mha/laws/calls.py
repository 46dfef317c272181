"""The laws of a call: batches, masks, gradients, lengths, dtypes, a second call."""

import time
from functools import partial

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.heads import multi_head_attention
from mha.laws.draw import SIZES, Size, numbers, open_mask, qkv
from mha.laws.judge import TOLERANCE, Failure, differs, law, weights_of
from mha.laws.stack import Drawn, reference
from mha.laws.subject import FOUR, Broke
from mha.laws.words import NotApplicable

__all__ = [
    "batch_masks_reach_their_own", "batches_and_heads_stay_apart", "calls_agree",
    "calls_do_not_remember", "causal_corner", "every_dtype_gives_the_numbers",
    "every_length_alike", "float_masks_are_added", "gradients_are_slopes",
    "groups_share_their_keys", "integer_masks_hide", "large_scores_stay_exact",
    "mask_and_causal_both_hide", "returned_weights_make_the_output",
    "silent_query_takes_the_mean", "strides_change_nothing",
]  # fmt: skip

# How near correct attention comes in each dtype, with scores up to 6.
PRECISION = {"float64": 1e-9, "float32": 1e-5, "float16": 0.02, "bfloat16": 0.1}
WHOLE = {"int64": 1e-5}  # or refused, which is no mistake
COARSE = ("float16", "bfloat16")
TWO = Size(2, 2, 2)
LONG = 4099  # the first prime behind a window of 4096
SECONDS = 2  # what the longest call may take
NUMBERS = 2**26  # how many scores one call may have


def _correct(subject, Q, K, V, **options):
    """Return what correct attention gives where the subject is asked."""
    options["is_causal"] = subject.always_causal
    return scaled_dot_product_attention(Q, K, V, **options)


def _agree(expected, got, correct, where, within=TOLERANCE):
    """Compare two answers that must be equal; a failure shows the correct one."""
    failure = differs(expected, got, where, within)
    return failure and (differs(correct, got, where) or failure)


def _unless_refused(what, call, *args, **options):
    """Return the answer: to refuse is no mistake, and is told as it is."""
    try:
        return call(*args, **options)
    except Broke as error:
        if error.__cause__ is None:
            # It raised nothing, and what it returned is no answer.
            raise
        raise NotApplicable(f"it refuses {what}: {error}") from error


def _not_coarse(subject, what):
    if subject.said.dtype in COARSE or (subject.said.tolerance or 0) > 1e-3:
        raise NotApplicable(f"its numbers are too coarse for {what}")


def _reads_others(subject):
    return subject.kind == "attention" or subject.other_names is not None


def _one_query(subject):
    """Whether a single query can be asked about many keys."""
    return _reads_others(subject) and not subject.always_causal


def batch_cases(rng):
    for b, h, size in ((1, 2, TWO), (2, 1, TWO), (2, 3, Size(5, 7, 4))):
        yield qkv(rng, size, b, h)


def _part_by_part(subject, Q, K, V, mask=None):
    """Compare each head of each sequence with the same alone; a layer makes heads."""
    heads = subject.takes_heads
    if not subject.takes_batches:
        raise NotApplicable("it reads one sequence at a time")
    n_heads = 1 if mask is None else mask.shape[1]
    if n_heads > 1 and subject.kind == "attention" and not heads:
        raise NotApplicable("it knows no heads")
    three = Q, K, V
    given = three if heads else tuple(x[:, 0] for x in three)
    ask = partial(subject.attend, *given, mask, heads=n_heads)
    Y = ask() if mask is None else _unless_refused(f"a mask of shape {mask.shape}", ask)
    if not heads:
        three = Q[:, :1], K[:, :1], V[:, :1]
        three = tuple(x.repeat(n_heads, 1) for x in three)
        Y = Y.reshape(*Y.shape[:-1], n_heads, -1).swapaxes(1, 2)
    correct = _correct(subject, *three, mask=mask)
    for b, r in np.ndindex(Y.shape[:2]):
        own = None if mask is None else mask[b, r % n_heads]
        alone = subject.attend(*(x[b, r] for x in three), own, heads=n_heads)
        if not heads:
            # A head may have a slope of its own, so it is asked in its place.
            alone = np.split(alone, n_heads, -1)[r]
        where = f"part [{b}, {r}] of the batch"
        if failure := _agree(alone, Y[b, r], correct[b, r], where):
            return failure
    return None


@law(
    "no head and no sequence of the batch changes another",
    "attention(Q, K, V)[b, r] = attention(Q[b, r], K[b, r], V[b, r])",
    "the axes in front of the tokens only put many computations into one call",
    cases=batch_cases,
)
def batches_and_heads_stay_apart(subject, Q, K, V):
    return _part_by_part(subject, Q, K, V)


def batch_mask_cases(rng):
    for b, h, size in ((2, 1, Size(1, 2, 2)), (5, 3, Size(5, 7, 2))):
        # Padding first: some are told lengths, and can be asked nothing else.
        ends = size.n_k - 1 + np.arange(b) % 2
        padding = np.arange(size.n_k) < ends[:, None, None, None]
        yield qkv(rng, size, b, h) | {"mask": padding}
        for heads, rows in ((1, 1), (1, size.n_q), (max(h, 2), size.n_q)):
            shown = open_mask(rng, rows, size.n_k)
            turned = [np.roll(shown, i, -1) for i in range(b * heads)]
            mask = np.reshape(turned, (b, heads, rows, -1))
            yield qkv(rng, size, b, max(h, heads)) | {"mask": mask}


@law(
    "every sequence of a batch, and every head, gets its own mask",
    "attention(Q, K, V, M)[i] = attention(Q[i], K[i], V[i], M[i]), i = b, r",
    "M of shape (batch, heads, n_q, n_k) has a mask for each part of the batch",
    cases=batch_mask_cases,
)
def batch_masks_reach_their_own(subject, Q, K, V, mask):
    failure = _part_by_part(subject, Q, K, V, mask)
    if failure or not subject.padding_name or mask.shape[1] > 1:
        return failure
    # The last key of the second sequence is padding, and the first is seen by all.
    mask = mask | (np.arange(K.shape[-2]) == 0)
    mask[1, ..., -1] = False
    due, where = mask, f"its padding handed over as {subject.padding_name}"
    if not subject.takes_heads:
        Q, K, V, due = (x[:, 0] for x in (Q, K, V, mask))
    own, got = (x.attend(Q, K, V, mask) for x in (subject, subject.but(splits=True)))
    return _agree(own, got, _correct(subject, Q, K, V, mask=due), where)


def both_cases(rng):
    for size in (TWO, Size(3, 3, 2), Size(5, 5, 3, False)):
        mask = (rng.random((size.n_q,) * 2) < 0.5) | np.eye(size.n_q, dtype=bool)
        # The mask alone would show the future, and the causal mask alone key 0.
        mask[0, -1], mask[1:, 0] = True, False
        yield qkv(rng, size) | {"mask": mask}
    for n_k in (3, 5):
        # Where masks have no axis for queries, key 1 is padding.
        yield qkv(rng, Size(n_k, n_k, 2)) | {"mask": np.arange(n_k)[None] != 1}


@law(
    "a mask and the causal mask both hide",
    "attention(Q, K, V, M, causal) = attention(Q, K, V, M ∧ causal)",
    "a padded key stays hidden when the future is hidden too",
    cases=both_cases,
    sees_all=True,
)
def mask_and_causal_both_hide(subject, Q, K, V, mask):
    together = partial(subject.attend, Q, K, V, mask)
    both = mask & np.tri(len(Q), len(K), dtype=bool)
    Y = _unless_refused("a mask beside is_causal", together, is_causal=True)
    where, correct = "mask and is_causal=True", _correct(subject, Q, K, V, mask=both)
    if len(mask) == 1:
        if "q" in (subject.said.mask_shape or "q") or differs(
            _correct(subject, Q, K, V), subject.attend(Q, K, V)
        ):
            raise NotApplicable("another kind of mask asks it")
        return differs(correct, Y, where)
    return _agree(subject.attend(Q, K, V, both), Y, correct, where)


def corner_cases(rng):
    for n_q, n_k in ((1, 3), (2, 5)):
        # Small numbers: no weight that is seen is near 0.
        yield {name: numbers(rng, n, 2) / 2 for name, n in (("Q", n_q), ("K", n_k))}


def _corner(name, n_q, n_k):
    return np.tri(n_q, n_k, n_k - n_q if name == "bottom-right" else 0, dtype=bool)


@law(
    "the causal mask begins in one corner, whatever the lengths",
    "A[i, j] > 0 ⇔ j ≤ i, or for all lengths j ≤ i + n_k − n_q",
    "either the first query and key are aligned, or the last ones are",
    cases=corner_cases,
)
def causal_corner(subject, Q, K):
    if not _reads_others(subject):
        raise NotApplicable("it knows self-attention only")
    corners = ["top-left", "bottom-right"]
    left = [name for name in corners if name == subject.said.causal] or corners
    for q, k in ((Q, K), (K, Q)):
        ask = partial(subject.attend, q, k, np.eye(len(k)), is_causal=True)
        A = _unless_refused("is_causal where n_q and n_k differ", ask)
        first, left = left[0], [name for name in left if _begins_in(name, A > 1e-9)]
        if not left:
            options = {"mask": _corner(first, *A.shape)}
            correct = _correct(subject, q, k, np.eye(len(k)), **options)
            return Failure(correct, A, f"weights, {len(q)} queries and {len(k)} keys")
    return None


def _begins_in(corner, visible):
    due = _corner(corner, *visible.shape)
    # A row that sees nothing is asked about by another law.
    return np.array_equal(visible[due.any(1)], due[due.any(1)])


def slope_cases(rng, subject):
    if not _slopes_are_apart(subject):
        yield {"n": 3, "seed": int(rng.integers(1000))}
        return
    for size in (Size(1, 2, 2), Size(2, 3, 2), Size(3, 5, 2, False)):
        case = qkv(rng, size) | {"direction": numbers(rng, size.n_q, size.d) + 0.5}
        yield case
        mask = open_mask(rng, size.n_q, size.n_k)
        mask[:, -1], mask[:, 0] = False, True
        yield case | {"mask": mask}


def _slopes_are_apart(subject):
    """Whether Q, K and V are arguments; else tokens are asked about their slopes."""
    plain = subject.kind == "layer" and not subject.own and subject.other_names
    return subject.kind == "attention" or (plain and not subject.said.n_kv_heads)


@law(
    "gradients are the slopes of the output",
    "∂L/∂x = (L(x + h) − L(x − h)) / 2h, and exactly 0 for a hidden key",
    "training follows the slopes, so they must be those of this output",
    cases=slope_cases,
)
def gradients_are_slopes(subject, **case):
    _not_coarse(subject, "slopes")
    if not subject.tensors:
        raise NotApplicable("its gradients are out of reach")
    if "seed" in case:
        return _slopes_of_tokens(subject, **case)
    mask, direction = case.pop("mask", None), case.pop("direction")
    ask = partial(subject.attend, mask=mask)
    given = [x.copy() for x in case.values()]
    found = subject.backwards(lambda twin: twin.attend(*given, mask), direction)
    slopes = []
    for key, x in zip((0, *(subject.other_names or (1, 2))), given, strict=True):
        # What the laws gave stands first in what was handed over.
        slope = found[key][(0,) * (found[key].ndim - x.ndim)]
        slopes.append(slope[..., : x.shape[-2], : x.shape[-1]])
    if subject.kind == "attention":
        slopes[0] = slopes[0] * subject.said.factor(given[0].shape[-1])
    if failure := _not_slopes(ask, case, slopes, direction):
        return failure
    unseen = slice(0) if mask is None else ~mask.any(0)
    for name, slope in zip("KV", slopes[1:], strict=True):
        if (hidden := slope[unseen]).any():
            return Failure("exactly 0", f"{abs(hidden).max():.1e}", f"{name}, hidden")
    return None


def _slopes_of_tokens(subject, n, seed):
    rng, sizes = np.random.default_rng(seed), subject.sizes
    X = rng.standard_normal((n, sizes.width))
    if subject.kind == "encoder":
        # The feed-forward part, which bends, is silent.
        drawn = Drawn(seed, sizes)
        given = [w | {"W_2": 0 * w["W_2"]} for w in drawn.draw()]
        subject.log["tokens"] = f"{sizes.heads} heads, {drawn!r} with W_2 = 0"

        def ask(X, subject=subject):
            return subject.encode(X, given)
    else:
        X, weights = X / 2, _weights_for(rng, sizes)

        def ask(X, subject=subject):
            return subject.layer(X, weights, sizes.heads)

    direction = rng.standard_normal(X.shape)
    slope = subject.backwards(partial(ask, X), direction)[0]
    # A wide token has too many numbers to try them all.
    some = rng.permutation(X.size)[:30]
    where = [tuple(i) for i in np.argwhere(np.ones(X.shape))[np.sort(some)]]
    return _not_slopes(
        ask, {"X": X}, [slope.reshape(-1, *X.shape)[0]], direction, where
    )


def _not_slopes(ask, given, slopes, direction, places=None, h=1e-4):
    """Compare gradients with central differences."""
    if not any(slope.any() for slope in slopes):
        raise NotApplicable("no gradient flows through it at all")
    for (name, x), got in zip(given.items(), slopes, strict=True):
        wanted = got.copy()
        for i in places or np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[i] = h
            ends = [ask(**given | {name: x + s}) for s in (step, -step)]
            wanted[i] = ((ends[0] - ends[1]) * direction).sum() / (2 * h)
        if failure := differs(wanted, got, f"gradient of {name}", 1e-3):
            return failure
    return None


@law(
    "the weights that are returned make the output",
    "Y = A V, Σ_j A[i, j] = 1, A[i, j] = 0 where M[i, j] is False",
    "a map of attention must show the weights that the output was made with",
)
def returned_weights_make_the_output(subject, Q, K, V, mask=None):
    Y, A = subject.attend_with_weights(Q, K, V, mask)
    correct, right = _correct(subject, Q, K, V, mask=mask, return_weights=True)
    if mask is not None and A[~mask].any():
        return Failure(right, A, "returned weights, of hidden keys too")
    if failure := differs(np.ones(len(A)), A.sum(-1), "sums of the returned weights"):
        return failure
    plain = subject.attend(Q, K, V, mask)
    return _agree(Y, A @ V, correct, "returned weights times V") or _agree(
        plain, Y, correct, "output, when the weights are asked for"
    )


VIEWS = {
    "transposed in memory": lambda x: x.T.copy().T,
    "columns of a wider array": lambda x: np.pad(x, ((0, 0), (1, 2)))[:, 1:-2],
    "every second row of an array": lambda x: np.repeat(x, 2, 0)[::2],
    "one row, broadcast": lambda x: np.broadcast_to(x[0], x.shape),
}


@law(
    "how an array lies in memory changes nothing",
    "attention(Q, K, V) is the same for views, transposed, cut or broadcast",
    "an array is its numbers, and strides say only where they are stored",
    cases=lambda rng: [qkv(rng, SIZES[1]) | {"lies": lies} for lies in VIEWS],
)
def strides_change_nothing(subject, Q, K, V, lies):
    views = [VIEWS[lies](x) for x in (Q, K, V)]
    ask = subject.borrowing().attend
    if subject.own and subject.kind == "layer":
        views = [VIEWS[lies](np.resize(Q, (3, subject.own.width)))]
        ask = partial(_on_some_weights, subject.borrowing())
    elif subject.kind == "encoder":
        views, ask = views[:1], lambda X: subject.borrowing().attend(X, X, X)
    plain = [view.copy() for view in views]
    right = ask(*(x.copy() for x in plain))
    if differs(right, ask(*plain)) or not all(map(np.array_equal, plain, views)):
        raise NotApplicable("it writes into the arrays that it is given")
    Y = _unless_refused(f"an array that is {lies}", ask, *views)
    correct = right if len(views) == 1 else _correct(subject, *plain)
    return _agree(right, Y, correct, lies)


def _on_some_weights(subject, X):
    weights = _weights_for(np.random.default_rng(0), subject.sizes)
    return subject.layer(X, weights, subject.sizes.heads)


@law(
    "a query of zeros gives the mean of all values, however many",
    "q = 0 ⇒ y = (V[0] + … + V[n_k − 1]) / n_k for n_k = 2, 257 and 4099",
    "all scores are 0, so that every key gets 1/n_k",
    orderless=True,
    n_k=(2, 257, LONG),
)
def silent_query_takes_the_mean(subject, n_k, seed):
    V = np.random.default_rng(seed).standard_normal((n_k, 2))
    if _one_query(subject):
        Y = subject.attend(np.zeros((1, 2)), V[::-1], V)
        return differs(V.mean(0, keepdims=True), Y, f"1 query, {n_k} keys")
    if n_k == LONG:
        apart = subject.own or subject.said.n_kv_heads
        if LONG**2 * (subject.sizes.heads if apart else 1) > NUMBERS:
            raise NotApplicable(f"{n_k} queries in many heads take too much memory")
        began = time.process_time()
        _all_silent(subject, V[:257])
        if (time.process_time() - began) * (n_k / 257) ** 2 > SECONDS:
            raise NotApplicable(f"{n_k} queries would take too long")
        V = V.astype("float32")
    Y, sums = _all_silent(subject, V), V.cumsum(0, dtype=float)
    counts = np.arange(1, n_k + 1)[:, None]
    means = sums / counts if subject.always_causal else sums[-1:] / n_k + 0 * sums
    failure = differs(means[-1:], Y[-1:], f"the last of {n_k} queries")
    if failure or differs(means, Y) is None:
        return failure
    worst = abs(means - Y).max(-1).argmax()
    return Failure(means[worst], Y[worst], f"query {worst + 1} of {n_k}")


def _all_silent(subject, V):
    if subject.kind != "layer" or subject.own or subject.said.n_kv_heads:
        return subject.attend(0 * V, V, V)
    weights = dict.fromkeys(FOUR, np.eye(2, dtype=V.dtype))
    return subject.layer(V, weights | {"W_Q": 0 * weights["W_Q"]}, 1)


def length_cases(rng):
    hidden = {"": (3, 63, 64, 65, 127, 128, 129, 257)}
    hidden |= dict.fromkeys(("padding", "a mask"), (40, 65, 130, 258))
    hidden |= {"is_causal=True": (33, 65, 129, 258)}
    for hides, lengths in hidden.items():
        for n in lengths:
            # The last key is the loudest: a running maximum grows in the last block.
            keys = np.concatenate([numbers(rng, 2, 2), [[3.0, 2.0]]])
            case = {"q": np.array([[1.0, 2.0]]), "keys": keys}
            case |= {"n": n, "seed": int(rng.integers(1000))}
            yield case | ({"hides": hides} if hides else {})


@law(
    "keys count alike at every length, also where blocks end",
    "K[j] = k_{c(j)} ⇒ A[i, j] / A[i, 0] = A₃[i, c(j)] / A₃[i, 0]",
    "a score depends on its own key, and softmax on all keys alike",
    cases=length_cases,
    orderless=True,
)
def every_length_alike(subject, q, keys, n, seed, hides=""):
    failure = _at_length(subject, q, keys, n, seed, hides)
    if failure is None or not hides or not _at_length(subject, q, keys, 5, seed, hides):
        return failure
    raise NotApplicable(f"with {hides} it is wrong at every length")


def _at_length(subject, q, keys, n, seed, hides):
    rng, kind = np.random.default_rng(seed), np.arange(n) % 2
    kind[-1], V = 2, rng.standard_normal((n, 2))
    three = subject.attend(q.repeat(3, 0), keys, np.eye(3))
    n_q = n if hides or n <= 129 or not _one_query(subject) else 1
    causal, options = subject.always_causal or "causal" in hides, {}
    seen = np.tri(n_q, n, dtype=bool) if causal else np.ones((n_q, n), bool)
    if hides.startswith("is"):
        options = {"is_causal": True}
    elif hides:
        square = (rng.random((n, n)) < 0.5) | np.eye(n, dtype=bool)
        mask = square if hides == "a mask" else np.arange(n)[None] < n - n // 5
        seen, options = seen & mask, {"mask": mask}
    A, Q, K = three[-1][kind] * seen, np.tile(q, (n_q, 1)), keys[kind]
    got = subject.attend(Q, K, V, **options)
    where = f"K repeats two keys and ends with the third, {n} tokens"
    where += f", {hides}" * bool(hides)
    failure = differs(A / A.sum(-1, keepdims=True) @ V, got, where)
    if failure is None:
        return None
    # The row that is off most says enough.
    correct = _correct(subject, Q, K, V, **options)
    worst = abs(correct - got).max(-1).argmax()
    return Failure(correct[worst], got[worst], f"{where}, query {worst + 1}")


# d_v = d_k = n_k, so that the values may be unit vectors wherever a scale is read from;
# even, because rotary layers take no other width.
SQUARE = tuple(Size(n_q, n_k, n_k) for n_q, n_k in ((1, 2), (3, 4), (5, 6)))


def float_mask_cases(rng):
    for size in SQUARE:
        bias, shown = numbers(rng, *size[:2]), open_mask(rng, *size[:2])
        yield qkv(rng, size) | {"mask": np.where(shown, bias, -np.inf)}


@law(
    "a float mask is added to the scores, or refused",
    "A = softmax(S + M), or an error",
    "read as truth values, 0 and −∞ hide visible keys and show hidden ones",
    cases=float_mask_cases,
)
def float_masks_are_added(subject, Q, K, V, mask):
    # Where True hides, a mask that is read as bool shows itself by hiding at 1.
    opens = [np.full_like(mask, x) for x in (0, 1)]
    opens = opens[: 1 + (subject.said.mask_true == "hide")]
    if subject.kind == "encoder":
        return _float_mask_of_encoder(subject, K, mask)
    ask = _asking(subject, "floats", Q, K, V, opens)
    A = weights_of(subject, Q, K) * np.exp(mask)
    total = A.sum(-1, keepdims=True)
    if not total.all():
        raise NotApplicable("it is always causal, and then a token sees nothing")
    correct = _correct(subject, Q, K, V, mask=mask)
    return _agree(A / total @ V, ask(mask), correct, "a mask of floats")


def _float_mask_of_encoder(subject, X, mask):
    mask = np.resize(mask, (len(X), len(X)))
    if differs(reference(*subject.tokens(X), subject), subject.attend(X, X, X)):
        raise NotApplicable("its numbers are others, whatever the mask")
    opens = [np.zeros_like(mask)]
    Y = _asking(subject, "floats", X, X, X, opens)(mask)
    return differs(reference(*subject.tokens(X), subject, mask=mask), Y)


def integer_mask_cases(rng):
    for size in SQUARE:
        yield qkv(rng, size) | {"mask": open_mask(rng, *size[:2]).astype(int)}


@law(
    "a mask of 0 and 1 is read as False and True, or refused",
    "A[i, j] = 0 where M[i, j] = 0, or an error",
    "0 and 1 that are added to the scores hide nothing, and no error says so",
    cases=integer_mask_cases,
)
def integer_masks_hide(subject, Q, K, V, mask):
    if subject.said.mask_true == "added":
        raise NotApplicable("its masks are added")
    hides = int(subject.said.mask_true == "hide")
    ask = _asking(subject, "integers", Q, K, V, [np.full_like(mask, 1 - hides)])
    own = subject.attend(Q, K, V, mask == 1)
    correct = _correct(subject, Q, K, V, mask=mask == 1)
    return _agree(own, ask(mask ^ hides), correct, "a mask of integers")


def _asking(subject, numbers, Q, K, V, opens):
    """Return how it is asked under a mask of numbers, if open ones do nothing."""
    if subject.said.mask_shape == "lengths":
        raise NotApplicable("it reads lengths, and no mask")
    what = f"a mask of {numbers}"
    ask = partial(_unless_refused, what, subject.attend, Q, K, V)
    plain = subject.attend(Q, K, V)
    if any(differs(plain, ask(open_)) for open_ in opens):
        raise NotApplicable(
            f"it is not made for {what}: one that hides nothing hides keys"
        )
    return ask


@law(
    "two calls on the same input agree",
    "attention(Q, K, V) = attention(Q, K, V)",
    "outside of training nothing is random (each call gets copies)",
    n=(13,),
)
def calls_agree(subject, n, seed):
    given = qkv(np.random.default_rng(seed), Size(n, n + 4, 2, False))
    if subject.kind == "encoder":
        given = dict.fromkeys("QKV", given["Q"])
    first, second = subject.attend(**given), subject.attend(**given)
    if differs(first, second) is None:
        return None
    i = abs(first - second).max(-1).argmax()
    return Failure(first[i], second[i], f"row {i}, first and second call")


@law(
    "a call does not remember the calls before it",
    "attention(Q, K, V) is the same before and after other calls",
    "the output is a function of the arguments, and of nothing else",
)
def calls_do_not_remember(subject, Q, K, V, longer, mask=None):
    Y, correct = subject.attend(Q, K, V), _correct(subject, Q, K, V)
    first = Y.copy()
    others = {"a longer call": [longer] * 3, "a call on other queries": (-Q, K, V)}
    others |= {} if mask is None else {"a call with a mask": (Q, K, V, mask)}
    for name, given in others.items():
        subject.attend(*given)
        # The first answer may lie in a buffer that the other call has used.
        kept, again = Y.copy(), subject.attend(Q, K, V)
        failure = _agree(first, kept, correct, f"the first answer, after {name}")
        if failure := failure or _agree(first, again, correct, f"after {name}"):
            return failure
    return None if mask is None else _second_mask(subject, longer)


def _second_mask(subject, X):
    """Ask about the future after the past; hidden keys behind make a shape of its own.

    Hiding them may be broken by itself: then the first mask shows it, too.
    """
    n, past = len(X), np.tri(len(X), dtype=bool)

    def ask(mask, more):
        tokens = np.concatenate([X, X[:more]])
        rows = np.concatenate([mask, mask[:more]])
        shown = np.pad(rows, [(0, 0), (0, more)])
        return subject.attend(tokens, tokens, tokens, shown)[:n]

    first, second, again = ask(past, 0).copy(), ask(past.T, 0).copy(), ask(past, 0)
    if differs(first, ask(past, 2)):
        return None
    correct = [_correct(subject, X, X, X, mask=m) for m in (past, past.T)]
    where = f"after one of the same shape ({n}, {n})"
    return _agree(ask(past.T, 1), second, correct[1], f"mask j ≥ i, {where}") or _agree(
        first, again, correct[0], f"mask j ≤ i, {where}"
    )


@law(
    "large scores give the same weights as small ones",
    "scores c + ln 3 and c give weights 3/4 and 1/4 for c = ±100, ±700",
    "softmax depends on differences of scores, and what they share cancels",
    orderless=True,
    offset=(100, -100, 700),
)
def large_scores_stay_exact(subject, offset):
    _not_coarse(subject, "scores of 700 and ln 3")
    # The first query gives scores of one sign, and the second those of the other.
    Q, V = np.array([[1.0, 1.0], [1.0, -1.0]]) * np.sqrt(2), np.eye(2)
    small, large = (np.array([[np.log(3), c], [0.0, c]]) for c in (0.0, offset))
    seeing = slice(1 if subject.always_causal else 0, None)
    expected, got = (subject.attend(Q, K, V)[seeing] for K in (small, large))
    where = f"scores of ln 3 and 0, plus {offset} for one query, minus for the next"
    # In float32, 700 + ln 3 has four decimals.
    return _agree(expected, got, np.array([[0.75, 0.25]] * 2)[seeing], where, 1e-4)


@law(
    "every dtype gives the numbers, as near as it can",
    "|Y − Y_correct| < 1e-9, 1e-5, 0.02, 0.1 for float64, 32, 16 and bfloat16",
    "digits that the dtype has must not be lost, and integers not truncated",
    orderless=True,
    sizes=SIZES[2:3],
    dtype=(*PRECISION, *WHOLE),
)
def every_dtype_gives_the_numbers(subject, Q, K, V, dtype, mask=None):
    if subject.said.dtype and dtype != subject.said.dtype:
        raise NotApplicable(f"it takes {subject.said.dtype}")
    if dtype in WHOLE and (subject.kind != "attention" or subject.said.scale):
        raise NotApplicable("integers are asked of plain attention")
    correct = _correct(subject, Q, K, V, mask=mask)
    # float32 loses a tenth of a millionth, and a design such as soft-capping more.
    near = 5e-6 + PRECISION.get(subject.said.dtype, 0)
    if differs(correct, subject.attend(Q, K, V, mask), within=near):
        raise NotApplicable("its numbers are others, whatever the dtype")
    ask = subject.but(cast=dtype).attend
    within = (PRECISION | WHOLE)[dtype]
    Y = _unless_refused(dtype, ask, Q, K, V, mask)
    return differs(correct, Y, dtype, within)


@law(
    "the query heads of a group use the same key head",
    "attention(Q, K, V)[r] = attention(Q[r], K[⌊r / g⌋], V[⌊r / g⌋])",
    "the heads of a group are neighbours, so each key head is repeated for all",
    n=(1, 2, 3),
)
def groups_share_their_keys(subject, n, seed):
    n_kv = subject.said.n_kv_heads
    if n_kv is None:
        raise NotApplicable("nobody said n_kv_heads, so each head has its own keys")
    if n > 1 and subject.said.positional:
        raise NotApplicable("the order of its tokens counts (positional=True)")
    rng, sizes = np.random.default_rng(seed), subject.sizes
    where = f"{sizes.heads} heads, {n_kv} of keys"
    if subject.kind == "attention":
        Q, K, V = (numbers(rng, 1, h, n, 2) for h in (sizes.heads, n_kv, n_kv))
        shared = [np.repeat(x, 2, axis=1) for x in (K, V)]
        return differs(_correct(subject, Q, *shared), subject.attend(Q, K, V), where)
    X, weights = numbers(rng, n, sizes.width), _weights_for(rng, sizes)
    each = sizes.heads // n_kv
    wide = {
        name: W.reshape(sizes.width, n_kv, -1).repeat(each, 1).reshape(sizes.width, -1)
        for name, W in weights.items()
        if name in ("W_K", "W_V")
    }
    options = {"is_causal": True} if subject.always_causal else {}
    correct = multi_head_attention(
        X, n_heads=sizes.heads, **(weights | wide), **options
    )
    return differs(correct, subject.layer(X, weights, sizes.heads), where)


def _weights_for(rng, sizes):
    """Return four matrices for a layer of these sizes."""
    d, d_kv = sizes.width, sizes.groups * sizes.d_k
    widths = zip(FOUR, (d, d_kv, d_kv, d), strict=True)
    return {name: rng.standard_normal((d, w)) / d**0.5 for name, w in widths}
