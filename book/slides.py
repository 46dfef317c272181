#!/usr/bin/env python3
"""Make slides for lectures from the chapters: their figures, equations and laws.

book/slides.py                  a deck for each part, in _build/slides
book/slides.py masks attention  one deck of these chapters

A deck is one file that needs no network. The space bar, the arrow keys and a presenter
go through it, and a browser prints it with one slide to a page.
"""

import argparse
import base64
import re
import sys
from html import unescape
from pathlib import Path

import nbformat
import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from _ext.chapter import CHECKS, DEEPER, NEEDS
from _ext.formulas import FONTS, LICENCE, typeset

BOOK = Path(__file__).parent
OUT = BOOK.parent / "_build" / "slides"
LAW = re.compile(r"^> (\*\*.+(?:\n>.*)*)", re.MULTILINE)
CAPTION = re.compile(r"\*\*Figure (\d+\.\d+)\.\*\* .+")
EQUATION = re.compile(r'<a id="eq-[\w-]+"></a>\s*\$\$(.+?)\$\$', re.DOTALL)
TAG = re.compile(r"\s*\\tag\{([\d.]+)\}")
ASKS = re.compile(r"\*\*(Before\s+you\s+\w+[^*]*):\*\* (.+)")
ALT = re.compile(r'\balt="([^"]*)"')
EXERCISE = re.compile(r"### (Exercise \d+\.\d+: .+)\n\n\*\*(.+?)\.?\*\*")
STILL = re.compile(r'<div class="still">\s*(<img.+?>)', re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\([^()\s]+\)")
LONG = 75  # words; a slide with more has smaller letters
QUESTION = re.compile(r"\*\*([^*]+\?)\*\*")
SECTION = re.compile(r"^(##|###) (.+)$", re.MULTILINE)
PLACE = "\0{}\0"  # where a formula will be
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Head by Head</title>
<style>{css}</style>
</head>
<body>
{slides}
</body>
</html>
"""


def main(arguments=None):
    """Write the decks, and print where each is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="masks or 04_masks; none means all")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder of the decks")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for title, paths in decks(options.chapters).items():
        file = options.out / f"{title.lower().replace(' ', '_')}.html"
        file.write_text(deck(title, paths), encoding="utf-8", newline="\n")
        print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")


def decks(chosen):
    """Return ``{title: its chapters}``."""
    toc = yaml.safe_load((BOOK.parent / "_toc.yml").read_text("utf-8"))
    found = {}
    for part in toc["parts"]:
        paths = [BOOK.parent / f"{page['file']}.ipynb" for page in part["chapters"]]
        if paths[0].name[0].isdigit():  # the others have pages, and no chapters
            found[part.get("caption", "Overview")] = paths
    if not chosen:
        return found
    paths = [path for paths in found.values() for path in paths]
    named = [[p for p in paths if name in (p.stem, p.stem[3:])] for name in chosen]
    if [] in named:
        sys.exit(f"no chapter is called {chosen[named.index([])]}")
    return {" ".join(chosen): [path for [path] in named]}


def deck(title, paths):
    """Return the page of one deck."""
    text = Text()
    slides = "\n".join(slide for path in paths for slide in slides_of(path, text))
    css, slides = text.finished(slides)
    style = (BOOK / "slides.css").read_text(encoding="utf-8")
    css = f"/* {LICENCE} */\n{css}\n{style}"
    return PAGE.format(title=title, css=css, slides=slides)


# What is on the slides


def slides_of(path, text):
    """Yield the slides of one chapter."""
    cells = nbformat.read(path, as_version=4).cells
    title, *said = cells[0].source.removeprefix("# ").split("\n\n")
    number, title = int(path.stem[:2]), text.line(title)
    promise = "".join(text.line(each) for each in said if not each.startswith(NEEDS))
    yield (
        f'<section class="first"><p class="kicker">Chapter {number}</p>\n'
        f"<h1>{title}</h1>\n<p>{promise}</p></section>"
    )
    for section, inside in sections(cells):
        if section == "Sources":
            continue
        made = [*PARTS.get(section, nothing)(inside, text)]
        made += figures(section, inside, text)
        for law in LAW.findall(joined(inside)):
            line = text.line(re.sub(r"\n> ?", " ", law))
            made.append((section, f'<p class="law-card">{line}</p>'))
        for heading, body in made:
            words = len(re.sub(r"<figure.*|<[^>]*>", " ", body, flags=re.S)) / 6
            kind = ' class="long"' if words > LONG else ""
            foot = f'<p class="foot">{number} · {title}</p>'
            yield f"<section{kind}><h2>{heading}</h2>\n{body}\n{foot}</section>"


def sections(cells):
    """Return ``[(heading, its cells)]`` of the core and of the code and checks.

    A cell with two headings is in both.
    """
    found, level = [("", [])], ""
    for cell in cells:
        for mark, heading in SECTION.findall(joined([cell])):
            level = level if mark == "###" else heading
            if mark == "##" or level == CHECKS:
                found.append((heading, []))
        if level != DEEPER:
            found[-1][1].append(cell)
    return found


def joined(cells):
    """Return the text of these cells."""
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def nothing(cells, text):
    """Return no slides: of most sections only the figures are shown."""
    return ()


def question(cells, text):
    """Yield a slide with the question of the chapter, which is in bold."""
    if asked := QUESTION.search(joined(cells)):
        line = asked[1][0].upper() + asked[1][1:]
        yield "The question", f'<p class="ask">{text.line(line)}</p>'


def equations(cells, text):
    """Yield slides with the equations of a section, two on each."""
    lines = []
    for tex in EQUATION.findall(joined(cells)):
        number = f"({tag[1]})" if (tag := TAG.search(tex)) else ""
        formula = text.formula(TAG.sub("", tex), {"display_mode": True})
        lines.append(f'<div class="equation">{formula}<span>{number}</span></div>')
    for first in range(0, len(lines), 2):
        yield "The equation", "\n".join(lines[first : first + 2])


def figures(section, cells, text):
    """Yield a slide for each figure, after the question that it answers."""
    asked, heading = None, text.line(section)
    for at, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            for new in re.findall(r"^### (.+)$", cell.source, re.M):
                heading = text.line(new)
            asked = ASKS.search(cell.source.replace("\n", " ")) or asked
            continue
        for drawn in filter(None, map(picture, cell.outputs)):
            if asked and "predict" in cell.metadata.get("tags", ()):
                asks = text.line(asked[2][0].upper() + asked[2][1:])
                yield asked[1], f'<p class="ask">{asks}</p>'
                asked = None
            caption = CAPTION.search(joined(cells[at + 1 : at + 4]))
            caption = text.line(caption_of(drawn, caption)) if caption else ""
            yield (
                heading,
                f'<figure><div class="drawn">{drawn}</div>\n'
                f"<figcaption>{caption}</figcaption></figure>",
            )


def caption_of(drawn, caption):
    """Return a caption. Of a figure to explore, it says what is seen at rest."""
    if not (drawn.startswith("<img") and (alt := ALT.search(drawn))):
        return caption[0]
    still = f"**Figure {caption[1]}.** A still; on the page of the chapter it moves. "
    return still + unescape(alt[1])


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
    if found:
        yield "On your own", text.items(f"{a} ({b})" for a, b in found)


def learned(cells, text):
    """Yield a slide with what one can say after the chapter."""
    found = re.findall(r"^- (.+(?:\n  .+)*)", joined(cells), re.M)
    found = [line for line in found if not line.startswith("(From the deeper")]
    if found:
        yield "What you can now say", text.items(found)


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

    def items(self, lines):
        """Return a list."""
        return f"<ul>{''.join(f'<li>{self.line(line)}</li>' for line in lines)}</ul>"

    def finished(self, html):
        """Return the styles of the formulas, and the HTML with the formulas in it."""
        config = yaml.safe_load((BOOK.parent / "_config.yml").read_text("utf-8"))
        macros = config["sphinx"]["config"]["formula_macros"]
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
