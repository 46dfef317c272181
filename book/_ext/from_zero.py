"""Sphinx extension: the chapters of the book are numbered from 0.

Sphinx counts from 1. When it has numbered chapters, figures and equations, this
extension lowers the number of the chapter in each of them by one: the overview, which
comes first in the table of contents, is chapter 0, and its first figure is Figure 0.1.
Before Sphinx counts again, it gets its own numbers back, so that it sees which pages
have changed.
"""

from docutils import nodes

FIRST, SPHINX = 0, 1


def moved(number, by):
    """Return the number of a section, figure or equation of a chapter that moves.

    >>> moved((3, 2), -1), moved((1,), -1), moved(None, -1)
    ((2, 2), (0,), None)
    """
    return number and (number[0] + by, *number[1:])


def move(env, by):
    """Move the numbers of all chapters, wherever Sphinx has noted them."""
    for page, sections in env.toc_secnumbers.items():
        if not any(sections.values()):
            continue  # the page is in no numbered part
        for anchor, number in sections.items():
            sections[anchor] = moved(number, by)
        for numbers in env.toc_fignumbers.get(page, {}).values():
            for name, number in numbers.items():
                numbers[name] = moved(number, by)
        for node in [env.titles[page], *env.tocs[page].findall(nodes.reference)]:
            if node.get("secnumber"):
                node["secnumber"] = moved(node["secnumber"], by)


def give_back(app, env):
    """Let Sphinx find the numbers that it gave, when it is about to count again."""
    if getattr(env, "numbered_from_zero", False):
        move(env, SPHINX - FIRST)
        env.numbered_from_zero = False
    return []


def count_from_zero(app, env):
    """Lower the numbers that Sphinx has given."""
    move(env, FIRST - SPHINX)
    env.numbered_from_zero = True
    return []


def setup(app):
    """Register with Sphinx, before and after it counts at 500."""
    app.connect("env-get-updated", give_back, priority=400)
    app.connect("env-get-updated", count_from_zero, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
