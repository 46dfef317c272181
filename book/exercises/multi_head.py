"""Exercises on multi-head attention, and the bug hunt that ends Part II."""

import functools
import reprlib
import textwrap
from fractions import Fraction

import numpy as np

from exercises import section
from mha.attention import scaled_dot_product_attention
from mha.check import Exercise, Mistake, Verdict, is_stub
from mha.heads import merge_heads, multi_head_attention, split_heads

_BY_HAND, _BREAK_IT = (
    section("multi_head", "By hand"),
    section("multi_head", "Break it"),
)
_IN_PRACTICE = section("multi_head", "In practice")


def _random(*shapes, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


# ------------------------------------------------------- one row of the sheet


def _numbers(answer):
    """Return a row of fractions, floats or texts such as "1/2" as floats."""
    row = np.array(answer, dtype=object).ravel()
    return np.array([float(Fraction(x)) for x in row])


def _row_with(power, second=(1, 1, 2)):
    """Return the row of "is" without the mask; `power` turns integers into shares."""
    raised = [power(np.array(scores)) for scores in ((0.0, 2, 1), second)]
    V = np.array([[[3, 0], [0, 3], [3, 3]], [[6, 0], [0, 6], [0, 0]]])
    a, b = (r / r.sum() @ v for r, v in zip(raised, V, strict=True))
    return tuple(np.concatenate([a + b, a - b]))  # what the W_O of the sheet does


row_without_mask = Exercise(
    task='the row of "is" in Y, without the causal mask',
    right=(39 / 14, 57 / 14, -3 / 14, 15 / 14),
    cases=((),),
    observe=_numbers,
    mistakes=(
        Mistake(
            "mask kept",
            'that row has the mask still on: now "is" may attend to "well" too',
            (18 / 5, 27 / 5, -12 / 5, -3 / 5),
        ),
        Mistake(
            "no W_O",
            "those are the two heads side by side; the product with W_O is missing",
            (9 / 7, 18 / 7, 3 / 2, 3 / 2),
        ),
        Mistake(
            "powers of e",
            "you raised e to the integers; the scaled scores are integers times ln 2",
            _row_with(np.exp),
        ),
        Mistake(
            "scaled twice",
            "the integers on the sheet are scaled already: the root of d_k is in c",
            _row_with(lambda s: 2 ** (s / 2**0.5)),
        ),
        Mistake(
            "shares not divided",
            "powers of two are no shares yet: divide each row by its sum",
            (21, 30, -3, 6),
        ),
        Mistake(
            'the row of "All"',
            'that is the row of "All"; its first query is (1, 0), that of "is" (0, 1)',
            (57 / 14, 39 / 14, 15 / 14, -3 / 14),
        ),
        Mistake(
            "the first head for both",
            "the second head has weights of its own; you used those of the first twice",
            _row_with(np.exp2, second=(0, 2, 1)),
        ),
        Mistake(
            "mask kept in the second head",
            'the first head is right; in the second, "is" may attend to "well" too',
            _row_with(np.exp2, second=(1, 1, -np.inf)),
        ),
        Mistake(
            "no powers",
            "you divided the scores by their sum; step 7 raises 2 to each one first",
            _row_with(lambda s: s),
        ),
        Mistake(
            'the row of "well"',
            'that is the row of "well", which has no mask to lose',
            (7 / 2, 7 / 2, 1 / 2, 1 / 2),
        ),
        Mistake(
            "rounded",
            "right to three decimals; on this sheet nothing is rounded",
            (2.786, 4.071, -0.214, 1.071),
        ),
    ),
    reread=_BY_HAND,
    praise="five lines of fractions, and no other tool than paper.",
)


# ------------------------------------------------------- the function from the steps


def _zoo(name):
    """Return the member of the zoo of this name, called as the exercise is."""

    def answer(X, W_Q, W_K, W_V, W_O, n_heads, mask):
        from mha import zoo

        return getattr(zoo, name)(X, W_Q, W_K, W_V, W_O, n_heads, mask)

    return answer


def _heads(X, W_Q, W_K, W_V, n_heads, mask):
    Q, K, V = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    return scaled_dot_product_attention(Q, K, V, mask)


def _ring(n):
    """Each token sees itself and the next: its opposite leaves no row empty."""
    eye = np.eye(n, dtype=bool)
    return eye | np.roll(eye, 1, axis=1)


def _layer_case(n, d_model, n_heads, d_k, d_v, mask, seed):
    widths = (n_heads * d_k, n_heads * d_k, n_heads * d_v)
    shapes = [(n, d_model), *((d_model, width) for width in widths)]
    return (*_random(*shapes, (n_heads * d_v, d_model), seed=seed), n_heads, mask)


def _no_swap_at_all(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    """Let every token attend over its own heads: they stand where tokens should."""
    Q, K, V = ((X @ W).reshape(len(X), n_heads, -1) for W in (W_Q, W_K, W_V))
    return scaled_dot_product_attention(Q, K, V, mask).reshape(len(X), -1) @ W_O


def _both_reshaped(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    Q, K, V = ((X @ W).reshape(n_heads, len(X), -1) for W in (W_Q, W_K, W_V))
    return scaled_dot_product_attention(Q, K, V, mask).reshape(len(X), -1) @ W_O


def _interleaved(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    Q, K, V = (
        np.moveaxis((X @ W).reshape(len(X), -1, n_heads), -1, 0)
        for W in (W_Q, W_K, W_V)
    )
    return merge_heads(scaled_dot_product_attention(Q, K, V, mask)) @ W_O


def _scaled_twice(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    W_Q = W_Q / np.sqrt(W_Q.shape[1] // n_heads)
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)


many_heads = Exercise(
    task="multi-head attention from its nine steps",
    right=lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: multi_head_attention(
        X, W_Q, W_K, W_V, W_O, n_heads, mask
    ),
    forbidden=(multi_head_attention,),
    cases=(
        _layer_case(2, 2, 1, 2, 2, None, seed=5),
        _layer_case(2, 4, 2, 2, 2, None, seed=6),
        _layer_case(3, 4, 2, 2, 2, _ring(3), seed=7),
        _layer_case(5, 3, 3, 2, 7, _ring(5), seed=8),
    ),
    mistakes=(
        Mistake(
            "split across the tokens",
            "a reshape alone cuts heads across the tokens: the axes must be swapped",
            _zoo("split_without_transpose"),
        ),
        Mistake(
            "merge across the tokens",
            "on the way back the axes must be swapped too, before the reshape",
            _zoo("merge_without_transpose"),
        ),
        Mistake(
            "both across the tokens",
            "two reshapes without a swap give the right shape and mix the tokens",
            _both_reshaped,
        ),
        Mistake(
            "heads behind the tokens",
            "each token attends over its own heads: the heads stand where the tokens "
            "should",
            _no_swap_at_all,
        ),
        Mistake(
            "interleaved",
            "each head takes every n_heads-th column; it should own neighbours",
            _interleaved,
        ),
        Mistake(
            "scaled twice",
            "the scores are divided twice: the package's attention divides them too",
            _scaled_twice,
        ),
        Mistake(
            "no W_O",
            "the heads stand side by side, and nothing has mixed them yet",
            _zoo("no_output_projection"),
        ),
        Mistake(
            "root of the whole width",
            "each head divides by the root of its own width, not of all heads together",
            _zoo("scale_sqrt_d_model"),
        ),
        Mistake(
            "no scale", "the scores were not divided by anything", _zoo("no_scale")
        ),
        Mistake(
            "one wide head",
            "n_heads has no effect: all columns make one score",
            lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: multi_head_attention(
                X, W_Q, W_K, W_V, W_O, 1, mask
            ),
        ),
        Mistake(
            "heads averaged",
            "the heads are laid side by side; a mean forgets who brought what",
            _zoo("heads_averaged"),
        ),
        Mistake(
            "heads in the wrong order",
            "the first head belongs to the left, where its rows of W_O wait for it",
            lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: (
                np.concatenate(_heads(X, W_Q, W_K, W_V, n_heads, mask)[::-1], axis=-1)
                @ W_O
            ),
        ),
        Mistake(
            "mask ignored", "the mask came in and was not used", _zoo("mask_ignored")
        ),
        Mistake(
            "mask inverted",
            "True means may attend; you have hidden what should be seen",
            _zoo("mask_inverted"),
        ),
        Mistake(
            "mask after the softmax",
            "what is hidden must lose its share before the row is divided by its sum",
            _zoo("mask_after_softmax"),
        ),
        Mistake(
            "always causal",
            "the mask decides which keys may be attended to, and None hides nothing",
            lambda X, W_Q, W_K, W_V, W_O, n_heads, mask: multi_head_attention(
                X, W_Q, W_K, W_V, W_O, n_heads, is_causal=True
            ),
        ),
    ),
    reread=section("multi_head", "The equation"),
    praise="it agrees with the package, masks and unequal widths included.",
)


# ------------------------------------------------------- what a mean of maps hides


def _eighths(*maps):
    return np.array(maps) / 8


def _far(A, centre):
    return np.abs(A - centre).sum(axis=(1, 2))


_FORWARD, _BACK = [[0, 8, 0], [0, 0, 8]], [[8, 0, 0], [4, 4, 0]]
_EVEN, _MILD = [[2, 4, 2], [2, 2, 4]], [[3, 3, 2], [3, 3, 2]]

farthest_head = Exercise(
    task="the head that the mean hides best",
    right=lambda A: int(_far(A, A.mean(axis=0)).argmax()),
    cases=(
        (_eighths(_FORWARD, _FORWARD, _FORWARD, _BACK),),
        (_eighths(_FORWARD, _MILD, _FORWARD, _EVEN),),
        (_eighths([[0, 1, 7]], [[0, 1, 7]], [[0, 0, 8]], [[4, 4, 0]]),),
        (
            _eighths(
                [[8, 0, 0, 0], [2, 2, 2, 2]],
                [[4, 4, 0, 0], [4, 4, 0, 0]],
                [[5, 1, 2, 0], [3, 3, 1, 1]],
                [[1, 1, 3, 3], [1, 1, 3, 3]],
            ),
        ),
        (
            # Three measures, three heads: sums, sums of squares, single differences.
            _eighths(
                [[0, 8, 0, 0], [2, 2, 0, 4]],
                [[0, 0, 0, 8], [1, 5, 2, 0]],
                [[0, 0, 0, 8], [8, 0, 0, 0]],
                [[8, 0, 0, 0], [1, 2, 1, 4]],
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "differences that cancel",
            "always index 0? The differences of a head add up to 0: take their "
            "absolute values first",
            lambda A: int((A - A.mean(axis=0)).sum(axis=(1, 2)).round(9).argmax()),
        ),
        Mistake(
            "squares",
            "squares give a few large differences the last word; expected their sum",
            lambda A: int(((A - A.mean(axis=0)) ** 2).sum(axis=(1, 2)).argmax()),
        ),
        Mistake(
            "the largest difference",
            "one cell decides for you; expected the sum over all cells of a head",
            lambda A: int(np.abs(A - A.mean(axis=0)).max(axis=(1, 2)).argmax()),
        ),
        Mistake(
            "the nearest head",
            "that head is most like the mean; expected the one least like it",
            lambda A: int(_far(A, A.mean(axis=0)).argmin()),
        ),
        Mistake(
            "far from equal shares",
            "that head is far from equal shares; expected the distance from the mean",
            lambda A: int(_far(A, 1 / A.shape[-1]).argmax()),
        ),
        Mistake(
            "the largest weight",
            "one large weight may be what all heads have in common",
            lambda A: int(A.max(axis=(1, 2)).argmax()),
        ),
        Mistake(
            "counted from one",
            "the index counts from 0",
            lambda A: int(_far(A, A.mean(axis=0)).argmax()) + 1,
        ),
        Mistake(
            "the distance, not the head",
            "that is how far it is; expected which head it is",
            lambda A: _far(A, A.mean(axis=0)).max(),
        ),
    ),
    reread=_BREAK_IT,
    praise="the mean has lost it, and you have found it again.",
)


# ------------------------------------------------------- weights of PyTorch


def _thirds(w, axis=0):
    return tuple(np.split(w, 3, axis=axis))


def _three_matrices(answer, w):
    """Return a list or a stack of matrices as a tuple, for it unpacks like one."""
    result = answer(w) if callable(answer) else answer
    stack = getattr(result, "ndim", 0) == 3
    return tuple(result) if stack or isinstance(result, list) else result


matrices_of_torch = Exercise(
    task="W_Q, W_K and W_V from in_proj_weight",
    observe=_three_matrices,
    right=lambda in_proj_weight: tuple(w.T for w in _thirds(in_proj_weight)),
    cases=(
        (np.arange(3.0)[:, None],),
        (np.arange(12.0).reshape(6, 2),),
        _random((9, 3), seed=9),
    ),
    mistakes=(
        Mistake(
            "not transposed",
            "PyTorch multiplies by the transpose of what it stores; we write X @ W",
            _thirds,
        ),
        Mistake(
            "reshaped after the transpose",
            "after a transpose, a reshape mixes the three: cut along an axis instead",
            lambda w: tuple(w.T.reshape(3, w.shape[1], w.shape[1])),
        ),
        Mistake(
            "every third row",
            "the three matrices lie one below the other, not row by row in turn",
            lambda w: tuple(w[r::3].T for r in range(3)),
        ),
        Mistake(
            "cut into columns",
            "each matrix has all columns and a third of the rows",
            lambda w: _thirds(w, axis=1),
        ),
        Mistake(
            "query, value, key",
            "the order is query, key, value: the last two are exchanged",
            lambda w: tuple(_thirds(w)[r].T for r in (0, 2, 1)),
        ),
        Mistake(
            "key, query, value",
            "the queries come first",
            lambda w: tuple(_thirds(w)[r].T for r in (1, 0, 2)),
        ),
        Mistake(
            "value, key, query",
            "they lie in the order query, key, value, from the top",
            lambda w: tuple(part.T for part in reversed(_thirds(w))),
        ),
        Mistake(
            "not cut",
            "transposed it is; now it has to be cut into three",
            lambda w: w.T,
        ),
    ),
    reread=_IN_PRACTICE,
    praise="with these three, our function gives what PyTorch's layer gives.",
)


# ------------------------------------------------------- the bug hunt

_GUILTY = {
    "A": "mask_after_softmax",
    "B": "scale_sqrt_n",
    "C": "output_within_heads",
    "D": "tied_query_key",
    "E": "merge_without_transpose",
    "F": "input_split_before_projection",
}
# Any two of them break different laws, so the laws alone decide.
WANTED = (
    "no_scale",
    "scale_sqrt_n",
    "scale_after_softmax",
    "softmax_over_queries",
    "mask_ignored",
    "mask_after_softmax",
    "merge_without_transpose",
    "input_split_before_projection",
    "tied_query_key",
    "heads_averaged",
    "output_within_heads",
    "no_output_projection",
)


class Suspect:
    """Compute multi-head attention, with one step wrong, and do not say which.

    A suspect is called like `mha.multi_head_attention` and can be put to any law.

    Attributes
    ----------
    step : str
        The code of the wrong step, for those who want to see it.

    Examples
    --------
    >>> suspects["B"]
    suspect B
    """

    def __init__(self, letter):
        # Reports call a subject by these two.
        self.__name__, self.__module__ = f"suspect {letter}", ""
        self._letter = letter

    def __call__(
        self, X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, X_k=None, X_v=None,
        b_Q=None, b_K=None, b_V=None, b_O=None, is_causal=False, return_weights=False,
    ):  # fmt: skip
        """Return what this suspect takes for `mha.multi_head_attention`."""
        return self._member()(
            X, W_Q, W_K, W_V, W_O, n_heads, mask, X_k=X_k, X_v=X_v, b_Q=b_Q, b_K=b_K,
            b_V=b_V, b_O=b_O, is_causal=is_causal, return_weights=return_weights,
        )  # fmt: skip

    @property
    def step(self):
        """The code of the wrong step."""
        return self._member().source

    def _member(self):
        from mha import zoo  # only the hunt needs it

        return getattr(zoo, _GUILTY[self._letter])

    def __repr__(self):
        return self.__name__


suspects = {letter: Suspect(letter) for letter in _GUILTY}


@functools.cache
def suspect_exercise(letter):
    """Return the exercise for one suspect; its hints follow from the kill matrix."""
    guilty = _GUILTY[letter]
    return Exercise(
        task=f"the mistake of suspect {letter}",
        right=guilty,
        cases=((),),
        observe=_slug,
        mistakes=tuple(
            Mistake(slug, _alibi(letter, guilty, slug), slug)
            for slug in WANTED
            if slug != guilty
        ),
        reread=section("multi_head", "The law"),
    )


def _slug(answer):
    """Return the slug, whether it came as text, as a sentence or as a member."""
    if not isinstance(answer, str):
        return getattr(answer, "name", repr(answer))
    from mha import zoo

    wanted = answer.strip().removeprefix("zoo.")
    return next((m.name for m in zoo.WRONG if wanted == m.wrong), wanted)


def _alibi(letter, guilty, accused):
    """Return why the accused is innocent: a law on which the two differ."""
    from mha import laws

    matrix, names = laws.kill_matrix(), {law.slug: law.name for law in laws.ALL}
    broken, suspected = set(matrix.killed_by(guilty)), set(matrix.killed_by(accused))
    for slug, name in names.items():
        if slug in suspected - broken:
            return f'{accused} would break "{name}", and {letter} keeps it'
    slug = next(slug for slug in names if slug in broken - suspected)
    return f'{accused} would keep "{names[slug]}", and {letter} breaks it'


class Hunt(Exercise):
    """Say, for each suspect that is accused, whether it did it."""

    def judge(self, answer):
        """Return the `Verdict` on a dict of accusations, one for each letter."""
        if not isinstance(answer, dict):
            text = (
                f'give a dict, such as {{"A": "no_scale"}}, got {reprlib.repr(answer)}'
            )
            return Verdict("not yet", text)
        if unknown := [key for key in answer if key not in tuple(suspects)]:
            text = f"there are suspects {', '.join(suspects)}, got {unknown[0]}"
            return Verdict("not yet", text)
        accused = {a: x for a, x in answer.items() if not is_stub(x)}
        if not accused:
            return Verdict("not attempted yet", self.task)
        verdicts = {a: suspect_exercise(a)(x) for a, x in accused.items()}
        if len(accused) == len(suspects) and all(v.passed for v in verdicts.values()):
            return Verdict("passed", self.praise)
        lines = [_reply(a, accused[a], v) for a, v in sorted(verdicts.items())]
        if free := [a for a in suspects if a not in accused]:
            lines.append(f"not accused yet: {', '.join(free)}")
        mistake = next((v.mistake for v in verdicts.values() if v.mistake), None)
        return Verdict("not yet", "\n".join(lines), mistake)


bug_hunt = Hunt(
    task="six suspects and what each did wrong",
    right=_GUILTY,
    cases=((),),
    mistakes=(),  # each suspect has its own: see suspect_exercise
    reread=section("multi_head", "The law"),
    praise="six out of six, and nobody was accused wrongly.",
)


def _reply(letter, answer, verdict):
    """Return what is said to one accusation; the engine would give the answer away."""
    if verdict.passed:
        text = "convicted"
    elif verdict.mistake is None:
        text = f"{_slug(answer)} is not on the list; check.WANTED holds twelve"
    else:
        mistakes = suspect_exercise(letter).mistakes
        text = next(m.hint for m in mistakes if m.name == verdict.mistake)
    return textwrap.fill(f"{letter}: {text}", 60, subsequent_indent="   ")
