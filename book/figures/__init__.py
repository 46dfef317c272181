"""The figures of the chapters; what any reader can use is in the package.

The kernel of a notebook works in the folder of the book, so a chapter says
``import figures`` and then, for example, ``figures.softmax(...)``. An interactive
figure is a `mha.view.View` with a script of the same name beside it.
"""

from figures.batch import batch
from figures.board import board
from figures.charts import bars, lines
from figures.clocks import clocks
from figures.collapse import collapse
from figures.detected import detected
from figures.diagrams import blocks, paths
from figures.dragons import dragons
from figures.exam import bugs, exam
from figures.exceptions import exceptions
from figures.fused import fused
from figures.heads import heads
from figures.histogram import histogram
from figures.house import house
from figures.kills import kills
from figures.lanes import lanes
from figures.learned import learned
from figures.marks import marks
from figures.masks import masks
from figures.moves import moves
from figures.offsets import offsets
from figures.online import online
from figures.pipeline import many_heads, one_head, projections
from figures.plane import plane
from figures.points import points
from figures.scale import scale
from figures.scores import scores
from figures.shadows import shadows
from figures.sheet import sheet
from figures.softmax import softmax
from figures.steps import steps
from figures.to_weights import to_weights
from figures.turns import turns
from figures.vectors import vectors
from figures.walks import walks

__all__ = [
    "bars", "batch", "blocks", "board", "bugs", "clocks", "collapse", "detected",
    "dragons", "exam", "exceptions", "fused", "heads", "histogram", "house", "kills",
    "lanes", "learned", "lines", "many_heads", "marks", "masks", "moves", "offsets",
    "one_head", "online", "paths", "plane", "points", "projections", "scale", "scores",
    "shadows", "sheet", "softmax", "steps", "to_weights", "turns", "vectors", "walks",
]  # fmt: skip
