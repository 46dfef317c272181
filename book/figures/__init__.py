"""The figures of the chapters; what any reader can use is in the package.

The kernel of a notebook works in the folder of the book, so a chapter says
``import figures`` and then, for example, ``figures.softmax(...)``. What comes back is a
`Picture` of `mha.plot`, or a `View` of `mha.view` whose script has the same name as its
module and is beside it. Each takes `alt`: one sentence with the finding, for readers
who do not see it.
"""

from figures.charts import bars, collapse, lines, moves
from figures.dragons import dragons
from figures.hand import hand
from figures.heads import heads
from figures.layers import blocks, lanes, one_head, paths, whole
from figures.live_encoder import live_encoder
from figures.live_house import house
from figures.maps import heatmap, heatmaps
from figures.meaning import real, recipe, sentence
from figures.mixing import mixing
from figures.online import online
from figures.planes import clocks
from figures.rules import exponential, leak, rules, spikes, written
from figures.softmax import softmax
from figures.tables import detected, exceptions
from figures.worked import batch, fused, masks_of_heads, sheet
from figures.worlds import road, rotary, worlds

__all__ = [
    "bars", "batch", "blocks", "clocks", "collapse", "detected", "dragons",
    "exceptions", "exponential", "fused", "hand", "heads", "heatmap", "heatmaps",
    "house", "lanes", "leak", "lines", "live_encoder", "masks_of_heads", "mixing",
    "moves", "one_head", "online", "paths", "real", "recipe", "road", "rotary",
    "rules", "sentence", "sheet", "softmax", "spikes", "whole", "worlds", "written",
]  # fmt: skip
