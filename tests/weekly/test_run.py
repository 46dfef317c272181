"""Every cell and every exercise of the book with NumPy alone, in the page."""

import pytest

from tests.book.load import ROOT
from tests.browser.test_run import differing, runs  # noqa: F401

CHAPTERS = sorted(path.stem for path in (ROOT / "book").glob("[01]*.ipynb"))
SLUGS = sorted(path.stem for path in (ROOT / "book/exercises").glob("[a-z]*.py"))
# The right answers pass, and each mistake that an exercise knows is named.
PROVE = """from exercises import {slug}
from exercises.engine import Exercise
for name, one in vars({slug}).items():
    if isinstance(one, Exercise):
        try:
            one.self_test()
        except AssertionError as error:  # a page says so at the cell
            assert "No module named 'torch'" in str(error), error
        print(name)"""
RUN = """async ([files, code]) => {
    const { Python } = await import("../_static/runner/python.js");
    const here = new URL("../_static/runner/", location);
    const python = new Python(files.split(" ").map((name) => new URL(name, here).href),
        new URL("worker.js", here));
    return python.run([code], 0, 600);
}"""


@pytest.mark.parametrize("name", CHAPTERS)
@pytest.mark.parametrize("level", ["core", "checks", "deeper"])
def test_the_cells_of_a_chapter_print_in_the_page_what_is_stored(runs, name, level):  # noqa: F811
    wrong = differing(runs(name), name, level)
    # Exercise 16.3 tries one version less where there is no PyTorch.
    assert [cell for cell in wrong if "tryingyourlaws" not in cell[2]] == []


@pytest.mark.parametrize("slug", SLUGS)
def test_the_exercises_of_a_chapter_judge_in_the_page_as_they_do_here(runs, slug):  # noqa: F811
    if slug == "engine":
        pytest.skip("it has none of its own")
    page = runs("02_softmax")
    files = page.locator("script[data-files]").get_attribute("data-files")
    result = page.evaluate(RUN, [files, PROVE.format(slug=slug)])
    if "needs" in result:
        pytest.skip(f"it needs {result['needs']}")
    assert "error" not in result
