"""Without the weights of chapter 15, it and the example of `pretrained` skip."""

import pytest

import pretrained

ASKING = "15_real_encoder.ipynb", "pretrained.py"


def pytest_collection_modifyitems(items):
    asking = [item for item in items if item.path.name in ASKING]
    if asking and weights_are_missing():
        for item in asking:
            reason = f"no model on this machine. {pretrained.WAYS}"
            item.add_marker(pytest.mark.skip(reason=reason))


def weights_are_missing():
    try:
        return pretrained.find() is None
    except FileNotFoundError:
        return False  # a folder is named and lacks the files: the cells will say so
