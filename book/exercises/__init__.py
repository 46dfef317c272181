"""The exercises of the book, one module per chapter, named by the chapter's slug.

A notebook says ``from exercises import masks as check``, which works because a
notebook runs in its own folder; then ``check.causal_row(answer)`` prints what is to be
said of the answer. A module holds its chapter's exercises. A row of `mistakes` is what
is said to a slip, and after it the slip itself: a wrong program, or a wrong value.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from chapters import chapter_number
from mha.check import Unfit


def chapter(slug: str) -> str:
    """Return what a text calls the chapter, such as "chapter 4" for ``"masks"``."""
    return f"chapter {chapter_number(slug)}"


def section(slug: str, *headings: str) -> str:
    """Return what a text calls these sections, such as 'chapter 4, "By hand"'."""
    return f"{chapter(slug)}, " + " and ".join(f'"{heading}"' for heading in headings)


def random_arrays(*shapes: tuple[int, ...], seed: int) -> tuple[np.ndarray, ...]:
    """Return random arrays with numbers of one decimal, which are easy to read."""
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


def each(*inputs: Any) -> tuple[tuple[Any, ...], ...]:
    """Return a case for each input, for an exercise that takes one."""
    return tuple((given,) for given in inputs)


def number(answer: Any, digits: int = 2) -> float:
    """Return a number to so many digits, also if it came as a text such as "2 / 3"."""
    try:
        if isinstance(answer, str):
            answer = Fraction(answer.replace(" ", ""))
        return round(np.asarray(answer, dtype=float).reshape(()).item(), digits)
    except (TypeError, ValueError, ZeroDivisionError):
        raise Unfit("answer with a number") from None


def judged(law: Callable[[Any], Any], attend: Any) -> Any:
    """Return what a law says of an attention: True, False, or what else it returns.

    Examples
    --------
    >>> judged(lambda attend: attend == "right", "right")
    True
    """
    try:
        answer = law(attend)
    except AssertionError:  # a law may be written as a test
        return False
    return answer if answer is None else bool(np.asarray(answer).all())


def member(name: str) -> Callable[..., Any]:
    """Return the attention of a member of the zoo, "right in float32" for example.

    Its last digits differ from ours, so that ``==`` fails on every processor.
    """
    from mha import zoo  # only laws need it

    name, _, float32 = name.partition(" in ")
    attention = getattr(zoo, name).attention
    kind = np.float32 if float32 else np.float64
    factor = 1 - 4 * np.finfo(kind).eps

    def rounded(Q: Any, K: Any, V: Any, *args: Any, **options: Any) -> Any:
        Q, K, V = (np.asarray(x, dtype=kind) for x in (Q, K, V))
        out = attention(Q, K, V, *args, **options)
        if isinstance(out, tuple):
            return tuple((x * factor).astype(kind) for x in out)
        return (out * factor).astype(kind)

    return rounded


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function by another name, which verdicts then show."""
    function.__name__ = name
    return function


def slips_of_the_zoo(*names: str, run: Any = lambda member: member.attention) -> Any:
    """Return members of the zoo by what is wrong; `run` turns one into an answer."""
    from mha import zoo

    return {getattr(zoo, name).wrong: run(getattr(zoo, name)) for name in names}
