"""The process in which the answers of one notebook run: `python -m grading.worker`.

It reads its orders from the standard input and reports each step as one line of JSON.
Before the first answer runs, it keeps the checks, and what checks and answers rest on;
a step that replaces a part of this is reported.
"""

import ast
import builtins
import contextlib
import json
import os
import sys
import types

WATCHED = "mha", "exercises", "numpy", "builtins"


def main():
    """Run the orders."""
    orders = json.load(sys.stdin)
    limit_memory(orders["gigabytes"])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence()

    def tell(**facts):
        print(json.dumps(facts), file=out, flush=True)

    sys.path[:0] = orders["paths"]
    tell(begins=-1)
    space = new_space()
    os.chdir(orders["book"])  # where chapters look for their data
    broken = [e for s in orders["setup"] if (e := stopped_by(s, space))]
    os.chdir(orders["folder"])
    checks = {number: Check(source, stub) for number, source, stub in orders["checks"]}
    kept = everything_watched()
    tell(ends=-1, error="; ".join(broken))
    for at, (kind, number, source) in enumerate(orders["steps"]):
        tell(begins=at)
        if kind == "check":
            facts = checks[number].run(space)
        else:
            if kind == "answer":
                stopped_by(checks[number].stub, space)
            facts = {"error": stopped_by(source, space)}
        tell(ends=at, changed=first_change(kept), **facts)


def new_space():
    """Return an empty module that a pickle or a dataclass can find."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    return vars(module)


def silence():
    """Throw away what answers print, also from C."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def limit_memory(gigabytes):
    """Limit what this process may allocate, on systems that can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        size = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def stopped_by(source, space):
    """Run a cell; return the error that stopped it, in one line, or an empty text."""
    try:
        exec(compile(source, "<answer>", "exec"), space)
    except BaseException as error:
        return in_words(error)
    return ""


def in_words(error):
    """Return an error in one line."""
    try:
        text = str(error).strip().partition("\n")[0]
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Check:
    """A check of the book. Its imports are done once, before any answer runs."""

    imported = {}  # noqa: RUF012 - `check` is imported by a chapter's first check only

    def __init__(self, source, stub):
        tree = ast.parse(source)
        imports = [s for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
        rest = [s for s in tree.body if s not in imports]
        exec(compile(ast.Module(imports, []), "<check>", "exec"), self.imported)
        self.stub = stub
        self.before = compile(ast.Module(rest[:-1], []), "<check>", "exec")
        self.last = compile(ast.Expression(rest[-1].value), "<check>", "eval")

    def run(self, space):
        """Return the verdict on what is in the space."""
        mine = {**space, **self.imported, "__builtins__": builtins}
        try:
            exec(self.before, mine)
            verdict = eval(self.last, mine)
        except BaseException as error:
            return {"error": in_words(error)}
        return {
            "status": verdict.status,
            "text": str(verdict.text),
            "slip": verdict.mistake,
        }


def everything_watched():
    """Return what must stay as it is: ``{(owner, name): value}``."""
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in WATCHED and isinstance(module, types.ModuleType)
    ]
    kept = {}
    for module in modules:
        for name, value in list(vars(module).items()):
            if not callable(value) or name == "_":
                continue
            kept[module.__name__, name] = vars(module), value
            own = getattr(value, "__module__", "") or ""
            parts = getattr(value, "__dict__", None)
            if own.partition(".")[0] in ("mha", "exercises") or is_exercise(value):
                for part, inner in list((parts or {}).items()):
                    kept[f"{module.__name__}.{name}", part] = parts, inner
    return kept


def is_exercise(value):
    """Return whether a value is an exercise of the book."""
    return type(value).__module__.partition(".")[0] in ("mha", "exercises")


def first_change(kept):
    """Return the name of something that was replaced, or an empty text."""
    for (owner, name), (where, value) in kept.items():
        if where.get(name) is not value:
            return f"{owner}.{name}"
    return ""


if __name__ == "__main__":
    main()
