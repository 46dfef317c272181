"""Sphinx extension: what folds on a page, and where its lines may break.

A level of a chapter, "Code and checks" or "Deeper", begins with its heading and a
paragraph that says what is in it. On the page it is a closed fold, and the paragraph is
its line.

A notebook asks for a prediction with a paragraph such as "**Before you run it:** …".
The code cells that answer it carry the tag ``predict``, and the cell after them may
begin with the answer in prose, folded under the title "What happens". On the page one
fold, "Show what happens", holds the outputs of these cells and then the prose; the code
stays where it is. Before it is a place for a guess, which pages.js makes.

Three more things are marked on every page: a quotation that begins in bold is a law,
printed sentences wrap, and a line breaks in no pair of numbers, no short equation
or fraction, and in names only between their words.
"""

import re

from docutils import nodes

CHAPTER = re.compile(r"book/\d\d_\w+")
CHECKS, DEEPER = "Code and checks", "Deeper"
BETWEEN_WORDS = re.compile(  # of code, as in a.b, a_b, aB, a=b and a(b
    r"(?<=[\w\])]\.)(?=[A-Za-z])|(?<=\w_)(?=\w)|(?<=[a-z])(?=[A-Z])|(?<=\w[=(])(?=\w)"
)
NEEDS = ("You need ", "School mathematics is enough here.")
WORDS = 75  # of a core that a new reader takes in per minute, with its figures
ALIGNED = re.compile(r"\S  |^(?: {4})* {1,3}\S", re.MULTILINE)  # and not indented
KEPT = re.compile(  # on one line
    r"\([^()\s]{1,8}(?:, [^()\s]{1,8}){1,5}\)"  # (1.5, 0)
    r"|(?:[\d.]+ = )?[\d.]+·[\d.]+(?: [−+] [\d.]+·[\d.]+)+"  # 3 = 2·2 − 1·1
    r"|(?<![\w)])[\w√−-]{1,4}(?: [·×] [\w√−-]{1,5})+(?: = [\w√−.]+)?"  # 0 · 0 = 0
    r"|[\d.]+·[\d.]+ = [\d.]+"  # 4·4 = 16
    r"|(?<![\w.])[\d.]+ [−+] [\d.]+(?: = [−\d.]+)?(?![\w·/])"  # 1.1 − 0.8
    r"|[\w√)−./]+(?: [=≈<>≤≥] [\w√(−./]+)+"  # x = 0
    r"|(?<![\w/.])[\w√]{1,3}/[\w√]+"  # 1/√n
    r"|\d %|\d (?:ms|s|px|[kMG]i?B|minutes?|hours?|seconds?|tokens?)\b"
    r"|\b(?:[Cc]hapters?|Figures?|[Ee]quations?|[Ee]xercises?) [\d(]"
)


def raw(html):
    """Return a piece of HTML, which other builders leave out."""
    return nodes.raw("", html, format="html")


# Predictions


def is_predicted(node):
    """Return whether a node is a code cell whose output is to be predicted."""
    is_code = isinstance(node, nodes.container) and "cell" in node["classes"]
    return is_code and "tag_predict" in node["classes"]


def is_answer(node):
    """Return whether a node is the answer in prose, which a notebook folds."""
    return isinstance(node, nodes.admonition) and "answer" in node["classes"]


def take_output(cell):
    """Take the output out of a code cell, and return it in a cell of its own."""
    outputs = [node for node in cell.children if "cell_output" in node["classes"]]
    for node in outputs:
        cell.remove(node)
    if cell.get("hide_mode") == "all":
        cell["hide_mode"] = "input"  # what is left to hide
    shown = cell.copy()  # a copy has no children
    shown.attributes.pop("hide_mode", None)
    shown["ids"], shown["names"] = [], []
    shown += outputs
    return [shown] if outputs else []


def fold(parent, start):
    """Fold the answer that begins at `start`, and return how many nodes stand there."""
    end, inside = start, []
    while end < len(parent) and is_predicted(parent[end]):
        inside += take_output(parent[end])
        if parent[end].children:
            end += 1
        else:
            parent.pop(end)  # its code was removed by a tag
    if end < len(parent) and is_answer(parent[end]):
        answer = parent.pop(end)
        inside += [node for node in answer if not isinstance(node, nodes.title)]
    line = '<details class="answer"><summary>Show what happens</summary>'
    parent[end:end] = [raw(line), *inside, raw("</details>")]
    return end + len(inside) + 2 - start


def fold_answers(parent):
    """Fold the answers in a section and in those inside it."""
    at = 0
    while at < len(parent):
        node, step = parent[at], 1
        if isinstance(node, nodes.section):
            fold_answers(node)
        elif is_predicted(node) or is_answer(node):
            step = fold(parent, at)
        at += step


# Levels


def in_core(node):
    """Return whether a part of a chapter is in no level."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, nodes.section) and node[0].astext() in (CHECKS, DEEPER):
            return False
    return True


def begin(top):
    """Say below the title how long the core takes, and mark what a reader needs."""
    paragraphs = [*top.findall(nodes.paragraph)]
    core = [node for node in paragraphs if in_core(node)]
    words = sum(len(node.astext().split()) for node in core)
    minutes = f"bout {max(5, 5 * round(words / WORDS / 5))} minutes"
    line = f"A{minutes}." if core == paragraphs else f"Core, a{minutes}; more below."
    before = [node for node in core if node.parent is top]
    needs = [node for node in before if node.astext().startswith(NEEDS)]
    if needs:
        needs[0]["classes"].append("need")
    first = needs[0] if needs else top.next_node(nodes.section)
    top.insert(top.index(first), raw(f'<p class="takes">{line}</p>'))


def close(section):
    """Fold a level behind the paragraph that says what is in it."""
    said = section.next_node(nodes.paragraph)
    section.remove(said)
    line = nodes.inline("", "", *said.children)
    summary = raw('<details class="level"><summary>'), line, raw("</summary>")
    section[1:1] = summary
    section += raw("</details>")


# Every page


def kept_together(text):
    """Return a text in which a line breaks in no pair, short equation or fraction.

    >>> kept_together("from (1, 0) to (0, 1) in 5 ms").replace("\\xa0", "~")
    'from (1,~0) to (0,~1) in 5~ms'
    """
    whole = str.maketrans({" ": "\N{NO-BREAK SPACE}", "/": "/\N{WORD JOINER}"})
    return KEPT.sub(lambda found: found[0].translate(whole), text)


def breakable(name):
    """Yield the pieces of code in a line of text, between which the line may break."""
    for k, piece in enumerate(BETWEEN_WORDS.split(name)):
        yield from [raw("<wbr>")] * (k > 0)
        yield nodes.Text(piece)


def mark(tree):
    """Mark laws, printed sentences, and where lines may break."""
    for node in tree.findall(nodes.block_quote):
        bold = node.next_node(nodes.strong)
        if bold and node.astext().startswith(bold.astext()):
            node["classes"].append("law-card")
    for node in tree.findall(nodes.table):
        if node["ids"] == node.parent["ids"]:  # the theme's box around it has its id
            node["ids"] = []
    for node in tree.findall(nodes.literal_block):
        text = node.astext().rstrip()
        if "\n" not in text or not ALIGNED.search(text):
            node["classes"].append("sentences")
    for node in list(tree.findall(nodes.Text)):
        if isinstance(node.parent, nodes.literal):
            node.parent.replace(node, list(breakable(node.astext())))
        elif is_prose(node) and (text := kept_together(node)) != node:
            node.parent.replace(node, nodes.Text(text))


def is_prose(node):
    """Return whether a text is none of code and formulas."""
    apart = nodes.FixedTextElement, nodes.math, nodes.math_block, nodes.raw
    return not isinstance(node.parent, apart)


def show(app, tree, page):
    """Fold what a page folds, and mark what is marked."""
    if app.builder.format != "html":
        return
    if CHAPTER.fullmatch(page):
        begin(tree.next_node(nodes.section))
    for section in list(tree.findall(nodes.section)):
        if section[0].astext() in (CHECKS, DEEPER):
            close(section)
    mark(tree)


def setup(app):
    """Register with Sphinx."""
    app.connect("doctree-read", lambda app, tree: fold_answers(tree))
    app.connect("doctree-resolved", show)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
