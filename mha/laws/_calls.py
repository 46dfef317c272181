"""The laws of a call: batches, masks, gradients, lengths, dtypes, a second call."""

import time
from functools import partial

import numpy as np

from mha.attention import scaled_dot_product_attention
from mha.heads import multi_head_attention
from mha.laws._draw import SIZES, Size, numbers, open_mask, qkv, qkv_cases
from mha.laws._law import TOLERANCE, Failure, differs, law, weights_of
from mha.laws.subjects.subject import Broke, NotApplicable

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
LONG = 4099  # the first prime behind a window of 4096
SECONDS = 2  # what the longest call may take


def _correct(subject, Q, K, V, **options):
    """Return what correct attention gives where the subject is asked."""
    options |= {"is_causal": True} if subject.always_causal else {}
    return scaled_dot_product_attention(Q, K, V, **options)


def _agree(expected, got, correct, where, within=TOLERANCE):
    """Compare two answers that must be equal; a failure shows the correct one."""
    failure = differs(expected, got, where, within)
    return failure and (differs(correct, got, where, within) or failure)


def _unless_refused(what, call, *args, **options):
    """Return the answer: to refuse is no mistake, and is told as it is."""
    try:
        return call(*args, **options)
    except Broke as error:
        raise NotApplicable(f"it refuses {what}: {error}") from error


def _not_an_encoder(subject, why):
    if subject.kind == "encoder":
        raise NotApplicable(why)


def _one_query(subject):
    """Whether a single query can be asked about many keys."""
    if subject.always_causal:
        return False
    return subject.kind == "attention" or subject.other_names is not None


def batch_cases(rng):
    two = Size(2, 2, 2)
    for b, h, size in ((1, 2, two), (2, 1, two), (2, 3, Size(5, 7, 4, False))):
        lengths = {"Q": size.n_q, "K": size.n_k, "V": size.n_k}
        drawn = partial(numbers, rng, b, h, integers=size.integers)
        yield {name: drawn(n, size.d) for name, n in lengths.items()}


def _in_front(subject, *arrays):
    """Return batch and heads as the subject reads them: a layer makes its own heads."""
    _not_an_encoder(subject, "its batches are asked about as a whole")
    if subject.takes_heads:
        return arrays
    if not subject.takes_batch:
        raise NotApplicable("it reads one sequence at a time")
    return [x[:, 0] for x in arrays]


@law(
    "no head and no sequence of the batch changes another",
    cases=batch_cases,
    equation="attention(Q, K, V)[b, r] = attention(Q[b, r], K[b, r], V[b, r])",
    reason="the axes in front of the tokens are only a way to write many at once",
)
def batches_and_heads_stay_apart(subject, Q, K, V):
    Q, K, V = _in_front(subject, Q, K, V)
    Y, correct = subject.attend(Q, K, V), _correct(subject, Q, K, V)
    for i in np.ndindex(Q.shape[:-2]):
        alone, where = subject.attend(Q[i], K[i], V[i]), f"part {list(i)} of the batch"
        if failure := _agree(alone, Y[i], correct[i], where):
            return failure
    return None


def batch_mask_cases(rng):
    for b, h, size in ((2, 1, Size(1, 2, 2)), (2, 3, Size(5, 7, 2))):
        lengths = {"Q": size.n_q, "K": size.n_k, "V": size.n_k}
        case = {name: numbers(rng, b, h, n, size.d) for name, n in lengths.items()}
        # Padding first: some are told lengths, and can be asked nothing else.
        ends = np.array([size.n_k - 1, size.n_k]).reshape(b, 1, 1, 1)
        yield case | {"mask": np.arange(size.n_k) < ends}
        one = open_mask(rng, 1, size.n_k)
        yield case | {"mask": np.stack([one, ~one])[:, None]}
        several = open_mask(rng, size.n_q, size.n_k)
        yield case | {"mask": np.stack([several, np.roll(several, 1, -1)])[:, None]}


@law(
    "every sequence of a batch gets its own mask",
    cases=batch_mask_cases,
    equation="attention(Q, K, V, M)[b, r] = attention(Q[b, r], K[b, r], V[b, r], M[b])",
    reason="M of shape (batch, 1, n_q, n_k) says for each sequence what is padding",
)
def batch_masks_reach_their_own(subject, Q, K, V, mask):
    Q, K, V = _in_front(subject, Q, K, V)
    what = f"a mask of shape {mask.shape}"
    Y = _unless_refused(what, subject.attend, Q, K, V, mask)
    correct = _correct(subject, Q, K, V, mask=mask[:, 0] if Q.ndim == 3 else mask)
    for i in np.ndindex(Q.shape[:-2]):
        alone = subject.attend(Q[i], K[i], V[i], mask[i[0], 0])
        where = f"part {list(i)} of the batch"
        if failure := _agree(alone, Y[i], correct[i], where):
            return failure
    return None


def both_cases(rng):
    for size in (Size(2, 2, 2), Size(3, 3, 2), Size(5, 5, 3, False)):
        mask = (rng.random((size.n_q,) * 2) < 0.5) | np.eye(size.n_q, dtype=bool)
        # The mask alone would show the future, and the causal mask alone key 0.
        mask[0, -1], mask[1:, 0] = True, False
        yield qkv(rng, size) | {"mask": mask}


@law(
    "a mask and the causal mask both hide",
    cases=both_cases,
    equation="attention(Q, K, V, M, causal) = attention(Q, K, V, M ∧ causal)",
    reason="a padded key stays hidden when the future is hidden too",
    sees_all=True,
)
def mask_and_causal_both_hide(subject, Q, K, V, mask):
    if not subject.takes_causal:
        raise NotApplicable("it has no is_causal")
    together, both = (
        partial(subject.attend, Q, K, V, mask),
        np.tril(mask),
    )
    Y = _unless_refused("a mask beside is_causal", together, is_causal=True)
    where, correct = "mask and is_causal=True", _correct(subject, Q, K, V, mask=both)
    return _agree(subject.attend(Q, K, V, both), Y, correct, where)


def corner_cases(rng):
    for n_q, n_k in ((1, 3), (2, 5)):
        # Small numbers: no weight that is seen is near 0.
        yield {name: numbers(rng, n, 2) / 2 for name, n in (("Q", n_q), ("K", n_k))}


CORNERS = {"top-left": lambda n_q, n_k: 0, "bottom-right": lambda n_q, n_k: n_k - n_q}


@law(
    "the causal mask begins in one corner, whatever the lengths",
    cases=corner_cases,
    equation="A[i, j] > 0 ⇔ j ≤ i, or for all lengths j ≤ i + n_k − n_q",
    reason="either the first tokens stand side by side, or the last ones do",
)
def causal_corner(subject, Q, K):
    if not _reads_others(subject):
        raise NotApplicable("it knows self-attention only")
    said = subject.said.causal
    left = {said} if said in CORNERS else set(CORNERS)
    for q, k in ((Q, K), (K, Q)):
        ask = partial(subject.attend, q, k, np.eye(len(k)), is_causal=True)
        A = _unless_refused("is_causal where n_q and n_k differ", ask)
        first = min(left, key=list(CORNERS).index)
        left = {name for name in left if _begins_in(name, A > 1e-9)}
        if not left:
            hidden = np.tri(*A.shape, CORNERS[first](*A.shape), dtype=bool)
            correct = _correct(subject, q, k, np.eye(len(k)), mask=hidden)
            return Failure(correct, A, f"weights, {len(q)} queries and {len(k)} keys")
    return None


def _reads_others(subject):
    return subject.kind == "attention" or subject.other_names is not None


def _begins_in(corner, visible):
    due = np.tri(*visible.shape, CORNERS[corner](*visible.shape), dtype=bool)
    # A row that sees nothing is asked about by another law.
    return np.array_equal(visible[due.any(1)], due[due.any(1)])


def slope_cases(rng):
    for size in (Size(1, 2, 2), Size(2, 3, 2), Size(3, 5, 2, False)):
        case = qkv(rng, size) | {"direction": numbers(rng, size.n_q, size.d) + 0.5}
        yield case
        mask = open_mask(rng, size.n_q, size.n_k)
        mask[:, -1], mask[:, 0] = False, True
        yield case | {"mask": mask}


@law(
    "gradients are the slopes of the output",
    cases=slope_cases,
    equation="∂L/∂x = (L(x + h) − L(x − h)) / 2h, and exactly 0 for a hidden key",
    reason="what training follows is how the output moves, and nothing else",
)
def gradients_are_slopes(subject, Q, K, V, direction, mask=None):
    if subject.said.n_kv_heads and subject.kind == "layer":
        raise NotApplicable("keys that a group shares have the slopes of all its heads")
    slopes = subject.slopes(Q, K, V, mask, direction)
    if not any(slope.any() for slope in slopes):
        raise NotApplicable("no gradient flows through it at all")
    given = {"Q": Q, "K": K, "V": V}
    for name, got in zip("QKV", slopes, strict=True):
        wanted = _differences(subject, given, name, direction, mask)
        if failure := differs(wanted, got, f"gradient of {name}", 1e-3):
            return failure
        if mask is not None and name != "Q" and (hidden := got[~mask.any(0)]).any():
            return Failure("exactly 0", f"{abs(hidden).max():.1e}", f"{name}, hidden")
    return None


def _differences(subject, given, name, direction, mask, h=1e-3):
    slopes = np.zeros_like(given[name])
    for i in np.ndindex(slopes.shape):
        step = np.zeros_like(slopes)
        step[i] = h
        ends = [subject.attend(**given | {name: given[name] + s}, mask=mask)
                for s in (step, -step)]  # fmt: skip
        slopes[i] = ((ends[0] - ends[1]) * direction).sum() / (2 * h)
    return slopes


@law(
    "the weights that are returned make the output",
    cases=qkv_cases,
    equation="Y = A V, Σ_j A[i, j] = 1, A[i, j] = 0 where M[i, j] is False",
    reason="what is drawn as attention must be what the output was made with",
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
}


def view_cases(rng):
    for size in SIZES[1:]:
        yield qkv(rng, size)


@law(
    "how an array lies in memory changes nothing",
    cases=view_cases,
    equation="attention(Q, K, V) is the same for views, transposed, cut or broadcast",
    reason="an array is its numbers, and strides say only where they are stored",
)
def strides_change_nothing(subject, Q, K, V):
    given, lent, refused, asked = (Q, K, V), subject.borrowing(), None, False
    ways = [(where, given, [view(x) for x in given]) for where, view in VIEWS.items()]
    same = [np.tile(x[:1], (len(x), 1)) for x in given]
    ways += [
        ("one row, broadcast", same, [np.broadcast_to(x[0], x.shape) for x in same])
    ]
    for where, plain, views in ways:
        try:
            Y = _unless_refused(f"an array that is {where}", lent.attend, *views)
        except NotApplicable as why:
            refused = why
            continue
        asked, correct = True, _correct(subject, *plain)
        if failure := _agree(subject.attend(*plain), Y, correct, where):
            return failure
    if not asked:
        raise refused
    return None


def silent_cases(rng):
    for n_k in (2, 257, LONG):
        yield {"n_k": n_k, "seed": int(rng.integers(1000))}


@law(
    "a query of zeros takes the mean of all values, however many",
    cases=silent_cases,
    equation="q = 0 ⇒ y = (V[0] + … + V[n_k − 1]) / n_k for n_k = 2, 257 and 4099",
    reason="all scores are 0, so that every key gets 1/n_k",
    orderless=True,
)
def silent_query_takes_the_mean(subject, n_k, seed):
    V = np.random.default_rng(seed).standard_normal((n_k, 2))
    if _one_query(subject):
        Y = subject.attend(np.zeros((1, 2)), V[::-1], V)
        return differs(V.mean(0, keepdims=True), Y, f"1 query, {n_k} keys")
    if n_k == LONG:
        if subject.kind == "encoder" or subject.said.n_kv_heads:
            raise NotApplicable(f"{n_k} queries in many heads take too much memory")
        began = time.process_time()
        _all_silent(subject, V[:257])
        if (time.process_time() - began) * (n_k / 257) ** 2 > SECONDS:
            raise NotApplicable(f"{n_k} queries would take too long")
        V = V.astype("float32")
    Y, counts = _all_silent(subject, V), np.arange(1, n_k + 1)[:, None]
    means = V.cumsum(0) / counts if subject.always_causal else V.mean(0) + 0 * V
    return differs(means[-1:], Y[-1:], f"the last of {n_k} queries")


def _all_silent(subject, V):
    if subject.kind == "attention":
        return subject.attend(0 * V, V, V)
    weights = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), np.eye(2, dtype=V.dtype))
    return subject.layer(V, weights | {"W_Q": 0 * weights["W_Q"]}, 1)


def length_cases(rng):
    for n in (3, 63, 64, 65, 127, 128, 129, 257):
        case = {"q": numbers(rng, 1, 2), "keys": numbers(rng, 2, 2)}
        yield case | {"n": n, "seed": int(rng.integers(1000))}


@law(
    "keys count alike at every length, also where blocks end",
    cases=length_cases,
    equation="K[j] = k_{j mod 2} ⇒ A[i, j] / A[i, 0] = A₂[i, j mod 2] / A₂[i, 0]",
    reason="a score depends on its own key, and softmax on all keys alike",
    orderless=True,
)
def every_length_alike(subject, q, keys, n, seed):
    V, kind = np.random.default_rng(seed).standard_normal((n, 2)), np.arange(n) % 2
    pair = subject.attend(np.tile(q, (2, 1)), keys, np.eye(2))[-1]
    n_q = 1 if n > 129 and _one_query(subject) else n
    A = np.tile(pair[kind], (n_q, 1))
    A = np.tril(A) if subject.always_causal else A
    Q, K = np.tile(q, (n_q, 1)), keys[kind]
    got, correct = subject.attend(Q, K, V), _correct(subject, Q, K, V)
    where = f"K repeats the two keys, {n} tokens"
    failure = differs(A / A.sum(-1, keepdims=True) @ V, got, where)
    if failure is None:
        return None
    # The row that is off most says enough.
    worst = abs(correct - got).max(-1).argmax()
    return Failure(correct[worst], got[worst], f"{where}, query {worst + 1}")


def float_mask_cases(rng):
    for size in SIZES[:3]:
        bias, shown = numbers(rng, *size[:2]), open_mask(rng, *size[:2])
        yield qkv(rng, size) | {"mask": np.where(shown, bias, -np.inf)}


@law(
    "a float mask is added to the scores, or refused",
    cases=float_mask_cases,
    equation="A = softmax(S + M), or an error",
    reason="0 and −∞ read as truth values hide what is to be seen, and the reverse",
)
def float_masks_are_added(subject, Q, K, V, mask):
    return _number_mask(subject, Q, K, V, mask, np.zeros_like(mask), np.exp(mask))


def integer_mask_cases(rng):
    for size in SIZES[:3]:
        yield qkv(rng, size) | {"mask": open_mask(rng, *size[:2]).astype(int)}


@law(
    "a mask of 0 and 1 is read as False and True, or refused",
    cases=integer_mask_cases,
    equation="A[i, j] = 0 where M[i, j] = 0, or an error",
    reason="0 and 1 that are added to the scores hide nothing, and no error says so",
)
def integer_masks_hide(subject, Q, K, V, mask):
    if subject.said.mask_true == "added":
        raise NotApplicable("its masks are added")
    hides = int(subject.said.mask_true == "hide")
    open_ = np.full_like(mask, 1 - hides)
    return _number_mask(subject, Q, K, V, mask ^ hides, open_, mask)


def _number_mask(subject, Q, K, V, given, open_, factor):
    """Compare what a mask does with what it must do, if an open one does nothing."""
    if subject.said.mask_shape == "lengths":
        raise NotApplicable("it reads lengths, and no mask")
    what = f"a mask of {'floats' if given.dtype.kind == 'f' else 'integers'}"
    ask = partial(_unless_refused, what, subject.raw, Q, K, V)
    if differs(subject.attend(Q, K, V), ask(open_)):
        raise NotApplicable(
            f"it is not made for {what}: one that hides nothing hides keys"
        )
    A = weights_of(subject, Q, K) * factor
    total = A.sum(-1, keepdims=True)
    if not total.all():
        raise NotApplicable("it is always causal, and then a token sees nothing")
    mask = np.log(factor, where=factor > 0, out=np.full(factor.shape, -np.inf))
    return _agree(
        A / total @ V, ask(given), _correct(subject, Q, K, V, mask=mask), what
    )


def agree_cases(rng):
    yield {"n_q": 13, "n_k": 17, "seed": int(rng.integers(1000))}


@law(
    "two calls on the same input agree",
    cases=agree_cases,
    equation="attention(Q, K, V) = attention(Q, K, V)",
    reason="nothing is drawn by chance outside of training",
)
def calls_agree(subject, n_q, n_k, seed):
    given = qkv(np.random.default_rng(seed), Size(n_q, n_k, 2, False))
    first, second = subject.attend(**given), subject.attend(**given)
    failure = differs(first, second)
    if failure is None:
        return None
    i = abs(first - second).max(-1).argmax()
    return Failure(first[i], second[i], f"row {i}, first and second call")


def memory_cases(rng):
    for case in qkv_cases(rng):
        yield case | {"longer": numbers(rng, 11, case["Q"].shape[1])}


@law(
    "a call does not remember the calls before it",
    cases=memory_cases,
    equation="attention(Q, K, V) is the same before and after other calls",
    reason="the output is a function of the arguments, and of nothing else",
)
def calls_do_not_remember(subject, Q, K, V, longer, mask=None):
    Y = subject.attend(Q, K, V)
    first = Y.copy()
    subject.attend(longer, longer, longer)
    if mask is not None:
        subject.attend(Q, K, V, mask)
    correct = _correct(subject, Q, K, V)
    where = "after a longer call" + " and one with a mask" * (mask is not None)
    return _agree(first, subject.attend(Q, K, V), correct, where) or _agree(
        first, Y, correct, f"the first answer, {where}"
    )


def large_cases(rng):
    for offset in (100, -100, 700, -700):
        yield {"offset": offset}


@law(
    "large scores give the same weights as small ones",
    cases=large_cases,
    equation="scores c + ln 3 and c give weights 3/4 and 1/4 for c = ±100, ±700",
    reason="softmax counts differences, and a common part of the scores falls out",
    orderless=True,
)
def large_scores_stay_exact(subject, offset):
    _not_an_encoder(subject, "its norms stand between large numbers and its attention")
    if subject.said.dtype in ("float16", "bfloat16"):
        raise NotApplicable("its dtype has no room for scores of 700 and ln 3")
    Q, V = np.full((1, 2), np.sqrt(2)), np.array([[8.0, 0.0], [0.0, 4.0]])
    small, large = (np.array([[np.log(3), c], [0.0, c]]) for c in (0.0, offset))
    if subject.always_causal:
        Q = np.tile(Q, (2, 1))
    expected, got = (subject.attend(Q, K, V)[-1:] for K in (small, large))
    where = f"scores {offset} + ln 3 and {offset}, values [8, 0] and [0, 4]"
    # Beside 700 a float32 has four decimals, and few of ln 3 are left.
    within = 1e-3 if subject.said.dtype == "float32" else TOLERANCE
    return _agree(expected, got, np.array([[6.0, 1.0]]), where, within)


def precision_cases(rng):
    for dtype in PRECISION:
        yield qkv(rng, SIZES[2]) | {"dtype": dtype}


@law(
    "every dtype gives the numbers, as near as it can",
    cases=precision_cases,
    equation="|Y − Y_correct| < 1e-9, 1e-5, 0.02, 0.1 for float64, 32, 16 and bfloat16",
    reason="digits that the dtype has must not be lost on the way",
    orderless=True,
)
def every_dtype_gives_the_numbers(subject, Q, K, V, dtype):
    _not_an_encoder(subject, "its norms stand between it and its attention")
    if subject.said.dtype and dtype != subject.said.dtype:
        raise NotApplicable(f"it takes {subject.said.dtype}")
    correct = _correct(subject, Q, K, V)
    if differs(correct, subject.attend(Q, K, V), within=1e-4):
        raise NotApplicable("its numbers are others, whatever the dtype")
    ask = subject.but(cast=dtype).attend
    return differs(
        correct, _unless_refused(dtype, ask, Q, K, V), dtype, PRECISION[dtype]
    )


def group_cases(rng):
    for n in (1, 2, 3):
        yield {"n": n, "seed": int(rng.integers(1000))}


@law(
    "each group of query heads shares its key head",
    cases=group_cases,
    equation="attention(Q, K, V)[r] = attention(Q[r], K[⌊r / g⌋], V[⌊r / g⌋])",
    reason="the heads of a group stand side by side, so keys are repeated, not in turn",
)
def groups_share_their_keys(subject, n, seed):
    n_kv = subject.said.n_kv_heads
    if n_kv is None:
        raise NotApplicable("nobody said n_kv_heads, so each head has its own keys")
    _not_an_encoder(subject, "its groups are asked about as a whole")
    rng, n_heads, d = np.random.default_rng(seed), 2 * n_kv, 2
    if subject.kind == "attention":
        Q, K, V = (numbers(rng, 1, h, n, d) for h in (n_heads, n_kv, n_kv))
        shared = [np.repeat(x, 2, axis=1) for x in (K, V)]
        Y, correct = subject.attend(Q, K, V), _correct(subject, Q, *shared)
        return differs(correct, Y, f"{n_heads} heads, {n_kv} of keys")
    width = n_heads * d
    X = numbers(rng, n, width)
    weights = {f"W_{x}": numbers(rng, width, width) / 2 for x in "QO"}
    narrow = {f"W_{x}": numbers(rng, width, n_kv * d) / 2 for x in "KV"}
    wide = {
        name: np.repeat(W.reshape(width, n_kv, d), 2, axis=1).reshape(width, width)
        for name, W in narrow.items()
    }
    options = {"is_causal": True} if subject.always_causal else {}
    correct = multi_head_attention(X, n_heads=n_heads, **weights, **wide, **options)
    Y = subject.layer(X, weights | narrow, n_heads)
    return differs(correct, Y, f"{n_heads} heads, {n_kv} of keys")
