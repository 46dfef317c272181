"""The files that describe the project say the same, and the wheel holds the package."""

import email
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.book.house import ROOT

GITHUB = ROOT / ".github"


def text(*parts):
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def project():
    return tomllib.loads(text("pyproject.toml"))["project"]


def optional():
    return [
        line for lines in project()["optional-dependencies"].values() for line in lines
    ]


# --------------------------------------------------------------------- the wheel


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


def test_the_metadata_of_the_wheel_describe_the_package(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Name"] == "mha"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Author"] == yaml.safe_load(text("_config.yml"))["author"]
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata.get_all("Project-URL")
    assert metadata.get_all("Provides-Extra") == ["torch", "plot", "pretrained"]
    required = metadata.get_all("Requires-Dist")
    always = [line for line in required if "extra ==" not in line]
    assert [re.match(r"\w+", line)[0] for line in always] == ["numpy"]
    assert len(required) == 1 + len(optional())


# -------------------------------------------------------------------- the bounds


def test_each_bound_of_a_dependency_is_written_once():
    """Lower bounds of the package are in `pyproject.toml`, others in requirements."""
    lines = [
        re.sub(r"\s*#.*", "", line) for line in text("requirements.txt").split("\n")
    ]
    names = [re.match(r"[\w-]+", line)[0] for line in lines if line and line[0] != "-"]
    assert len(names) == len(set(names)) > 10
    above = {line for line in lines if re.fullmatch(r"[\w-]+<[\d.]+", line)}
    assert {line.partition("<")[0] for line in above} == {
        re.match(r"[\w-]+", line)[0] for line in optional()
    }
    assert all(re.fullmatch(r"[\w-]+>=\d+\.[\d.]+", line) for line in optional())
    assert "numpy" not in names


def test_the_requirements_install_the_package_with_every_extra():
    (line,) = re.findall(r"^-e \.\[(.*)\]$", text("requirements.txt"), re.M)
    assert line.split(",") == list(project()["optional-dependencies"])


def test_the_oldest_versions_are_those_of_the_lower_bounds():
    command = [sys.executable, ROOT / ".ci" / "oldest"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pinned = dict(line.split("==") for line in printed.splitlines())
    bounds = [*project()["dependencies"], *optional()]
    assert len(pinned) == len(bounds)
    assert [f"{n}>={v.removesuffix('.*')}" for n, v in pinned.items()] == [
        re.match(r"[\w-]+>=[\d.]+", line)[0] for line in bounds
    ]


def test_nothing_is_published_before_the_tests_are_green():
    jobs = yaml.safe_load(text(".github", "workflows", "pages.yml"))["jobs"]
    assert jobs["tests"]["uses"] == "./.github/workflows/system.yml"
    for name in set(jobs) - {"tests"}:
        while name != "tests":
            name = jobs[name]["needs"]


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md"])
def test_links_of_the_guides_lead_to_files(name):
    shown = re.sub(r"`\[.*?\)`", "", text(".github", name))  # links as examples
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    inside = [link for link in links if "://" not in link]
    assert inside and [link for link in inside if not (GITHUB / link).exists()] == []
