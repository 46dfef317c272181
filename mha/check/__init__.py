"""Exercises that name a learner's mistake, for people who write their own.

An `Exercise` holds a right answer, a few inputs and the wrong answers that learners
give. It runs an answer beside all of these, so that a mistake is recognised by what it
computes, however it is written.

Examples
--------
An exercise of a teacher: a right answer, two inputs with the smaller one first, and
two slips, each a wrong program after what is said to it. `Exercise.self_test` proves
that each is told apart.

>>> import numpy as np
>>> from mha.check import Exercise
>>> row_means = Exercise(
...     task="the mean of each row",
...     right=lambda X: X.mean(axis=1),
...     cases=(
...         (np.array([[1.0, 3.0]]),),
...         (np.array([[1.0, 2.0, 6.0], [0.0, 1.0, 2.0]]),),
...     ),
...     mistakes={
...         "these are sums: divide them": lambda X: X.sum(axis=1),
...         "one mean for each column: use axis 1": lambda X: X.mean(axis=0),
...     },
...     reread="lecture 2, page 5",
...     praise="one mean per row, for every number of columns.",
... )
>>> row_means.self_test()

A learner calls it with her function, at first with the stub that she was given:

>>> def answer(X):
...     '''Return the mean of each row.'''
>>> row_means(answer)
not attempted yet: the mean of each row
>>> row_means(lambda X: X.sum(1) / X.shape[1])
passed: one mean per row, for every number of columns.

A known mistake gets its hint, with the smallest input on which the answer is wrong. Of
any other wrong answer the check says what it can, such as "every number is 3 times what
it should be":

>>> row_means(lambda X: np.einsum("ij->i", X))
not yet: these are sums: divide them
  X =       [[1. 3.]]
  expected  [2.]
  got       [4.]
  reread    lecture 2, page 5
"""

from mha.check._engine import Exercise, Verdict, is_stub
from mha.check._outcomes import Unfit, same

__all__ = ["Exercise", "Unfit", "Verdict", "is_stub", "same"]
