"""The pages under test are those of the tree as it is."""

import os

import pytest

from tests.browser import built


@pytest.fixture
def tree(tmp_path):
    """Return a small tree with the files that decide what pages show."""
    for name in (*built.SETTINGS, "book/01_a.ipynb", "mha/masks.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("as it was\n")
        os.utime(tmp_path / name, (1, 1))
    return tmp_path


def finish(root, output):
    """Leave the mark of a build without a warning."""
    html = output / "_build" / "html"
    html.mkdir(parents=True)
    (html / ".complete").touch()


@pytest.mark.parametrize("name", ["book/01_a.ipynb", "mha/masks.py", "_toc.yml"])
def test_pages_are_built_beside_once_after_a_change(tree, name):
    finish(tree, tree)
    assert built.current_pages(tree, build=None) == tree / "_build" / "html"
    (tree / name).write_text("as it is\n")
    os.utime(tree / name, (2e9, 2e9))
    assert built.current_pages(tree, build=finish) == tree / "_build/tests/_build/html"
    os.utime(tree / "_build/tests/_build/html/.complete", (3e9, 3e9))
    assert built.current_pages(tree, build=None) == tree / "_build/tests/_build/html"
