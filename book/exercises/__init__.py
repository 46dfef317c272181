"""The exercises of the book, one module per chapter, named by the chapter's slug.

A notebook says ``from exercises import masks as check``, which works because a
notebook runs in its own folder; then ``check.causal_row(answer)`` prints what is to be
said of the answer. A module holds its chapter's exercises and the wrong answers that
they recognise; `mha.check` runs them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mha._chapters import chapter_number


def chapter(slug: str) -> str:
    """Return what a text calls the chapter, such as "chapter 4" for ``"masks"``."""
    return f"chapter {chapter_number(slug)}"


def section(slug: str, *headings: str) -> str:
    """Return what a text calls these sections, such as 'chapter 4, "By hand"'."""
    return f"{chapter(slug)}, " + " and ".join(f'"{heading}"' for heading in headings)


def judged(law: Callable[[Any], Any], attend: Any) -> bool | None:
    """Return what a law says of an attention, or None if it says nothing.

    Examples
    --------
    >>> judged(lambda attend: attend == "right", "right")
    True
    """
    try:
        answer = law(attend)
    except AssertionError:  # a law may be written as a test
        return False
    return None if answer is None else bool(np.asarray(answer).all())
