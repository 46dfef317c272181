"""Turn what a word looks for, and watch which word fits best (chapter dot_product)."""

import numpy as np

from figures.live_house.numbers import IT, WORDS, numbers
from figures.picture import Picture
from figures.scene import Scene, picture
from figures.view import live
from mha.view import View

PLACES = ((9, -8, "start"), (-9, 15, "end"), (-9, -5, "end"), (9, -7, "start"))


def hand() -> View:
    """Show a query that can be turned, four keys, their shadows and their scores.

    >>> hand().alt[-39:]
    'dog 5, food 0, it 3 and hungry 4 first.'
    """
    Q, K, S = (numbers()[name][0] for name in "QKS")
    scores = [f"{word} {score:g}" for word, score in zip(WORDS, S[IT], strict=True)]
    alt = (
        "The query of “it” is an arrow that can be turned. Each of four keys drops a "
        "dashed line onto the line of the query at a right angle, and its shadow "
        "reaches from the origin to there. The scores are "
        f"{', '.join(scores[:-1])} and {scores[-1]} first."
    )
    data = {"words": WORDS, "query": Q[IT], "keys": K}
    return live(__file__, alt, data, lambda: still(Q[IT], K, S[IT], alt))


def still(query, keys, scores, alt: str) -> Picture:
    """Draw the query, the keys, and the shadow of each key with its score."""
    scene, unit, long = Scene(330, 290), 100, np.linalg.norm(query)
    aside = np.array([query[1], -query[0]]) / long  # away from the keys

    def at(point) -> tuple[float, float]:
        return 46 + unit * point[0], 230 - unit * point[1]

    scene.arrow([at((0, 0)), at((2.75, 0))], role="rest", width=1)
    scene.arrow([at((0, 0)), at((0, 2.25))], role="rest", width=1)
    quiet = {"size": 11.3, "role": "muted", "anchor": "end"}
    scene.text(at((2.75, 0))[0], at((0, 0))[1] + 15, "animal →", **quiet)
    scene.text(at((0, 0))[0] - 9, at((0, 2.25))[1], "wanting →", turn=-90, **quiet)
    feet = [score * query / long**2 for score in scores]
    pairs = [*zip(keys, feet, strict=True)]
    for foot in feet:
        look = {"stroke": "key", "width": 9, "alpha": 0.22}
        scene.shape([at((0, 0)), at(foot)], **look)
    drops = [[at(key), at(foot)] for key, foot in pairs if any(key != foot)]
    scene.shape(*drops, stroke="muted", width=1.2, dash=(2, 3))
    scene.dots(*((*at(key), 5) for key in keys), fill="key")
    scene.arrow([at((0, 0)), at(query)], role="query", width=2.4)
    for word, (key, foot), score, (dx, dy, anchor) in zip(
        WORDS, pairs, scores, PLACES, strict=True
    ):
        look = {"bold": True, "halo": True}
        x, y = at(key)
        scene.text(x + dx, y + dy, word, anchor=anchor, **look)
        x, y = at(foot + 0.17 * aside)
        scene.text(x, y + 5, f"{score:g}", size=13, role="key", **look)
    return picture(scene, alt)
