"""A notebook in JupyterLab, as a learner first meets it: untrusted and not run."""

import json
import re

import pytest

from tests.book.load import ROOT
from tests.browser.jupyterlab import enter, serve
from tests.browser.skips import JUPYTERLAB

pytest.importorskip("jupyterlab", reason=JUPYTERLAB)

NAME = "02_softmax"
RAW = re.compile(
    r"""\{(doc|eq|ref|numref|term|cite|math|py)\b[^}\n]*\}`   # a role
    | ```\{ | ^:\w+: | ^\([\w-]+\)=$                           # a directive, a label
    | \\(tag|begin|frac|sqrt|text|operatorname)\b | \$\$       # a formula
    | </?(a|p|b|div|svg|details|summary)\b                     # HTML
    | Undefined\ control\ sequence""",
    re.VERBOSE | re.MULTILINE,
)
CELLS = json.loads((ROOT / "book" / f"{NAME}.ipynb").read_text("utf-8"))["cells"]


@pytest.fixture(scope="module")
def lab(chromium, tmp_path_factory):
    """Return a page with JupyterLab and the notebook, on a small laptop."""
    with serve(tmp_path_factory.mktemp("jupyterlab")) as url:
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        enter(page, url)
        page.evaluate("path => book.open(path)", f"book/{NAME}.ipynb")
        page.evaluate("book.expand()")
        yield page
        page.close()


def tagged(tag):
    return [c["id"] for c in CELLS if tag in c["metadata"].get("tags", ())]


def test_a_notebook_reads_well_before_and_after_its_folds_are_opened(lab):
    first = lab.evaluate("book.look()")
    lab.evaluate("book.unfold()")
    seen = lab.evaluate("book.look()")
    for look in (first, seen):
        assert [found[0] for found in RAW.finditer(look["text"])] == []
        assert look["broken"] == look["dialogs"] == look["errors"] == []
    assert first["folds"] == [False] * len(first["folds"])
    assert seen["folds"] == [True] * len(first["folds"])
    prose = "".join("".join(c["source"]) for c in CELLS if c["cell_type"] != "code")
    numbers = [f"({tag})" for tag in re.findall(r"\\tag\{([\d.]+)\}", prose)]
    assert numbers and seen["numbers"] == numbers
    assert set(seen["links"]) <= set(seen["anchors"])
    images = [
        i for c in seen["cells"].values() for o in c["outputs"] for i in o["images"]
    ]
    assert len(images) > 3 and min(width for _, width in images) > 200
    for name in tagged("predict"):
        assert first["cells"][name]["outputs"] == []
        assert seen["cells"][name]["outputs"] != []
    assert not re.search("^passed: ", seen["text"], re.MULTILINE)


def test_a_link_to_another_file_opens_it(lab):
    lab.locator(".jp-RenderedMarkdown a[href*='solutions/']").first.click()
    lab.wait_for_function(
        "path => book.path() === path", arg=f"book/solutions/{NAME}.ipynb"
    )
