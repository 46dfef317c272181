"""Sphinx extension: a notebook that reads well everywhere becomes a page of the book.

The notebooks hold plain Markdown, so that JupyterLab, VS Code, Colab and GitHub show
formulas with their numbers, captions, links and folded hints without any plugin. When
Sphinx reads a notebook, this extension puts what a page can do besides in its place:
entries of the bibliography, words of the glossary, links that are checked, and figures
that follow the theme and fit a phone. Numbers of figures and equations stay as they are
typed; a link that names another number than its target is an error.

    in a notebook                                        on a page
    # Masks, in 04_masks.ipynb                           the title "4. Masks"
    <a id="eq-mask"></a> $$ ... \\tag{4.1} $$             an equation with an address
    <a id="fig-mask"></a> **Figure 4.2.** A caption.     the caption of the cell above
    [equation (4.1)](04_masks.ipynb#eq-mask)             a link to a place in the book
    [Vaswani et al. (2017)](https://arxiv.org/...)       a citation
    [heads](glossary.md#term-head)                       a word of the glossary
    [`mha.softmax`](../mha/weighting.py)                 a link into the API
    <details> <summary>Hint</summary> ... </details>     a fold, "Show the hint"
    > *Your guess:* more / less                          a place for a guess
    what an exercise answers                             the same words as HTML
"""

import ast
import json
import re
from functools import cache
from html import escape
from pathlib import Path

from pybtex.database import parse_file

BOOK = Path(__file__).parent.parent
ANSWER = "What happens"  # the summary of the fold behind a prediction, see chapter.py
SHOW = ("Hint", "Answer", "Answers")
PHONE, LEAST = 358, 11  # px: a picture on a phone, and text that can be read on it

CHAPTER = re.compile(r"book/(\d\d)_\w+")
ANCHOR = r'<a id="([\w-]+)"></a>'
CAPTION = re.compile(
    # of a figure that answers a prediction, the caption is inside the fold
    rf"(<details>\n<summary>{ANSWER}</summary>\n\n)?"
    + ANCHOR
    + r"\n\n(\*\*Figure [\d.]+\.\*\* .+?)(\n\n.+)?",
    re.DOTALL,
)
NUMBERED = re.compile(
    ANCHOR + r"\n\n(?:\*\*Figure ([\d.]+)\.\*\*|\$\$(?:(?!\$\$).)*?\\tag\{([\d.]+)\})",
    re.DOTALL,
)
FOLD = re.compile(
    r"^<details>\n<summary>(.+?)</summary>\n(.*?)\n</details>$",
    re.DOTALL | re.MULTILINE,
)
GUESS = re.compile(r"> \*Your guess.*?:\*(.*)", re.DOTALL)
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\(([^()\s]+)\)")
ROLE = re.compile(r"\{(eq|numref)\}`((?:eq|fig)-[\w-]+)`")
# What an exercise answers: its first line may go on below it, and perhaps more follows.
VERDICT = re.compile(
    r"(passed|not yet|not attempted yet): (.+(?:\n {3}\b.+)*)(?:\n((?s:.+)))?"
)
SIGNS = {"passed": "✓", "not yet": "✗", "not attempted yet": "○"}
PICTURE = re.compile(r'<svg class="mha-picture".*?</svg>', re.DOTALL)
SIZE = re.compile(r"font-size: ([\d.]+)px")
SIZE_OF_TEXT = re.compile(r'font-size="([\d.]+)"')  # of an element without a style
WIDTH = re.compile(r'viewBox="0 0 ([\d.]+) ')
# An image for notebooks, beside the data of a live figure that has drawings too.
STILL = re.compile(
    r'(<div class="still">)<img [^>]*>(</div><script [^>]*>)(.*?)(</script>)'
)
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
    text = FOLD.sub(fold, text)
    text = re.sub(f"^{ANCHOR}\n", r"(\1)=", text, flags=re.MULTILINE)
    text = CITED.sub(in_brackets, text)
    return LINK.sub(link, text)


def fold(found):
    """Return a fold whose summary says what it does, or what chapter.py looks for."""
    if found[1] in SHOW:
        return found[0].replace(found[1], f"Show the {found[1].lower()}", 1)
    if found[1] != ANSWER:
        return found[0]
    head = f"{{admonition}} {ANSWER}\n:class: answer"
    return f"````````{head}\n{found[2]}\n````````"  # a box may be inside, with six


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
    if name.startswith(("eq-", "fig-")) and numbers()[name] not in text:
        raise ValueError(f"[{text}] leads to the number {numbers()[name]}, {name}")
    if page == "glossary.md" and name:
        return f"{{term}}`{text} <{term(name)}>`"
    if page.startswith("../mha/"):
        return f"{{py:obj}}`{text.strip('`')} <{documented(text.strip('`'), page)}>`"
    if name and not target.startswith("http"):
        return f"[{text}](#{name})"
    return found[0]


@cache
def numbers():
    """Return ``{anchor: number}`` of the figures and equations of all chapters."""
    found = {}
    for path in sorted(BOOK.glob("[0-9]*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for name, figure, equation in NUMBERED.findall(source(cell)):
                found[name] = figure or equation
    return found


def role(found):
    """Return a link with the number of a figure or an equation, which a page names."""
    number = numbers()[found[2]]
    said = f"({number})" if found[1] == "eq" else f"Figure {number}"
    return f"[{said}](#{found[2]})"


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
    tags = cell.get("metadata", {}).get("tags", [])
    if "guess" in tags:
        return {**cell, "source": guess(cell)}
    if cell["cell_type"] == "markdown":
        return {**cell, "source": to_myst(source(cell))}
    if "hide-input" in tags and called(cell):
        tags.append("remove-input")
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
        if "text/html" in data:
            html = STILL.sub(drawn, "".join(data["text/html"]))
            data["text/html"] = PICTURE.sub(legible, html)
    return cell


def drawn(found):
    """Return a live figure whose still is what it draws, instead of an image.

    A page gets both layouts, and its style sheet shows the one that fits.
    """
    before, between, data, after = found.groups()
    data = json.loads(data)
    if not (stills := data.pop("stills", None)):
        return found[0]
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    both = (
        f'<div class="mha-wide">{stills["wide"]}</div>'
        f'<div class="mha-narrow" style="display: none">{stills["narrow"]}</div>'
    )
    return before + both + between + text.replace("<", "\\u003c") + after


def legible(found):
    """Return a drawing whose small text grows where the drawing is small."""
    svg = SIZE_OF_TEXT.sub(r'style="font-size: \1px"', found[0])
    least = LEAST * float(WIDTH.search(svg)[1]) / PHONE

    def grow(size):
        small = float(size[1]) < least
        return f"font-size: max({size[1]}px, var(--least, 0px))" if small else size[0]

    told = f'style="--on-a-phone: {least:.2f}px; '
    return SIZE.sub(grow, svg).replace('style="', told, 1)


def verdict(status, first, more):
    """Return what an exercise answers as HTML; what follows its first line stays."""
    wrong = " wrong" * (status == "not yet")
    mark = f'<span class="mark{wrong}">{SIGNS[status]}</span>'
    more = f"<pre>{escape(more)}</pre>" if more else ""
    line = f"<p>{mark} <b>{status}</b>: {escape(first)}</p>"
    return f'<div class="report">{line}{more}</div>'


def called(cell):
    """Return whether code only calls one function, as that of most figures does."""
    lines = ast.parse(source(cell)).body
    lines = [n for n in lines if not isinstance(n, (ast.Import, ast.ImportFrom))]
    return len(lines) == 1 and isinstance(lines[0], ast.Expr)


def guess(cell):
    """Return the place for a guess: its choices, if the notebook names some."""
    choices = " ".join(GUESS.fullmatch(source(cell))[1].split())
    return f'<div class="guess" hidden>{escape(choices)}</div>'


def page_of(notebook, number=None):
    """Return a portable notebook as one that myst-nb makes a page of."""
    cells = [for_a_page(cell) for cell in captioned(notebook["cells"])]
    if number is not None:
        title = f"# {number}. {cells[0]['source'].removeprefix('# ')}"
        cells[0] = {**cells[0], "source": title}
    return {**notebook, "cells": cells}


def read(app, docname, content):
    """Rewrite a notebook, or a page with anchors as in one, that Sphinx will read."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        chapter = CHAPTER.fullmatch(docname)
        page = page_of(json.loads(content[0]), chapter and int(chapter[1]))
        content[0] = json.dumps(page)
        return
    content[0] = ROLE.sub(role, content[0])
    if re.search(f"^{ANCHOR}\n", content[0], re.MULTILINE):
        content[0] = to_myst(content[0])


def setup(app):
    """Register with Sphinx."""
    app.connect("source-read", read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
