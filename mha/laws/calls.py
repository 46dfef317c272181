"""The laws of a call: batches, masks, gradients, lengths, dtypes, caches, numbers."""

import copy
import itertools

import numpy as np

from mha.laws.judge import (
    SIZES,
    Failure,
    Size,
    differs,
    law,
    numbers,
    open_mask,
    skip_if,
    weights_of,
)  # fmt: skip
from mha.laws.subject import Broke, NotAsked, Unable, draw_layers, draw_matrices

# How near correct attention comes in each dtype, with scores up to 6.
PRECISION = {"float64": 1e-9, "float32": 1e-5, "float16": 0.02, "bfloat16": 0.1}


def unless_refused(what, call, *given, **options):
    """Return the answer; to refuse something is no mistake, and is said."""
    try:
        return call(*given, **options)
    except Broke as error:
        if error.__cause__ is None:  # it raised nothing
            raise
        raise NotAsked(f"it refuses {what}: {error}") from error


# Batches ----------------------------------------------------------------------------


def batch_cases(rng, subject):
    for b, n in ((2, 2), (3, 3), (2, 5)):
        yield {"X": numbers(rng, b, n, subject.width(2))}
    if subject.kind == "attend":  # two axes in front: batch and heads
        yield {"X": numbers(rng, 2, 3, 2, 2)}


@law(
    "no head and no sequence of the batch changes another",
    "attention(X)[b] = attention(X[b])",
    "the axes in front of the tokens only put many computations into one call",
    cases=batch_cases,
    rank=-2,
)
def batches_and_heads_stay_apart(tokens, X):
    front = X.shape[:-2]
    alone = [tokens(x) for x in X.reshape(-1, *X.shape[-2:])]
    due = np.reshape(alone, (*front, *alone[0].shape))
    return differs(due, tokens(X), "each part alone, and in a batch")


def batch_mask_cases(rng, subject):
    for b, n in ((2, 2), (5, 5)):
        X = numbers(rng, b, n, subject.width(2))
        # Padding first: some are told lengths, and can be asked nothing else.
        yield {
            "X": X,
            "mask": np.arange(n) < n - 1 + np.arange(b)[:, None, None, None] % 2,
        }
        for heads in (1, subject.sizes.n_heads):
            shown = open_mask(rng, n, n)
            turned = [np.roll(shown, i, -1) for i in range(b * heads)]
            yield {"X": X, "mask": np.reshape(turned, (b, heads, n, n))}


@law(
    "every head and every sequence of a batch gets its own mask",
    "attention(X, M)[b] = attention(X[b], M[b])",
    "M of shape (batch, heads, n_q, n_k) has a mask for each part of the batch",
    cases=batch_mask_cases,
)
def batch_masks_reach_their_own(tokens, X, mask):
    got = tokens(X, mask)
    if tokens.kind == "attend":  # its heads are an axis, and can be asked alone
        parts = itertools.product(range(len(X)), range(mask.shape[1]))
        alone = [tokens(X[b], mask[b, r]) for b, r in parts]
        return differs(np.reshape(alone, got.shape), got, "each head alone, and all")
    alone = [tokens(X[b : b + 1], mask[b : b + 1])[0] for b in range(len(X))]
    return differs(alone, got, "each sequence alone, and in a batch")


# Masks that a call may hand over ----------------------------------------------------


def masks_and_padding(rng, subject):
    for z in (*SIZES[1:], Size(5, 5, 2)):
        X = numbers(rng, z.n_k, subject.width(z.d), integers=z.integers)
        n = len(X)
        yield {"X": X, "mask": open_mask(rng, n, n) | np.eye(n, dtype=bool)}
        yield {"X": X, "mask": np.arange(n)[None] < n - 1}  # some take no other


@law(
    "a mask and the causal mask both hide",
    "attention(X, M, causal) = attention(X, M ∧ causal)",
    "a padded key stays hidden when the future is hidden too",
    cases=masks_and_padding,
    rank=-1,
)
def mask_and_causal_both_hide(tokens, X, mask):
    past = np.tri(len(X), dtype=bool)
    if len(mask) == 1:  # what takes padding alone cannot be asked what is due
        other = differs(tokens.due(X, mask), tokens(X, mask), within=tokens.tolerance)
        skip_if(other, "its numbers are others under one of the two, too")
    due = (tokens.due if len(mask) == 1 else tokens)(X, mask & past)
    got = unless_refused("a mask beside is_causal", tokens, X, mask, is_causal=True)
    return differs(due, got, "mask and is_causal=True")


@law(
    "the causal mask begins in one corner, whatever the lengths",
    "A[i, j] > 0 ⇔ j ≤ i, or for all lengths j ≤ i + n_k − n_q",
    "either the first query and key are aligned, or the last ones are",
    sizes=(Size(1, 3, 2), Size(2, 5, 2)),
    alone=True,  # either corner is right, but for that of a reference that has one
)
def causal_corner(attend, Q, K):
    left, reference = [0, 1], attend.subject.reference
    for q, k in ((Q, K), (K, Q)):
        what = "is_causal where n_q and n_k differ"
        A = unless_refused(what, weights_of, attend, q, k, is_causal=True)
        where = f"weights, {len(q)} queries and {len(k)} keys"
        if reference.declared and "is_causal" in reference.accepts:
            due = np.nan_to_num(weights_of(attend.due, q, k, is_causal=True))
            if failure := differs(due, np.where(due.any(1)[:, None], A, 0), where):
                return failure
            continue
        more = len(k) - len(q)
        due = [np.tri(*A.shape, at * more, dtype=bool) for at in left]
        # A row that sees nothing is asked about by another law.
        same = [np.array_equal((A > 1e-9)[m.any(1)], m[m.any(1)]) for m in due]
        left = [at for at, alike in zip(left, same, strict=True) if alike]
        if not left:
            lawful = np.where(due[0], 1.0, 0)
            lawful /= lawful.sum(1, keepdims=True)
            return Failure(lawful, A, where)
    return None


def probed(tokens, X, mask, what):
    """Go on only if a mask that hides nothing does nothing.

    Else its numbers mean something else to the subject or to the reference.
    """
    plain, here = tokens(X), unless_refused(f"a mask of {what}", tokens, X, mask)
    why = f"a mask of {what}, all {mask.flat[0]:g}, hides keys: hand over booleans"
    skip_if(differs(plain, here, within=tokens.tolerance), why)


@law(
    "a float mask is added to the scores, or refused",
    "A = softmax(S + M), or an error",
    "a mask that is read as truth values loses its numbers",
    alone=True,
)
def float_masks_are_added(tokens, X, mask, seed):
    probed(tokens, X, np.zeros(mask.shape), "floats")
    nothing = np.zeros(mask.shape)
    skip_if(
        differs(tokens.due(X, nothing), tokens.due(X)), "the reference takes no floats"
    )
    other = differs(tokens.due(X), tokens(X), within=tokens.tolerance)
    skip_if(other, "its numbers are others without a mask")
    added = numbers(np.random.default_rng(seed), *mask.shape)
    added = np.where(mask, added, -np.inf)
    where = f"a mask of floats, {added.tolist()}"
    return differs(tokens.due(X, added), tokens(X, added), where)


@law(
    "a mask of 0 and 1 is read as False and True, or refused",
    "A[i, j] = 0 where M[i, j] = 0, or an error",
    "0 and 1 that are added to the scores hide nothing, and no error says so",
    alone=True,
)
def integer_masks_hide(tokens, X, mask):
    probed(tokens, X, np.ones(mask.shape, int), "integers")
    return differs(tokens(X, mask), tokens(X, mask.astype(int)), "a mask of integers")


# Training ---------------------------------------------------------------------------


@law(
    "gradients are the slopes of the output",
    "∂L/∂x = (L(x + h) − L(x − h)) / 2h, and exactly 0 for a hidden key",
    "training follows the slopes, so they must be those of this output",
    sizes=(Size(2, 2, 2, False), Size(3, 3, 2, False)),
    hides=(False, True),
    alone=True,
)
def gradients_are_slopes(tokens, X, hides, seed):
    rng = np.random.default_rng(seed)
    mask = np.arange(len(X))[None] < len(X) - 1 if hides else None
    direction = rng.standard_normal(tokens(X, mask).shape)
    found = tokens.gradients(direction, X, mask)
    # Of attention, the tokens are its queries, its keys and its values.
    many = 3 if tokens.kind == "attend" else 1
    skip_if(not any(slope.any() for slope in found), "no gradient flows through it")
    if hides and many == 3 and any(slope[-1].any() for slope in found[1:3]):
        most = max(abs(slope[-1]).max() for slope in found[1:3])
        return Failure("exactly 0", f"{most:.1e}", "gradient of the hidden key")
    skip_if(tokens.tolerance > 1e-3, "its output is too coarse to measure slopes")
    step = rng.standard_normal(X.shape)

    def slope(h):
        change = tokens(X + h * step, mask) - tokens(X - h * step, mask)
        return np.sum(change * direction) / (2 * h)

    near, far = slope(5e-4), slope(1e-3)
    # At a kink of relu, or where layer norm divides by almost 0, there is no slope.
    skip_if(differs(far, near, within=0.01), "its output bends too much here")
    due = (4 * near - far) / 3  # exact to the fourth power of h
    where = "gradient of X times a random step" + ", the last key hidden" * hides
    return differs(due, sum(np.sum(x * step) for x in found[:many]), where, 1e-3)


@law(
    "the weights that are returned make the output",
    "Y = A V, Σ_j A[i, j] = 1, A[i, j] = 0 where M[i, j] is False",
    "a map of attention must show the weights that the output was made with",
    causal=(False, True),
)
def returned_weights_make_the_output(attend, Q, K, V, causal, mask=None):
    attend.need("return_weights")
    if mask is not None and causal:  # no row sees nothing
        mask = mask | np.eye(*mask.shape, dtype=bool)
    options, what = {"is_causal": causal}, "a mask beside is_causal"
    plain = unless_refused(what, attend, Q, K, V, mask, **options)
    Y, A = attend(Q, K, V, mask, return_weights=True, **options)
    skip_if(A.shape[-1] > len(K), "it returns weights of keys that it adds, too")
    if A.shape != (due := (len(Q), len(K))):
        return Failure(f"shape {due}", f"shape {A.shape}", "weights")
    shown = True if mask is None else mask
    return (
        differs(np.where(shown, A, 0), A, "weights, of hidden keys too", within=0)
        or differs(np.ones(len(A)), A.sum(-1), "sums of the returned weights")
        or differs(Y, A @ V, "returned weights times V")
        or differs(plain, Y, "output, when the weights are asked for")
    )


@law(
    "what is hidden stays hidden in train mode",
    "A_eval[i, j] = 0 ⇒ A_train[i, j] = 0, with dropout too",
    "dropout takes weights away, and shows no key that a mask hides",
    sizes=(Size(3, 3, 2), Size(5, 5, 2, False)),
    hides=("", "padding", "a mask", "is_causal=True"),
    compares=False,
)
def hidden_in_training_too(attend, Q, K, hides, seed):
    train, n = attend.in_train_mode(), len(K)
    square = open_mask(np.random.default_rng(seed), n, n)
    masks = {"padding": np.arange(n)[None] < n - 1, "a mask": square}
    options = {"mask": masks.get(hides), "is_causal": hides == "is_causal=True"}
    seen = weights_of(attend, Q, K, **options) != 0
    A = weights_of(train, Q, K, **options)
    return differs(np.where(seen, A, 0), A, f"weights in train mode, {hides}")


# Lengths ----------------------------------------------------------------------------


@law(
    "a query of zeros gives the mean of all values, however many",
    "q = 0 ⇒ y = (V[0] + … + V[n_k − 1]) / n_k for n_k = 2, 257, 1031 and 4099",
    "all scores are 0, so that all visible keys get the same weight",
    # The first primes behind windows of 256, 1024 and 4096.
    n_k=(2, 257, 1031, 4099),
)
def silent_query_takes_the_mean(attend, n_k, seed):
    V = np.random.default_rng(seed).standard_normal((n_k, 2))
    alone = attend.kind == "layer" and not attend.takes("X_k")
    skip_if(n_k > 2000 and alone, f"{n_k} tokens that all attend take too long")
    Y = attend(np.zeros((1, 2)), V[::-1], V)
    return differs(V.mean(0, keepdims=True), Y, f"{n_k} keys")


@law(
    "a later, larger score rescales what came before",
    "n_k scores that rise by 4 from 0, or fall to it, give the same output",
    "what was summed before a new maximum must shrink with it",
    # The last one reaches a second block of any size up to 512. Scores of -110,000 are
    # below what is taken for -∞ in some code.
    n_k=(2, 65, 521),
    low=(False, True),
)
def rising_scores(attend, n_k, low, seed):
    Q, K = np.zeros((n_k, 2)), np.zeros((n_k, 2))
    # 16 bits hold these keys exactly, so that a kernel in bfloat16 gets the same ones.
    query, first, last, unit = (4, -63, -40, 1024) if low else (1, 0, 181, 1 / 32)
    Q[:, 0], K[:, 0] = query, np.linspace(first, last, n_k).round() * unit
    V = np.random.default_rng(seed).standard_normal((n_k, 2))
    if low and attend.subject.reference.declared:
        # Positions make scores nearly equal, which float32 cannot tell apart there.
        due = (attend.due(Q, k, v)[-1:] for k, v in ((K, V), (K[::-1], V[::-1])))
        skip_if(differs(*due), "the reference does not keep it")
    rising, falling = attend(Q, K, V)[-1:], attend(Q, K[::-1], V[::-1])[-1:]
    return differs(falling, rising, f"{n_k} keys, falling and rising")


def length_cases(rng, subject):
    for hides in ("", "padding", "a mask", "is_causal=True"):
        for n in (33, 64, 65, 127, 128, 129, 258, 521):
            yield {"n": n, "hides": hides, "seed": int(rng.integers(1000))}


@law(
    "keys count alike at every length, also where blocks end",
    "K[j] = k_{c(j)} ⇒ A[i, j] / A[i, 0] = A₃[i, c(j)] / A₃[i, 0]",
    "a score depends on its own key, and softmax on all keys alike",
    cases=length_cases,
    rank=1,
)
def every_length_alike(attend, n, hides, seed):
    rng, q = np.random.default_rng(seed), np.array([[1.0, 2.0]])
    # The last key is the loudest: a running maximum grows in the last block.
    keys, V = np.array([*numbers(rng, 2, 2), (3.0, 2.0)]), rng.standard_normal((n, 2))
    three = attend(q.repeat(3, 0), keys, np.eye(3))[-1]
    kind = np.arange(n) % 2
    kind[-1] = 2
    seen, options = np.ones((n, n), bool), {}
    if hides == "is_causal=True":
        seen, options = np.tri(n, dtype=bool), {"is_causal": True}
    elif hides:
        square = (rng.random((n, n)) < 0.5) | np.eye(n, dtype=bool)
        mask = square if hides == "a mask" else np.arange(n)[None] < n - n // 5
        seen, options = seen & mask, {"mask": mask}
    A = three[kind] * seen
    got = attend(q.repeat(n, 0), keys[kind], V, **options)
    where = f"{n} keys: K repeats two keys and ends with the third, queries are (1, 2)"
    return differs(A / A.sum(-1, keepdims=True) @ V, got, where)


@law(
    "large scores give the same weights as small ones",
    "scores c + ln 3 and c give weights 3/4 and 1/4 for c = ±100, ±700",
    "softmax depends on differences of scores, and what they share cancels",
    offset=(100, -100, 700),
    compares=False,
)
def large_scores_stay_exact(attend, offset):
    # The first query gives scores of one sign, and the second those of the other.
    Q, V = np.array([[1.0, 1.0], [1.0, -1.0]]) * np.sqrt(2), np.eye(2)
    small, large = (np.array([[np.log(3), c], [0.0, c]]) for c in (0.0, offset))
    where = f"scores of ln 3 and 0, plus {offset} for one query, minus for the next"
    # In float32, 700 + ln 3 has four decimals.
    return differs(attend(Q, small, V), attend(Q, large, V), where, 1e-4)


# Memory and dtypes ------------------------------------------------------------------


def every_argument(rng, subject):
    for z in SIZES[1:3]:
        if subject.kind == "attend":
            case = {x: numbers(rng, z.n_k, z.d, integers=z.integers) for x in "QKV"}
        else:
            case = {"X": numbers(rng, z.n_k, subject.sizes.d_model)}
        if subject.kind == "layer":
            case |= draw_matrices(rng, subject.sizes, z.integers)
        if subject.kind.startswith("enc"):
            case["layers"] = draw_layers(rng, subject.sizes)
        yield from (case, case | {"mask": open_mask(rng, z.n_k, z.n_k)})


def arrays_in(given, name=""):
    """Yield the arrays in nested containers, and where they are."""
    if isinstance(given, np.ndarray):
        yield name, given
    elif isinstance(given, list | dict):
        for x, y in given.items() if isinstance(given, dict) else enumerate(given):
            yield from arrays_in(y, f"{name} {x}".lstrip())


@law(
    "the arguments are not modified",
    "X, M and all weights are the same before and after",
    "a function returns its result and leaves the caller's arrays as they are",
    cases=every_argument,
    alone=True,
    borrows=True,
)
def inputs_stay_untouched(tokens, **given):
    handed = copy.deepcopy(given)
    heads = {"n_heads": tokens.sizes.n_heads} if tokens.kind == "layer" else {}
    tokens.whole()(**handed, **heads)
    pairs = zip(arrays_in(given), arrays_in(handed), strict=True)
    for (name, before), (_, after) in pairs:
        if not np.array_equal(before, after):
            return Failure(before, after, f"{name} after the call")
    return None


VIEWS = {
    "transposed in memory": lambda x: x.T.copy().T,
    "columns of a wider array": lambda x: np.pad(x, ((0, 0), (1, 2)))[:, 1:-2],
    "every second row of an array": lambda x: np.repeat(x, 2, 0)[::2],
    "one row, broadcast": lambda x: np.broadcast_to(x[0], x.shape),
}


@law(
    "how an array lies in memory changes nothing",
    "attention(X) is the same for views, transposed, cut or broadcast",
    "an array is its numbers, and strides say only where they are stored",
    sizes=SIZES[1:3],
    lies=tuple(VIEWS),
    alone=True,
    borrows=True,
)
def strides_change_nothing(tokens, X, lies):
    view = VIEWS[lies](X)
    due = tokens(view.copy())
    got = unless_refused(f"an array that is {lies}", tokens, view)
    return differs(due, got, lies)


@law(
    "float32 in gives float32 out, and float64 gives float64",
    "dtype(Y) = dtype(Q)",
    "float64 takes twice the memory of float32",
    sizes=(Size(2, 2, 2), Size(3, 3, 2)),
    dtype=("float32", "float64"),
    alone=True,
    rank=2,
)
def dtype_is_kept(tokens, X, dtype, mask=None):
    tokens(X, mask)  # what it refuses in any dtype, it does not refuse for this one
    Y = unless_refused(dtype, tokens, X.astype(dtype), mask)
    return None if str(Y.dtype) == dtype else Failure(dtype, str(Y.dtype))


@law(
    "every dtype gives the numbers, as near as it can",
    "|Y − Y_correct| < 1e-9, 1e-5, 0.02, 0.1 for float64, 32, 16 and bfloat16",
    "digits that the dtype has must not be lost, and integers not truncated",
    sizes=(Size(3, 5, 2), Size(5, 5, 4)),
    dtype=(*PRECISION, "int64"),
    alone=True,
)
def every_dtype_gives_the_numbers(attend, Q, K, V, dtype, mask=None):
    # What was said to be coarse is not asked for more, and has a dtype of its own.
    coarse = attend.tolerance if attend.tolerance > 1e-5 else 0
    plain = attend.kind == "attend" and not coarse
    skip_if(dtype == "int64" and not plain, "integers are for plain attention")
    Q, K, V = (x.round(0) for x in (Q, K, V))
    here, due = attend(Q, K, V, mask), attend.due(Q, K, V, mask)
    other = differs(due, here, within=max(coarse, 5e-6))
    skip_if(other, "its numbers are others in float64, too")
    Y = unless_refused(dtype, attend.cast(dtype), Q, K, V, mask)
    return differs(due, Y, dtype, max(PRECISION.get(dtype, 1e-5), coarse))


# One call after another -------------------------------------------------------------


@law(
    "two calls on the same input agree",
    "attention(X) = attention(X)",
    "outside of training nothing is random, and no call leaves anything behind",
    sizes=(Size(13, 13, 2, False),),
    alone=True,
    rank=-3,
)
def calls_agree(tokens, X):
    return repeats(tokens(X), tokens(X), "first and second call")


def repeats(first, again, where):
    """Return how the same call differs; NaN in both is for other laws."""
    same = np.array_equal(first, again, equal_nan=True)
    return None if same else differs(first, again, where)


@law(
    "a call does not remember the calls before it",
    "attention(X) is the same before and after other calls",
    "the output is a function of the arguments, and of nothing else",
    alone=True,
    rank=-3,
)
def calls_do_not_remember(tokens, X, mask=None):
    Y = tokens(X)
    first, longer = Y.copy(), np.concatenate([X, X, X])
    others = {"a longer call": (longer,), "a call on other tokens": (-X,)}
    if mask is not None:
        others["a call with a mask"] = X, mask | np.eye(len(X), dtype=bool)
    for name, given in others.items():
        tokens(*given)
        # The first answer may lie in a buffer that the other call has used.
        for answer in (Y, tokens(X)):
            if failure := repeats(first, answer, f"after {name}"):
                return failure
    return None if mask is None else one_mask_after_another(tokens, X, mask)


def one_mask_after_another(tokens, X, mask):
    """Return how the second mask gives the answer that is due to the first."""
    one, other = (m | np.eye(len(X), dtype=bool) for m in (mask, mask.T))
    tokens(X, one)
    got = tokens(X, other)
    failure = differs(tokens.due(X, other), got, "after a call with another mask")
    return None if differs(tokens.due(X, one), got) else failure


def parts_cases(rng, subject):
    prompts = (3, (1, 1, 1)), (11, (1,) * 11), (11, (6, 1, 1, 1, 1, 1)), (9, (3, 3, 3))
    for hidden in (0, 2):
        for n, parts in (*prompts, (9, (8, 1))):
            X = numbers(rng, n, subject.width(2), integers=False)
            padded = {"mask": np.arange(n)[None] >= hidden} if hidden else {}
            yield {"X": X, "parts": parts} | padded


@law(
    "one token at a time with a cache gives what all at once gives",
    "step(x_1), …, step(x_n) = attention(X, causal)",
    "the keys and values of a past token do not change, also behind padding",
    cases=parts_cases,
    alone=True,
    rank=-2,
)
def one_at_a_time_is_all_at_once(tokens, X, parts, mask=None):
    if not tokens.takes("parts"):
        raise Unable("it has no cache: see laws.steps")
    due, got = tokens(X, mask), tokens(X, mask, parts=parts)
    # What padding itself gives is a convention.
    real = slice(None) if mask is None else mask[0]
    where = f"tokens in parts of {', '.join(map(str, parts))}"
    return differs(due[real], got[real], where)


# All of it --------------------------------------------------------------------------


def reference_cases(rng, subject):
    if subject.kind == "attend":
        yield from attention_cases(rng)
        return
    d = subject.sizes.d_model
    for front, n in (((), 5), ((2,), 5), ((), 33), ((1,), 80)):
        case = {"X": numbers(rng, *front, n, d, integers=n < 9)}
        masks = open_mask(rng, n, n), np.arange(n)[None] % 3 != 1
        more = [{}, {"is_causal": True}, *({"mask": mask} for mask in masks)]
        if subject.kind == "layer":
            case |= draw_matrices(rng, subject.sizes, n < 9)
            if n > 9:  # loud queries, so that a few keys have the weight
                case["W_Q"] = 4 * case["W_Q"]
            widths = ((f"b_{x[-1]}", case[x].shape[1]) for x in case if x[0] == "W")
            biases = {name: numbers(rng, width) for name, width in widths}
            biases = {x: b for x, b in biases.items() if x in subject.accepts}
            X_k, X_v = numbers(rng, 2, *front, 7, d)
            more += [{"X_k": X_k}, {"X_k": X_k, "X_v": X_v}, biases]
        else:
            case["layers"] = draw_layers(rng, subject.sizes)
        if front:
            lengths = np.linspace(n, 1, front[0]).astype(int)
            more += [{"mask": np.arange(n) < lengths[:, None, None, None]}]
        yield from (case | options for options in more)


def attention_cases(rng):
    more = Size(7, 11, 4, False), Size(40, 40, 8, False), Size(17, 17, 16, False)
    for z in (*SIZES, *more):
        three = zip("QKV", (z.n_q, z.n_k, z.n_k), strict=True)
        case = {x: numbers(rng, n, z.d, integers=z.integers) for x, n in three}
        yield from (case, case | {"mask": open_mask(rng, z.n_q, z.n_k)})
        if z.n_q == z.n_k:  # where a causal mask of other shapes begins is a convention
            yield case | {"is_causal": True}
        yield {x: numbers(rng, 2, 2, *y.shape, integers=False) for x, y in case.items()}


@law(
    "the numbers equal those of the reference",
    "Y = Concat(head_1, …, head_h) W_O",
    "inputs and matrices determine the output",
    cases=reference_cases,
    alone=True,
    rank=3,
)
def equals_reference(tokens, mask=None, **given):
    whole = tokens.whole()
    if tokens.kind == "layer":
        given["n_heads"] = tokens.sizes.n_heads
    due, got = whole.due(mask=mask, **given), whole(mask=mask, **given)
    heads = f"{tokens.sizes.n_heads} heads" if tokens.kind == "layer" else ""
    return differs(due, got, heads, tokens.tolerance)
