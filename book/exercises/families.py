"""Wrong programs of the ordinary families, made from the right answer of an exercise.

Nobody can write down every slip, but most of them are one change of a right program:
another axis, two inputs exchanged, a step left out, one too many. Each such change is
made to what goes into the right answer, to what comes out, and to the solution in the
book. Who gets the same on every input has made this slip, or one that looks like it.
"""

import ast
import functools
import itertools
import json
import re
import time
import warnings
from pathlib import Path

import numpy as np

from exercises.engine import same

ENOUGH = 16  # bits that have to agree, for about a thousand programs are tried
SECONDS = 3  # of searching, at most
FEW = 4  # inputs, of which each pair is changed, and each scaled by each size

# What may stand in the place of an input or a result x, a and b being two of its axes.
BOOLEANS = "~x", "x | True", "x & False"
NUMBERS = (
    *("-x", "1 / x", "x + 1", "x - 1", "1", "0 * x", "0 * x + 1", "2 * x", "x / 2"),
    *("1 - x", "x**2", "x**0.5", "np.exp(x)", "np.log(x)", "abs(x)"),
)
ARRAYS = (
    *("np.flip(x, {a})", "np.roll(x, 1, {a})", "np.roll(x, -1, {a})"),
    *("np.delete(x, 0, {a})", "np.delete(x, -1, {a})", "x.take([0], {a}) + 0 * x"),
    *("x.take([-1], {a}) + 0 * x", "x.mean({a}, keepdims=True) + 0 * x"),
    *("x.max({a}, keepdims=True) + 0 * x", "x.min({a}, keepdims=True) + 0 * x"),
    *("x.swapaxes({a}, {b})", "x.swapaxes({a}, {b}).reshape(x.shape)"),
)
RESULTS = (
    *(
        "np.moveaxis(x, {a}, 0)",
        "x.T",
        "x.ravel()",
        "x.reshape(len(x), -1)",
        "x > 0",
        "np.round(x)",
    ),
    *("x.take(0, {a})", "x.take(-1, {a})", "x.sum({a})", "x.mean({a})", "x.max({a})"),
    *("x.sum({a}, keepdims=True)", "x.mean({a}, keepdims=True)", "np.cumsum(x, {a})"),
    *("x / x.sum({a}, keepdims=True)", "x / x.sum()", "np.tril(x)", "np.triu(x)"),
)
SIZES = "x * {s}", "x / {s}", "x * {s}**0.5", "x / {s}**0.5"

# What is said of a form, with its groups; an axis from the end is a column or a row.
WORDS = {
    r"np\.delete\((\w+), 0, (-\d)\)": "{0} without its first {1}",
    r"np\.delete\((\w+), -1, (-\d)\)": "{0} without its last {1}",
    r"np\.flip\((\w+), (-\d)\)": "{0} with its {1}s reversed",
    r"np\.roll\((\w+), -?1, (-\d)\)": "{0} with its {1}s moved by one",
    r"(\w+)\.take\(\[0\], (-\d)\) .*": "{0} with its first {1} everywhere",
    r"(\w+)\.take\(\[-1\], (-\d)\) .*": "{0} with its last {1} everywhere",
    r"(\w+)\.swapaxes\(-2, -1\)": "{0} transposed",
    r"0 \* \w+": "0",
    r"2 \* (\w+)": "twice {0}",
    r"-(\w+)": "{0} with the opposite sign",
    r"(\w+) \+ 1": "{0} plus 1",
    r"(\w+) - 1": "{0} minus 1",
    r"1 / (\w+)": "1 divided by {0}",
    r"(\w+)\*\*2": "the square of {0}",
    r"(\w+)\*\*0\.5": "the root of {0}",
    r"(\w+) / ([^ *]+)": "{0} divided by {1}",
    r"(\w+) \* ([^ *]+)": "{0} times {1}",
    r"(\w+) / (\S+)\*\*0\.5": "{0} divided by the root of {1}",
    r"(\w+) \* (\S+)\*\*0\.5": "{0} times the root of {1}",
}
AXES = {"-1": "column", "-2": "row", "-3": "block", "-4": "part"}

# What is found in a solution, what may stand in its place, and what is said to it.
_INSTEAD, _MISSING = "`{new}` in the place of `{old}`", "`{old}` left out"
STEPS = (
    (r"axis=-?\w+", [f"axis={a}" for a in (None, *range(-3, 3))], _INSTEAD),
    (r"\[::-1\]|\.T\b|\.swapaxes\([^)]*\)|(?<=\w)\[[^][]*\]", [""], _MISSING),
    (r"(?<![.\w])(?:\w+\.)*\w+(?=\()| @ [\w.]+\b(?!\()", [""], _MISSING),
    (r", (?:keepdims|scale)=[\w.]+|(?<=[ (])-(?=\w)|~", [""], _MISSING),
    (r"(?<=\.)(?:sum|mean|max|min)\b", ["min", "max", "sum", "mean"], _INSTEAD),
    (r"(?<=\.)(?:log|exp)\b", ["log", "log2", "exp", "exp2"], _INSTEAD),
    (r"(?<=\.)(?:argm|m)(?:ax|in)\b", ["argmax", "argmin", "max", "min"], _INSTEAD),
    (r"(?<=\.)(?:sin|cos|var|std)\b", ["sin", "cos", "var", "std"], _INSTEAD),
    (r"\.var\(", [".var(ddof=1, "], "`ddof=1`, which divides by one less"),
    (r"-np\.inf", ["-1e9", "0"], _INSTEAD),
    (r" (?:<|<=|>|>=) ", [" < ", " <= ", " > ", " >= "], _INSTEAD),
    (r" (?:[-+*/&]|//) ", [" + 0 * "], "the part behind a `{old}` left out"),
    (r" (?:[-+*/&]|//) ", [" * 0 + "], "the part in front of a `{old}` left out"),
    (r" [-+] ", [" + ", " - "], _INSTEAD),
    (r" [*/] | // ", [" * ", " / ", " // "], _INSTEAD),
    (r" [&|] ", [" & ", " | "], _INSTEAD),
    (r"(?<![\w.\[-])\d+(?![\w.])", [*"01234", "10", "1000"], _INSTEAD),
    (r"(np\.arange\(\w+\))", [r"(\1 + 1)", r"(\1 - 1)"], _INSTEAD),
    (r"\bif ", ["if not "], "a condition turned round"),
    (r" \+= ", [" = "], _INSTEAD),
)


def slip_in(exercise, place, outcomes, wanted):
    """Return what is said to the first program that gives these outcomes, or None."""
    pairs = [*zip(outcomes, wanted, strict=True)]
    wrong = [k for k, pair in enumerate(pairs) if not same(*pair)]
    first = wrong[0]
    # What is right in the answer is right in many programs, and so proves nothing.
    if sum(bits(outcomes[k]) for k in wrong) < ENOUGH or not bits(outcomes[first]):
        return None
    solution = solution_of(*place) if place else None  # it may load PyTorch
    end = time.process_time() + SECONDS
    with warnings.catch_warnings(action="ignore"):
        for text, program in programs(exercise, solution):
            if time.process_time() > end:
                return None
            one = exercise.outcome(program, exercise.cases[first])
            if same(one, outcomes[first]):
                if all(map(same, exercise.outcomes(program), outcomes)):
                    return text
    return None


def bits(outcome):
    """Return about how many bits an outcome holds; equal numbers count once."""
    if isinstance(outcome, tuple):
        return sum(map(bits, outcome))
    if not isinstance(outcome, np.ndarray) or outcome.dtype.kind not in "biuf":
        return 0
    if outcome.dtype.kind == "b":
        return outcome.size * (outcome.ndim > 0)
    numbers = np.unique(outcome[np.isfinite(outcome)])
    return sum(16 if x % 1 else np.log2(1.5 + min(abs(x), 99)) for x in numbers)


def programs(exercise, solution):
    """Yield what is said to a slip, and a program that makes it."""
    names, case = exercise.inputs, exercise.cases[-1]
    whole, given = exercise.right(*case), dict(zip(names, case, strict=True))
    for result in _of_results(whole, names, case):
        text = f"with Y for what a right answer returns, you return `{result}`"
        if (words := _in_words(result, getattr(whole, "ndim", 0))) != result:
            text = "you return " + re.sub(r"\bY\b", "the right result", words)
        yield text, _returning(exercise.right, names, result)
    for places in _of_inputs(given):
        each = (_in_place(old, new, np.ndim(given[old])) for old, new in places)
        text = ", and ".join(each)
        yield f"you get what is right for {text}", _with(exercise.right, names, places)
    if solution:
        yield from _of_solution(*solution)


def _in_words(form, ndim):
    """Return a form in words, or as it is."""
    axes = AXES | ({"-1": "number"} if ndim == 1 else {})
    for pattern, words in WORDS.items():
        if found := re.fullmatch(pattern, form):
            return words.format(*(axes.get(x, x) for x in found.groups()))
    return form


def _in_place(old, new, ndim):
    """Return in words what stands in the place of an input."""
    words = _in_words(new, ndim)
    code = f"`{new}`" if words == new else words
    alone = words.startswith((f"{old} with", f"{old} transposed"))
    return words if alone else f"{code} in the place of {old}"


def _forms(forms, name, ndim):
    """Return forms with the name for x, and with each choice of axes."""
    forms = [re.sub(r"\bx\b", name, form) for form in forms]
    axes = itertools.combinations(range(-ndim, 0), 2)
    pairs = [form.format(a=a, b=b) for a, b in axes for form in forms if "{b}" in form]
    each = (form for form in forms if "{b}" not in form)
    return pairs + [f.format(a=a) for f in each for a in range(-ndim, 0) or [0]]


def _of_one(name, x, names, case):
    """Return what may stand in the place of x, an input or a result."""
    if isinstance(x, bool):
        return [f"not {name}", "True", "False"]
    if not _is_number(x):
        return []
    forms = _forms(BOOLEANS if np.asarray(x).dtype == bool else NUMBERS, name, 0)
    if isinstance(x, np.ndarray):
        forms += _forms(ARRAYS, name, x.ndim)
    sizes = sizes_of(names, case)
    return forms + [f.replace("x", name, 1).format(s=s) for f in SIZES for s in sizes]


def _is_number(x):
    return isinstance(x, int | float | np.ndarray | np.number)


def sizes_of(names, case):
    """Return the sizes of arrays, and the whole numbers, among inputs, by name."""
    found = {}
    for name, x in zip(names, case, strict=True):
        if isinstance(x, np.ndarray):
            found |= {f"{name}.shape[{a}]": x.shape[a] for a in range(-x.ndim, 0)}
        elif type(x) is int:
            found[name] = x
    return found


def _of_inputs(given):
    """Yield what stands for which inputs, as pairs."""
    sizes = given if len(given) <= FEW else {}
    forms = {n: _of_one(n, x, sizes, sizes.values()) for n, x in given.items()}
    for a, b in itertools.permutations(given, 2):
        yield [(b, a)]
    yield from ([(n, form)] for n in forms for form in forms[n])
    for a, b in itertools.combinations(given, 2):
        yield [(a, b), (b, a)]
        both = zip(forms[a], forms[b], strict=False)
        if len(given) <= FEW:
            yield from ([(a, f), (b, g)] for f, g in both if f == g.replace(b, a))


def _of_results(result, names, case):
    if isinstance(result, tuple):
        ys = [f"Y[{k}]" for k in range(len(result))]
        yield from (f"({', '.join(order)})" for order in itertools.permutations(ys))
        for k, one in enumerate(result):
            for form in _of_results(one, names, case):
                changed = re.sub(r"\bY\b", ys[k], form)
                yield f"({', '.join([*ys[:k], changed, *ys[k + 1 :]])})"
    else:
        yield from _of_one("Y", result, names, case)
        yield from _forms(RESULTS, "Y", np.ndim(result))


def _with(right, names, places):
    code = [(names.index(old), compile(new, "a slip", "eval")) for old, new in places]

    def program(*given):
        space = dict(zip(names, given, strict=True))
        new = {k: eval(one, {"np": np}, space) for k, one in code}
        if not all(np.isfinite(x).all() for x in new.values() if _is_number(x)):
            raise ValueError  # of which LAPACK would print that it is illegal
        return right(*(new.get(k, x) for k, x in enumerate(given)))

    return program


def _returning(right, names, result):
    code = compile(result, "a slip", "eval")

    def program(*given):
        space = dict(zip(names, given, strict=True))
        return eval(code, {"np": np}, space | {"Y": right(*given)})

    return program


@functools.cache
def solution_of(slug, name):
    """Return the source of the solution to an exercise, and the names it may use."""
    folder, cells = Path(__file__).parent.parent / "solutions", []
    for path in folder.glob(f"[0-9][0-9]_{slug}.ipynb"):  # a teacher may keep them back
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    called = re.search(rf"check\.{name}\((\w+)\)", code)
    body, space, source = ast.parse(code).body, {}, ""
    for part in body:
        if isinstance(part, ast.Import | ast.ImportFrom | ast.FunctionDef):
            if "workspace" not in (text := ast.unparse(part)):
                exec(text, space)
            if called and called[1] == getattr(part, "name", ""):
                source = text
    return source, space


def _of_solution(source, space):
    """Yield the solution with one step replaced, in one place or wherever it stands."""
    source = re.sub(r"\.(sum|max|mean|var|argmax)\((-?\d)", r".\1(axis=\2", source)
    head, _, body = source.partition("\n")
    inputs = re.findall(r"\w+", head)[2:]
    sizes = [f"{name}.shape[{a}]" for name in inputs for a in range(-3, 0)]
    steps = [(r"\w+\.shape\[-?\d\]", sizes, _INSTEAD), *STEPS]
    steps += [(rf"\b{name}\b", [*inputs, "None"], _INSTEAD) for name in inputs]
    for pattern, instead, words in steps:
        found = [*re.finditer(pattern, body)]
        for new, old in itertools.product(instead, dict.fromkeys(f[0] for f in found)):
            places = [f for f in found if f[0] == old]
            for chosen in [places] * (len(places) > 1) + [[place] for place in places]:
                changed = body
                for f in reversed(chosen):
                    changed = changed[: f.start()] + f.expand(new) + changed[f.end() :]
                scope = dict(space)
                try:
                    exec(f"{head}\n{changed}", scope)
                except Exception:  # not a program
                    continue
                said = words.format(new=chosen[0].expand(new).strip(), old=old.strip())
                if len(chosen) < len(places):
                    said += f" in place {places.index(chosen[0]) + 1} of {len(places)}"
                text = f"you get what our solution gives with {said}"
                yield text, scope[head[4:].partition("(")[0]]
