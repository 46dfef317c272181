"""Sentences of different length in one batch, and the mask that hides the padding."""

from collections.abc import Sequence

from figures.scene import Scene
from mha.plot.picture import Picture

LEFT, WIDE, HIGH, GAP = 14, 64, 23, 5  # points
THIN = {"radius": 0, "stroke": "rest", "width": 0.8}


def batch(
    sentences: Sequence[Sequence[str]], *, alt: str, in_front: bool = False,
) -> Picture:  # fmt: skip
    """Show a batch as a rectangle of words and padding, and its mask below.

    Parameters
    ----------
    sentences : sequence of sequence of str
        The words of each sentence; the longest one sets the width of the rectangle.
    alt : str
        One sentence with the finding, for readers who do not see the picture.
    in_front : bool, default False
        Whether the padding stands in front of the words, and not behind them.

    Returns
    -------
    picture : Picture
        Padding is hatched, in the batch and in the mask.

    Raises
    ------
    ValueError
        If there is no sentence, or every sentence is empty.

    Examples
    --------
    >>> batch([["dog", "hungry"], ["it"]], alt="One place is padding.")
    Picture: One place is padding.
    """
    n = max(map(len, sentences), default=0)
    if not n:
        raise ValueError("sentences must hold at least one word, got none")
    pads = [n - len(sentence) for sentence in sentences]
    high = len(sentences) * (HIGH + GAP)
    scene = Scene(2 * LEFT + n * WIDE, 2 * high + 62)
    for k, title in enumerate(("the batch", "padding mask: True = may be attended to")):
        top = k * (high + 32) + 22
        scene.text(LEFT, top - 8, title, size=11, anchor="start", bold=True)
        for row, (sentence, pad) in enumerate(zip(sentences, pads, strict=True)):
            shift = pad if in_front else 0
            for j in range(n):
                box = LEFT + j * WIDE, top + row * (HIGH + GAP), WIDE, HIGH
                real = 0 <= j - shift < len(sentence)
                words = (sentence[j - shift] if real else "pad", str(real))[k]
                scene.box(*box, **THIN)
                if real:
                    scene.cell(*box, words, "ink", 0.08 if k else 0)
                else:
                    scene.hatched(*box, middle=False)
                    middle = box[0] + WIDE / 2, box[1] + HIGH / 2 + 0.36 * 11
                    scene.text(*middle, words, role="muted")
    return Picture(scene, alt)
