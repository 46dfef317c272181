"""The wheel and the table of chapters."""

import shutil
import subprocess
import sys
import zipfile

import pytest
import yaml

from chapters import CHAPTERS, chapter_number
from tests.book.house import BOOK, ROOT


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
    assert {"mha/py.typed", "mha/view.js"} <= inside


def test_the_table_names_the_files_of_the_book_and_the_contents_in_order():
    files = sorted(path.stem for path in BOOK.glob("[0-9]*.ipynb"))
    assert files == [f"{chapter_number(slug):02}_{slug}" for slug in CHAPTERS]
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [each["file"] for part in contents["parts"] for each in part["chapters"]]
    assert [file[5:] for file in listed if file[5:7].isdigit()] == files
