"""The package is a staircase: each step stands on the steps below it only."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import mha

PACKAGE = Path(mha.__file__).parent
STEPS = [
    "_checks", "similarity", "weighting", "masks", "attention", "heads", "positions",
    "layers", "chunked",
]  # fmt: skip
every_step = pytest.mark.parametrize("step", STEPS)


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree):
    """Return the full names of all modules that the code imports, wherever it does."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, ["mha" if node.level else "", node.module]))
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= names if base == "mha" else {base}
    return found


@every_step
def test_a_step_imports_numpy_and_the_steps_below_it(step):
    names = imported(parse(PACKAGE / f"{step}.py"))
    assert {n for n in names if n.startswith("mha")} <= {
        f"mha.{below}" for below in STEPS[: STEPS.index(step)]
    }
    roots = {name.partition(".")[0] for name in names}
    assert roots - set(sys.stdlib_module_names) <= {"mha", "numpy"}


def test_importing_mha_loads_numpy_and_nothing_else():
    code = "import mha, sys; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert {"mha", "numpy"} <= set(loaded)
    assert not {"torch", "matplotlib", "pytest", "scipy"} & set(loaded)


def test_the_source_of_a_step_is_its_equation_without_the_docstring():
    assert mha.source(mha.dot_product_scores) == textwrap.dedent(
        """\
        def dot_product_scores(Q: ArrayLike, K: ArrayLike) -> Array:
            dtype, [Q, K] = fit("Q (..., n_q, d_k), K (..., n_k, d_k)", Q, K)
            return rounded(dtype, Q @ K.swapaxes(-1, -2))"""
    )
    for name in mha.__all__:
        source = mha.source(getattr(mha, name))
        assert "Parameters\n" not in source
    with pytest.raises(TypeError):
        mha.source(len)
