"""A core runs without any other cell, and each deeper section after the core alone."""

import nbformat
import pytest

from tests.book.load import BOOK


def codes(path, level):
    """Return the code of each section of a level; a core is one section."""
    found = [[]]
    for cell in nbformat.read(path, as_version=4).cells:
        if level in cell.metadata.get("tags", ()):
            if cell.cell_type == "code":
                found[-1].append(cell.source)
            elif level == "deeper" and cell.source.startswith("### "):
                found.append([])
    return ["\n".join(cells) for cells in found if cells]


def alone():
    """Yield what has to run by itself, in the chapters that have levels."""
    for path in sorted(BOOK.glob("[0-9]*.ipynb")):
        for core in codes(path, "core"):
            yield pytest.param(core, id=f"{path.stem}-core")
            for number, code in enumerate(codes(path, "deeper"), start=1):
                yield pytest.param(f"{core}\n{code}", id=f"{path.stem}-{number}")


@pytest.mark.parametrize("code", list(alone()))
def test_a_core_and_each_deeper_section_run_alone(code, monkeypatch):
    monkeypatch.chdir(BOOK)
    exec(compile(code, "cells", "exec"), {})
