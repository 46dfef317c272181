"""The extension that sets what laws and exercises print."""

import json
import re
from collections import Counter
from html import unescape

import pytest

from tests.book.load import ROOT, extension

BOOK = ROOT / "book"
BEGINS = ("✓ ", "✗ ", "passed: ", "not yet: ", "not attempted yet: ")
# What a page shows in another way: as a matrix, without its name, as a title.
APART = re.compile(r"zeros of shape .+, but .+|^    law |^[✓–] (?=held|not)", re.M)
BROKEN = """✗ permuting the keys changes nothing
    law       laws.key_order_is_free
    W_Q       zeros of shape (2, 3), but -1 at [1, 2]
    mask      [[True, False]]
    expected  [[0, 0.391]]
    got       [[0, 1]]
    seed      0
    because   a sum does not depend on the order of its terms
"""


def printed():
    """Yield the name of a notebook or page, and each text that a report begins."""
    for path in sorted(BOOK.rglob("[0-9]*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in (o for cell in cells for o in cell.get("outputs", ())):
            text = output.get("text") or output.get("data", {}).get("text/plain", ())
            yield path.name, "".join(text)
    for path in sorted(BOOK.glob("*.md")):
        found = re.findall(r"^```text\n(.+?)^```", path.read_text("utf-8"), re.M | re.S)
        yield from ((path.name, text) for text in found)


REPORTS = [
    (name, text)
    for name, text in printed()
    if any(line.startswith(BEGINS) for line in text.split("\n"))
]


def words(text):
    """Return how often each word is there, however a page writes it."""
    text = text.lower().replace("−", "-").replace("∞", "inf").replace("_", "")
    return Counter(re.findall(r"[^\s\[\],:]+", text))


@pytest.fixture(scope="module")
def report():
    return extension("report")


def test_every_stored_report_is_set_and_loses_no_word(report):
    assert len(REPORTS) > 100
    for name, text in REPORTS:
        html = report.html(text)
        assert html, (name, text)
        assert html.count(' seen">') == text.count("\n    expected "), (name, text)
        html = re.sub(r"</(p|b|i|summary|span|code|pre)>", " ", html)
        shown = words(unescape(re.sub(r"<[^>]+>", "", html)))
        said = words(APART.sub("", text))
        assert not said - shown, (name, text)


def test_what_differs_is_marked_and_zeros_become_a_matrix(report):
    html = report.html(BROKEN)
    assert re.findall(r'"differs">([^<]+)', html) == ["0.391", "1"]
    assert html.count("<i") == 2 + 2 + 2 + 6
    assert "−1" in html and "<sub>Q</sub>" in html and "--mha-query" in html


@pytest.mark.parametrize(
    "text",
    [
        "             right  wrong\nrows_sum        ·      ✗\n",
        BROKEN.replace("    seed ", "  seed "),
        f"  indented\n{BROKEN}",
    ],
)
def test_what_cannot_be_read_to_the_last_line_stays_as_printed(report, text):
    assert report.html(text) is None
