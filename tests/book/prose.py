"""Advice on prose, for its author: no test reads it.

.venv/bin/python -m tests.book.prose             all chapters and pages, a line each
.venv/bin/python -m tests.book.prose 04_masks    one page, with its long sentences
"""

import re
import sys

from tests.book.house import BOOK, ROOT, Page, portable

LONG = 30
WEAK = re.compile(
    r"\b(simply|just|obviously|of course|clearly|delve|powerful|crucial|"
    r"it[’']?s important to note|it is important to note|let[’']s)\b",
    re.IGNORECASE,
)
NO_PROSE = re.compile(r"\s*(#+ |\||:[\w-]+: |\(\S+\)=$|>|\[\S+\]: |[`:]{3,})")


def blocks(text):
    """Yield the paragraphs and list items of Markdown, without what is not prose."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = "\n".join("" if NO_PROSE.match(row) else row for row in text.split("\n"))
    text = portable().CITED.sub("", text)  # a source in brackets is not read aloud
    text = re.sub(r"\{[\w:-]+\}`([^`<]*)[^`]*`", r"\1", text)  # a role: its text
    text = re.sub(r"`.+?`", "code", text)
    text = re.sub(r"(?<!\\)\$[^$]+\$", "maths", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)  # a link: its text
    text = re.sub(r"<[^>\s][^>]*>", "", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*:]|\d+\.) )", text):
        if block.strip():
            yield " ".join(block.split())


def sentences(text):
    """Yield (number of words, sentence) of Markdown."""
    for block in blocks(text):
        for sentence in re.split(r"(?<=[.?!])[\"”’*_)]*\s+", block):
            yield len(re.findall(r"\w[\w’'-]*", sentence)), sentence


def report(path):
    """Return one line on a page."""
    text = Page.read(path).text
    lengths = [count for count, _ in sentences(text)]
    prose = "\n".join(blocks(text))
    weak = sorted({word.lower() for word in WEAK.findall(prose)})
    return (
        f"{path.stem:<22}{sum(lengths):>7} words{max(lengths, default=0):>5} longest"
        f"{sum(count > LONG for count in lengths):>5} long"
        f"{prose.count('—'):>4} dashes  {', '.join(weak)}"
    )


def main(names):
    paths = [*sorted(BOOK.glob("[0-9]*.ipynb")), *sorted(BOOK.glob("*.md"))]
    paths += [ROOT / "README.md"]
    chosen = [path for path in paths if not names or path.stem in names]
    for path in chosen:
        print(report(path))
        for count, sentence in sentences(Page.read(path).text) if names else ():
            if count > LONG:
                print(f"  {count}: {sentence}")


if __name__ == "__main__":
    main(sys.argv[1:])
