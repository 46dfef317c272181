"""Sphinx extension: what a chapter will take, and a place to tick its exercises.

A line says how long the chapter takes to read, how long with its predictions and
exercises, what its deeper sections add (deeper.py), how long its code takes to run, and
how many exercises it has; opening.py puts it under the title. Reading is the prose and
the visible code: not what code prints, not the tasks and their hints, not the sources.
The script that keeps the ticks of a reader, in the browser and nowhere else, learns
those numbers here.

An exercise takes as many minutes as its first paragraph says in bold or italics, for
example in "**Warm-up, 5 minutes.** Write …".
"""

import json
import re
from pathlib import Path

from docutils import nodes

SECONDS = Path(__file__).parent.parent / "_data" / "seconds.json"
CHAPTER = re.compile(r"book/(\d\d_\w+)")
EXERCISE = re.compile(r"Exercise \d+\.\d+:")
# Words per minute, for a reader who follows the argument. With 170, the times agree
# with what readers of chapters 0 to 5 estimated for somebody new to the subject.
PROSE, CODE = 170, 100
# A prediction is one sentence written down. An exercise that names no time is a
# function of about ten lines, with its check and a second attempt.
PREDICTION, UNTIMED = 1, 10  # minutes
ASKS = re.compile(r"Before\s+you\s+\w[^*]*:")
TIME = re.compile(r"\b(\d+) min")
APART = {"On your own", "Sources"}  # sections that are not read from top to bottom
FOLDED = {"tag_solution", "tag_hide-cell", "tag_hide-input", "cell_output"}


def chapter(page):
    """Return the name of a chapter's notebook, or None for another page."""
    found = CHAPTER.fullmatch(page)
    return found and found[1]


def is_folded(node):
    """Return whether a text is an output, or code that opens only on demand."""
    while node is not None:
        if FOLDED & set(getattr(node, "attributes", {}).get("classes", ())):
            return True
        node = node.parent
    return False


def is_deeper(node):
    """Return whether a node is the folded part of a section, see deeper.py."""
    return "deeper" in getattr(node, "attributes", {}).get("classes", ())


def is_apart(node):
    """Return whether a node is a section of exercises, or of sources."""
    return isinstance(node, nodes.section) and node[0].astext() in APART


def on_the_main_road(tree, wanted):
    """Yield what is wanted of a tree, except in sections that may stay closed."""
    for node in tree.children:
        if isinstance(node, wanted):
            yield node
        if not (is_deeper(node) or is_apart(node)):
            yield from on_the_main_road(node, wanted)


def minutes(tree):
    """Return how long a page takes to read, in steps of five minutes."""
    return in_fives(exact_minutes(tree))


def exact_minutes(tree):
    """Return how long a page or a part of it takes to read, not rounded."""
    prose = code = 0
    for node in on_the_main_road(tree, nodes.TextElement):
        if is_folded(node):
            continue
        if isinstance(node, nodes.literal_block):
            code += len(re.findall(r"\w+", node.astext()))
        elif isinstance(node, (nodes.paragraph, nodes.caption)):
            prose += len(node.astext().split())
    return prose / PROSE + code / CODE


class Opening:
    """What a chapter says before its first section."""

    def __init__(self, top):
        self.children = [n for n in top.children if not isinstance(n, nodes.section)]


def sections(tree):
    """Return the title and the node of each part of a chapter that is read."""
    is_top = isinstance(tree, nodes.section)
    top = tree if is_top else tree.next_node(nodes.section) or tree
    inside = [node for node in top.children if isinstance(node, nodes.section)]
    titles = {node: node[0].astext().partition(":")[0] for node in inside}
    parts = [(title, node) for node, title in titles.items() if title not in APART]
    return [("", Opening(top)), *parts]


def whole(minutes):
    """Return whole minutes, at least one, or none if there is nothing to read."""
    return max(1, round(minutes)) if minutes else 0


def in_fives(minutes):
    """Return minutes in steps of five, and at least five."""
    return max(5, 5 * round(minutes / 5))


def predictions(tree):
    """Return how many predictions a page asks for."""
    bold = (node.astext().strip() for node in on_the_main_road(tree, nodes.strong))
    return sum(bool(ASKS.fullmatch(text)) for text in bold)


def exercises(tree):
    """Return the minutes of each exercise on a page."""
    return [minutes for _, minutes in levels(tree)]


def levels(tree):
    """Yield the level and the minutes of each exercise on a page."""
    for section in tree.findall(nodes.section):
        if EXERCISE.match(section[0].astext()):
            task = section.next_node(nodes.paragraph) or nodes.paragraph()
            loud = task.findall(
                lambda node: isinstance(node, (nodes.strong, nodes.emphasis))
            )
            said = [node.astext() for node in loud if TIME.search(node.astext())]
            level = said[0].partition(",")[0].lower() if said else ""
            yield level, int(TIME.search(said[0])[1]) if said else UNTIMED


def measure(app, tree):
    """Note what a chapter takes, beside the other facts about the page."""
    if chapter(app.env.docname):
        facts, practice = app.env.metadata[app.env.docname], exercises(tree)
        parts = [node for title, node in sections(tree) if title != "Deeper"]
        read = sum(whole(exact_minutes(node)) for node in parts)
        facts["minutes"], facts["exercises"] = in_fives(read), len(practice)
        deeper = sum(exact_minutes(node) for node in tree.findall(is_deeper))
        facts["minutes_deeper"] = in_fives(deeper) if deeper else 0
        doing = PREDICTION * predictions(tree) + sum(practice)
        facts["minutes_with_all"] = in_fives(read + doing)


def head(facts, seconds):
    """Return the line under the title."""
    count, minutes = facts["exercises"], facts["minutes"]
    parts = [f"About {minutes} minutes to read"]
    if facts["minutes_with_all"] > minutes:
        parts[0] += f", {facts['minutes_with_all']} with predictions and exercises"
    if facts["minutes_deeper"]:
        parts.append(f"deeper sections {facts['minutes_deeper']} minutes more")
    parts += [f"{seconds} seconds to run"] if seconds else []
    parts += [f'<span id="solved-here">{count} exercises</span>'] if count else []
    return f'<p class="takes">{" · ".join(parts)}</p>'


def show(app, pagename, templatename, context, doctree):
    """Hand the line on, and load the script where a reader can tick or erase."""
    name = chapter(pagename)
    if name and doctree:
        seconds = json.loads(SECONDS.read_text(encoding="utf-8")).get(name)
        context["takes"] = head(app.env.metadata[pagename], seconds)
    if name or pagename == app.config.root_doc:
        known = sorted(page for page in app.env.found_docs if chapter(page))
        counts = {chapter(page): app.env.metadata[page]["exercises"] for page in known}
        options = {"data-exercises": json.dumps(counts, separators=(",", ":"))}
        app.add_js_file("progress.js", loading_method="defer", **options)


def setup(app):
    """Register with Sphinx."""
    app.connect("doctree-read", measure)
    app.connect("html-page-context", show)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
