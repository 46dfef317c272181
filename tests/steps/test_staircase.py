"""The package is a staircase: each step stands on the steps below it only."""

import ast
import inspect
import re
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
every_public_name = pytest.mark.parametrize("name", mha.__all__)


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


def sections(docstring):
    """Return {title: text} of a numpydoc docstring; the summary has the title ""."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.M)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def called(function):
    """Return the names that the body of a function calls, itself left out."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return {f.id for f in calls if isinstance(f, ast.Name)} - {function.__name__}


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


def test_the_front_door_opens_the_steps_from_bottom_to_top():
    body = [
        n for n in parse(PACKAGE / "__init__.py").body if isinstance(n, ast.ImportFrom)
    ]
    steps = [n.module.removeprefix("mha.") for n in body]
    assert [step for step in steps if step in STEPS] == STEPS[1:]
    assert mha.__all__ == sorted(alias.name for node in body for alias in node.names)


@every_public_name
def test_a_docstring_has_its_sections_and_names_the_parameters(name):
    function = getattr(mha, name)
    text = inspect.getdoc(function)
    assert re.match(r"[A-Z].*[\w`]\.\n\n", text)
    required = ["", "Parameters", "Returns", "Examples"]
    parts = sections(text)
    assert [*parts] == required
    entries = re.findall(r"^(\w.*?) : ", parts["Parameters"], flags=re.M)
    documented = [name for entry in entries for name in entry.split(", ")]
    assert sorted(documented) == sorted(inspect.signature(function).parameters)
    assert (name == "source") != ("\nEquation: " in text)
    assert ">>> " in parts["Examples"]


@every_public_name
def test_a_public_function_says_its_types(name):
    function = inspect.unwrap(getattr(mha, name))
    hints = inspect.get_annotations(function)
    assert set(hints) == {*inspect.signature(function).parameters, "return"}


@pytest.mark.parametrize(
    ("step", "below"),
    {
        "cosine_similarity": "dot_product_scores",
        "masked_softmax": "softmax",
        "scaled_dot_product_attention": "dot_product_scores causal_mask masked_softmax",
        "multi_head_attention": (
            "linear split_heads scaled_dot_product_attention merge_heads"
        ),
        "feed_forward": "linear",
        "encoder_layer": "multi_head_attention feed_forward layer_norm",
        "encoder": "encoder_layer layer_norm",
    }.items(),
)
def test_a_step_calls_the_public_steps_below_it(step, below):
    assert called(getattr(mha, step)) & set(mha.__all__) == set(below.split())


def test_the_source_of_a_step_is_its_equation_without_the_docstring():
    assert mha.source(mha.dot_product_scores) == textwrap.dedent(
        """\
        def dot_product_scores(Q: ArrayLike, K: ArrayLike) -> Array:
            dtype, [Q, K] = fit("Q (..., n_q, d_k), K (..., n_k, d_k)", Q, K)
            return rounded(dtype, Q @ K.swapaxes(-1, -2))"""
    )
    for name in mha.__all__:
        source = mha.source(getattr(mha, name))
        assert "Parameters\n" not in source and "fmt: skip" not in source
    with pytest.raises(TypeError):
        mha.source(len)
