"""Right answers to the exercises of one chapter, written in other ways."""

import numpy as np
import torch


def by_normal_equations(outputs, contents, new_outputs):
    return new_outputs @ np.linalg.solve(outputs.T @ outputs, outputs.T @ contents)


def winner_takes_all(contents):
    return np.eye(2)[contents.argmax(1)], 1


WAYS = {
    "two_of_three": (0.667, 0.67),
    "rebuild": (by_normal_equations,),
    "unmix": (
        lambda A: np.linalg.solve(A.T, np.eye(len(A))),
        lambda A: torch.linalg.inv(torch.from_numpy(A.T.copy())),
    ),
    "heads_needed": (
        lambda wanted: int((np.linalg.svd(wanted)[1] > 1e-9).sum()),
        lambda wanted: torch.linalg.matrix_rank(torch.from_numpy(wanted)),
    ),
    "break_the_theorem": (winner_takes_all,),
}
