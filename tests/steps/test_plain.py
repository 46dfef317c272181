"""The steps are plain functions: patching, reloading and debugging work as anywhere."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mha

PACKAGE = Path(mha.__file__).parent
STEPS = [getattr(mha, name) for name in mha.__all__ if name != "source"]
EYE = np.eye(2)
MATRICES = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), EYE)
LAYER = MATRICES | {"W_1": EYE, "W_2": EYE}

# Patching


def seven(S, *args, **options):
    """Return weights that nothing computes."""
    return 0 * S + 7


@pytest.mark.parametrize(
    ("name", "fake"),
    [
        ("mha.masks.softmax", seven),
        ("mha.attention.masked_softmax", seven),
        (
            "mha.heads.scaled_dot_product_attention",
            lambda Q, K, V, *args, **options: (7 * V, 0 * Q + 7),
        ),
        (
            "mha.layers.multi_head_attention",
            lambda X, **options: (7 * X, 0 * X + 7),
        ),
    ],
)
def test_a_patched_step_is_used_by_every_step_above_it(monkeypatch, name, fake):
    before = mha.encoder(EYE, [LAYER], 1)
    with monkeypatch.context() as patch:
        patch.setattr(name, fake)
        _, [A] = mha.encoder(EYE, [LAYER], 1, return_weights=True)
        assert np.all(A == 7)
    assert np.all(mha.encoder(EYE, [LAYER], 1) == before)


# Reloading: in a copy of the package, which a test may edit


@pytest.fixture
def copy(tmp_path):
    """Return a way to run a script, or debug it, on a copy of the package."""
    ignore = shutil.ignore_patterns("__pycache__", "laws", "zoo")
    shutil.copytree(PACKAGE, tmp_path / "mha", ignore=ignore)

    def run(script, given=""):
        program = tmp_path / "program.py"
        program.write_text(script, encoding="utf-8")
        return subprocess.run(
            [sys.executable, *(["-m", "pdb"] if given else []), "program.py"],
            input=given,
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "IPYTHONDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    return run


LOAD = """
from pathlib import Path
import numpy as np, mha, mha.weighting
X = np.eye(2)
attend = lambda: mha.multi_head_attention(X, X, X, X, X, 1, return_weights=True)[1]
print(attend().sum())
"""
EDIT = """
file = Path(mha.weighting.__file__)
def edit(old, new):
    code = file.read_text("utf-8")
    assert old in code
    file.write_text(code.replace(old, new), "utf-8")
edit("return rounded(dtype, e ", "return rounded(dtype, 7 * e ")
"""


def test_a_step_that_was_edited_and_reloaded_is_used_once_its_callers_are(copy):
    script = f"""{LOAD}{EDIT}
import importlib
importlib.reload(mha.weighting)
print(attend().sum())  # masks.py still holds the function that it imported
importlib.reload(mha.masks)
importlib.reload(mha.attention)
importlib.reload(mha.heads)
importlib.reload(mha)
print(attend().sum())
"""
    assert copy(script).split() == ["2.0", "2.0", "14.0"]


def test_autoreload_uses_an_edited_step_at_once(copy):
    script = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "autoreload")
shell.run_line_magic("autoreload", "2")
shell.run_cell({LOAD!r})
shell.run_cell({EDIT!r})
shell.run_cell("print(attend().sum())")
"""
    assert copy(script).split() == ["2.0", "14.0"]


# Debugging


def test_a_breakpoint_on_a_step_stops_in_the_step(copy):
    script = "import mha\nmha.scaled_dot_product_attention([[1]], [[2]], [[3]])\n"
    told = copy(script, "next\nb mha.softmax\ncontinue\nwhere\nquit\n")
    stopped = told[told.index("Breakpoint 1") :]
    assert "weighting.py" in stopped.splitlines()[0]
    assert re.search(
        r"weighting\.py\(\d+\)softmax\(\)\n-> dtype, \[x\] = fit\(", stopped
    )
    callers = re.findall(r"(\w+)\.py\(\d+\)(\w+)\(\)", stopped)
    assert callers[-3:] == [
        ("attention", "scaled_dot_product_attention"),
        ("masks", "masked_softmax"),
        ("weighting", "softmax"),
    ]


def test_an_error_is_raised_one_call_below_the_step():
    with pytest.raises(ValueError, match="they must be equal") as refusal:
        mha.scaled_dot_product_attention(EYE, np.eye(3), EYE)
    files = [Path(str(entry.path)).name for entry in refusal.traceback]
    assert files[:2] == ["test_plain.py", "attention.py"]
    assert set(files[2:]) == {"_checks.py"}
    assert refusal.value.__cause__ is refusal.value.__context__ is None


# Pickling and threads


@pytest.mark.parametrize("step", STEPS)
def test_a_pickled_step_is_the_step(step):
    assert pickle.loads(pickle.dumps(step)) is step


def test_steps_may_be_called_from_several_threads_at_once():
    def attend(n):
        X = np.ones((n % 7 + 1, 2))
        return mha.multi_head_attention(X, **MATRICES, n_heads=1, is_causal=True)

    with ThreadPoolExecutor(8) as threads:
        for n, Y in enumerate(threads.map(attend, range(400))):
            assert np.all(Y == attend(n))


# Names and sources


def test_no_module_is_hidden_by_a_function_of_its_name():
    for module in pkgutil.iter_modules([str(PACKAGE)]):
        if module.name not in ("nn", "plot", "view"):  # these need more than NumPy
            name = f"mha.{module.name}"
            assert importlib.import_module(name) is getattr(mha, module.name)


def source_with_imports(module):
    """Return the import statements at the top of a module."""
    body = ast.parse(inspect.getsource(module)).body
    kept = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(map(ast.unparse, kept))


EXAMPLES = {
    "causal_mask": (3,),
    "padding_mask": ([2, 1],),
    "sinusoidal_positional_encoding": (3, 5),
    "split_heads": (EYE, 2),
    "merge_heads": (EYE[None],),
    "linear": (EYE, EYE, [1, 2]),
    "layer_norm": (EYE, [1, 2]),
    "feed_forward": (EYE, EYE, None, EYE, None, "gelu"),
    "multi_head_attention": (EYE, *MATRICES.values(), 1),
    "encoder_layer": (EYE, LAYER, 1),
    "encoder": (EYE, [LAYER, LAYER], 1),
    "scaled_dot_product_attention": (EYE, EYE, EYE, EYE > 0),
    "chunked_attention": (EYE, EYE, EYE, EYE > 0),
    "dot_product_scores": (EYE, EYE),
    "cosine_similarity": (EYE, EYE),
    "softmax": (EYE,),
    "masked_softmax": (EYE, EYE > 0),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_printed_code_runs_below_the_imports_of_its_module(name):
    step = getattr(mha, name)
    module = inspect.getmodule(step)
    pasted = {"__name__": "pasted"}
    exec(source_with_imports(module), pasted)
    # The constants and small functions beside a step are pasted along with it.
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.Assign):
            exec(ast.unparse(node), pasted)
        elif isinstance(node, ast.FunctionDef) and node.name not in mha.__all__:
            exec(mha.source(getattr(module, node.name)), pasted)
    for other in STEPS:
        if other.__module__ == module.__name__:
            exec(mha.source(other), pasted)
    assert pasted[name] is not step
    np.testing.assert_array_equal(pasted[name](*EXAMPLES[name]), step(*EXAMPLES[name]))
