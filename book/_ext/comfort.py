"""Sphinx extension: what a chapter will take, and a place to tick its exercises.

Under the title stands how long the chapter takes to read, how long its code takes to
run, and how many exercises it has. The script that keeps the ticks of a reader, in the
browser and nowhere else, learns those numbers here.
"""

import json
import re
from pathlib import Path

from docutils import nodes

SECONDS = Path(__file__).parent.parent / "_data" / "seconds.json"
CHAPTER = re.compile(r"book/(\d\d_\w+)")
EXERCISE = re.compile(r"Exercise \d+\.\d+:")
PROSE, CODE = 200, 100  # words a minute, for somebody who follows the argument
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


def minutes(tree):
    """Return how long a page takes to read, in steps of five minutes."""
    prose = code = 0
    for node in tree.findall(nodes.TextElement):
        if isinstance(node, nodes.literal_block) and not is_folded(node):
            code += len(re.findall(r"\w+", node.astext()))
        elif isinstance(node, (nodes.paragraph, nodes.caption)):
            prose += len(node.astext().split())
    return max(5, 5 * round((prose / PROSE + code / CODE) / 5))


def measure(app, tree):
    """Note what a chapter takes, beside the other facts about the page."""
    if chapter(app.env.docname):
        titles = (title.astext() for title in tree.findall(nodes.title))
        facts = app.env.metadata[app.env.docname]
        facts["minutes"] = minutes(tree)
        facts["exercises"] = sum(bool(EXERCISE.match(title)) for title in titles)


def head(facts, seconds):
    """Return the line under the title."""
    count = facts["exercises"]
    parts = [f"About {facts['minutes']} minutes to read"]
    parts += [f"{seconds} seconds to run"] if seconds else []
    parts += [f'<span id="solved-here">{count} exercises</span>'] if count else []
    return f'<p class="takes">{" · ".join(parts)}</p>'


def show(app, pagename, templatename, context, doctree):
    """Write the line, and load the script where a reader can tick or erase."""
    name = chapter(pagename)
    if name and doctree:
        seconds = json.loads(SECONDS.read_text(encoding="utf-8")).get(name)
        line = head(app.env.metadata[pagename], seconds)
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{line}", 1)
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
