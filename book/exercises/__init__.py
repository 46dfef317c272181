"""The exercises of the book, one module per chapter, named by the chapter's slug.

A notebook says ``from exercises import masks as check``, which works because a
notebook runs in its own folder; then ``check.causal_row(answer)`` prints what is to be
said of the answer. A module holds its chapter's exercises and the wrong answers that
they recognise; `mha.check` runs them.
"""

from mha._chapters import chapter_number


def chapter(slug: str) -> str:
    """Return what a text calls the chapter, such as "chapter 4" for ``"masks"``."""
    return f"chapter {chapter_number(slug)}"


def section(slug: str, *headings: str) -> str:
    """Return what a text calls these sections, such as 'chapter 4, "By hand"'."""
    return f"{chapter(slug)}, " + " and ".join(f'"{heading}"' for heading in headings)
