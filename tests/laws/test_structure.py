"""The house: zoo imports no law, laws import in one direction, chapters have slugs."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import mha
from mha import laws
from mha._chapters import CHAPTERS

PACKAGE = Path(mha.__file__).parent
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for part in ("laws", "zoo")
    for path in sorted((PACKAGE / part).rglob("*.py"))
}
FILES = {name.removesuffix(".__init__"): path for name, path in FILES.items()}


def imports_in(tree):
    """Yield every import, lazy ones too; those for type checkers alone never run."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield from imports_in(node)


def imported(tree):
    """Return the modules that the code imports, a package's parts by their own name."""
    found = set()
    for node in imports_in(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, "imports name their module in full"
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            known = {part for part in parts if part in FILES}
            found |= known or {node.module}
    return found


IMPORTS = {
    name: imported(ast.parse(path.read_text(encoding="utf-8")))
    for name, path in FILES.items()
}


# By hand


def test_a_lazy_import_is_seen_and_one_for_type_checkers_is_not():
    code = """
def f():
    if True:
        from mha import laws
if TYPE_CHECKING:
    from mha import zoo
"""
    assert imported(ast.parse(code)) == {"mha.laws"}


# Laws


@pytest.mark.parametrize("module", [name for name in FILES if "zoo" in name])
def test_the_zoo_imports_no_law(module):
    assert not {name for name in IMPORTS[module] if name.startswith("mha.laws")}


def test_there_is_no_import_circle():
    order = list(TopologicalSorter(IMPORTS).static_order())
    assert order.index("mha.zoo") < order.index("mha.laws")


def test_a_circle_would_be_found():
    backwards = {"mha.laws._law": IMPORTS["mha.laws._law"] | {"mha.laws"}}
    with pytest.raises(CycleError):
        TopologicalSorter(IMPORTS | backwards).prepare()


@pytest.mark.parametrize("module", FILES)
def test_no_file_holds_the_number_of_a_chapter(module):
    text = FILES[module].read_text(encoding="utf-8")
    assert not re.search(r"chapters?\W+\d", text, re.IGNORECASE)


@pytest.mark.parametrize("module", FILES)
def test_every_equation_names_its_chapters_by_slug(module):
    text = FILES[module].read_text(encoding="utf-8")
    for slugs in re.findall(r"\(chapters? ([^)]*)\)", text.replace("{number}", "laws")):
        assert set(re.split(r" and | to |, ", slugs)) <= set(CHAPTERS)


@pytest.mark.parametrize("package", [laws], ids=["laws"])
def test_a_star_import_brings_what_each_module_says_and_nothing_else(package):
    names = {name for name in vars(package) if not name.startswith("_")}
    modules = [f for f in FILES if f.startswith(f"{package.__name__}.")]
    said = set()
    for module in modules:
        tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
        for node in tree.body:
            if (
                isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == "__all__"
            ):
                said |= set(ast.literal_eval(node.value))
    private = {"Broke", "Subject", "Trace", "as_subject"}
    assert names - {"subjects"} == said - private
