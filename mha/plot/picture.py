"""A picture that carries its own alt text and follows the theme of the page."""

import base64
import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from matplotlib import rc_context, style
from matplotlib.figure import Figure
from PIL import Image  # comes with matplotlib

from mha._figures import as_alt
from mha.plot.scene import Scene

STYLE = Path(__file__).with_name("mha.mplstyle")


class Picture:
    """Hold one finished drawing as SVG for the screen and PNG for paper.

    Parameters
    ----------
    scene : Scene
        What to show; it is rendered at once and not kept. Its sheet is shown whole.
    alt : str
        One sentence with the finding, for readers who do not see the picture.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """

    def __init__(self, scene: Scene, alt: str) -> None:
        self.alt = as_alt(alt)
        self.svg = scene.svg(self.alt)
        with house_style(), rc_context({"savefig.bbox": "standard"}):
            self.png = small_png(scene.figure())

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {
            "text/plain": repr(self),
            "image/svg+xml": self.svg,
            "image/png": base64.b64encode(self.png).decode("ascii"),
        }


def house_style() -> AbstractContextManager[Any]:
    """Return a context: the style of the book, whatever the reader's own settings."""
    return style.context(["default", STYLE])


def small_png(figure: Figure) -> bytes:
    """Return the figure for paper, small: 256 colours are enough for it."""
    drawn, buffer = io.BytesIO(), io.BytesIO()
    rough = {"compress_level": 0}  # it is packed below
    figure.savefig(
        drawn, format="png", metadata={"Software": None}, facecolor="white",
        pil_kwargs=rough,
    )  # fmt: skip
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(256).save(buffer, "png", optimize=True)
    return buffer.getvalue()
