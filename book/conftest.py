"""Without the weights of chapter 14, it and the examples of `mha.pretrained` skip."""

import pytest

from mha import _minilm

CHAPTER = "14_real_encoder.ipynb"


def pytest_collection_modifyitems(items):
    """Mark the cells and the examples, before a kernel is started for them."""
    asking = [item for item in items if asks_for_the_model(item)]
    if asking and weights_are_missing():
        reason = f"no model on this machine. {_minilm.WAYS}"
        for item in asking:
            item.add_marker(pytest.mark.skip(reason=reason))


def asks_for_the_model(item):
    return item.path.name == CHAPTER or item.name.startswith("mha.pretrained")


def weights_are_missing():
    """Tell whether there is no model here; the network is not asked."""
    try:
        return _minilm.find_here() is None
    except FileNotFoundError:
        return False  # a folder is named and lacks the files: the cells will say so
