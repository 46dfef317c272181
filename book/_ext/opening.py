"""Sphinx extension: the first screen of a chapter, its law, its levels and its end.

Below the title stand the promise, where it says more than the title, one line of
minutes, and one line of what the reader needs. The law that a core quotes is its card.
If it quotes none, the section begins with a card: the law, and what breaks it, found by
running it against a wrong version while the book is built. The levels after the core,
see minutes.py, are closed folds. The core ends with the parts of a layer, those of the
chapter lit.

A notebook only has to begin with a title, perhaps a sentence that promises, and if it
needs something, a paragraph in its first cell that starts with "You need". A level
begins with its heading and a paragraph that says what is in it.
"""

import re
from functools import cache
from html import escape

import numpy as np
from docutils import nodes

from _ext.minutes import CHAPTER, CHECKS, DEEPER, heading, whole
from chapters import chapter_of
from figures.strip import strip
from mha import laws, zoo

NEEDS = ("You need ", "School mathematics is enough here.")
LAW, END = "The law", "What you can now say"
# Where a chapter has several laws, the first one is shown, unless one is named here.
SHOWN = {"concat_is_a_sum"}
WITHOUT = {"long", "since_2017"}  # the zoo has no caches and no designs


def slug(page):
    """Return the slug of a chapter's page, or None for another page."""
    found = CHAPTER.fullmatch(page)
    return found and found[1].partition("_")[2]


# The law


@cache
def laws_of(chapter):
    """Return the laws of a chapter, in the order of the book."""
    return [law for law in laws.ALL if chapter_of(law.name) == chapter]


def broken_by(law):
    """Return a wrong version that breaks a law, of its own chapter if there is one.

    With it comes what the law found, on the smallest input.
    """
    wrong, home = (*zoo.WRONG, *zoo.ENCODERS[1:]), chapter_of(law.name)
    for member in sorted(wrong, key=lambda each: chapter_of(each.name) != home):
        finding = law.check(member)
        if finding.broken:
            return member, finding
    raise LookupError(f"no member of the zoo breaks {law.name}")


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
    if not found or chapter in WITHOUT:
        return ""
    law = next((law for law in found if law.name in SHOWN), found[0])
    equation = f'<p class="formula">{formula(law.equation)}</p>' if law.equation else ""
    return (
        f'<div class="law-card"><p class="name">'
        f"{formula(law.sentence[0].upper() + law.sentence[1:])}</p>{equation}"
        f'<p><span class="cross" aria-hidden="true">✗</span> '
        f"{formula(counterexample(law))}</p></div>"
    )


# What a page shows


def takes(facts):
    """Return in one line how long a chapter takes."""
    if facts["has_levels"]:
        return f"Core, about {whole(facts['minutes_core'])} minutes; more below"
    line = f"About {facts['minutes']} minutes"
    if facts["minutes_deeper"]:
        line += f"; {facts['minutes_deeper']} more in deeper sections"
    return line


def close(section, facts):
    """Fold a level behind one line that says what is in it and how long it takes."""
    said = section.next_node(nodes.paragraph)
    section.remove(said)
    minutes = facts["sections"][section["ids"][0]]
    line = f"Open: about {minutes} minute{'s' * (minutes != 1)}"
    if heading(section) == CHECKS:
        line += f", and {facts['practice']} for the exercises"
    line = f"<span><b>{line}.</b> {escape(said.astext())}</span>"
    summary = f'<details class="level"><summary>{line}</summary>'
    section.insert(1, nodes.raw("", summary, format="html"))
    section += nodes.raw("", "</details>", format="html")


def addresses(app, page):
    """Return ``{slug: (number, address)}`` of all chapters, as this page links them."""
    return {
        slug(other): (int(other[5:7]), app.builder.get_relative_uri(page, other))
        for other in sorted(app.env.found_docs)
        if slug(other)
    }


def show(app, tree, page):
    """Write the opening of a chapter, its law, its folds and the parts of a layer."""
    chapter = slug(page)
    if not chapter or app.builder.format != "html":
        return
    facts = app.env.metadata[page]
    begin(tree.next_node(nodes.section), facts)
    for section in list(tree.findall(nodes.section)):
        if heading(section) == LAW:
            if quoted := section.next_node(nodes.block_quote):
                quoted["classes"].append("law-card")
            else:
                section.insert(1, nodes.raw("", card(chapter), format="html"))
        elif heading(section) == END:
            html = strip(chapter, addresses(app, page))
            section += nodes.raw("", html, format="html")
        elif heading(section) in (CHECKS, DEEPER):
            close(section, facts)


def begin(top, facts):
    """Write the lines below the title: promise, minutes, needs."""
    line = f'<p class="takes">{takes(facts)}.</p>'
    for node in top.children[1:]:
        if isinstance(node, nodes.section):
            break
        if node.astext().startswith(NEEDS):
            node["classes"].append("need")
            break
    top.insert(top.index(node), nodes.raw("", line, format="html"))


def setup(app):
    """Register with Sphinx."""
    app.connect("doctree-resolved", show)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
