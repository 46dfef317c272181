"""Sphinx extension: what a chapter begins with, and what stands in its law section.

Below the title stand one line of minutes, one line of what the reader needs, and the
promise. The section on the law begins with a card: the law, and what breaks it, found
by running it against a wrong version while the book is built. It ends with the parts of
a layer, those of the chapter lit.

A notebook only has to begin with a title and a paragraph that promises, and if it needs
something, a paragraph in its first cell that starts with "You need".
"""

import re
import sys
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
from docutils import nodes
from minutes import CHAPTER

from mha import laws, zoo

sys.path.append(str(Path(__file__).parents[1]))  # the book's own modules
from chapters import chapter_of
from figures.strip import strip

NUMERALS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")
NEEDS = ("You need ", "School mathematics is enough here.")
LAW = "The law"
# Where a chapter has several laws, the first one is shown, unless one is named here.
SHOWN = {"concat_is_a_sum"}


def slug(page):
    """Return the slug of a chapter's page, or None for another page."""
    found = CHAPTER.fullmatch(page)
    return found and found[1].partition("_")[2]


def parts(toc):
    """Return ``[(caption, pages)]`` of the parts that hold chapters."""
    found = []
    for part in toc.get("parts", ()):
        pages = [each["file"] for each in part["chapters"] if slug(each["file"])]
        if pages and "caption" in part:  # the overview stands before all parts
            found.append((part["caption"], pages))
    return found


# The law


@cache
def laws_of(chapter):
    """Return the laws of a chapter, in the order of the book."""
    return [
        law for law in (*laws.ALL, *laws.ENCODER) if chapter_of(law.slug) == chapter
    ]


def broken_by(law):
    """Return a wrong version that breaks a law, of its own chapter if there is one.

    With it comes what the law found, on the smallest input.
    """
    wrong, home = (*zoo.WRONG, *zoo.ENCODERS[1:]), chapter_of(law.slug)
    for member in sorted(wrong, key=lambda each: chapter_of(each.name) != home):
        finding = law.check(member)
        if finding.holds is False:
            return member, finding
    raise LookupError(f"no member of the zoo breaks {law.slug}")


def number(x):
    """Return a number with at most three decimals."""
    text = f"{float(x):.3f}".rstrip("0").rstrip(".")
    return {"-0": "0", "nan": "NaN"}.get(text, text).replace("-", "−")


def seen(finding):
    """Return what a law expected and what it got, where the two differ most."""
    expected, got = finding.expected, finding.got
    if isinstance(expected, str) or isinstance(got, str):
        return f"expected {expected}, got {got}"
    expected, got = np.broadcast_arrays(*map(np.float64, (expected, got)))
    far = np.where(np.isfinite(got), np.abs(expected - got), np.inf)
    at = np.unravel_index(np.argmax(far), far.shape)
    return f"expected {number(expected[at])}, got {number(got[at])}"


@cache
def counterexample(law):
    """Return one line on what breaks a law, with what was found."""
    member, finding = broken_by(law)
    found = seen(finding)
    return f"{member.wrong} On the smallest input that shows it: {found}."


def formula(text):
    """Return plain text as HTML, with the subscripts of d_k, Σ_j and head_{1,2}."""
    low = r"(?<!\w)(\w|LN|head|encoder|min|max)_(?:\{([^}]*)\}|([A-Za-z0-9]+))"
    return re.sub(low, r"\1<sub>\2\3</sub>", escape(text))


def card(chapter):
    """Return the law of a chapter, with what breaks it, or nothing."""
    found = laws_of(chapter)
    if not found:
        return ""
    law = next((law for law in found if law.slug in SHOWN), found[0])
    equation = f'<p class="formula">{formula(law.equation)}</p>' if law.equation else ""
    return (
        f'<div class="law-card"><p class="name">'
        f"{formula(law.name[0].upper() + law.name[1:])}</p>{equation}"
        f'<p><span class="cross" aria-hidden="true">✗</span> '
        f"{formula(counterexample(law))}</p></div>"
    )


# What a page shows


def takes(facts):
    """Return in one line how long a chapter takes."""
    reading, everything = facts["minutes"], facts["minutes_with_all"]
    line = f"About {reading} minutes to read"
    if everything > reading:
        line += f", {everything} with predictions and exercises"
    if facts["minutes_deeper"]:
        line += f"; deeper sections {facts['minutes_deeper']} more"
    return f"{line}."


def addresses(app, page):
    """Return ``{slug: (number, address)}`` of all chapters, as this page links them."""
    return {
        slug(other): (int(other[5:7]), app.builder.get_relative_uri(page, other))
        for other in sorted(app.env.found_docs)
        if slug(other)
    }


def show(app, tree, page):
    """Write the opening of a chapter, its law and the parts of a layer."""
    chapter = slug(page)
    if not chapter or app.builder.format != "html":
        return
    title = tree.next_node(nodes.title)
    top = title.parent
    needs = [node for node in top if node.astext().startswith(NEEDS)][:1]
    for node in needs:
        top.remove(node)
    line = nodes.paragraph("", takes(app.env.metadata[page]), classes=["takes"])
    top[1:1] = [line, *needs]
    for node in needs:
        node["classes"].append("need")
    for section in tree.findall(nodes.section):
        if section[0].astext().partition(":")[0] == LAW:
            section.insert(1, nodes.raw("", card(chapter), format="html"))
            html = strip(chapter, addresses(app, page))
            section += nodes.raw("", html, format="html")
            break


def setup(app):
    """Register with Sphinx."""
    app.connect("doctree-resolved", show)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
