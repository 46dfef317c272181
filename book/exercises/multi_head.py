"""Exercises on multi-head attention, and the bug hunt that ends Part II."""

import functools
import inspect
import reprlib
import textwrap

import numpy as np

from chapters import laws_until
from exercises import Exercise, learning, random_arrays, section, slips_of_the_zoo
from exercises.engine import Verdict, is_stub
from mha import zoo
from mha.attention import scaled_dot_product_attention
from mha.heads import merge_heads, multi_head_attention, split_heads


def _layer(
    matrices=lambda q, k, v: (q, k, v),
    project=lambda X, W: X @ W,
    split=split_heads,
    attend=scaled_dot_product_attention,
    merge=merge_heads,
):
    """Return multi-head attention with one of its steps replaced."""

    def answer(X, W_Q, W_K, W_V, W_O, n_heads, mask):
        roles = matrices(W_Q, W_K, W_V)
        Q, K, V = (split(project(X, W), n_heads) for W in roles)
        return merge(attend(Q, K, V, mask)) @ W_O

    return answer


def _first_masked(Q, K, V, mask):
    heads = np.arange(len(Q))[:, None, None] > 0
    return scaled_dot_product_attention(Q, K, V, None if mask is None else heads | mask)


def _interleaved(x, n_heads):
    return np.moveaxis(x.reshape(len(x), -1, n_heads), -1, 0)


def _one_width(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    for W in (W_Q, W_K, W_V):
        W.reshape(len(W), n_heads, X.shape[1] // n_heads)
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads, mask)


def _ring(n):
    """Each token sees itself and the next: its opposite leaves no row empty."""
    eye = np.eye(n, dtype=bool)
    return eye | np.roll(eye, 1, axis=1)


def _layer_case(n, d_model, n_heads, d_k, d_v, mask, seed):
    widths = (n_heads * d_k, n_heads * d_k, n_heads * d_v)
    shapes = [(n, d_model), *((d_model, width) for width in widths)]
    return (*random_arrays(*shapes, (n_heads * d_v, d_model), seed=seed), n_heads, mask)


many_heads = Exercise(
    task="multi-head attention, with a mask and any widths",
    right=_layer(),
    forbidden=(multi_head_attention, zoo.right.__call__),
    cases=(
        _layer_case(3, 2, 1, 2, 2, None, seed=5),
        _layer_case(3, 4, 2, 2, 2, None, seed=6),
        _layer_case(3, 4, 2, 2, 2, _ring(3), seed=7),
        _layer_case(5, 3, 3, 2, 7, _ring(5), seed=8),
        _layer_case(3, 4, 2, 2, 2, np.tri(3, k=-1, dtype=bool), seed=9),
    ),
    mistakes=slips_of_the_zoo(
        *("both_without_transpose", "input_split_before_projection", "no_scale"),
        *("scale_sqrt_d_model", "scale_after_softmax", "softmax_over_queries"),
        *("tied_query_key", "no_output_projection", "output_within_heads"),
        *("heads_averaged", "mask_ignored", "mask_inverted", "mask_after_softmax"),
        *("nan_on_empty_rows", "minus_1e9_mask"),
        run=lambda member: member,
    )
    | {
        "your split reshapes without a swap, which cuts heads across the tokens: "
        "reshape to (n, heads, d_k), "
        "then swap the first two axes": zoo.split_without_transpose,
        "your merge reshapes without a swap, so the heads come one after the other "
        "instead of side by side: swap the first two axes, then "
        "reshape": zoo.merge_without_transpose,
        "two slips: your merge reshapes without a swap, and the mask is not used": (
            _layer(
                merge=lambda heads: heads.reshape(heads.shape[1], -1),
                attend=lambda Q, K, V, mask: scaled_dot_product_attention(Q, K, V),
            )
        ),
        "two slips: neither split nor merge swaps the axes, and the mask is not used": (
            _layer(
                split=lambda x, h: x.reshape(h, len(x), -1),
                merge=lambda heads: heads.reshape(heads.shape[1], -1),
                attend=lambda Q, K, V, mask: scaled_dot_product_attention(Q, K, V),
            )
        ),
        "each token attends over its own heads, because the heads stand where the "
        "tokens should: swap the two axes": _layer(
            split=lambda x, h: x.reshape(len(x), h, -1),
            merge=lambda heads: heads.reshape(len(heads), -1),
        ),
        "each of your heads takes every n_heads-th column; "
        "a head owns neighbouring columns": _layer(split=_interleaved),
        "the mask is given to the first head only": _layer(attend=_first_masked),
        "you divide by the root of the number of tokens; divide by √d_k, "
        "the root of the width of one head": zoo.scale_sqrt_n,
        "your scores are divided by d_k: by d_k without the root, or by √d_k twice, "
        "because the package's attention divides too": zoo.scale_by_d_k,
        "you multiply by the transposes of W_Q, W_K and W_V, as PyTorch does; "
        "here it is X @ W": _layer(project=lambda X, W: X @ W.T),
        "you multiply by the transposes of all four matrices, as PyTorch does; here it "
        "is X @ W": lambda X, q, k, v, W_O, h, mask: _layer()(
            X, q.T, k.T, v.T, W_O.T, h, mask
        ),
        "a hidden score is 0 in your answer, or multiplied by 0, and exp(0) is 1, "
        "so it still gets a weight: set it to −∞": zoo.mask_zero_score,
        "you hide the future in every case; the given mask decides, and None hides "
        "nothing": lambda X, q, k, v, W_O, h, mask: multi_head_attention(
            X, q, k, v, W_O, h, is_causal=True
        ),
        "queries, values and tokens have three widths here: W_Q.shape[1] // n_heads, "
        "W_V.shape[1] // n_heads, and d_model": _one_width,
    },
    reread=section("multi_head", "Multi-head attention as a class"),
    praise="it agrees with the package, masks and unequal widths included.",
    picture=learning.neighbours_picture,
)


def _thirds(w, axis=0):
    return tuple(np.split(w, 3, axis=axis))


def _ordered(w, *order):
    return tuple(_thirds(w)[r].T for r in order)


matrices_of_torch = Exercise(
    task="W_Q, W_K and W_V from in_proj_weight",
    right=lambda in_proj_weight: _ordered(in_proj_weight, 0, 1, 2),
    cases=(
        (np.arange(3.0)[:, None],),
        (np.arange(12.0).reshape(6, 2),),
        random_arrays((9, 3), seed=9),
    ),
    mistakes={
        "these are the matrices as PyTorch stores them; we compute X @ W, so each has "
        "to be transposed": _thirds,
        "a reshape after the transpose mixes the three: cut first, "
        "then transpose each": lambda w: tuple(w.T.reshape(3, w.shape[1], w.shape[1])),
        "you take every third row; the three matrices lie one below the "
        "other": lambda w: tuple(w[r::3].T for r in range(3)),
        "you cut the columns; each matrix has all columns and a third of the "
        "rows": lambda w: _thirds(w, axis=1),
    },
    reread=section("multi_head", "In practice"),
    praise="with these three, our function gives what PyTorch's layer gives.",
)


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
    *("no_scale", "scale_sqrt_n", "scale_after_softmax", "softmax_over_queries"),
    *("mask_ignored", "mask_after_softmax", "merge_without_transpose"),
    *("input_split_before_projection", "tied_query_key", "heads_averaged"),
    *("output_within_heads", "no_output_projection"),
)


class Suspect:
    """Compute multi-head attention, with one step wrong, and do not say which.

    It is called like `mha.multi_head_attention`, can be put to any law, and shows the
    code of its wrong step as `step` to those who want to see it.

    Examples
    --------
    >>> suspects["B"]
    suspect B
    """

    def __init__(self, letter):
        self.__name__ = f"suspect {letter}"  # reports call it so
        self.__signature__ = inspect.signature(multi_head_attention)
        self._letter = letter

    def __call__(self, X, W_Q, W_K, W_V, W_O, n_heads, mask=None, **options):
        """Return what this suspect takes for `mha.multi_head_attention`."""
        return self._member()(X, W_Q, W_K, W_V, W_O, n_heads, mask, **options)

    @property
    def step(self):
        """The code of the wrong step."""
        return self._member().source

    def _member(self):
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
        mistakes={
            _alibi(letter, guilty, slug): slug for slug in WANTED if slug != guilty
        },
        reread=section("multi_head", "The same output, alone or in a batch"),
    )


def _slug(answer):
    """Return the slug, whether it came as text, as a sentence or as a member."""
    if not isinstance(answer, str):
        return getattr(answer, "name", repr(answer))
    wanted = answer.strip().removeprefix("zoo.")
    return next((m.name for m in zoo.WRONG if wanted == m.wrong), wanted)


@functools.cache
def _kills():
    """Return which laws each mistake on the list breaks."""
    from mha import laws

    print("asking all laws of the twelve mistakes first, which takes up to a minute")

    members = [getattr(zoo, name) for name in WANTED]
    return laws.kill_matrix(laws_until("multi_head"), members)


def _alibi(letter, guilty, accused):
    """Return why the accused is innocent: a law on which the two differ."""
    broken, suspected = (set(_kills().killed_by(name)) for name in (guilty, accused))
    earned = laws_until("multi_head")
    for law in earned:
        if law.name in suspected - broken:
            return f'{accused} would break "{law.sentence}", and {letter} keeps it'
    law = next(law for law in earned if law.name in broken - suspected)
    return f'{accused} would keep "{law.sentence}", and {letter} breaks it'


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
    mistakes={},  # each suspect has its own: see suspect_exercise
    seconds=600,
    reread=section("multi_head", "The same output, alone or in a batch"),
    praise="all six are right.",
)


def _reply(letter, answer, verdict):
    """Return what is said to one accusation; the engine would give the answer away."""
    if verdict.passed:
        text = "mistake found"
    elif verdict.mistake is None:
        text = f"{_slug(answer)} is not on the list; check.WANTED holds twelve"
    else:
        text = verdict.mistake
    return textwrap.fill(f"{letter}: {text}", 60, subsequent_indent="   ")
