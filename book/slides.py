#!/usr/bin/env python3
"""Make slides for lectures from the chapters: their figures, equations and laws.

book/slides.py                  a deck for each part, in _build/slides
book/slides.py masks attention  one deck of these chapters

A deck is one file that needs no network. The arrow keys and the space bar go through
it, Esc shows all slides at once, and "?" lists the other keys. With ?print-pdf behind
its address a browser prints it, one slide to a page.
"""

import argparse
import base64
import importlib.util
import re
import sys
from html import unescape
from pathlib import Path

import nbformat
import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

sys.path.append(str(Path(__file__).parent / "_ext"))

from formulas import FONTS, LICENCE, typeset
from opening import NUMERALS, card, parts

BOOK = Path(__file__).parent
OUT = BOOK.parent / "_build" / "slides"
CONFIG = yaml.safe_load((BOOK.parent / "_config.yml").read_text("utf-8"))
TOC = yaml.safe_load((BOOK.parent / "_toc.yml").read_text("utf-8"))
SECTION = re.compile(r"^## (.+)$", re.M)
CAPTION = re.compile(r"\*\*Figure (\d+\.\d+)\.\*\* .+")
EQUATION = re.compile(r'<a id="eq-[\w-]+"></a>\s*\$\$(.+?)\$\$', re.DOTALL)
TAG = re.compile(r"\s*\\tag\{([\d.]+)\}")
ASKS = re.compile(r"\*\*(Before\s+you\s+\w+[^*]*:)\*\* (.+)")
SUBSECTION = re.compile(r"^### (.+)$", re.M)
ALT = re.compile(r'\balt="([^"]*)"')
EXERCISE = re.compile(r"### (Exercise \d+\.\d+: .+)\n\n\*\*(.+?)\*\*")
STILL = re.compile(r'<div class="still">\s*(<img.+?>)', re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\([^()\s]+\)")
LONG = 75  # words; a slide with more has smaller letters
NEVER_MORE = 60  # words of a question
PLACE = "\0{}\0"  # where a formula will be
OPTIONS = """\
  hash: true, width: 1280, height: 720, margin: 0, center: false,
  controls: false, slideNumber: "c/t", transition: "none", navigationMode: "linear"
"""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<div class="reveal"><div class="slides">
{slides}
</div></div>
<script>{script}</script>
<script>Reveal.initialize({{{options}}});</script>
</body>
</html>
"""


def main(arguments=None):
    """Write the decks, and print where each is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="masks or 04_masks; none means all")
    parser.add_argument(
        "--out", type=Path, default=OUT, help="by default _build/slides"
    )
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, title, paths in decks(options.chapters):
        file = options.out / f"{name}.html"
        file.write_text(deck(title, paths), encoding="utf-8", newline="\n")
        print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")


def decks(chosen):
    """Return ``[(name of the file, title, chapters)]``."""
    overview = TOC["parts"][0]["chapters"][0]["file"]
    found = [("0_overview", "Overview", [overview])]
    for numeral, (caption, pages) in zip(NUMERALS, parts(TOC), strict=False):
        name = f"{len(found)}_{caption.lower().replace(' ', '_')}"
        found.append((name, f"Part {numeral}: {caption}", pages))
    if chosen:
        pages = [page for *_, pages in found for page in pages]
        named = [[p for p in pages if name in (p[5:], p[8:])] for name in chosen]
        if [] in named:
            sys.exit(f"no chapter is called {chosen[named.index([])]}")
        found = [("_".join(chosen), "Head by Head", [p for [p] in named])]
    return [
        (name, title, [BOOK.parent / f"{page}.ipynb" for page in pages])
        for name, title, pages in found
    ]


# What is on the slides


def deck(title, paths):
    """Return the page of one deck."""
    text = Text()
    stacks = [stack(path, text) for path in paths]
    css, slides = text.finished("\n".join(stacks))
    styles = [reveal("reset.css"), reveal("reveal.css"), f"/* {LICENCE} */", css]
    styles.append((BOOK / "slides.css").read_text(encoding="utf-8"))
    return PAGE.format(
        title=f"{title} · Head by Head", css="\n".join(styles), slides=slides,
        script=reveal("reveal.js"), options=OPTIONS,
    )  # fmt: skip


def reveal(name):
    """Return a file of reveal.js, as the package sphinx-revealjs brings it."""
    package = importlib.util.find_spec("sphinx_revealjs")
    if package is None:
        sys.exit("slides need reveal.js: pip install -r requirements.txt")
    folder = Path(package.origin).parent / "_static" / "revealjs" / "dist"
    text = (folder / name).read_text(encoding="utf-8")
    return re.sub(r"//# sourceMappingURL=\S+", "", text)


def stack(path, text):
    """Return the slides of one chapter."""
    cells = nbformat.read(path, as_version=4).cells
    number, slug = int(path.stem[:2]), path.stem[3:]
    title, promise = cells[0].source.split("\n\n")[:2]
    title = title.removeprefix("# ")
    made = [
        f'<p class="kicker">Chapter {number}</p>\n<h1>{text.line(title)}</h1>\n'
        f'<p class="promise">{text.line(promise)}</p>'
    ]
    for section, inside in sections(cells):
        if section.startswith(("Deeper", "Sources")):
            continue
        made += PARTS.get(section, lambda *_: ())(inside, text)
        made += figures(section, inside, text)
        if section == "The law" and (law := card(slug)):
            made.append(f"<h2>The law</h2>\n{law}")
    foot = f'<p class="foot">{number} · {text.line(title)}</p>'
    slides = "\n".join(slide(each, foot if k else "") for k, each in enumerate(made))
    return f"<section>\n{slides}\n</section>"


def slide(inside, foot):
    """Return one slide."""
    words = len(re.sub(r"<[^>]*>", " ", re.sub(r"<figure.*", "", inside, flags=re.S)))
    kind = "slide long" if words / 6 > LONG else "slide"
    return f'<section class="{kind}">\n{inside}\n{foot}</section>'


def sections(cells):
    """Return ``[(heading, its cells)]``, a cell with two headings in both."""
    found = [("", [])]
    for cell in cells:
        if cell.cell_type == "markdown" and (new := SECTION.findall(cell.source)):
            found += [(heading, []) for heading in new]
        found[-1][1].append(cell)
    return found


def prose(cells):
    """Return the paragraphs of these cells."""
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return re.split(r"\n{2,}", "\n\n".join(texts))


def question(cells, text):
    """Yield a slide with the question of the chapter, which ends its section."""
    asked = [part for part in prose(cells) if part.rstrip().endswith("?")]
    if asked:
        last = re.split(r"(?<=[.?)]) +(?=[A-Z\"])", " ".join(asked[-1].split()))
        while len(" ".join(last).split()) > NEVER_MORE:
            del last[0]
        yield f'<h2>The question</h2>\n<p class="ask">{text.line(" ".join(last))}</p>'


def equations(cells, text):
    """Yield slides with the equations of a section, two on each."""
    found = EQUATION.findall(joined(cells))
    for first in range(0, len(found), 2):
        lines = []
        for tex in found[first : first + 2]:
            number = TAG.search(tex)
            lines.append(
                f'<div class="equation"><div>{text.display(TAG.sub("", tex))}</div>'
                f'<span class="number">({number[1] if number else ""})</span></div>'
            )
        inside = "\n".join(lines)
        yield f'<h2>The equation</h2>\n<div class="equations">{inside}</div>'


def joined(cells):
    """Return the text of these cells."""
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def figures(section, cells, text):
    """Yield a slide for each figure, after the question that it answers."""
    asked, heading = None, section
    for at, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            heading = [heading, *SUBSECTION.findall(cell.source)][-1]
            if found := ASKS.search(" ".join(cell.source.split("\n"))):
                asked = found
            continue
        drawn = next(filter(None, map(picture, cell.outputs)), None)
        if drawn is None:
            continue
        if asked and "predict" in cell.metadata.get("tags", ()):
            yield (
                f"<h2>{asked[1].removesuffix(':')}</h2>\n"
                f'<p class="ask">{text.line(asked[2][0].upper() + asked[2][1:])}</p>'
            )
            asked = None
        caption = caption_of(drawn, CAPTION.search(joined(cells[at + 1 : at + 4])))
        yield (
            f"<h2>{text.line(heading)}</h2>\n"
            f'<figure><div class="drawn">{drawn}</div>\n'
            f"<figcaption>{text.line(caption)}</figcaption></figure>"
        )


def caption_of(drawn, found):
    """Return a caption. Of a figure to explore, it says what is seen at rest."""
    if not found or not (still := drawn.startswith("<img") and ALT.search(drawn)):
        return found[0] if found else ""
    where = f"**Figure {found[1]}.** A still; on the page of the chapter it moves."
    return f"{where} {unescape(still[1])}"


def picture(output):
    """Return the drawing in an output, as it is on paper, or None."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return "".join(data["image/svg+xml"])
    still = STILL.search("".join(data.get("text/html", "")))
    return still and still[1]


def exercises(cells, text):
    """Yield a slide with what there is to do."""
    found = EXERCISE.findall(joined(cells))
    items = (
        f"<li>{text.line(title)} ({time.rstrip('.')})</li>" for title, time in found
    )
    if found:
        yield f"<h2>On your own</h2>\n<ul>{''.join(items)}</ul>"


def learned(cells, text):
    """Yield a slide with what one can say after the chapter."""
    items = re.findall(r"^- (.+(?:\n  .+)*)", joined(cells), re.M)
    if items:
        items = "".join(f"<li>{text.line(item)}</li>" for item in items)
        yield f"<h2>What you can now say</h2>\n<ul>{items}</ul>"


PARTS = {
    "The question": question,
    "The equation": equations,
    "On your own": exercises,
    "What you can now say": learned,
}


# Text and formulas


class Text:
    """Makes HTML of Markdown, and typesets all formulas of a deck at once."""

    def __init__(self):
        self.formulas = []
        self.markdown = MarkdownIt("commonmark").use(
            dollarmath_plugin, renderer=self.formula
        )

    def formula(self, tex, options):
        """Keep a formula, and return a mark for its place."""
        self.formulas.append((tex.strip(), options["display_mode"]))
        return PLACE.format(len(self.formulas) - 1)

    def line(self, source):
        """Return a line of Markdown as HTML, without its links."""
        while (shorter := LINK.sub(r"\1", source)) != source:
            source = shorter
        return self.markdown.renderInline(" ".join(source.split()))

    def display(self, tex):
        """Return a displayed formula."""
        return self.formula(tex, {"display_mode": True})

    def finished(self, html):
        """Return the styles of the formulas, and the HTML with the formulas in it."""
        macros = CONFIG["sphinx"]["config"]["formula_macros"]
        css, done = typeset(list(dict.fromkeys(self.formulas)), macros)
        for k, formula in enumerate(self.formulas):
            html = html.replace(PLACE.format(k), done[formula])
        return re.sub(r'url\("?formulas/(MathJax_[\w-]+\.woff)"?\)', font, css), html


def font(found):
    """Return a font as a part of the stylesheet."""
    data = base64.b64encode((FONTS / found[1]).read_bytes()).decode("ascii")
    return f"url(data:font/woff;base64,{data})"


if __name__ == "__main__":
    main()
