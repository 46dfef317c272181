"""Token vectors as points, layer after layer, with and without a path around."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from figures.charts import MARKERS
from figures.picture import WIDTH, Picture
from mha.plot.picture import house_style
from mha.view.base import View, as_numbers, as_words

STILL = 3  # layers that the picture on paper shows, beside the input


def collapse(
    tracks: Mapping[str, ArrayLike], words: Iterable[object], *, alt: str
) -> View:
    """Show the first two numbers of each token after every layer.

    Parameters
    ----------
    tracks : dict {name: array_like of shape (layers + 1, n, d)}
        The tokens before the first layer and after each, for every kind of layer. All
        tokens of a layer are divided by one number, the root of their mean squared
        length, so that only what differs between them is seen.
    words : sequence of n tokens
        Their names.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell; it starts with the first kind of layer,
        before the first layer.

    Raises
    ------
    ValueError
        If there is no track, or the shapes do not fit.

    Examples
    --------
    >>> collapse({"halved": [[[2, 4], [0, 1]], [[1, 2], [0, 0]]]}, "ab", alt="Two.")
    View: Two.
    """
    words = as_words(words)
    given = {name: as_numbers(name, track) for name, track in tracks.items()}
    if not given:
        raise ValueError("tracks must hold at least one kind of layer")
    shape = next(iter(given.values())).shape
    for name, track in given.items():
        if track.ndim != 3 or track.shape[1] != len(words) or track.shape[2] < 2:
            raise ValueError(
                f"{name} must have shape (layers + 1, {len(words)}, 2 or more), "
                f"got {track.shape}"
            )
        if track.shape != shape:
            raise ValueError(f"{name} has shape {track.shape}, and others {shape}")
        if not track.any((1, 2)).all():
            raise ValueError(f"{name} has a layer of zeros, which has no length")
    points = {name: _scaled(track)[..., :2] for name, track in given.items()}
    differ = {name: _differ(track) for name, track in given.items()}
    reach = 1.1 * max(np.abs(place).max() for place in points.values())
    data = {
        "words": words, "names": [*points], "points": [*points.values()],
        "differ": [[*map(_written, row)] for row in differ.values()],
        "reach": reach,
    }  # fmt: skip
    return View(
        __file__, data, alt, lambda plot: _still(points, differ, reach, words, alt)
    )


def _scaled(track: NDArray[Any]) -> NDArray[Any]:
    """Return the tokens of each layer in units of their typical length."""
    length = np.sqrt((track**2).sum(-1).mean(-1))
    return track / length[:, None, None]


def _differ(track: NDArray[Any]) -> NDArray[Any]:
    """Return the length of what is not common to the tokens, as a share of all."""
    around = track - track.mean(1, keepdims=True)
    return np.linalg.norm(around, axis=(1, 2)) / np.linalg.norm(track, axis=(1, 2))


def _written(u: float) -> str:
    return f"{u:.2g}" if u > 1e-15 else "0"  # below that it is rounding


def _still(
    points: Mapping[str, NDArray[Any]], differ: Mapping[str, NDArray[Any]],
    reach: float, words: list[str], alt: str,
) -> Picture:  # fmt: skip
    layers = min(STILL + 1, len(next(iter(points.values()))))
    with house_style():
        side = WIDTH / 4.6
        figure = Figure((side * (layers + 0.3), side * 0.78 * len(points) + 0.6))
        grid = figure.subplots(len(points), layers, squeeze=False)
        for row, (name, places) in zip(grid, points.items(), strict=True):
            for layer, ax in enumerate(row):
                for k, (word, place) in enumerate(
                    zip(words, places[layer], strict=True)
                ):
                    ax.scatter(
                        *place, s=30, alpha=0.8, marker=MARKERS[k % 6], label=word
                    )
                ax.set(
                    xlim=(-1.5 * reach, 1.5 * reach),
                    ylim=(-reach, reach),
                    xticks=[],
                    yticks=[],
                )
                ax.axhline(0, linewidth=0.4, color="0.7", zorder=0)
                ax.axvline(0, linewidth=0.4, color="0.7", zorder=0)
                u = differ[name][layer]
                ax.set_xlabel(_written(u), fontsize=8, labelpad=2)
            row[0].set_ylabel(name, fontsize=8)
        for layer, ax in enumerate(grid[0]):
            ax.set_title(f"after layer {layer}" if layer else "input", fontsize=8)
        handles, texts = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper left", ncols=len(words))
        return Picture(figure, alt)
