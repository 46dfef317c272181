"""Without its weights chapter 13 is skipped, and pytest says how to get them."""

import pytest

from mha import _minilm

CHAPTER = "13_real_encoder.ipynb"


def pytest_collection_modifyitems(items):
    """Mark the cells of the chapter, before a kernel is started for them."""
    cells = [item for item in items if item.path.name == CHAPTER]
    if cells and weights_are_missing():
        reason = f"{CHAPTER}: no model on this machine. {_minilm.WAYS}"
        for cell in cells:
            cell.add_marker(pytest.mark.skip(reason=reason))


def weights_are_missing():
    """Tell whether there is no model here; the network is not asked."""
    try:
        return _minilm.find_here() is None
    except FileNotFoundError:
        return False  # a folder is named and lacks the files: the cells will say so
