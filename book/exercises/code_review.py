"""The code review among the exercises on laws: one layer, three mistakes."""

import functools
from collections.abc import Iterable

from exercises import Exercise, section
from exercises.engine import Verdict

MANY = 6  # more lines than this are a guess

_CODE = """\
def layer(X, W_Q, W_K, W_V, W_O, n_heads, mask=None, is_causal=False):
    d_head = W_Q.shape[-1] // n_heads

    def to_heads(W):
        x = X @ W
        return x.reshape(*x.shape[:-2], n_heads, -1, d_head)

    Q, K, V = to_heads(W_Q), to_heads(W_K), to_heads(W_V)
    S = Q @ K.swapaxes(-1, -2)
    S = S / K.shape[-2] ** 0.5

    if is_causal:
        past = np.tri(S.shape[-2], S.shape[-1], dtype=bool)
        mask = past if mask is None else past & mask
    if mask is None:
        mask = np.ones((1, 1), dtype=bool)

    S = np.where(mask, S, -np.inf)
    S = S - np.maximum(S.max(axis=-1, keepdims=True), -1e30)
    E = np.exp(S)
    total = E.sum(axis=-1, keepdims=True)
    A = E / np.where(total == 0, 1, total)

    heads = A @ V
    Y = heads.reshape(*X.shape[:-1], -1)
    return (Y @ W_O).astype(X.dtype)
"""
# What stands in the line when the mistake is mended.
_REPAIRS = {
    6: "        return x.reshape(*x.shape[:-1], n_heads, d_head).swapaxes(-3, -2)",
    10: "    S = S / K.shape[-1] ** 0.5",
    25: "    Y = heads.swapaxes(-3, -2).reshape(*X.shape[:-1], -1)",
}
_CORRECT = {
    2: "each head gets the same number of columns",
    5: "the tokens are projected first, and cut into heads afterwards",
    8: "each of the three roles has its own matrix",
    9: "each query is multiplied by each key, and the last two axes are swapped",
    13: "np.tri keeps the diagonal, so a token may attend to itself",
    14: "a token may attend to a key only if both masks allow it, so & is right",
    18: "True means may attend, and all other scores become -∞ before the softmax",
    19: "the largest score is subtracted, and -1e30 avoids -∞ minus -∞ in an empty row",
    21: "each row of weights is divided by its own sum",
    22: "an empty row has the sum 0, and 0 divided by 1 is 0",
    24: "weights times values, head by head",
    26: "the heads are mixed at the end, and float32 stays float32",
}


class LayerInReview:
    """Compute multi-head attention as its author wrote it, three mistakes included.

    It is called like `mha.multi_head_attention`, and every law can be asked of it.

    Examples
    --------
    >>> print(layer_in_review.source.splitlines()[1])
     2      d_head = W_Q.shape[-1] // n_heads
    """

    def __init__(self, mended=()):
        # Reports call a subject by these two.
        names = " and ".join(map(str, mended))
        self.__name__ = f"the layer, line {names} mended" if mended else "the layer"
        self.__module__ = ""
        self._mended = mended

    def __call__(self, X, W_Q, W_K, W_V, W_O, n_heads, mask=None, *, is_causal=False):
        """Return what the layer takes for `mha.multi_head_attention`."""
        run = _compiled(self._mended)
        return run(X, W_Q, W_K, W_V, W_O, n_heads, mask, is_causal)

    @property
    def source(self):
        """The code, with line numbers."""
        lines = enumerate(_lines(self._mended), start=1)
        return "\n".join(f"{k:2}  {line}".rstrip() for k, line in lines)

    def mend(self, *lines):
        """Return the layer with the mistakes in the lines of these numbers mended."""
        found = {*self._mended, *lines} & set(_REPAIRS)
        return LayerInReview(tuple(sorted(found)))

    def __repr__(self):
        return self.__name__


def _lines(mended):
    lines = _CODE.splitlines()
    for k in mended:
        lines[k - 1] = _REPAIRS[k]
    return lines


@functools.cache
def _compiled(mended):
    import numpy as np

    scope = {"np": np}
    exec("\n".join(_lines(mended)), scope)
    return scope["layer"]


layer_in_review = LayerInReview()


def _numbers(answer):
    """Return the line numbers in order, whatever they came in."""
    if isinstance(answer, str):
        answer = answer.replace(",", " ").split()
    lines = answer if isinstance(answer, Iterable) else [answer]
    return tuple(sorted({_number(line) for line in lines}))


def _number(line):
    try:
        if float(line).is_integer():
            return int(float(line))
    except (TypeError, ValueError):
        pass
    raise TypeError(f"give the numbers of lines, such as [1, 2, 3]; got {line!r}")


class Review(Exercise):
    """Reply to each line by itself."""

    def judge(self, answer):
        """Return the `Verdict` on a list of line numbers."""
        try:
            named = _numbers(answer)
        except TypeError as error:
            return Verdict("not yet", str(error))
        if not named:
            return Verdict("not attempted yet", self.task)
        if named == _numbers(self.right):
            return Verdict("passed", self.praise)
        if len(named) > MANY:
            text = f"you name {len(named)} lines, but only {len(_REPAIRS)} are wrong"
            return Verdict("not yet", f"{text}\n  reread    {self.reread}")
        lines = [_reply(k) for k in named]
        hits = len(set(named) & set(_REPAIRS))
        if missing := len(_REPAIRS) - hits:
            lines.append(f"wrong lines not found yet: {missing}")
        lines.append(f"  reread    {self.reread}")
        correct = next((_reply(k) for k in named if k in _CORRECT), None)
        return Verdict("not yet", "\n".join(lines), correct)


def _reply(line):
    if not 1 <= line <= len(_lines(())):
        return f"line {line}: there is no such line"
    if line in _REPAIRS:
        return f"line {line}: yes, and `mend({line})` repairs it"
    return f"line {line} is correct: {_CORRECT.get(line, 'nothing is computed there')}"


code_review = Review(
    task="the numbers of the three lines that are wrong",
    right=tuple(_REPAIRS),
    cases=((),),
    mistakes={_reply(line): (6, 10, line) for line in _CORRECT},
    reread=section("laws", "One law, one bug and two calls"),
    praise="these three lines are wrong, and the others are correct.",
)
