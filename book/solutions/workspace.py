"""Let a notebook of solutions run where the chapters run, in the folder of the book.

The kernel of a notebook imports from the folder in which it works, so that is enough.

>>> import workspace
>>> workspace.enter()
>>> Path("exercises").is_dir()
True
"""

import os
from pathlib import Path

BOOK = Path(__file__).parent.parent


def enter() -> None:
    """Make the folder of the book the current one."""
    os.chdir(BOOK)
