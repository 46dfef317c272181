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


def run_without(blocked, *lines):
    """Run the lines in a Python that cannot import the blocked modules."""
    block = f"import sys\nfor name in {blocked}: sys.modules[name] = None\n"
    program = block + "\n".join(lines)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )


@pytest.mark.parametrize(
    ("line", "part", "library"),
    [
        ("import mha.nn", "mha.nn", "torch"),
        ("from mha import plot", "mha.plot", "matplotlib"),
    ],
)
def test_a_missing_extra_is_named_with_its_command(line, part, library):
    error = run_without([library], line).stderr.splitlines()[-1]
    assert error.startswith(f"ModuleNotFoundError: {part}")
    assert re.search(rf'\[\w+\] of mha .*: pip install .*"{library}>=', error)


def test_the_package_and_its_views_need_numpy_only():
    """With everything blocked that an extra brings, a view still shows itself."""
    result = run_without(
        ["torch", "matplotlib", "PIL", "safetensors", "tokenizers", "sklearn"],
        "import mha, mha.view",
        'view = mha.view.attention([[1.0]], ["dog"], alt="Dog <leads>.")',
        'assert repr(view) == "View: Dog <leads>."',
        "assert '<div class=\"still\"><p>Dog &lt;leads&gt;.</p></div>' in "
        "view._repr_html_()",
        "view.still",
    )
    assert result.stderr.splitlines()[-1].startswith(
        "ModuleNotFoundError: mha.plot needs matplotlib, the extra [plot] of mha"
    )


def test_the_commands_are_the_extras_and_the_package_says_that_it_has_types():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"]
    assert {name: tuple(needed) for name, needed in extras.items()} == EXTRAS
    assert "py.typed" in settings["tool"]["setuptools"]["package-data"]["mha"]
    assert (ROOT / "mha" / "py.typed").is_file()
