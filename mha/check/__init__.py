"""Checks for the exercises: each names the mistake, not only that there is one.

``check.exercise(answer)`` returns a `Verdict` that prints *not attempted yet*,
*passed*, or what went wrong, with the smallest input on which it goes wrong.
"""

from mha.check._engine import Exercise, Mistake, Verdict
from mha.check.similarity import best_unit_key, cosine, scores, spread_at_100

__all__ = [
    "Exercise",
    "Mistake",
    "Verdict",
    "best_unit_key",
    "cosine",
    "scores",
    "spread_at_100",
]
