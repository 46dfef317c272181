"""Without a library, what needs it says what to install, and the rest works."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mha
from mha._extras import EXTRAS

ROOT = Path(mha.__file__).parents[1]
BLOCK = "import sys\nfor name in {}: sys.modules[name] = None\n"


def run_without(blocked, *lines):
    """Run the lines in a Python that cannot import the blocked modules."""
    program = BLOCK.format(blocked) + "\n".join(lines)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )


@pytest.mark.parametrize(
    ("lines", "blocked", "part", "requirement"),
    [
        (["import mha.nn"], ["torch"], "mha.nn", "torch"),
        (["import mha.nn.encoder"], ["torch"], "mha.nn", "torch"),
        (["from mha import plot"], ["matplotlib"], "mha.plot", "matplotlib"),
        (
            ["from mha import pretrained", "pretrained.load()"],
            ["tokenizers"],
            "mha.pretrained",
            "tokenizers",
        ),
    ],
)
def test_a_missing_extra_is_named_with_its_command(lines, blocked, part, requirement):
    error = run_without(blocked, *lines).stderr.splitlines()[-1]
    assert error.startswith(f"ModuleNotFoundError: {part}")
    assert re.search(rf'\[\w+\] of mha .*: pip install .*"{requirement}>=', error)


def test_the_package_and_its_views_need_numpy_only():
    """With everything blocked that an extra brings, a view still shows itself."""
    blocked = ["torch", "matplotlib", "PIL", "safetensors", "tokenizers", "sklearn"]
    result = run_without(
        blocked,
        "import mha, mha.view, mha.pretrained",
        'view = mha.view.attention([[1.0]], ["dog"], alt="Dog <leads>.")',
        'assert repr(view) == "View: Dog <leads>."',
        "assert '<div class=\"still\"><p>Dog &lt;leads&gt;.</p></div>' in "
        "view._repr_html_()",
        "view.still",
    )
    assert result.stderr.splitlines()[-1].startswith(
        "ModuleNotFoundError: mha.plot needs matplotlib, the extra [plot] of mha"
    )


def test_an_error_inside_an_installed_library_is_not_blamed_on_an_extra(monkeypatch):
    from mha._extras import needs

    with pytest.raises(
        ModuleNotFoundError, match=r"^No module named 'no_such_module'$"
    ):
        with needs("mha.nn", "torch"):
            import no_such_module  # noqa: F401


def test_the_commands_are_the_extras_of_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"]
    assert {name: tuple(needed) for name, needed in extras.items()} == EXTRAS


def test_the_package_says_that_it_has_types():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "py.typed" in settings["tool"]["setuptools"]["package-data"]["mha"]
    assert (ROOT / "mha" / "py.typed").is_file()


def test_no_test_machinery_is_installed_with_the_package():
    assert not [*(ROOT / "mha").rglob("conftest.py")]


MODULES = [
    *(ROOT / "mha" / "nn").glob("*.py"),
    *(ROOT / "mha" / "plot").glob("*.py"),
    *(ROOT / "mha" / "view").glob("*.py"),
    *(ROOT / "mha" / f"{name}.py" for name in ("pretrained", "_minilm", "_source")),
]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_chapters_are_named_by_slug(path):
    """One table knows the numbers, and every slug is in it."""
    from mha._chapters import CHAPTERS

    text = path.read_text(encoding="utf-8")
    assert not re.search(r"chapters? \d", text, re.IGNORECASE)
    for named in re.findall(r"\(chapters? ([^)]+)\)", text):
        assert set(re.split(r", | and ", named)) <= set(CHAPTERS)
