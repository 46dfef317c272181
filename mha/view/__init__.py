"""Figures to move with mouse, finger or keyboard, and a look at real attention."""

from mha.view._view import View
from mha.view.attention import attention
from mha.view.dragons import dragons
from mha.view.heads import heads
from mha.view.kills import kills
from mha.view.masks import masks
from mha.view.online import online
from mha.view.plane import plane
from mha.view.scale import scale
from mha.view.softmax import softmax
from mha.view.steps import steps

__all__ = [
    "View", "attention", "dragons", "heads", "kills", "masks", "online", "plane",
    "scale", "softmax", "steps",
]  # fmt: skip
