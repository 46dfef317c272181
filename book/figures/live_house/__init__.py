"""The live house: a layer in which every number explains itself and can be changed."""

from figures.live_house.house import house
from figures.live_house.numbers import FEATURES, IT, WEIGHTS, WORDS, X, numbers

__all__ = ["FEATURES", "IT", "WEIGHTS", "WORDS", "X", "house", "numbers"]
