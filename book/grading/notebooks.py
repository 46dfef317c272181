"""What is in a submitted notebook: which chapter it is, and which cells are answers.

Of a submission, only cells that the learner wrote are used. Everything else comes from
the chapter as it is in this folder, so an edited check or an edited example has no
influence on a verdict.
"""

import ast
import re
import symtable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path

import nbformat

BOOK = Path(__file__).parents[1]
HEADING = re.compile(r"^### Exercise (\d+\.\d+): (.+)$", re.M)
COMMAND = re.compile(r"^\s*[%!?].*$", re.M)  # of Jupyter, which plain Python lacks
ASSIGNS = ast.Assign | ast.AnnAssign | ast.AugAssign
# What PyTorch has ready under a name of its own.
LAYERS = {
    "MultiheadAttention", "multi_head_attention_forward", "TransformerEncoderLayer",
    "TransformerEncoder",
}  # fmt: skip
CHECK = re.compile(r"^check\.\w+\(.*\)$")


class NotGraded(Exception):
    """A file that cannot be graded, with the reason."""


@dataclass(frozen=True)
class Task:
    """An exercise of a chapter: what was given out, and how an answer is checked."""

    number: str
    title: str
    id: str
    stub: str
    check: str
    slug: str

    @cached_property
    def name(self):
        """The function or variable that an answer defines."""
        return min(bound(self.stub))

    @property
    def asks(self):
        """The name of the exercise among the checks."""
        return re.search(r"^check\.(\w+)\(", self.check, re.M)[1]

    @cached_property
    def forbidden(self):
        """The names of the functions that the task asks for, if it asks for one."""
        exercise = getattr(import_module(f"exercises.{self.slug}"), self.asks)
        steps = getattr(exercise, "forbidden", ())
        return {step.__name__ for step in steps} | (LAYERS if steps else set())


@dataclass
class Chapter:
    """A chapter as it is in this folder."""

    path: Path
    code: list = field(default_factory=list)  # the cells that are neither
    tasks: list = field(default_factory=list)
    ids: set = field(default_factory=set)  # of all code cells but the stubs

    @property
    def slug(self):
        """The name without the number, such as masks."""
        return self.path.stem[3:]

    @property
    def number(self):
        """The number of the chapter."""
        return int(self.path.stem[:2])

    def setup(self, sources):
        """Return the cells of the chapter that these sources need, in order."""
        needed = taken_from_elsewhere(sources) - {task.name for task in self.tasks}
        chosen = set()
        while True:
            new = {
                source
                for source in self.code
                if source not in chosen and bound(source) & needed
            }
            if not new:
                return [source for source in self.code if source in chosen]
            chosen |= new
            needed = needed.union(*map(used, new))


@cache
def chapters():
    """Return every chapter with exercises, in order."""
    read = map(chapter, sorted(BOOK.glob("[0-9][0-9]_*.ipynb")))
    return [each for each in read if each.tasks]


def chapter(path):
    """Read a chapter of the book."""
    found, heading, stub = Chapter(path), None, None
    for cell in nbformat.read(path, as_version=4).cells:
        tags = cell.metadata.get("tags", ())
        if cell.cell_type != "code":
            heading = [*HEADING.finditer(cell.source), heading][0] or heading
        elif "exercise" in tags:
            stub = cell
        elif "exercise-check" in tags:
            given = heading[1], heading[2], stub.id, stub.source
            found.tasks.append(Task(*given, cell.source, found.slug))
            found.ids.add(cell.id)
        else:
            found.code.append(cell.source)
            found.ids.add(cell.id)
    return found


@dataclass
class Submission:
    """A submitted notebook, with its own cells as steps in the order of the file.

    A step is a pair of the number of an exercise, or None for a cell that helps, and
    its source. The checks of an exercise run before the next answer.
    """

    chapter: Chapter
    steps: list
    edited: list  # the exercises whose check was changed


def submission(path, wanted=None):
    """Read a submitted notebook.

    Parameters
    ----------
    path : Path
        The file, whatever it is called.
    wanted : Chapter, optional
        The chapter that was set; by default the one that the cells belong to.

    Raises
    ------
    NotGraded
        If it is no notebook, or none of this chapter.
    """
    try:
        cells = nbformat.read(path, as_version=4).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
    except Exception:  # whatever a broken file makes nbformat raise
        raise NotGraded("not a notebook") from None
    its_chapter = max(chapters(), key=lambda each: likeness(each, code))
    if not likeness(its_chapter, code):
        raise NotGraded("holds no exercise of the book")
    if wanted and its_chapter.path != wanted.path:
        raise NotGraded(f"is chapter {its_chapter.number}, {its_chapter.slug}")
    return Submission(its_chapter, *own_cells(its_chapter, code))


def likeness(its_chapter, code):
    """Return how many exercises of a chapter a notebook seems to hold."""
    ids = {id_of(cell) for cell in code}
    names = set().union(*(bound(cell.source) for cell in code))
    return sum((t.id in ids) + (t.name in names) for t in its_chapter.tasks)


def own_cells(its_chapter, code):
    """Return what the learner wrote as steps, and the exercises with edited checks."""
    tasks = its_chapter.tasks
    given = {task.stub.strip() for task in tasks} | {
        c.strip() for c in its_chapter.code
    }
    checks = {task.check.strip() for task in tasks}
    own, edited = [], []
    for cell in code:
        source = cell.source.strip()
        is_stub = id_of(cell) in {task.id for task in tasks}
        if "exercise-check" in cell.metadata.get("tags", ()) and not is_stub:
            if source not in checks:
                edited += [t.number for t in tasks if t.name in used(source)]
        elif source and source not in given | checks and not CHECK.match(source):
            if id_of(cell) not in its_chapter.ids:
                own.append(cell)
    answers = {id(answer_to(task, own)): task.number for task in tasks}
    return [(answers.get(id(cell)), cell.source) for cell in own], edited


def answer_to(task, own):
    """Return the cell with the answer: the stub's, or else the last to define it."""
    by_id = [cell for cell in own if id_of(cell) == task.id]
    by_name = [cell for cell in own if task.name in bound(cell.source)]
    return [None, *by_name, *by_id][-1]


def id_of(cell):
    """Return the id of a cell; some programs keep it among the metadata."""
    return cell.metadata.get("id") or cell.get("id")


def plain(source):
    """Return a source without the lines that are commands of Jupyter.

    Examples
    --------
    >>> plain("%matplotlib inline\\nx = 7 % 2")
    '\\nx = 7 % 2'
    """
    return COMMAND.sub("", source)


def ready_made(source, task=None):
    """Return a ready-made answer that a cell takes, or an empty text.

    These are what the checks keep as right or private, and what another library than
    `mha` calls by the name of the function that the task asks for. `mha.check` itself
    sees a call of the function in `mha`.

    Examples
    --------
    >>> ready_made("from exercises import masks\\nrow = masks.causal_row.right")
    'masks.causal_row.right'
    >>> ready_made("from exercises.laws import _shrunk as shrink")
    'exercises.laws._shrunk'
    >>> ready_made("from exercises import masks as check\\nrow = [1, 0, 0, 0]")
    ''
    """
    refused = task.forbidden if task else set()
    checks = {"exercises", "check", task.slug if task else "check"}
    for node in (part for each in statements(source) for part in ast.walk(each)):
        if isinstance(node, ast.ImportFrom):
            parts = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Attribute):
            parts = [ast.unparse(node)]
        else:
            continue
        for whole in parts:
            root, name = whole.partition(".")[0], whole.rpartition(".")[2]
            private = root in checks and re.match("_[a-z]", name)
            if private or (name == "right" and not whole.endswith("zoo.right")):
                return whole
            if name in refused and root != "mha":
                return whole
    return ""


def taken_from_elsewhere(sources):
    """Return the names that these cells, run in order, use before they bind them.

    Examples
    --------
    >>> cells = ["import math as m\\nfor k in keys:\\n    m.sqrt(k)", "X = 2 * X\\nk"]
    >>> sorted(taken_from_elsewhere(cells))
    ['X', 'keys']
    """
    needed, known = set(), set()
    for statement in (each for source in sources for each in statements(source)):
        text = ast.unparse(statement)
        # An assignment uses names before it binds any; a loop binds its own first.
        first = set() if isinstance(statement, ASSIGNS) else bound(text)
        needed |= used(text) - known - first
        known |= bound(text)
    return needed


def statements(source):
    """Return the statements of a cell; none if it is not Python."""
    try:
        return ast.parse(plain(source)).body
    except (SyntaxError, ValueError):
        return []


@cache
def names(source):
    """Return the names that a source binds, and those that it takes from elsewhere."""
    try:
        top = symtable.symtable(plain(source), "cell", "exec")
    except (SyntaxError, ValueError):  # it will not run, and has a name all the same
        return set(re.findall(r"^(?:def )?(\w+)(?:\(| =)", source, re.M)), set()
    binds = {s.get_name() for s in top.get_symbols() if s.is_assigned()}
    binds |= {s.get_name() for s in top.get_symbols() if s.is_imported()}
    uses, tables = set(), [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                uses.add(symbol.get_name())
    return binds, uses


def bound(source):
    """Return the names that a source binds.

    Examples
    --------
    >>> sorted(bound("import numpy as np\\nfor x in range(3):\\n    total = x"))
    ['np', 'total', 'x']
    """
    return names(source)[0]


def used(source):
    """Return the names that a source takes from elsewhere.

    Examples
    --------
    >>> sorted(used("def total(x):\\n    return sum(x) + offset"))
    ['offset', 'sum']
    """
    return names(source)[1]
