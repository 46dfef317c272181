"""What a cell of a notebook needs: packages, and cells above it.

It is read from the code. A build of the book asks which cells a page can run, and the
page asks which cells have to run before one.
"""

import ast
import builtins
import sys
from copy import copy
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent  # the book, and its copy in the page
ROOTS = HERE, HERE.parent
STAND_INS = {"figures", "IPython"}  # see page.py
OURS = {"mha", "exercises", "chapters", "_data"}  # what a page has, see _ext/run.py
NAMES = {
    "torch": "PyTorch", "sklearn": "scikit-learn", "matplotlib": "Matplotlib",
    "pretrained": "weights of a model",
}  # fmt: skip


def needs(sources, slow=()):
    """Return what a page lacks for each cell, such as "PyTorch", or an empty text.

    The cells with the numbers `slow` take longer than a page waits.

    >>> needs(["import torch", "x = torch.ones(2)", "y = 1"])
    ['PyTorch', 'PyTorch', '']
    >>> needs(["x = 1", "y = 2"], slow=[1])
    ['', 'more than ten seconds']
    """
    lacking, found = {}, []
    for k, cell in enumerate(read(sources)):
        lacks = [name for module in sorted(cell.modules) for name in absent(module)]
        lacks += [lacking[name] for name in sorted(cell.used) if lacking.get(name)]
        lacks += ["more than ten seconds"] * (k in slow)
        what = NAMES.get(lacks[0], lacks[0]) if lacks else ""
        lacking |= dict.fromkeys(cell.bound, what)
        found.append(what)
    return found


def read(sources):
    """Return the facts of all cells.

    >>> [cell.bound for cell in read(["import mha", "import mha.nn"])]
    [{'mha'}, {'mha.nn'}]
    """
    seen, cells = set(), []
    for source in sources:
        cell = copy(facts(source))
        cell.bound = cell.bound - (cell.packages & seen)  # it was imported above
        seen |= cell.bound
        cells.append(cell)
    return cells


def above(sources, k):
    """Return the cells that have to run before cell `k`, in their order.

    They are the cells that make what it uses, and those that may have changed that.

    >>> above(["x = [1]", "y = 2", "x.append(3)", "print(x)"], 3)
    [0, 2]
    """
    cells = read(sources)
    fixed = set().union(*(cell.fixed for cell in cells))
    fixed |= {name for cell in cells for name in cell.used if "." in name}
    needed, chosen = set(cells[k].used), []
    for j in reversed(range(k)):
        if needed & cells[j].bound or needed & cells[j].used - fixed:
            needed = needed - cells[j].bound | cells[j].used
            chosen.append(j)
    return chosen[::-1]


class Facts(ast.NodeVisitor):
    """Which names a cell uses and binds, and which modules it imports.

    Attributes
    ----------
    used, bound, fixed : set of str
        Names from cells above, names for cells below, and of these those of modules,
        functions and classes, which no other cell changes. ``mha.nn`` counts as a name.
    modules, packages : set of str
        What is imported, and the names that this binds by the way, as ``import mha.nn``
        does with ``mha``.
    """

    def __init__(self, source):
        self.used, self.bound, self.fixed = set(), set(), set()
        self.modules, self.packages = set(), set()
        self.inside = 0  # a function or a comprehension
        try:
            self.visit(ast.parse(source))
        except SyntaxError:  # a reader is not ready yet
            return
        self.used -= {*dir(builtins)}

    def bind(self, *names, fixed=False):
        if not self.inside:
            self.bound.update(names)
            self.fixed.update(names if fixed else ())

    def visit_Import(self, node):
        self.modules |= {alias.name for alias in node.names}
        names = {alias.asname or alias.name for alias in node.names}
        self.packages |= {name.split(".")[0] for name in names if "." in name}
        self.bind(*names, *(name.split(".")[0] for name in names), fixed=True)

    def visit_ImportFrom(self, node):
        self.modules |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
        self.bind(*(alias.asname or alias.name for alias in node.names), fixed=True)

    def visit_Assign(self, node):  # what is read comes before what is written
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node):
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.used.add(node.target.id)
        self.visit(node.target)

    def visit_For(self, node):
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_FunctionDef(self, node):
        self.bind(node.name, fixed=True)
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if part:
                self.visit(part)
        self.within(node, node.body)

    def visit_ClassDef(self, node):
        self.bind(node.name, fixed=True)
        for part in (*node.decorator_list, *node.bases):
            self.visit(part)
        self.within(node, node.body)

    def visit_Lambda(self, node):
        self.within(node, [node.body])

    def visit_ListComp(self, node):
        self.within(node, [*node.generators, getattr(node, "elt", None) or node.key])
        if isinstance(node, ast.DictComp):
            self.within(node, [*node.generators, node.value])

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def within(self, node, body):
        """Visit what has names of its own, and keep those from outside."""
        own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)
               and isinstance(n.ctx, ast.Store)}  # fmt: skip
        own |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        own |= {n.name for n in ast.walk(node) if n is not node and hasattr(n, "name")}
        before, self.inside = set(self.used), self.inside + 1
        for part in body:
            self.visit(part)
        self.inside -= 1
        self.used = before | (self.used - own)

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name):
            self.used.add(f"{node.value.id}.{node.attr}")
        self.visit(node.value)

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.id)
        elif node.id not in self.bound:
            self.used.add(node.id)


@cache
def facts(source):
    return Facts(source)


@cache
def absent(module):
    """Return the packages that importing a module needs and a page lacks.

    >>> absent("mha.softmax"), absent("mha.nn")
    ((), ('torch',))
    """
    waiting, seen, lacking = {module}, set(), set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        top = name.split(".")[0]
        if top in STAND_INS or top == "numpy" or top in sys.stdlib_module_names:
            continue
        if top not in OURS:
            lacking.add(top)
        elif path := next(filter(Path.is_file, places(name)), None):
            waiting |= imported(path, name) - seen  # else it is a name in a module
        waiting |= {name.rpartition(".")[0]} - seen - {""}
    return tuple(sorted(lacking))


def imported(path, name):
    """Return the modules that one of ours imports when it is imported itself."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    found, body = set(), ast.parse(path.read_text(encoding="utf-8")).body
    for node in [*body]:
        raises = [isinstance(n, ast.Raise) for n in ast.walk(node)]
        if isinstance(node, ast.Try) and any(raises):  # no module, no import
            body += node.body
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.level:
            up = package.split(".")[: len(package.split(".")) - node.level + 1]
            node.module = ".".join([*up, *filter(None, [node.module])])
        if isinstance(node, ast.Import | ast.ImportFrom):
            reader = Facts("")
            reader.visit(node)
            found |= reader.modules
    return found


def places(module):
    """Yield where a module of the book or of the package may be."""
    for root in ROOTS:
        path = root.joinpath(*module.split("."))
        yield path.with_suffix(".py")
        yield path / "__init__.py"
