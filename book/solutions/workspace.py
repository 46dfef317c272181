"""Let a notebook of solutions run where the chapters run, in the folder of the book.

>>> import workspace
>>> workspace.enter()
>>> Path("exercises").is_dir()
True
"""

import os
import sys
from pathlib import Path

BOOK = Path(__file__).parent.parent


def enter() -> None:
    """Make the folder of the book the current one, and import from there."""
    os.chdir(BOOK)
    if str(BOOK) not in sys.path:
        sys.path.insert(0, str(BOOK))
