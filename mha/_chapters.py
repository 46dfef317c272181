"""The chapters of the book in their order: the only place that knows their numbers.

The number of a chapter is its place, counted from 0. Laws, members of the zoo and
exercises name a chapter by its slug, so that one can be inserted by adding a line here.
"""

CHAPTERS = (
    "overview",
    "dot_product",
    "softmax",
    "scale",
    "masks",
    "attention",
    "why_heads",
    "split",
    "output",
    "multi_head",
    "positions",
    "encoder_layer",
    "encoder",
    "what_heads_learn",
    "real_encoder",
    "laws",
    "long",
    "since_2017",
)


def chapter_number(slug: str) -> int:
    """Return the number of the chapter called `slug`, such as 4 for ``"masks"``."""
    if slug not in CHAPTERS:
        raise ValueError(
            f"no chapter is called {slug!r}; there are {', '.join(CHAPTERS)}"
        )
    return CHAPTERS.index(slug)
