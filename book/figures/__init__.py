"""The figures of the chapters; what any reader can use is in the package.

The kernel of a notebook works in the folder of the book, so a chapter says
``import figures`` and then, for example, ``figures.softmax(...)``. An interactive
figure is a `figures.view.View` with a script of the same name beside its module.
"""

from figures.charts import bars, collapse, histogram, lines, moves, points, walks
from figures.dragons import dragons
from figures.heads import heads
from figures.layers import blocks, lanes, one_head, paths
from figures.live_house import house
from figures.online import online
from figures.planes import clocks, shadows, turns, vectors
from figures.softmax import softmax
from figures.tables import detected, encoders, exam, exceptions, learned
from figures.ten import bugs
from figures.worked import batch, board, fused, sheet

__all__ = [
    "bars", "batch", "blocks", "board", "bugs", "clocks", "collapse", "detected",
    "dragons", "encoders", "exam", "exceptions", "fused", "heads", "histogram", "house",
    "lanes", "learned", "lines", "moves", "one_head", "online", "paths",
    "points", "shadows", "sheet", "softmax", "turns", "vectors", "walks",
]  # fmt: skip
