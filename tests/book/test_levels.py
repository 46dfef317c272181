"""A core needs no other cell, and a deeper section only the core.

Here the names in the code are compared; `tests/weekly/test_levels.py` runs it.
"""

import ast
import builtins
import re

import pytest

from tests.book.house import BOOK, Chapter, tags

PATHS = sorted(BOOK.glob("[0-9]*.ipynb"))
MARKED = [path for path in PATHS if "\n## Code and checks\n" in Chapter.read(path).text]


def codes(path, level):
    """Yield the code of each section of a level; a core is one section."""
    found = [[]]
    for cell in Chapter.read(path).cells:
        if level in tags(cell):
            if cell.cell_type == "code":
                found[-1].append(cell.source)
            elif level == "deeper" and re.match("### ", cell.source):
                found.append([])
    return ["\n".join(cells) for cells in found if cells]


def alone():
    """Yield what has to run by itself: each core, then each deeper section after it."""
    for path in MARKED:
        (core,) = codes(path, "core")
        yield pytest.param(core, id=f"{path.stem}-core")
        for number, code in enumerate(codes(path, "deeper"), start=1):
            yield pytest.param(f"{core}\n{code}", id=f"{path.stem}-deeper-{number}")


def missing(code):
    """Return the names that code uses and defines nowhere."""
    used, known = set(), set(dir(builtins))
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else known).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            known.add(node.name)
        elif isinstance(node, ast.alias):
            known.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            known.add(node.arg)
    return used - known


@pytest.mark.parametrize("code", list(alone()))
def test_a_core_and_each_deeper_section_after_it_use_their_own_names(code):
    assert missing(code) == set()


def test_a_name_of_another_section_is_found():
    assert missing("import a.b\nx = [a, c]\ndef f(y): return y + x + z") == {"c", "z"}
    assert {path.stem for path in MARKED} >= {"01_dot_product", "03_scale"}
