"""Sphinx extension: a notebook that reads well everywhere becomes a page of the book.

The notebooks hold plain Markdown, so that JupyterLab, VS Code, Colab and GitHub show
formulas with their numbers, captions, links and folded hints without any plugin. When
Sphinx reads a notebook, this extension puts what a page can do besides in its place:
numbered equations and figures with addresses of their own, entries of the bibliography,
words of the glossary, and links that are checked.

    in a notebook                                        on a page
    <a id="eq-mask"></a> $$ ... \\tag{4.1} $$             a numbered equation
    [equation (4.1)](04_masks.ipynb#eq-mask)             a link to it
    <a id="fig-mask"></a> **Figure 4.2.** A caption.     the caption of the cell above
    [Vaswani et al. (2017)](https://arxiv.org/...)       a citation
    [heads](glossary.md#term-head)                       a word of the glossary
    [`mha.softmax`](../mha/weighting.py)                 a link into the API
    [Solution](solutions/04_masks.ipynb#cell-id=ex-4-1)  a link to a place in a page
    [transpose](prerequisites.md#pre-transpose)          a link to an <a id="…"> there
    <details> <summary>Hint</summary> ... </details>     a fold, "Show the hint"
    what an exercise answers                             the same words as HTML
"""

import json
import re
from functools import cache
from html import escape
from pathlib import Path

from pybtex.database import parse_file

BOOK = Path(__file__).parent.parent
ANSWER = "What happens"  # the summary of the fold behind a prediction, see predict.py
SHOW = ("Hint", "Answer", "Answers")

ANCHOR = r'<a id="([\w-]+)"></a>'
EQUATION = re.compile(
    ANCHOR + r"\n\n\$\$\n((?:(?!\$\$).)*?)\s*\\tag\{([\d.]+)\}\n\$\$", re.DOTALL
)
CAPTION = re.compile(
    # of a figure that answers a prediction, the caption is inside the fold
    rf"(<details>\n<summary>{ANSWER}</summary>\n\n)?"
    + ANCHOR
    + r"\n\n\*\*Figure [\d.]+\.\*\* (.+?)(\n\n.+)?",
    re.DOTALL,
)
FOLD = re.compile(
    r"^<details>\n<summary>(.+?)</summary>\n(.*?)\n</details>$",
    re.DOTALL | re.MULTILINE,
)
NOTE = re.compile(r"^> \*\*(.+?)\.\*\* (.*(?:\n>.*)*)", re.MULTILINE)
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\(([^()\s]+)\)")
# What an exercise answers: its first line may go on below it, and perhaps more follows.
VERDICT = re.compile(
    r"(passed|not yet|not attempted yet): (.+(?:\n {3}\b.+)*)(?:\n((?s:.+)))?"
)
SIGNS = {"passed": "✓", "not yet": "✗", "not attempted yet": "○"}
CITED = re.compile(r"\((\[[^\[\]]+\]\([^()\s]+\)(?:; \[[^\[\]]+\]\([^()\s]+\))*)\)")


# ---------------------------------------------------------------- the bibliography


@cache
def entries(file=BOOK / "references.bib"):
    """Return ``{address: (key, authors, year)}`` of all that the book cites."""
    found = {}
    for key, entry in parse_file(str(file)).entries.items():
        names = [
            " ".join(map(str, person.rich_prelast_names + person.rich_last_names))
            for person in entry.persons["author"]
        ]
        found[address(key, entry.fields)] = key, authors(names), entry.fields["year"]
    return found


def address(key, fields):
    """Return where a source can be read; what is on paper only, leads to its entry."""
    if "url" in fields:
        return fields["url"]
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    if "eprint" in fields:
        return f"https://arxiv.org/abs/{fields['eprint']}"
    return f"bibliography.md#{key}"


def authors(names):
    """Return the authors as a sentence names them."""
    if len(names) == 1:
        return names[0]
    if len(names) == 2 and "others" not in names:
        return " and ".join(names)
    return f"{names[0]} et al."


# ---------------------------------------------------------------- Markdown


def to_myst(text):
    """Return the Markdown of a notebook as MyST, with roles and directives."""
    text = EQUATION.sub(r"```{math}\n:label: \1\n\2\n```", text)
    text = FOLD.sub(fold, text)
    text = NOTE.sub(admonition, text)
    text = re.sub(f"^{ANCHOR}\n", r"(\1)=", text, flags=re.MULTILINE)
    text = CITED.sub(in_brackets, text)
    return LINK.sub(link, text)


def fold(found):
    """Return a fold whose summary says what it does, or what predict.py looks for."""
    if found[1] in SHOW:
        return found[0].replace(found[1], f"Show the {found[1].lower()}", 1)
    if found[1] != ANSWER:
        return found[0]
    head = f"{{admonition}} {ANSWER}\n:class: answer"
    return f"````````{head}\n{found[2]}\n````````"  # a box may be inside, with six


def admonition(found):
    """Return a quotation that begins with a title in bold as a box."""
    inside = re.sub(r"^> ?", "", found[2], flags=re.MULTILINE)
    return f"``````{{admonition}} {found[1]}\n{inside}\n``````"


def in_brackets(found):
    """Return citations in one pair of brackets, or the text as it is."""
    keys = []
    for text, target in LINK.findall(found[1]):
        key, who, year = entries().get(target, ("", "", ""))
        if text != f"{who}, {year}":
            return found[0]
        keys.append(key)
    return f"{{cite:p}}`{','.join(keys)}`"


def link(found):
    """Return a link that Sphinx checks, or the link as it is."""
    text, target = found.groups()
    page, _, name = target.replace("#cell-id=", "#").partition("#")
    if target in entries() and text == "{1} ({2})".format(*entries()[target]):
        return f"{{cite:t}}`{entries()[target][0]}`"
    if name.startswith("eq-"):
        return f"{text.partition('(')[0]}{{eq}}`{name}`"
    if name.startswith("fig-"):
        return f"{{numref}}`{name}`"
    if page == "glossary.md" and name:
        return f"{{term}}`{text} <{term(name)}>`"
    if page.startswith("../mha/"):
        return f"{{py:obj}}`{text.strip('`')} <{documented(text.strip('`'), page)}>`"
    if name and not target.startswith("http"):
        return f"{{ref}}`{text} <{name}>`"
    return found[0]


@cache
def terms(file=BOOK / "glossary.md"):
    """Return ``{anchor: word}`` of the glossary."""
    lines = file.read_text(encoding="utf-8").partition("```{glossary}\n")[2].split("\n")
    words = [line for line in lines if line and line[0] not in " `#"]
    return {f"term-{word.replace(' ', '-')}": word for word in words}


def term(anchor):
    """Return the word of the glossary that an anchor belongs to."""
    if anchor not in terms():
        raise ValueError(f"the glossary has no {anchor!r}; it has {sorted(terms())}")
    return terms()[anchor]


def documented(name, file):
    """Return the name in the API of ``mha.softmax``, which a file defines."""
    module = file.removeprefix("../").removesuffix(".py").replace("/", ".")
    return name if name.count(".") > 1 else f"{module}.{name.rpartition('.')[2]}"


# ---------------------------------------------------------------- cells


def captioned(cells):
    """Yield the cells, each figure with the caption that stands in the next cell."""
    before = None
    for cell in cells:
        found = cell["cell_type"] == "markdown" and CAPTION.fullmatch(source(cell))
        if found and before and before["cell_type"] == "code":
            fold, name, caption, rest = found.groups(default="")
            figure = {"name": name, "caption": to_myst(caption)}
            before["metadata"].setdefault("mystnb", {})["figure"] = figure
            if rest.strip("\n") not in ("", "</details>"):
                yield {**cell, "source": fold + rest.lstrip("\n")}
        else:
            yield cell
        before = cell


def source(cell):
    """Return the text of a cell, which a file may hold as a list of lines."""
    return "".join(cell["source"])


def for_a_page(cell):
    """Change a cell into what the page shows."""
    if cell["cell_type"] == "markdown":
        cell["source"] = to_myst(source(cell))
    if "outputs" in cell:  # an empty one hides the answer from JupyterLab's preview
        cell["outputs"] = [o for o in cell["outputs"] if o.get("data", True)]
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        printed = "".join(output.get("text") or data.get("text/plain", ""))
        if found := VERDICT.fullmatch(printed.strip("\n")):
            data = {"text/html": verdict(*found.groups())}
            output.clear()
            output |= {"output_type": "display_data", "data": data, "metadata": {}}
        if "image/svg+xml" in data:  # within the page it follows the theme
            data["text/html"] = data.pop("image/svg+xml")
    return cell


def verdict(status, first, more):
    """Return what an exercise answers as HTML; what follows its first line stays."""
    wrong = " wrong" * (status == "not yet")
    mark = f'<span class="mark{wrong}">{SIGNS[status]}</span>'
    more = f"<pre>{escape(more)}</pre>" if more else ""
    line = f"<p>{mark} <b>{status}</b>: {escape(first)}</p>"
    return f'<div class="report">{line}{more}</div>'


def page_of(notebook):
    """Return a portable notebook as one that myst-nb makes a page of."""
    kept = captioned(notebook["cells"])
    kept = [cell for cell in kept if "guess" not in cell["metadata"].get("tags", ())]
    return {**notebook, "cells": [for_a_page(cell) for cell in kept]}


def read(app, docname, content):
    """Rewrite a notebook, or a page with anchors as in one, that Sphinx will read."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        content[0] = json.dumps(page_of(json.loads(content[0])))
        return
    if re.search(f"^{ANCHOR}\n", content[0], re.MULTILINE):
        content[0] = to_myst(content[0])


def setup(app):
    """Register with Sphinx."""
    app.connect("source-read", read)
    app.add_css_file("report.css", priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
