"""Sphinx extension: a word of the glossary carries its meaning with it.

Every link to the glossary gets the definition as its title, which words.js shows on
hover, on focus and on the first tap. A word that a chapter takes from elsewhere becomes
such a link where the chapter first uses it. Words that most chapters use stay plain:
a page full of dotted lines helps nobody.
"""

import re
from collections import Counter

from docutils import nodes

GLOSSARY = "book/glossary"
CHAPTER = re.compile(r"book/\d\d_\w+")
# What also has a meaning outside this book.
EVERYDAY = {
    "card", "design", "importance", "leak", "lean", "merge", "model", "observation",
    "projection", "rank", "shrinking", "sound", "split", "summary", "surprise",
}  # fmt: skip
PROSE = (nodes.paragraph, nodes.emphasis)


def definitions(tree):
    """Return ``{word: (anchor, definition)}`` of a glossary."""
    found = {}
    for item in tree.findall(nodes.definition_list_item):
        text = " ".join(item.next_node(nodes.definition).astext().split())
        for term in item.findall(nodes.term):
            found[term.astext()] = (term["ids"][0], text)
    return found


def pattern(words):
    """Return what finds a word, also in the plural; longer words come first."""
    alike = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?<![\w-])({alike})(?:s|es)?(?![\w-])", re.IGNORECASE)


def first_uses(tree, find):
    """Return ``{word in lower case: (text node, match)}`` for the prose of a page."""
    found = {}
    for text in tree.findall(nodes.Text):
        inside = isinstance(text.parent, PROSE) and not in_link(text)
        for use in find.finditer(text) if inside else ():
            found.setdefault(use[1].lower(), (text, use))
    return found


def in_link(node):
    """Return whether a text is part of a link or a title already."""
    while node is not None:
        if isinstance(node, (nodes.reference, nodes.title)):
            return True
        node = node.parent
    return False


def defined_here(tree):
    """Return what a page explains itself: its words in bold, and its own links."""
    bold = {node.astext().lower() for node in tree.findall(nodes.strong)}
    links = {
        node.astext().lower()
        for node in tree.findall(nodes.inline)
        if "std-term" in node["classes"]
    }
    return bold | links | {word.removesuffix("s") for word in bold | links}


def rare_words(app, words):
    """Return the words that at most half of the chapters use, in lower case."""
    find = pattern(words)
    pages = [name for name in sorted(app.env.found_docs) if CHAPTER.fullmatch(name)]
    uses = Counter()
    for name in pages:
        uses.update(first_uses(app.env.get_doctree(name), find).keys())
    return {word for word in uses if uses[word] <= len(pages) / 2} - EVERYDAY


def link(text, address, meaning):
    """Return a link to the glossary."""
    inner = nodes.inline("", text, classes=["xref", "std", "std-term"])
    return nodes.reference(
        "", "", inner, internal=True, refuri=address, reftitle=meaning
    )


def link_words(tree, words, wanted, address):
    """Link the first use of each wanted word of ``{word: (anchor, meaning)}``."""
    known, by_text = {word.lower(): entry for word, entry in words.items()}, {}
    for word, (text, use) in first_uses(tree, pattern(words)).items():
        if word in wanted:  # "entropy rate" is no use of "entropy"
            by_text.setdefault(text, []).append((use, *known[word]))
    for text, uses in by_text.items():
        pieces, end = [], 0
        for use, anchor, meaning in sorted(uses, key=lambda each: each[0].start()):
            pieces.append(nodes.Text(text[end : use.start()]))
            pieces.append(link(use[0], f"{address}#{anchor}", meaning))
            end = use.end()
        text.parent.replace(text, [*pieces, nodes.Text(text[end:])])


def explain(app, tree, docname):
    """Give the links of a page their definitions, and a chapter some more of them."""
    if app.builder.format != "html" or GLOSSARY not in app.env.found_docs:
        return
    if not hasattr(app, "words"):
        app.words = definitions(app.env.get_doctree(GLOSSARY))
        app.rare_words = rare_words(app, app.words)
    if CHAPTER.fullmatch(docname):
        wanted = app.rare_words - defined_here(tree)
        address = app.builder.get_relative_uri(docname, GLOSSARY)
        link_words(tree, app.words, wanted, address)
    meanings = dict(app.words.values())
    for node in tree.findall(nodes.reference):
        page, _, anchor = node.get("refuri", "").partition("#")
        if page.endswith("glossary.html") and anchor in meanings:
            node["reftitle"] = meanings[anchor]


def setup(app):
    """Register with Sphinx."""
    app.connect("doctree-resolved", explain)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
