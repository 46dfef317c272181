"""The strip at the end of a core: the parts of a layer, those known so far lit."""

from collections.abc import Mapping
from html import escape

PARTS = (  # the name of a part, what a screen reader says, and its chapter
    ("words", "words and positions", "positions"),
    ("Q, K, V", "queries, keys and values", "attention"),
    ("scores", "scores", "dot_product"),
    ("scale", "scale", "scale"),
    ("mask", "mask", "masks"),
    ("softmax", "softmax", "softmax"),
    ("weights", "weights", "softmax"),
    ("heads", "head outputs", "why_heads"),
    ("concat", "concatenated heads", "split"),
    ("output", "output projection", "output"),
    ("norm", "add and norm", "encoder_layer"),
    ("feed-fwd", "feed-forward network", "encoder_layer"),
    ("norm", "add and norm", "encoder_layer"),
)


def strip(chapter: str, chapters: Mapping[str, tuple[int, str]]) -> str:
    """Return the strip for a chapter, as HTML.

    Parameters
    ----------
    chapter : str
        Slug of the chapter that the strip stands in. Its parts are lit, and those of
        the chapters before it.
    chapters : mapping {slug: (number, address)}
        The chapters there are. A part whose chapter is missing is no link.

    Returns
    -------
    html : str
        A ``<nav>`` with one link per part of a layer.

    >>> html = strip("softmax", {"softmax": (2, "02.html"), "scale": (3, "03.html")})
    >>> html.count("<li"), html.count("<a href"), html.count('class="lit"')
    (13, 1, 2)
    """
    items, here = [], chapters[chapter][0]
    for name, says, slug in PARTS:
        number, address = chapters.get(slug, (None, None))
        inside = f'<span aria-hidden="true">{name}</span>'
        inside += f'<span class="visually-hidden">{says}, </span>'
        inside += f"<small>{number}</small>" if number is not None else ""
        if slug == chapter or not address:
            current = ' aria-current="page"' if slug == chapter else ""
            inside = f"<span{current}>{inside}</span>"
        else:
            inside = f'<a href="{escape(address)}">{inside}</a>'
        lit = ' class="lit"' * (number is not None and number <= here)
        items.append(f"<li{lit}>{inside}</li>")
    label = "The steps of a layer, in order, with their chapters"
    return (
        f'<nav class="strip" aria-label="{label}"><p>{label}. Bold: what you have seen '
        f"so far.</p><ol>{''.join(items)}</ol></nav>"
    )
