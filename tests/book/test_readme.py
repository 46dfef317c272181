"""The README's links and example hold, and so does what it says of the package."""

import doctest
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import mha
from tests.book.load import BOOK, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = ["README.md", ".github/CHANGELOG.md", ".github/CONTRIBUTING.md"]


@pytest.mark.parametrize("name", GUIDES)
def test_relative_links_lead_to_files(name):
    page = ROOT / name
    shown = re.sub(r"`\[.*?\)`", "", page.read_text(encoding="utf-8"))  # as examples
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    inside = [x for x in links if "://" not in x and not x.startswith("../../actions/")]
    assert inside and [x for x in inside if not (page.parent / x).exists()] == []


def test_the_example_prints_what_the_readme_says():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    text = README.replace("\n```", "\n")  # else the fence counts as expected output
    example = parser.get_doctest(text, {}, "README.md", "README.md", 0)
    assert len(example.examples) >= 4
    runner.run(example)
    assert runner.failures == 0


def test_every_public_name_is_on_the_api_page():
    page = (BOOK / "api.md").read_text(encoding="utf-8")
    assert [name for name in mha.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(tmp_path):
    """It is built from a copy, with the setuptools that is installed here."""
    pytest.importorskip("setuptools", "77")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mha", tmp_path / "mha", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, timeout=120)
    with zipfile.ZipFile(*tmp_path.glob("dist/*.whl")) as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = (p for p in ROOT.glob("mha/**/*.*") if "__pycache__" not in p.parts)
    assert inside == {path.relative_to(ROOT).as_posix() for path in files}
