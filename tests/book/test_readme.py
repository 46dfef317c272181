"""The README promises commands, links, a table and an example. Each must hold."""

import ast
import doctest
import re
import tomllib
from pathlib import Path

import pytest

import mha

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README.partition("\n## ")[0]
INSTALL = README.partition("\n## How do you install it?\n")[2].partition("\n## ")[0]
CHAIN = "python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt"
ROW = re.compile(r"^\| (\d+) \| (.+) \| \[`(\w+)\.py`\].+ \| (.+) \|$", re.M)


def code_lines(text):
    return re.findall(r"^ {4}(.+)$", text, re.M)


def test_the_figure_and_a_counterexample_come_before_two_commands():
    assert FIRST_SCREEN.index("(book/_static/ten.png)") < FIRST_SCREEN.index("✗")
    assert "pip install git+" in INSTALL.partition("\n    python3")[0]
    build, test = code_lines(INSTALL)
    assert build == f"{CHAIN} && .venv/bin/jupyter-book build . -W -n --keep-going"
    assert test == f"{CHAIN} && .venv/bin/python -m pytest"


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = re.findall(r"Version (\d[\d.]*\d)", README)
    assert len(found) == 2 and set(found) == {project["version"]}


def test_the_second_command_runs_every_folder_of_tests_once():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    paths = tomllib.loads(text)["tool"]["pytest"]["ini_options"]["testpaths"]
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    expected = {path.relative_to(ROOT).as_posix() for path in folders}
    apart = ("tests/benchmarks", "tests/weekly")  # have commands of their own
    expected = {folder for folder in expected if not folder.startswith(apart)}
    assert sorted(paths) == sorted(expected | {"mha", "book"})


GUIDES = ["README.md", ".github/CHANGELOG.md", ".github/CONTRIBUTING.md"]


@pytest.mark.parametrize("name", GUIDES)
def test_relative_links_lead_to_files(name):
    page = ROOT / name
    shown = re.sub(r"`\[.*?\)`", "", page.read_text(encoding="utf-8"))  # as examples
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    inside = [x for x in links if "://" not in x and not x.startswith("../../actions/")]
    assert inside and [x for x in inside if not (page.parent / x).exists()] == []


def test_the_staircase_lists_every_public_name_in_the_order_of_the_modules():
    rows = ROW.findall(README)
    listed = [(module, re.findall(r"`(\w+)`", names)) for *_, module, names in rows]
    assert [int(step) for step, *_ in rows] == list(range(1, len(rows) + 1))
    assert [module for module, _ in listed] == modules_as_imported()
    assert sorted(name for _, names in listed for name in names) == public_names()
    for module, names in listed:
        assert {getattr(mha, name).__module__ for name in names} == {f"mha.{module}"}


def modules_as_imported():
    tree = ast.parse((ROOT / "mha" / "__init__.py").read_text(encoding="utf-8"))
    steps = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    return [module.removeprefix("mha.") for module in steps if "._" not in module]


def public_names():
    """Return what the steps export; `mha.source`, which shows them, is no step."""
    return [name for name in mha.__all__ if name != "source"]


def test_every_chapter_in_the_contents_is_in_the_staircase_and_no_other():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    chapters = set(re.findall(r"book/\d\d_\w+", contents))
    assert chapters == set(re.findall(r"book/\d\d_\w+", README))


def test_the_example_prints_what_the_readme_says():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    text = README.replace("\n```", "\n")  # else the fence counts as expected output
    example = parser.get_doctest(text, {}, "README.md", "README.md", 0)
    assert len(example.examples) >= 4
    runner.run(example)
    assert runner.failures == 0


def test_every_public_name_is_on_the_api_page():
    page = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    assert [name for name in mha.__all__ if not re.search(rf"\b{name}\b", page)] == []
