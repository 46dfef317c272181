"""The laws of a call: batches, masks, gradients, lengths, dtypes, a second call."""

import time
from functools import partial

import numpy as np

from mha.laws.judge import (
    SIZES,
    Failure,
    Size,
    differs,
    law,
    numbers,
    open_mask,
    qkv,
    right,
    weights_of,
)
from mha.laws.layers import expect_memory, matrices, run, tokens_for, weights_for
from mha.laws.masks import past
from mha.laws.subject import FOUR, SEES_NOTHING, Broke
from mha.laws.words import NotApplicable, skip_if

# How near correct attention comes in each dtype, with scores up to 6.
PRECISION = {"float64": 1e-9, "float32": 1e-5, "float16": 0.02, "bfloat16": 0.1}
LONG = 4099  # the first prime behind a window of 4096
SECONDS = 2  # what the longest call may take


def unless_refused(what, call, *args, **options):
    """Return the answer: to refuse is no mistake, and is told as it is."""
    try:
        return call(*args, **options)
    except Broke as error:
        if error.__cause__ is None:  # it raised nothing
            raise
        raise NotApplicable(f"it refuses {what}: {error}") from error


def part_by_part(subject, Q, K, V, mask=None):
    """Compare each head of each sequence with the same alone; a layer makes heads."""
    skip_if(not subject.takes_batches, "it reads one sequence at a time")
    n_heads = 1 if mask is None else mask.shape[1]
    if not subject.takes_heads:
        skip_if(n_heads > 1 and subject.kind == "attention", "it knows no heads")
        Q, K, V = Q[:, 0], K[:, 0], V[:, 0]
    ask = partial(subject.attend, heads=n_heads)
    what = f"a mask of shape {np.shape(mask)}"
    Y = unless_refused(what, ask, Q, K, V, mask) if mask is not None else ask(Q, K, V)
    for b, r in np.ndindex(Q.shape[:2] if subject.takes_heads else (len(Q), n_heads)):
        at = (b, r) if subject.takes_heads else b
        alone = ask(Q[at], K[at], V[at], None if mask is None else mask[b, r % n_heads])
        got = Y[at]
        if not subject.takes_heads:
            # A head may have a slope of its own, so it is asked in its place.
            alone, got = (np.split(y, n_heads, -1)[r] for y in (alone, got))
        if failure := differs(alone, got, f"part [{b}, {r}] of the batch"):
            return failure


@law(
    "no head and no sequence of the batch changes another",
    "attention(Q, K, V)[b, r] = attention(Q[b, r], K[b, r], V[b, r])",
    "the axes in front of the tokens only put many computations into one call",
    cases=lambda rng: [qkv(rng, Size(2, b + 1, 2), b, h) for b, h in ((1, 2), (2, 3))],
    correct=True,
)
def batches_and_heads_stay_apart(subject, Q, K, V):
    failure, heads = part_by_part(subject, Q, K, V), subject.takes_heads
    if failure or not heads or subject.lead == 2 or not subject.takes_batch:
        return failure
    # Arrays of three axes may go another way through the code.
    three = subject.but(takes_heads=False, takes_batches=True)
    return part_by_part(three, Q, K, V)


def batch_mask_cases(rng):
    for b, h, size in ((2, 2, Size(1, 2, 2)), (5, 3, Size(5, 7, 2))):
        # Padding first: some are told lengths, and can be asked nothing else.
        ends = size.n_k - 1 + np.arange(b)[:, None, None, None] % 2
        yield qkv(rng, size, b, h) | {"mask": np.arange(size.n_k) < ends}
        for heads in (1, h):
            shown = open_mask(rng, size.n_q, size.n_k)
            turned = [np.roll(shown, i, -1) for i in range(b * heads)]
            mask = np.reshape(turned, (b, heads, size.n_q, -1))
            yield qkv(rng, size, b, h) | {"mask": mask}


@law(
    "every sequence of a batch, and every head, gets its own mask",
    "attention(Q, K, V, M)[i] = attention(Q[i], K[i], V[i], M[i]), i = b, r",
    "M of shape (batch, heads, n_q, n_k) has a mask for each part of the batch",
    cases=batch_mask_cases,
    correct=True,
)
def batch_masks_reach_their_own(subject, Q, K, V, mask):
    failure = part_by_part(subject, Q, K, V, mask)
    if failure or not subject.padding_name or mask.shape[1] > 1:
        return failure
    # The last key of the second sequence is padding, and the first is seen by all.
    mask = mask | (np.arange(K.shape[-2]) == 0)
    mask[1, ..., -1] = False
    if not subject.takes_heads:
        Q, K, V = Q[:, 0], K[:, 0], V[:, 0]
    own, got = (x.attend(Q, K, V, mask) for x in (subject, subject.but(splits=True)))
    return differs(own, got, f"its padding handed over as {subject.padding_name}")


def square_mask(rng, size):
    """Return a mask that shows the future, while it hides key 0 from the others."""
    mask = (rng.random((size.n_q, size.n_k)) < 0.5) | np.eye(size.n_q, dtype=bool)
    mask[0, -1], mask[1:, 0] = True, False
    return mask


@law(
    "a mask and the causal mask both hide",
    "attention(Q, K, V, M, causal) = attention(Q, K, V, M ∧ causal)",
    "a padded key stays hidden when the future is hidden too",
    sizes=(Size(2, 2, 2), Size(3, 3, 2), Size(5, 5, 3, False)),
    mask=square_mask,
    sees_all=True,
    correct=True,
)
def mask_and_causal_both_hide(subject, Q, K, V, mask):
    refused, padding = "a mask beside is_causal", np.arange(len(K))[None] > 0
    ask = partial(unless_refused, refused, subject.attend, Q, K, V, is_causal=True)
    if "q" in (subject.said.mask_shape or "q"):
        due = subject.attend(Q, K, V, mask & np.tri(len(Q), dtype=bool))
        return differs(due, ask(mask=mask), "mask and is_causal=True")
    skip_if(subject.said.positional, "the order of its tokens counts (positional=True)")
    # Without an axis for queries it hides key 0, as if that token were not there.
    due = subject.attend(Q[1:], K[1:], V[1:], is_causal=True)
    return differs(due, ask(mask=padding)[1:], "key 0 is padding, and is_causal=True")


@law(
    "the causal mask begins in one corner, whatever the lengths",
    "A[i, j] > 0 ⇔ j ≤ i, or for all lengths j ≤ i + n_k − n_q",
    "either the first query and key are aligned, or the last ones are",
    sizes=(Size(1, 3, 2), Size(2, 5, 2)),
)
def causal_corner(subject, Q, K):
    if not subject.reads_others:
        ordered = "with positions, the laws try n_q = n_k only"
        raise NotApplicable(ordered * subject.ordered or "it knows self-attention only")
    left = {"top-left": [0], "bottom-right": [1]}.get(subject.said.causal, [0, 1])
    for q, k in ((Q, K), (K, Q)):
        eye, refused = np.eye(len(k)), "is_causal where n_q and n_k differ"
        A = unless_refused(refused, subject.attend, q, k, eye, is_causal=True)
        due = [np.tri(*A.shape, at * (len(k) - len(q)), dtype=bool) for at in left]
        # A row that sees nothing is asked about by another law.
        same = [np.array_equal((A > 1e-9)[m.any(1)], m[m.any(1)]) for m in due]
        left = [at for at, alike in zip(left, same, strict=True) if alike]
        if not left:
            correct = right(subject).attend(q, k, eye, due[0])
            return Failure(correct, A, f"weights, {len(q)} queries and {len(k)} keys")


@law(
    "gradients are the slopes of the output",
    "∂L/∂x = (L(x + h) − L(x − h)) / 2h, and exactly 0 for a hidden key",
    "training follows the slopes, so they must be those of this output",
    sizes=(Size(2, 2, 2), Size(3, 3, 2, False)),
    hides=(False, True),
)
def gradients_are_slopes(subject, X, hides, seed):
    given, weights = tokens_for(subject, X), weights_for(subject, seed)
    rng = np.random.default_rng(seed)
    if subject.kind == "encoder":
        # The feed-forward part, which bends, is silent, and no token is constant.
        weights = [w | {"W_2": 0 * w["W_2"]} for w in weights]
        given = {"X": rng.standard_normal(given["X"].shape)}
    mask = np.arange(len(X))[None] < len(X) - 1 if hides else None
    direction = rng.standard_normal((len(X), next(iter(given.values())).shape[1]))
    ask = partial(run, weights=weights, mask=mask)
    found = subject.backwards(partial(ask, given=given), direction)
    if not any(slope.any() for slope in found[: len(given)]):
        raise NotApplicable("no gradient flows through it at all")
    for (name, x), got in zip(given.items(), found, strict=False):
        # What the laws gave stands first in what was handed over.
        got = got[(0,) * (got.ndim - 2)][: len(X), : x.shape[1]]
        got = got * (subject.said.factor(x.shape[1]) if name == "Q" else 1)
        where = f"gradient of {name}" + ", the last key hidden" * hides
        if hides and name in "KV" and got[-1].any():
            return Failure("exactly 0", f"{abs(got[-1]).max():.1e}", where)
        step = rng.standard_normal(x.shape)
        half, whole = (
            ask(subject, given | {name: x + h * step})
            - ask(subject, given | {name: x - h * step})
            for h in (5e-4, 1e-3)
        )
        # Exact to the fourth power of h, where a slope is large and bends.
        wanted = np.sum((8 * half - whole) * direction) / 6e-3
        along = f"{where}, times a random step"
        if failure := differs(wanted, np.sum(got * step), along, 1e-3):
            return failure


@law(
    "the weights that are returned make the output",
    "Y = A V, Σ_j A[i, j] = 1, A[i, j] = 0 where M[i, j] is False",
    "a map of attention must show the weights that the output was made with",
    correct=True,
)
def returned_weights_make_the_output(subject, Q, K, V, mask=None):
    Y, A = subject.attend_with_weights(Q, K, V, mask)
    shown, plain = True if mask is None else mask, subject.attend(Q, K, V, mask)
    return (
        differs(np.where(shown, A, 0), A, "weights, of hidden keys too", within=0)
        or differs(np.ones(len(A)), A.sum(-1), "sums of the returned weights")
        or differs(Y, A @ V, "returned weights times V")
        or differs(plain, Y, "output, when the weights are asked for")
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
    sizes=SIZES[1:2],
    lies=tuple(VIEWS),
    correct=True,
)
def strides_change_nothing(subject, X, lies):
    views = {name: VIEWS[lies](x) for name, x in tokens_for(subject, X).items()}
    weights, lender = weights_for(subject), subject.but(borrows=True)
    got = unless_refused(f"an array that is {lies}", run, lender, views, weights)
    return differs(run(subject, views, weights), got, lies)


def all_silent(subject, V):
    if subject.kind != "layer" or subject.own or subject.said.n_kv_heads:
        return subject.attend(0 * V, V, V)
    eye = np.eye(2, dtype=V.dtype)
    return subject.layer(V, dict.fromkeys(FOUR, eye) | {"W_Q": 0 * eye}, 1)


@law(
    "a query of zeros gives the mean of all values, however many",
    "q = 0 ⇒ y = (V[0] + … + V[n_k − 1]) / n_k for n_k = 2, 257 and 4099",
    "all scores are 0, so that all visible keys get the same weight",
    orderless=True,
    n_k=(2, 257, LONG),
)
def silent_query_takes_the_mean(subject, n_k, seed):
    V = np.random.default_rng(seed).standard_normal((n_k, 2))
    if subject.reads_others and not subject.always_causal:
        Y = subject.attend(np.zeros((1, 2)), V[::-1], V)
        return differs(V.mean(0, keepdims=True), Y, f"1 query, {n_k} keys")
    if n_k == LONG:
        if subject.own or subject.said.n_kv_heads:
            raise NotApplicable(f"{n_k} queries in many heads take too much memory")
        began = time.process_time()
        all_silent(subject, V[:257])
        if (time.process_time() - began) * (n_k / 257) ** 2 > SECONDS:
            raise NotApplicable(f"{n_k} queries would take too long")
        V = V.astype("float32")
    means = V.cumsum(0, dtype=float) / np.arange(1, n_k + 1)[:, None]
    if not subject.always_causal:
        means = means[-1:].repeat(n_k, 0)
    return differs(means, all_silent(subject, V), f"{n_k} tokens")


def across(subject, n, Q, K, V, **options):
    """Return what the last query gets, which is asked alone where that is possible."""
    if subject.reads_others and not subject.always_causal:
        return subject.attend(Q[:1], K, V, **options)
    expect_memory(subject, n)
    return subject.attend(Q, K, V, **options)[-1:]


@law(
    "a later, larger score rescales what came before",
    "scores that rise from 0 to 4 over n_k keys, or fall, give the same output",
    "what was summed before a new maximum must shrink with it",
    orderless=True,
    places=True,
    # The last one reaches a second block of any size up to 512.
    n_k=(2, 65, 257, 521),
)
def rising_scores(subject, n_k, seed):
    Q, K = np.zeros((2, n_k, 2))
    Q[:, 0], K[:, 0] = 1, np.sqrt(2) * np.linspace(0, 4, n_k)
    V = np.random.default_rng(seed).standard_normal((n_k, 2))
    falling = across(subject, n_k, Q, K[::-1], V[::-1])
    rising = across(subject, n_k, Q, K, V)
    return differs(falling, rising, f"{n_k} keys, falling and rising")


@law(
    "silent queries under a causal mask take the running mean",
    "q = 0 ⇒ Y[i] = (V[0] + … + V[i]) / (i + 1) for 2, 65, 257 and 521 tokens",
    "the future must stay hidden in every block, and not in the first alone",
    orderless=True,
    n=(2, 65, 257, 521),
)
def running_means(subject, n, seed):
    skip_if(not subject.takes_causal, "it has no is_causal")
    expect_memory(subject, n)
    V = np.random.default_rng(seed).standard_normal((n, 2))
    due = V.cumsum(0) / np.arange(1, n + 1)[:, None]
    return differs(due, subject.attend(0 * V, 0 * V, V, is_causal=True), f"{n} tokens")


LENGTHS = 33, 64, 65, 127, 128, 129, 258


@law(
    "keys count alike at every length, also where blocks end",
    "K[j] = k_{c(j)} ⇒ A[i, j] / A[i, 0] = A₃[i, c(j)] / A₃[i, 0]",
    "a score depends on its own key, and softmax on all keys alike",
    orderless=True,
    sizes=SIZES[:1],
    # The last key is the loudest: a running maximum grows in the last block.
    keys=lambda rng, size: np.concatenate([numbers(rng, 2, 2), [[3.0, 2.0]]]),
    hides=("", "padding", "a mask", "is_causal=True"),
    correct=True,
)
def every_length_alike(subject, keys, seed, hides):
    q, rng = np.array([[1.0, 2.0]]), np.random.default_rng(seed)
    three = subject.attend(q.repeat(3, 0), keys, np.eye(3))[-1]
    ask = partial(at_length, subject, q, keys, three, hides, rng)
    for n in LENGTHS:
        if failure := ask(n):
            skip_if(hides and ask(5), f"with {hides} it is wrong at every length")
            return failure


def at_length(subject, q, keys, three, hides, rng, n):
    kind, V = np.arange(n) % 2, rng.standard_normal((n, 2))
    kind[-1] = 2
    alone = hides in ("", "padding") and n > 129 and subject.reads_others
    n_q = 1 if alone and not subject.always_causal else n
    causal = subject.always_causal or hides.startswith("is")
    seen, options = np.ones((n_q, n), bool), {}
    if hides.startswith("is"):
        options = {"is_causal": True}
    elif hides:
        square = (rng.random((n, n)) < 0.5) | np.eye(n, dtype=bool)
        mask = square if hides == "a mask" else np.arange(n)[None] < n - n // 5
        seen, options = seen & mask, {"mask": mask}
    A = three[kind] * (np.tril(seen) if causal else seen)
    got = subject.attend(np.tile(q, (n_q, 1)), keys[kind], V, **options)
    where = f"{n} keys: K repeats two keys and ends with the third, queries are (1, 2)"
    return differs(A / A.sum(-1, keepdims=True) @ V, got, where)


# d_v = d_k = n_k, so that the values may be unit vectors wherever a scale is read from;
# even, because rotary layers take no other width.
SQUARE = tuple(Size(n_q, n_k, n_k) for n_q, n_k in ((1, 2), (3, 4), (5, 6)))


def asking(subject, numbers, Q, K, V, *opens):
    """Return how it is asked under a mask of numbers, if open ones do nothing."""
    skip_if(subject.said.mask_shape == "lengths", "it reads lengths, and no mask")
    what = f"a mask of {numbers}"
    ask = partial(unless_refused, what, subject.attend, Q, K, V)
    plain = subject.attend(Q, K, V)
    for mask in opens:
        if differs(plain, ask(mask)):
            rule = "should hide nothing, but hides keys here; hand over booleans"
            raise NotApplicable(f"{what}, all {mask.flat[0]:g}, {rule}")
    return ask


@law(
    "a float mask is added to the scores, or refused",
    "A = softmax(S + M), or an error",
    "a mask that is read as truth values loses its numbers",
    sizes=SQUARE,
    mask=lambda rng, size: np.where(
        open_mask(rng, *size[:2]), numbers(rng, *size[:2]), -np.inf
    ),
    correct=True,
)
def float_masks_are_added(subject, Q, K, V, mask):
    # Where True hides, a mask that is read as bool shows itself by hiding at 1.
    ones = np.ones_like(mask)
    opens = [0 * ones] + [ones] * (subject.said.mask_true == "hide")
    if subject.kind == "encoder" or subject.designs:
        correct, bias = right(subject), np.resize(mask, (len(K), len(K)))
        if differs(correct.attend(K, K, K), subject.attend(K, K, K)):
            raise NotApplicable("its numbers are others already without a mask")
        ask = asking(subject, "floats", K, K, K, np.zeros_like(bias))
        return differs(correct.attend(K, K, K, bias), ask(bias))
    ask = asking(subject, "floats", Q, K, V, *opens)
    A = weights_of(subject, Q, K) * np.exp(mask)
    total = A.sum(-1, keepdims=True)
    skip_if(not total.all(), SEES_NOTHING)
    return differs(A / total @ V, ask(mask), "a mask of floats")


@law(
    "a mask of 0 and 1 is read as False and True, or refused",
    "A[i, j] = 0 where M[i, j] = 0, or an error",
    "0 and 1 that are added to the scores hide nothing, and no error says so",
    sizes=SQUARE,
    mask=lambda rng, size: open_mask(rng, *size[:2]).astype(int),
    correct=True,
)
def integer_masks_hide(subject, Q, K, V, mask):
    skip_if(subject.said.mask_true == "added", "its masks are added")
    hides = int(subject.said.mask_true == "hide")
    ask = asking(subject, "integers", Q, K, V, np.full(mask.shape, 1 - hides))
    due = subject.attend(Q, K, V, mask == 1)
    return differs(due, ask(mask ^ hides), "a mask of integers")


@law(
    "two calls on the same input agree",
    "attention(Q, K, V) = attention(Q, K, V)",
    "outside of training nothing is random (each call gets copies)",
    sizes=[Size(13, 13, 2, False)],
)
def calls_agree(subject, X):
    first, second = (subject.attend(X, X, X) for _ in range(2))
    return differs(first, second, "first and second call")


@law(
    "a call does not remember the calls before it",
    "attention(Q, K, V) is the same before and after other calls",
    "the output is a function of the arguments, and of nothing else",
    correct=True,
)
def calls_do_not_remember(subject, Q, K, V, mask=None):
    Y, longer = subject.attend(Q, K, V), np.concatenate([Q, K, V])
    first = Y.copy()
    others = {"a longer call": [longer] * 3, "a call on other queries": (-Q, K, V)}
    others |= {} if mask is None else {"a call with a mask": (Q, K, V, mask)}
    for name, given in others.items():
        subject.attend(*given)
        # The first answer may lie in a buffer that the other call has used.
        for answer in (Y, subject.attend(Q, K, V)):
            if failure := differs(first, answer, f"after {name}"):
                return failure
    if mask is None:
        return None
    # Ask about the past of tokens, and then, in reverse, about their future.
    ask, back, mask = subject.attend, longer[::-1], past(len(longer))["mask"]
    if differs(ask(*[longer] * 3)[::-1], ask(*[back] * 3)):
        return None
    first, second = ask(*[longer] * 3, mask).copy(), ask(*[back] * 3, mask.T)
    where = f"mask j ≥ i, after one of the same shape {mask.shape}"
    return differs(first, second[::-1], where)


@law(
    "large scores give the same weights as small ones",
    "scores c + ln 3 and c give weights 3/4 and 1/4 for c = ±100, ±700",
    "softmax depends on differences of scores, and what they share cancels",
    orderless=True,
    places=True,
    offset=(100, -100, 700),
    correct=True,
)
def large_scores_stay_exact(subject, offset):
    if "16" in str(subject.said.dtype) or (subject.said.tolerance or 0) > 1e-3:
        raise NotApplicable("its numbers are too coarse for scores of 700 and ln 3")
    # The first query gives scores of one sign, and the second those of the other.
    Q, V = np.array([[1.0, 1.0], [1.0, -1.0]]) * np.sqrt(2), np.eye(2)
    small, large = (np.array([[np.log(3), c], [0.0, c]]) for c in (0.0, offset))
    seeing = slice(1 if subject.always_causal else 0, None)
    expected, got = (subject.attend(Q, K, V)[seeing] for K in (small, large))
    where = f"scores of ln 3 and 0, plus {offset} for one query, minus for the next"
    # In float32, 700 + ln 3 has four decimals.
    return differs(expected, got, where, 1e-4)


@law(
    "every dtype gives the numbers, as near as it can",
    "|Y − Y_correct| < 1e-9, 1e-5, 0.02, 0.1 for float64, 32, 16 and bfloat16",
    "digits that the dtype has must not be lost, and integers not truncated",
    orderless=True,
    sizes=SIZES[2:3],
    dtype=(*PRECISION, "int64"),
)
def every_dtype_gives_the_numbers(subject, Q, K, V, dtype, mask=None):
    if subject.said.dtype and dtype != subject.said.dtype:
        raise NotApplicable(f"it takes {subject.said.dtype}")
    if dtype == "int64" and (subject.kind != "attention" or subject.said.scale):
        raise NotApplicable("integers are asked of plain attention")
    correct = right(subject).attend(Q, K, V, mask)
    # float32 loses a tenth of a millionth, and a design such as soft-capping more.
    near = 5e-6 + PRECISION.get(subject.said.dtype, 0)
    wrong = differs(correct, subject.attend(Q, K, V, mask), within=near)
    skip_if(wrong, f"its numbers are others in {subject.said.dtype or 'float64'}, too")
    Y = unless_refused(dtype, subject.but(cast=dtype).attend, Q, K, V, mask)
    return differs(correct, Y, dtype, PRECISION.get(dtype, 1e-5))


@law(
    "the query heads of a group use the same key head",
    "attention(Q, K, V)[r] = attention(Q[r], K[⌊r / g⌋], V[⌊r / g⌋])",
    "the heads of a group are neighbours, so each key head is repeated for all",
    n=(1, 2, 3),
)
def groups_share_their_keys(subject, n, seed):
    n_kv, sizes, correct = subject.said.n_kv_heads, subject.sizes, right(subject)
    skip_if(n_kv is None, "nobody said n_kv_heads, so each head got its own keys")
    if n > 1 and subject.said.positional:
        raise NotApplicable("the order of its tokens counts (positional=True)")
    rng, where = np.random.default_rng(seed), f"{sizes.heads} heads, {n_kv} of keys"
    if subject.kind == "attention":
        Q, K, V = (numbers(rng, 1, h, n, 2) for h in (sizes.heads, n_kv, n_kv))
        due = correct.attend(Q, np.repeat(K, 2, axis=1), np.repeat(V, 2, axis=1))
        return differs(due, subject.attend(Q, K, V), where)
    given, weights = {"X": numbers(rng, n, sizes.width)}, [matrices(rng, sizes)]
    due, got = (run(x, given, weights) for x in (correct, subject))
    return differs(due, got, where)
