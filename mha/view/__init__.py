"""A look at attention, by mouse, finger or keyboard, and the base of such figures."""

from mha.view.attention import attention
from mha.view.base import View

__all__ = ["View", "attention"]
