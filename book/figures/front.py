"""The pictures and the numbers of the front page.

Everything here is computed by the package or stored in ``book/_data`` with its script.
The words of the page are in ``book/index.md``, which names what is returned here.
"""

from functools import cache

from figures import finding
from figures.live_encoder import on_a_page
from figures.meaning import real


@cache
def facts() -> dict[str, str]:
    """Return every number and picture that the words of the page name.

    >>> [facts()[name] for name in ("padded_right", "alone_right")]
    ['82', '82']
    """
    correct, *others = finding.rows()
    padded = [f"{row.padded:.0f}" for row in others]
    alone = [row.alone for row in others]
    return {
        "padded": " to ".join(sorted({min(padded), max(padded)})),
        "padded_right": f"{correct.padded:.0f}",
        "alone_right": f"{correct.alone:.0f}",
        "alone_least": f"{min(alone):.0f}",
        "alone_most": f"{max(alone):.0f}",
        "encoder": on_a_page("part"),
        "real": real().svg,
    }
