"""The files that describe the project say the same, and the wheel holds the package."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.book.house import ROOT

GITHUB = ROOT / ".github"


def text(*parts):
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def project():
    return tomllib.loads(text("pyproject.toml"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from a copy, with the setuptools that is installed here."""
    pytest.importorskip("setuptools", "77")
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mha", folder / "mha", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=folder, check=True, timeout=120)
    (path,) = folder.glob("dist/*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    files = (
        path for path in ROOT.glob("mha/**/*.*") if "__pycache__" not in path.parts
    )
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    package = {path.relative_to(ROOT).as_posix() for path in files}
    assert inside == package
    assert {Path(name).suffix for name in inside} >= {".py"}
    assert "mha/py.typed" in inside


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md"])
def test_links_of_the_guides_lead_to_files(name):
    shown = re.sub(r"`\[.*?\)`", "", text(".github", name))  # links as examples
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    inside = [link for link in links if "://" not in link]
    assert inside and [link for link in inside if not (GITHUB / link).exists()] == []
