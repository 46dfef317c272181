"""Sphinx extension: how many minutes a chapter takes to read, and to work through.

Reading is the prose and the visible code: not what code prints, not the tasks and their
hints, not the sources. An exercise takes as many minutes as its first paragraph says in
bold or italics, for example in "**Warm-up, 5 minutes.** Write …".
"""

import re

from docutils import nodes

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
        facts = app.env.metadata[app.env.docname]
        parts = [node for title, node in sections(tree) if title != "Deeper"]
        read = sum(whole(exact_minutes(node)) for node in parts)
        deeper = sum(exact_minutes(node) for node in tree.findall(is_deeper))
        practice = sum(minutes for _, minutes in levels(tree))
        facts["minutes"] = in_fives(read)
        facts["minutes_deeper"] = in_fives(deeper) if deeper else 0
        facts["minutes_with_all"] = in_fives(
            read + PREDICTION * predictions(tree) + practice
        )


def setup(app):
    """Register with Sphinx."""
    app.connect("doctree-read", measure)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
