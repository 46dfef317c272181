"""Checks for exercises."""

from mha.check._engine import Exercise, Mistake, Verdict, is_stub, same

__all__ = ["Exercise", "Mistake", "Verdict", "is_stub", "same"]
