"""The package is a staircase: each step stands on the steps below it only."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mha

PACKAGE = Path(mha.__file__).parent

STEPS = [
    "_arrays",
    "_normal",
    "similarity",
    "softmax",
    "masks",
    "attention",
    "heads",
    "positions",
    "encoder",
    "nn",
    "chunked",
    "_minilm",
    "pretrained",
]
NEEDS_MORE_THAN_NUMPY = {
    "nn": {"torch"},
    "_minilm": {"huggingface_hub"},
    "pretrained": {"safetensors", "tokenizers"},
}


def modules_of(step):
    """Return {name: path}; a step has one file, a folder of files, or none yet."""
    file, folder = PACKAGE / f"{step}.py", PACKAGE / step
    if file.exists():
        return {step: file}
    return {f"{step}/{path.stem}": path for path in sorted(folder.glob("*.py"))}


MODULES = {name: path for step in STEPS for name, path in modules_of(step).items()}
every_step = pytest.mark.parametrize("step", MODULES)

PUBLIC = [getattr(mha, name) for name in mha.__all__]
every_public_name = pytest.mark.parametrize("function", PUBLIC, ids=mha.__all__)


def step_of(module):
    return module.partition("/")[0]


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree, package="mha"):
    """Return the full names of all modules that the code imports, wherever it does."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, [package if node.level else "", node.module]))
            inside = base == package
            found |= {f"{base}.{a.name}" if inside else base for a in node.names}
    return found


def steps_in(modules):
    """Return the parts of mha among the modules: "mha.plot.charts" is part "plot"."""
    return {name.split(".")[1] for name in modules if name.startswith("mha.")}


def sections(docstring):
    """Return {title: text} of a numpydoc docstring; the summary has the title ""."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.M)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def documented_names(text):
    """Return the names before " : " at the left margin, "a, b : type" giving two."""
    entries = re.findall(r"^(\w.*?) : ", text, flags=re.M)
    return [name for entry in entries for name in entry.split(", ")]


def functions_of(tree):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def code_lines(function):
    """Count the lines of the body as if none had a comment or were ever wrapped."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return sum(len(ast.unparse(statement).splitlines()) for statement in body)


# By hand


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import mha.heads", {"heads"}),
        ("import mha.heads as h, os", {"heads"}),
        ("from mha.heads import split_heads", {"heads"}),
        ("from mha.plot.charts import bars", {"plot"}),
        ("from mha import heads", {"heads"}),
        ("from .heads import split_heads", {"heads"}),
        ("from . import heads", {"heads"}),
        ("def f():\n    from mha.heads import split_heads", {"heads"}),
        ("import numpy\nfrom os import path", set()),
    ],
)
def test_no_way_of_importing_escapes(code, found):
    assert steps_in(imported(ast.parse(code))) == found


def test_docstrings_comments_and_wrapping_are_no_lines_of_code():
    """An assignment and a return are two, an if with a body is two more."""
    code = 'def f(x):\n "D."\n # why\n\n y = x\n if y:\n  y = 1\n return g(\n  y)'
    assert code_lines(ast.parse(code).body[0]) == 4


# Laws


@every_step
def test_a_step_imports_only_from_the_steps_below_it(step):
    at, in_a_folder = STEPS.index(step_of(step)), "/" in step
    # The files of a folder may use each other.
    allowed = set(STEPS[: at + in_a_folder])
    assert steps_in(imported(parse(MODULES[step]))) <= allowed


@every_step
def test_a_step_needs_numpy_and_no_more_than_the_table_above_says(step):
    roots = {name.partition(".")[0] for name in imported(parse(MODULES[step]))}
    allowed = {"mha", "numpy"} | NEEDS_MORE_THAN_NUMPY.get(step_of(step), set())
    assert roots - set(sys.stdlib_module_names) <= allowed


def test_figures_are_the_business_of_plot_and_view():
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in {"plot", "view"}:
            roots = {name.partition(".")[0] for name in imported(parse(path))}
            assert "matplotlib" not in roots, path.name


def test_importing_mha_loads_neither_torch_nor_matplotlib():
    code = "import mha, sys; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=PACKAGE.parent,
    )
    loaded = set(run.stdout.split())
    assert {"mha", "numpy"} <= loaded
    assert not loaded & {"torch", "matplotlib", "hypothesis", "pytest", "scipy"}


def test_the_front_door_opens_the_steps_from_bottom_to_top():
    body = parse(PACKAGE / "__init__.py").body
    modules = [n.module for n in body if isinstance(n, ast.ImportFrom)]
    order = [m.removeprefix("mha.") for m in modules if m.removeprefix("mha.") in STEPS]
    assert order == sorted(order, key=STEPS.index)


def test_the_front_door_lists_what_it_imports_in_alphabetical_order():
    body = parse(PACKAGE / "__init__.py").body
    names = [a.name for n in body if isinstance(n, ast.ImportFrom) for a in n.names]
    assert mha.__all__ == sorted(names)


def test_every_documented_function_of_a_numpy_step_is_behind_the_front_door():
    """Helpers that steps lend each other have one line; what readers call has more."""
    for step in [s for s in MODULES if STEPS.index(step_of(s)) < STEPS.index("nn")]:
        for node in parse(MODULES[step]).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                full = "Parameters" in sections(ast.get_docstring(node))
                assert full == (node.name in mha.__all__), f"{step}.{node.name}"


@every_step
def test_every_public_function_and_class_of_a_step_says_what_it_does(step):
    for node in ast.walk(parse(MODULES[step])):
        is_named = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if is_named and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{step}.{node.name}"


@every_public_name
def test_a_docstring_starts_with_one_sentence_on_one_line(function):
    first, _, rest = inspect.getdoc(function).partition("\n")
    assert re.fullmatch(r"[A-Z].*[\w`]\.", first)
    assert rest.startswith("\n")


@every_public_name
def test_a_docstring_has_its_sections_in_order(function):
    titles = list(sections(inspect.getdoc(function)))
    required = ["", "Parameters", "Returns", "Raises", "Examples"]
    assert [title for title in titles if title in required] == required
    assert set(titles) - set(required) <= {"References"}


@every_public_name
def test_a_docstring_names_every_parameter_in_the_order_of_the_signature(function):
    text = sections(inspect.getdoc(function))["Parameters"]
    documented, real = (
        documented_names(text),
        list(inspect.signature(function).parameters),
    )
    assert sorted(documented) == sorted(real)
    assert documented[0] == real[0]


@every_public_name
def test_a_step_gives_its_equation_and_chapter(function):
    if function.__module__.removeprefix("mha.") in STEPS:
        summary = sections(inspect.getdoc(function))[""]
        assert re.search(r"^Equation: .*\(chapters? \d", summary, re.M | re.S)


@every_public_name
def test_an_example_is_at_most_four_lines_long(function):
    text = sections(inspect.getdoc(function))["Examples"]
    inputs = re.findall(r"^(?:>>>|\.\.\.) ", text, re.M)
    assert 1 <= len(inputs) <= 4


@every_step
def test_no_function_is_longer_than_fifteen_lines_of_code(step):
    for function in functions_of(parse(MODULES[step])):
        assert code_lines(function) <= 15, f"{step}.{function.name}"
