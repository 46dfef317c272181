"""Sphinx extension: the levels of a chapter, and how many minutes each part takes.

A section called "Code and checks" or "Deeper" is a level of its own, and what stands in
no such section is the core. One rule counts the minutes of every part: its words, its
visible lines of code, the rows of its tables, and a time for each equation, figure and
prediction. An exercise takes as many minutes as its first paragraph says in bold or
italics, for example in "**Warm-up, 5 minutes.** Write …". Minutes are added exactly and
rounded once. The contents of a page show them for each section, and the list of
chapters shows those of each core.
"""

import re
from collections import Counter

from docutils import nodes

CHAPTER = re.compile(r"book/(\d\d_\w+)")
EXERCISE = re.compile(r"Exercise \d+\.\d+:")
CORE, CHECKS, DEEPER = "", "Code and checks", "Deeper"
ROUTE = 9  # the chapter in which the afternoon route ends
# What a reader takes in per minute, and the minutes for what is worked on. With these,
# the times agree with those of readers new to the subject in chapters 0 to 12.
WORDS, LINES, ROWS = 170, 12, 10
EQUATION, STILL, LIVE, PREDICTION = 1, 1, 2, 1.5
# A core leaves out all that can wait, so what is left asks for more time: readers of
# seven cores needed so many times the minutes of the rule.
DENSE = 1.3
UNTIMED = 10  # minutes, of an exercise that names no time
ASKS = re.compile(r"Before\s+you\s+\w[^*]*:")
TIME = re.compile(r"\b(\d+) min")
APART = {"On your own", "Sources"}  # sections that are not read from top to bottom
CLOSED = {"tag_hide-input", "tag_hide-cell"}  # code that opens only on demand
IN_CONTENTS = re.compile(r'(href="#([\w-]+)">.*?)</a>')
IN_SIDEBAR = re.compile(r'<li class="(toctree-l1[^>]*><a [^>]*>(\d+)\. .*?)</a>')


def chapter(page):
    """Return the name of a chapter's notebook, or None for another page."""
    found = CHAPTER.fullmatch(page)
    return found and found[1]


def heading(section):
    """Return the fixed part of a heading: that of "Break it: an axis" is "Break it"."""
    return section[0].astext().partition(":")[0]


# The rule


def words(node):
    """Return how many words a text has; a formula counts as one."""
    texts = node.findall(nodes.Text)
    plain = ("x" if isinstance(t.parent, nodes.math) else t.astext() for t in texts)
    return len("".join(plain).split())


def own_minutes(node):
    """Return what a node takes by itself, without what is in it."""
    if isinstance(node, (nodes.paragraph, nodes.caption)):
        asked = (each.astext().strip() for each in node.findall(nodes.strong))
        return words(node) / WORDS + PREDICTION * sum(map(is_prediction, asked))
    if isinstance(node, nodes.literal_block):
        return sum(map(bool, map(str.strip, node.astext().splitlines()))) / LINES
    if isinstance(node, nodes.figure):
        return LIVE if "mha-view" in node.astext() else STILL
    if isinstance(node, nodes.row):
        return 1 / ROWS
    return EQUATION if isinstance(node, nodes.math_block) else 0


def is_prediction(text):
    """Return whether words in bold ask for a prediction."""
    return bool(ASKS.fullmatch(text))


def exact_minutes(node):
    """Return how long a part of a page takes, not rounded."""
    inside = node.children
    if isinstance(node, nodes.section) and heading(node) in APART:
        return 0
    if isinstance(node, (nodes.row, nodes.TextElement)):
        inside = ()
    elif "cell_output" in node.get("classes", ()):
        inside = node.findall(nodes.figure)  # what code prints is glanced at
    elif CLOSED & set(node.get("classes", ())):
        inside = [each for each in inside if "cell_input" not in each["classes"]]
    return own_minutes(node) + sum(map(exact_minutes, inside))


def exercises(tree):
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


# The parts of a chapter


class Opening(nodes.container):
    """What a chapter says before its first section."""


def sections(tree):
    """Yield the level and the node of each part of a chapter that is read."""
    top = tree if isinstance(tree, nodes.section) else tree.next_node(nodes.section)
    parts = [node for node in top.children if isinstance(node, nodes.section)]
    before = [n.deepcopy() for n in top.children[1:] if n not in parts]
    yield CORE, Opening("", *before)
    for part in parts:
        if heading(part) in (CHECKS, DEEPER):
            inside = (n for n in part.children if isinstance(n, nodes.section))
            yield from ((heading(part), node) for node in inside)
        else:
            yield CORE, part


def timed(tree):
    """Yield level, node and exact minutes of each part of a chapter that is read."""
    parts = list(sections(tree))
    factor = DENSE if CHECKS in (level for level, _ in parts) else 1
    for level, part in parts:
        yield level, part, exact_minutes(part) * (1 if level else factor)


def whole(minutes):
    """Return whole minutes, at least one, or none if there is nothing to read."""
    return max(1, round(minutes)) if minutes else 0


def measure(app, tree):
    """Note what a chapter takes, beside the other facts about the page."""
    if not chapter(app.env.docname):
        return
    by_level, by_section = Counter(), Counter()
    for level, part, spent in timed(tree):
        by_level[level] += spent
        for name in part.get("ids", ())[:1]:
            by_section[name] += spent
        if level:
            by_section[nodes.make_id(level)] += spent
    practice = sum(minutes for _, minutes in exercises(tree))
    by_section["on-your-own"] = practice
    facts = app.env.metadata[app.env.docname]
    facts["sections"] = {name: whole(spent) for name, spent in by_section.items()}
    facts["minutes_core"] = by_level[CORE]
    facts["has_levels"] = CHECKS in by_level
    facts["minutes"] = whole(by_level[CORE] + by_level[CHECKS])
    facts["minutes_deeper"] = whole(by_level[DEEPER])
    facts["practice"] = practice
    facts["minutes_with_all"] = facts["minutes"] + practice


def cores(env):
    """Return the exact minutes of the core of each chapter, in order."""
    pages = sorted(page for page in env.found_docs if chapter(page))
    return [env.metadata[page]["minutes_core"] for page in pages]


def afternoon(env):
    """Return the minutes of the afternoon route: the cores of chapters 0 to 9."""
    return whole(sum(cores(env)[: ROUTE + 1]))


def hours(minutes):
    """Return minutes as hours, to the nearest quarter.

    >>> hours(60), hours(130), hours(284)
    ('1', '2¼', '4¾')
    """
    full, quarters = divmod(round(minutes / 15), 4)
    return f"{full}{['', '¼', '½', '¾'][quarters]}"


def show(app, pagename, templatename, context, doctree):
    """Write minutes into the contents of the page and the list of chapters."""
    known = app.env.metadata.get(pagename, {}).get("sections", {})
    times = cores(app.env)

    def in_contents(found):
        spent = known.get(found[2])
        return f"{found[1]} <small>{spent} min</small></a>" if spent else found[0]

    def in_sidebar(found):
        number = int(found[2])
        route = "afternoon " if number <= ROUTE else ""
        spent = f"<small>{whole(times[number])} min</small>"
        return f'<li class="{route}{found[1]} {spent}</a>'

    said = (
        f'<p class="caption afternoon">The afternoon route: chapters 0 to {ROUTE}, '
        f"{hours(afternoon(app.env))} hours</p>"
    )
    context["toc"] = IN_CONTENTS.sub(in_contents, context.get("toc", ""))
    tree = IN_SIDEBAR.sub(in_sidebar, context.get("furo_navigation_tree", ""))
    context["furo_navigation_tree"] = said + tree


def setup(app):
    """Register with Sphinx, after the theme has written what this adds to."""
    app.connect("doctree-read", measure)
    app.connect("html-page-context", show, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
