"""The rules of the house: what every chapter and every page of the book must keep.

A rule takes a chapter (or a page) and yields complaints; who keeps it yields none.
`tests/book/test_book.py` runs each rule on each chapter, and on chapters that it must
refuse.
"""

import re
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

import nbformat

from tests.book.load import extension, load

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
MAX_DECIMALS = 4
NEVER = {
    "a magic or a shell command": r"^\s*(%|!|\?)",
    "sys.path": r"\bsys\.path\b",
    "a filter of warnings": r"\bwarnings\.(filter|simplefilter|catch)|capture_output",
    "the network": r"\b(urllib|requests|socket|urlopen|httpx?)\b|torch\.hub|https?://",
    "an absolute path": r"[\"'](~/|[A-Z]:\\\\|/(home|tmp|usr|root|opt|Users|mnt)\b)",
    "a private name": r"\w\._[a-z]|^\s*from mha\S* import .*\b_[a-z]",
    "time.sleep": r"\btime\.sleep\b",
    "matplotlib of its own": r"\bmatplotlib\b|\bpyplot\b|\bfigsize\b|\brcParams\b",
}
# Macros that only the pages know, see _config.yml.
MACROS = "softmax|Attention|MultiHead|Concat|head|dmodel|dff|diag|rank|Var|R|E"
NOT_PORTABLE = {
    "a role": r"\{[a-z]+(:[a-z]+)?\}`",
    "a directive": r"^\s*(`{3,}|:{3,})\{",
    "an option of a directive": r"^:[a-z-]+: ",
    "a label": r"^\(\S+\)=$",
    "a macro of ours": rf"\\({MACROS})\b",
}
ASKS = r"\*\*Before\s+you\s+\w+[^*]*:\*\*"
ANSWER = "<details>\n<summary>What happens</summary>\n\n"
DRAWN = r"(Picture|View):"  # what figures print, before their alt text
CHAPTER_RULES, PROSE_RULES = [], []


class Chapter:
    """A notebook, with the views of it that rules ask for; no rule changes it."""

    def __init__(self, notebook, stem):
        self.notebook, self.stem, self.cells = notebook, stem, notebook.cells

    @classmethod
    @cache
    def read(cls, path):
        return cls(nbformat.read(path, as_version=4), path.stem)

    @cached_property
    def code(self):
        return [cell for cell in self.cells if cell.cell_type == "code"]

    @cached_property
    def prose(self):
        return [cell.source for cell in self.cells if cell.cell_type == "markdown"]

    @cached_property
    def text(self):
        return "\n\n".join(self.prose)

    @cached_property
    def sections(self):
        """(heading of level 2, its cells), in order; before the first it is ''."""
        found = [("", [])]
        for cell in self.cells:
            if cell.cell_type == "markdown":
                found += [(h, []) for h in re.findall(r"^## (.+)$", cell.source, re.M)]
            found[-1][1].append(cell)
        return found


class Page:
    """A page of prose that is not a notebook."""

    def __init__(self, text, stem):
        self.text, self.stem = text, stem

    @classmethod
    @cache
    def read(cls, path):
        if path.suffix == ".ipynb":
            return Chapter.read(path)
        return cls(path.read_text(encoding="utf-8"), path.stem)


def chapter_rule(rule):
    CHAPTER_RULES.append(rule)
    return rule


def prose_rule(rule):
    PROSE_RULES.append(rule)
    return rule


@chapter_rule
def title_is_followed_by_a_sentence(chapter):
    title, _, promise = chapter.cells[0].source.strip().partition("\n")
    if not re.fullmatch(r"# [A-Z].{10,60}[^.]", title):
        yield f"the first line must be a title, got {title!r}"
    if not re.search(r"\w.*\.", promise):
        yield "below the title, one sentence says what is needed or promised"


@chapter_rule
def levels_begin_with_what_is_in_them(chapter):
    for heading, cells in chapter.sections:
        if heading in ("Code and checks", "Deeper"):
            paragraphs = cells[0].source.strip().split("\n\n")
            if cells[0].cell_type != "markdown" or len(paragraphs) != 2:
                yield f"{heading!r}: its first cell is the title and one paragraph"
        elif part(heading) == "Deeper":
            yield f"{heading!r} belongs under '## Deeper', as a section of level 3"


@chapter_rule
def code_keeps_to_itself(chapter):
    for cell in chapter.code:
        for thing, pattern in NEVER.items():
            if re.search(pattern, cell.source, re.M):
                yield f"{thing} in\n{cell.source}"


@chapter_rule
def outputs_are_clean(chapter):
    for cell in chapter.code:
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"ends in an error:\n{cell.source}"
            if output.get("name") == "stderr":
                yield f"writes to stderr: {output.text}\n{cell.source}"
        if re.search(r"(^|[\s\"'(])/(home|tmp|root|opt|usr|work|Users)/", shown(cell)):
            yield f"the output shows a path of this machine:\n{cell.source}"
        if private := re.search(r"(^|[\s.(*])_[a-z]\w+", shown(cell)):
            yield f"the output shows a private name, {private[0]}:\n{cell.source}"


@chapter_rule
def numbers_are_short(chapter):
    """Long numbers differ between processors, and nobody reads them."""
    for cell in chapter.code:
        if "nbval-ignore-output" not in tags(cell):
            pattern = rf"(?<![\w.])(?!0\.000)\d+\.\d{{{MAX_DECIMALS + 1},}}"
            long = re.findall(pattern, shown(cell))
            if long:
                yield f"more than {MAX_DECIMALS} decimals, {long[0]}:\n{cell.source}"


@chapter_rule
def figures_have_caption_and_name(chapter):
    for cell, following in pairwise([*chapter.cells, None]):
        if cell.cell_type == "code" and is_picture(cell):
            if not (following and captions(following)):
                yield f"no caption in the cell below a picture:\n{cell.source}"
            if len([o for o in cell.outputs if o.get("data", True)]) > 1:
                yield f"a picture shares its cell with another output:\n{cell.source}"
        elif following and following.cell_type == "markdown" and captions(following):
            yield f"a caption without a picture:\n{following.source}"


@chapter_rule
def figures_are_pictures_with_alt_text(chapter):
    for cell, following in pairwise([*chapter.cells, None]):
        caption = captions(following) if following else ""
        for data in filter(None, (o.get("data") for o in cell.get("outputs", ()))):
            alt = re.sub(DRAWN, "", data.get("text/plain", "")).strip()
            alt = alt if is_drawn(data) else ""
            drawn = {"image/png", "image/svg+xml", "image/jpeg"} & set(data)
            if (drawn or is_picture(cell)) and not alt:
                yield f"a figure that is no Picture with alt text:\n{cell.source}"
            if alt and alt == caption:
                yield f"alt text and caption say the same:\n{cell.source}"


@chapter_rule
def figures_show_where_no_script_runs(chapter):
    """An untrusted notebook shows PNG and <img>; its inline SVG becomes loose text."""
    for cell in chapter.code:
        for data in (output.get("data", {}) for output in cell.outputs):
            html = data.get("text/html", "")
            if is_drawn(data) and "image/png" not in data and "<img " not in html:
                yield f"a figure without PNG:\n{cell.source}"
            if "<svg" in html:
                yield f"a figure as inline SVG:\n{cell.source}"


@chapter_rule
def exercises_have_check_hint_and_link_to_a_solution(chapter):
    places = [k for k, cell in enumerate(chapter.cells) if "exercise" in tags(cell)]
    for start, end in pairwise([*places, len(chapter.cells)]):
        stub, *rest = chapter.cells[start:end]
        first = rest[0] if rest else stub
        if not (is_check(first) and "not attempted yet" in shown(first)):
            yield f"no check that prints 'not attempted yet' after\n{stub.source}"
        prose = "\n".join(c.source for c in rest if c.cell_type == "markdown")
        if "<details>\n<summary>Hint</summary>\n\n" not in prose:
            yield f"no folded hint for\n{stub.source}"
        if not re.search(r"\(solutions/\w+\.ipynb#cell-id=exercise-\d+-\d+\)", prose):
            yield f"no link to a solution of\n{stub.source}"


@chapter_rule
def solutions_are_kept_apart(chapter):
    for cell in chapter.code:
        if "solution" in tags(cell) or re.search(r"^passed", shown(cell), re.M):
            yield f"a solution that a learner did not ask for:\n{cell.source}"


@chapter_rule
def predicted_outputs_are_asked_for_and_answered_in_a_fold(chapter):
    asked = False
    for cell, following in pairwise([*chapter.cells, None]):
        asked = asks(cell) or (asked and not begins_a_section(cell))
        if "predict" in tags(cell):
            if not asked:
                yield f"the tag predict without a question:\n{cell.source}"
            if following is None or not (
                "predict" in tags(following) or following.source.startswith(ANSWER)
            ):
                yield f"no folded answer after\n{cell.source}"


@chapter_rule
def notebook_is_portable(chapter):
    """Where no plugin runs, a role or a directive is loose text."""
    for prose in chapter.prose:
        for thing, pattern in NOT_PORTABLE.items():
            if re.search(pattern, prose, re.M):
                yield f"{thing}, which only Sphinx reads, in\n{prose}"


@chapter_rule
def equations_with_a_number_have_an_address(chapter):
    for prose in chapter.prose:
        if len(portable().EQUATION.findall(prose)) != prose.count("\\tag{"):
            yield f'a \\tag without <a id="eq-…"></a> above it:\n{prose}'


@chapter_rule
def folds_are_closed(chapter):
    for prose in chapter.prose:
        folds = len(portable().FOLD.findall(prose))
        if {prose.count(f"<{end}details>") for end in ("", "/")} != {folds}:
            yield f"a fold that no reader can open or close:\n{prose}"


@prose_rule
def papers_are_cited_as_the_bibliography_has_them(page):
    """A link that names an author and a year is a citation, and must be in the book."""
    year = r"(?:19|20)\d\d"
    cited = rf"\[([A-Z][^\[\]]*?(?: \({year}\)|, {year}))\]\((\S+?)\)"
    for text, target in re.findall(cited, page.text):
        _, who, year = portable().entries().get(target, ("", "", ""))
        if text not in (f"{who} ({year})", f"{who}, {year}"):
            yield f"{text} is not how references.bib has {target}: {who} ({year})"


def part(heading):
    """Return the fixed part of a heading: 'Break it: a wrong axis' is 'Break it'."""
    return heading.partition(":")[0].strip()


def tags(cell):
    return set(cell.metadata.get("tags", []))


def shown(cell):
    """Return what a code cell shows, as text."""
    outputs = cell.get("outputs", [])
    return "\n".join(
        o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs
    )


def is_picture(cell):
    return any(is_drawn(output.get("data", {})) for output in cell.outputs)


def is_drawn(data):
    """Return whether an output is a Picture, or a View to move."""
    return re.match(DRAWN, data.get("text/plain", "")) is not None


def asks(cell):
    """Return whether a cell asks for a prediction."""
    return cell.cell_type == "markdown" and bool(re.search(ASKS, cell.source))


def begins_a_section(cell):
    return cell.cell_type == "markdown" and bool(re.search("^## ", cell.source, re.M))


def captions(cell):
    """Return the caption that a cell holds, or an empty text."""
    found = portable().CAPTION.fullmatch(cell.source)
    return found[3] if found and cell.cell_type == "markdown" else ""


def is_check(cell):
    return cell.cell_type == "code" and "check." in cell.source


@cache
def portable():
    """Return the extension that makes pages of notebooks."""
    return extension("portable")


@cache
def refresh():
    """Return `.ci/refresh` as a module; its name has no ending."""
    return load(ROOT / ".ci" / "refresh", "refresh")
