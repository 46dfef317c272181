"""Sphinx extension: the tables of the page for teachers.

``{teach} plan`` becomes the plan of a course. Each line of it is a week: slugs of
chapters, a bar, and what happens in class. The last week also takes the chapters that
no line names. ``{teach} outcomes`` says what a student can say after each chapter. All
minutes are counted by minutes.py, and the rest is read from the notebooks, so these
tables follow the book.
"""

import json
import re
from collections import Counter
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from _ext.catalogue import table as markdown
from _ext.minutes import DEEPER, Opening, chapter, exercises, heading, timed, whole

# The sections of a chapter, and how their minutes are counted. The opening of a chapter
# is counted with its question.
START, PRESENT = "start", ("by hand", "picture", "break it")
READ = {
    "The question": START, "By hand": "by hand", "The picture": "picture",
    "The equation": "equation", "The step in the package": "step, check",
    "Check": "step, check", "Break it": "break it", "The law": "law",
    "In practice": "practice", "What you can now say": "end",
}  # fmt: skip
OTHER, MORE, HOMEWORK, STRETCH = "other", "deeper", "homework", "stretch"
LECTURE, EXPLAIN = 90, 12  # minutes, and those in which students explain homework
IN_CLASS = 1.5  # minutes for each minute of reading in a section that is presented
TASK = re.compile(
    r"### Exercise (\d+\.\d+): (.+)\n\n(?:\*\*(.+?)\.?\*\*(, after[^.]+)?)?"
)
SAY = re.compile(r"^## What you can now say\n\n- (.+(?:\n  .+)*)", re.MULTILINE)
PROMISE = re.compile(r"^# .+\n\n(.+)")
PLAN = (
    "week", "chapters", "activity", "present", "left", "reading", HOMEWORK, "hours"
)  # fmt: skip
OUTCOMES = ("chapter", "what a student can say", "exercises")
logger = logging.getLogger(__name__)


class Table(nodes.General, nodes.Element):
    """A place for the plan, which needs what all chapters know of themselves."""


class Teach(SphinxDirective):
    """``{teach} plan`` or ``{teach} outcomes``."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Return the nodes of the table, or of its place."""
        if self.arguments[0] != "outcomes":
            return [Table(lines=list(self.content))]
        lines = markdown(OUTCOMES, outcomes(self.env))
        box = nodes.container()
        where = self.get_source_info()[0]
        self.state.nested_parse(StringList(lines, where), self.content_offset, box)
        return box.children


# What a student can do


def outcomes(env):
    """Yield a row for each chapter in the table of contents."""
    for page in sorted(env.found_docs):
        if name := chapter(page):
            path = Path(env.doc2path(page))
            env.note_dependency(str(path))
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            texts = ["".join(c["source"]) for c in cells if c["cell_type"] != "code"]
            text = "\n\n".join(texts)
            said = SAY.search(text) or PROMISE.search(text)
            tasks = [task(*found) for found in TASK.findall(text)]
            tasks = re.sub(r"\[(.+?)\]\(#.+?\)", r"\1", "; ".join(tasks))
            say = "#what-you-can-now-say" if tasks else ""
            link = f"[{int(name[:2])}]({name}.ipynb{say}), `{name[3:]}`"
            yield link, " ".join(said[1].split()), tasks or "none"


def task(number, title, time, after=""):
    """Return an exercise in a few words.

    Examples
    --------
    >>> task("4.1", "Predict a row", "Warm-up, 5 minutes")
    '4.1 Predict a row (warm-up, 5)'
    >>> task("16.4", "Take a step", "Standard, 15 minutes", ", after the one on caches")
    '16.4 Take a step (standard, 15, after the one on caches)'
    """
    time = time[:1].lower() + time[1:].replace(" minutes", "")
    time = " ".join((time + after).split())
    return f"{number} {title} ({time})" if time else f"{number} {title}"


# How long it takes


def measure(app, tree):
    """Note how long each section of a chapter takes, beside the other facts."""
    if chapter(app.env.docname):
        app.env.metadata[app.env.docname]["lesson"] = lesson(tree)


def lesson(tree):
    """Return ``{column: minutes}`` of a chapter.

    A section takes whole minutes and at least one.
    """
    spent = Counter()
    for level, part, minutes in timed(tree):
        spent[column(level, part)] += minutes
    spent = Counter({name: whole(time) for name, time in spent.items() if time})
    spent["reading"] = spent.total() - spent[MORE]
    for level, time in exercises(tree):
        spent[STRETCH if level == STRETCH else HOMEWORK] += time
    return dict(spent)


def column(level, part):
    """Return what a part of a chapter is counted as."""
    if level == DEEPER:
        return MORE
    return START if isinstance(part, Opening) else READ.get(heading(part), OTHER)


def fill_in(app, tree, docname):
    """Put the plan in its place, when all chapters have been read."""
    for place in list(tree.findall(Table)):
        place.replace_self(plan(app, docname, place["lines"]))


def pages(app):
    """Return ``{slug: page}`` of the chapters, in order."""
    return {name[3:]: p for p in sorted(app.env.found_docs) if (name := chapter(p))}


def plan(app, docname, lines):
    """Return the table of the weeks."""
    known = pages(app)
    weeks = [line.partition("|") for line in lines if line.strip()]
    weeks = [(slugs.split(), text.strip()) for slugs, _, text in weeks]
    named = [slug for slugs, _ in weeks for slug in slugs]
    for slug in named:
        if slug not in known:
            logger.warning("teach: no chapter is called %r", slug, location=docname)
    weeks[-1][0].extend(slug for slug in known if slug not in named)
    rows = []
    for number, (slugs, text) in enumerate(weeks, start=1):
        facts = [app.env.metadata[known[s]]["lesson"] for s in slugs if s in known]
        spent = Counter()
        for each in facts:
            spent.update(each)
        present = round(IN_CLASS * sum(spent[name] for name in PRESENT))
        times = [present, spent["reading"], spent[HOMEWORK]]
        left = LECTURE - EXPLAIN - present
        hours = f"{(sum(times[1:]) + 3) // 6 / 10}"  # a half is rounded up
        links = [link(app, docname, known[s]) for s in slugs if s in known]
        times[1:1] = [left]
        spent = [*(f"{time}\N{NO-BREAK SPACE}min" for time in times), hours]
        rows.append([str(number), links, text, *spent])
    return table(PLAN, rows)


def link(app, docname, page):
    """Return a link to a chapter, which says its number."""
    target = app.builder.get_relative_uri(docname, page)
    text = str(int(chapter(page)[:2]))
    title = app.env.titles[page].astext()
    return nodes.reference(text, text, refuri=target, internal=True, reftitle=title)


def table(head, rows):
    """Return a table; a cell is a text, or a list of links."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", row(head))
    group += nodes.tbody("", *map(row, rows))
    return nodes.table("", group, classes=["colwidths-auto"])


def row(cells):
    """Return one row of a table."""
    made = nodes.row()
    for cell in cells:
        if not cell:
            made += nodes.entry()
            continue
        paragraph = nodes.paragraph()
        for count, part in enumerate([cell] if isinstance(cell, str) else cell):
            paragraph += [nodes.Text(", ")] if count else []
            paragraph += nodes.Text(part) if isinstance(part, str) else part
        made += nodes.entry("", paragraph)
    return made


def always(app, env):
    """Write the page again whenever a chapter may have changed."""
    return [page for page in env.found_docs if page == "book/teaching"]


def setup(app):
    """Register with Sphinx."""
    app.add_node(Table)
    app.add_directive("teach", Teach)
    app.connect("doctree-read", measure)
    app.connect("doctree-resolved", fill_in, priority=400)
    app.connect("env-updated", always)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
