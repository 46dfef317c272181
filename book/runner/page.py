"""Runs cells in the reader's browser, as a notebook does.

A run of a cell gives what a new notebook would give that is run down to this cell: the
cells above it that it needs have run once, in their order.
"""

import ast
import builtins
import contextlib
import io
import json
import linecache
import sys
import traceback
import types

from runner.cells import above

LONGEST = 30_000  # characters that a cell may print
OURS = {"mha", "exercises"}  # packages whose objects may show themselves as HTML
ran = {}  # the cells that ran, with their code
outputs = []  # of the cell that runs


class Stored:
    """A picture, which the page has already."""

    def __init__(self, *_, **__):
        pass


class StandIn(types.ModuleType):
    """Stands for a module whose functions draw pictures."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return Stored


def display(*values):
    """Show values as the outputs of a cell."""
    for value in values:
        if isinstance(value, Stored):
            outputs.append({"stored": True})
            continue
        output = {"text": repr(value)}
        html = getattr(value, "_repr_html_", None)
        if html and type(value).__module__.split(".")[0] in OURS:
            output["html"] = html()
        outputs.append(output)


class Printed(io.TextIOBase):
    """What a cell prints, between the values that it shows."""

    def write(self, text):
        length = sum(len(output.get("text", "")) for output in outputs)
        if length > LONGEST:
            raise Endless(f"stopped after {LONGEST:,} printed characters")
        if not outputs or not outputs[-1].get("printed"):
            outputs.append({"text": "", "printed": True})
        outputs[-1]["text"] += text[: LONGEST + 1 - length]
        return len(text)


class Endless(BaseException):
    """Stops a cell that prints too much."""


def answer(sources, k):
    """Print what running a cell gives, for worker.js: both sides speak JSON."""
    print(json.dumps(run(json.loads(sources), k)))


def run(sources, k):
    """Run cell `k`, and before it what it needs; return its outputs."""
    before = above(sources, k)
    todo = [j for j in before if j not in ran]
    changed = any(sources[j] != ran.get(j, sources[j]) for j in before)
    if ran and (changed or min([*todo, k]) <= max(ran)):
        ran.clear()
    if not ran:
        todo = before
        sys.modules["__main__"] = types.ModuleType("__main__")
    for j in todo:
        execute(sources[j], f"cell {j}")
        ran[j] = sources[j]
    outputs.clear()
    result = execute(sources[k], f"cell {k}")
    ran[k] = sources[k]
    return {"outputs": outputs, **result}


def execute(source, name):
    """Run one cell; return what is said of an error, if there is one."""
    lines = source.splitlines(keepends=True)
    linecache.cache[name] = len(source), None, lines, name  # for its functions
    space = vars(sys.modules["__main__"])
    printed = Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            tree = ast.parse(source, name)
            last = tree.body.pop() if tree.body else None
            if not isinstance(last, ast.Expr):
                tree.body += [last] if last else []
                last = None
            exec(compile(tree, name, "exec"), space)
            if last:
                value = eval(compile(ast.Expression(last.value), name, "eval"), space)
                if value is not None:
                    display(value)
        except ModuleNotFoundError as error:
            return {"needs": error.name, "error": str(error)}
        except Endless as error:
            return {"error": str(error)}
        except BaseException as error:
            return {"error": said_of(error, name)}
    return {}


def said_of(error, name):
    """Return the traceback of an error, as far as it is about a cell."""
    steps = traceback.extract_tb(error.__traceback__)
    kept = [step for step in steps if step.filename.startswith("cell ")]
    text = "".join(traceback.format_exception_only(error)).rstrip()
    if not kept:
        return text
    step = kept[-1]
    if step.filename != name:
        return f"in a cell above, line {step.lineno}: {step.line}\n{text}"
    return f"line {step.lineno}: {step.line}\n{text}"


for module in ("figures", "IPython", "IPython.display"):
    sys.modules[module] = StandIn(module)
sys.modules["IPython.display"].display = display
builtins.display = display
