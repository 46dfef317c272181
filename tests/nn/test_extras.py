"""Without a library, what needs it says what to install, and the rest works."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mha

ROOT = Path(mha.__file__).parents[1]


def run_without(blocked, *lines):
    """Run the lines in a Python that cannot import the blocked modules."""
    block = f"import sys\nfor name in {blocked}: sys.modules[name] = None\n"
    program = block + "\n".join(lines)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )


@pytest.mark.parametrize(
    ("line", "part", "library", "extra"),
    [
        ("import mha.nn", "mha.nn", "torch", "torch"),
        ("from mha import plot", "mha.plot", "matplotlib", "plot"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_brings_it(
    line, part, library, extra
):
    error = run_without([library], line).stderr.splitlines()[-1]
    assert error.startswith(f"ModuleNotFoundError: {part} needs {library} (")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (needed,) = settings["project"]["optional-dependencies"][extra]
    assert error.endswith(f'): pip install "{needed}"')


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
        "ModuleNotFoundError: mha.plot needs matplotlib"
    )
