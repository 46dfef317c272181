"""Run one answer of a student in a process of its own, for grade.py and trial.py.

The process reads its orders from its standard input, and writes what it found into a
file in its folder, with the key that was among the orders. An answer may print, write
or end as it likes: what comes without the key is not believed.
"""

import ast
import builtins
import contextlib
import dis
import importlib
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

BOOK = Path(__file__).parent
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
GIGABYTES = 4  # that an answer may take of memory, and write into one file
COMMAND = re.compile(r"^\s*[%!?].*$", re.M)  # of Jupyter, which plain Python lacks


def in_a_process(kind, orders, seconds):
    """Return what a fresh process finds, ``{"late": True}`` or an empty dict."""
    key, late = secrets.token_hex(), False
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, __file__, folder],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "MPLBACKEND": "Agg"}, cwd=BOOK,
            start_new_session=os.name == "posix",
        )  # fmt: skip
        try:
            process.communicate(json.dumps([kind, orders, key]).encode(), seconds)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            end(process)
        try:
            found = json.loads(Path(folder, "found.json").read_text("utf-8"))
        except (OSError, ValueError, RecursionError):  # an answer may write it too
            found = {}
    believed = isinstance(found, dict) and found.pop("key", "") == key
    return {"late": True} if late else found if believed else {}


def end(process):
    """End a process, and those that it may have started."""
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, 9)
    process.kill()
    process.wait()


def main(folder):
    """Be that process."""
    kind, orders, key = json.load(sys.stdin)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # The mha beside this book: where grade.py has hidden home, there is no other.
    sys.path.insert(1, str(BOOK.parent))
    limit(GIGABYTES)
    os.chdir(folder)
    try:
        find = judged if kind == "answer" else importlib.import_module(kind).tried
        found = find(orders)
    except BaseException as error:
        found = {"error": in_words(error)}
    Path(folder, "found.json").write_text(json.dumps(found | {"key": key}), "utf-8")
    os._exit(0)  # whatever threads an answer has left


def limit(gigabytes):
    """Limit what this process may allocate and write, on systems that can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        for what in resource.RLIMIT_DATA, resource.RLIMIT_FSIZE:
            resource.setrlimit(what, (int(gigabytes * 2**30),) * 2)


def judged(orders):
    """Return the verdict of the check on an answer."""
    space = {"__name__": "__main__"}
    for source in [*orders["setup"], orders["stub"]]:
        stopped_by(source, space)
    stops = stopped_by(orders["answer"], space)
    space["__builtins__"] = builtins
    *before, last = ast.parse(orders["check"]).body
    exec(compile(ast.Module(before, []), "<check>", "exec"), space)
    verdict = eval(compile(ast.Expression(last.value), "<check>", "eval"), space)
    facts = {"status": verdict.status, "text": verdict.text, "slip": verdict.mistake}
    return facts | {"stops": stops and f"the cell stops with {stops}"}


def stopped_by(source, space):
    """Run a cell; return the error that stopped it, in one line, or an empty text."""
    try:
        exec(compile(plain(source), "<answer>", "exec"), space)
    except BaseException as error:
        return in_words(error)
    return ""


def in_words(error):
    """Return an error in one line."""
    text = ""
    with contextlib.suppress(Exception):
        text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


LOADS = "LOAD_NAME", "LOAD_GLOBAL"
IMPORT = re.compile(r"^(?:import|from) [^(\n]+$", re.M)


def needed_of(sources, pool, own):
    """Return the cells of a pool that sources need, in order, but for `own` names.

    Of several cells that bind a name, that is the last one above its use.

    Examples
    --------
    >>> needed_of(["y + z"], ["x = 1", "z = 0", "y = x", "w = 2"], {"z"})
    ['x = 1', 'y = x']
    """
    pool = [part for s in pool for part in (*IMPORT.findall(s), IMPORT.sub("", s))]
    chosen, asked = set(), [(n, len(pool)) for s in sources for n in used(s) - own]
    while asked:
        name, end = asked.pop()
        binding = [k for k, source in enumerate(pool) if name in bound(source)]
        before = [k for k in binding if k < end]  # else a helper below its use
        for k in {*(before or binding)[-1:]} - chosen:
            chosen.add(k)
            asked += [(n, k) for n in used(pool[k]) - own]
    return [pool[k] for k in sorted(chosen)]


def plain(source):
    """Return a source without the lines that are commands of Jupyter."""
    return COMMAND.sub("", source)


@cache
def names_of(source):
    """Return the names that a source binds, and those that it reads."""
    try:
        cell = compile(plain(source), "cell", "exec")
    except (SyntaxError, ValueError):  # it will not run, and has a name all the same
        return set(re.findall(r"^(?:def )?(\w+)(?:\(| =)", source, re.M)), set()
    binds, uses, later = set(), set(), set()
    for step in dis.get_instructions(cell):
        if step.opname in ("STORE_NAME", "STORE_GLOBAL"):
            binds.add(step.argval)
        elif step.opname in LOADS and step.argval not in binds:
            uses.add(step.argval)
    inner = [cell]
    while inner:
        functions = [part for part in inner.pop().co_consts if hasattr(part, "co_code")]
        inner += functions
        steps = (step for part in functions for step in dis.get_instructions(part))
        later |= {step.argval for step in steps if step.opname in LOADS}
    return binds, uses | later - binds


def bound(source):
    """Return the names that a source binds.

    Examples
    --------
    >>> sorted(bound("import numpy as np\\nfor x in range(3):\\n    total = x"))
    ['np', 'total', 'x']
    """
    return names_of(source)[0]


def used(source):
    """Return the names that a source may take from elsewhere.

    Examples
    --------
    >>> sorted(used("for k in keys:\\n    total(k)\\nX = 2 * X"))
    ['X', 'keys', 'total']
    """
    return names_of(source)[1]


if __name__ == "__main__":
    main(*sys.argv[1:])
