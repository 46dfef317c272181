"""Choose laws and see which wrong versions survive (chapter laws)."""

from typing import Any

import numpy as np

from figures.charts import bars
from mha.view.base import View


def kills(matrix: Any, *, alt: str) -> View:
    """Show the kill table, to choose laws until every wrong version is detected.

    It starts with the law that detects most.

    Parameters
    ----------
    matrix : mha.laws.KillMatrix
        What `mha.laws.kill_matrix` returns. Members that break no law are left out.
    alt : str
        One sentence with what there is to find out.

    Returns
    -------
    view : View
        Shows itself as the last line of a cell.
    """
    dead: Any = np.asarray(matrix.killed)
    wrong = dead.any(axis=1)
    members = [matrix.rows[row] for row in np.flatnonzero(wrong)]
    data = {"members": members, "laws": matrix.columns}
    data["killed"] = dead[wrong].astype(int)
    counts = dead.sum(axis=0)
    order = np.argsort(-counts, kind="stable")[:12]
    names = [matrix.columns[column].replace("_", " ") for column in order]
    look: dict[str, Any] = {"alt": alt, "ylabel": "wrong versions detected"}
    heights = counts[order]
    return View(__file__, data, alt, lambda _: bars(heights, names, **look))
