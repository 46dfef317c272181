"""Cells and exercises that run in the page, with Python in the browser."""

import os

import pytest

READY = "!document.querySelector('[aria-busy]')"
UNFOLD = "document.querySelectorAll('article details').forEach((d) => d.open = true)"
# Without white space, for which a page has its own rules
TEXT = """(nodes) => nodes.map((n) => n.textContent).join('').replace(/\\s/g, '')"""
# On a machine that does other work, a page waits longer for a cell.
PATIENCE = """(times) => {
    const set = window.setTimeout;
    window.setTimeout = (f, ms, ...a) => set(f, ms === 10_000 ? ms * times : ms, ...a);
}"""
ENDLESS = "def stable_softmax(x, axis):\n    while True:\n        pass"
RIGHT = """def stable_softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)"""


@pytest.fixture
def runs(open_page, html):
    """Return a function that opens a page with Python, all of it unfolded."""
    if not (html / "_static/runner/run.js").exists():
        pytest.skip("no Python for the pages: .ci/runner gets it")

    def open_one(name, **options):
        page = open_page(f"book/{name}", **options)
        page.set_default_timeout(240_000)
        script = page.locator("script[data-files]")
        assert script.count(), f"{name} was built before .ci/runner: build it again"
        page.evaluate(UNFOLD)
        page.evaluate(PATIENCE, max(1, os.getloadavg()[0] / os.cpu_count()))
        return page

    return open_one


def click(page, cell, text="Run"):
    """Run the cell, and return what it shows."""
    cell.get_by_role("button", name=text, exact=True).click()
    page.wait_for_function(READY, timeout=240_000)
    return cell.locator(".run-output")


def differing(page, name, only="core"):
    """Run the cells of a chapter, and return those that print what is not stored."""
    wrong = []
    for place in page.locator(f".tag_{only}:has(.run-tools)").all():
        kinds = place.get_attribute("class").split()
        number = next(kind for kind in kinds if kind.startswith("tag_run-"))
        button = "Check" if "tag_exercise-check" in kinds else "Run"
        shown = click(page, place, button)
        stored = page.locator(f".{number} > .cell_output:not(.run-output)")
        if stored.locator("img, svg, table").count():
            continue  # a picture, which stays
        texts = shown.evaluate_all(TEXT), stored.evaluate_all(TEXT)
        if texts[0].replace("Itprintsnothing.", "") != texts[1]:
            wrong.append((name, number, *texts))
    return wrong


@pytest.mark.parametrize("name", ["02_softmax", "05_attention", "07_split"])
def test_the_cells_of_a_core_print_in_the_page_what_is_stored(runs, name):
    assert differing(runs(name), name) == []


def exercise(page, name):
    """Return the cells of an exercise: where one writes, and the check."""
    for kind in ("tag_exercise", "tag_exercise-check"):
        classes = page.locator(f".{kind}:has-text('{name}')").first.get_attribute(
            "class"
        )
        number = next(one for one in classes.split() if one.startswith("tag_run-"))
        yield page.locator(f".{number}:has(.run-tools)")


def test_an_exercise_names_a_mistake_stops_what_does_not_end_and_passes(runs):
    page = runs("02_softmax")
    one, check = exercise(page, "stable_softmax")
    one.get_by_role("button", name="Edit").click()
    area = one.get_by_role("textbox")
    for answer, said in (
        (RIGHT.replace(" - x.max(axis, keepdims=True)", ""), "a large score overflows"),
        (RIGHT.replace("np.exp", "np.expo"), "AttributeError"),
        (RIGHT.replace("    e = ", "    print('x' * 10**6)\n    e = "), "printed"),
        (RIGHT, "passed"),
    ):
        area.fill(answer)
        assert said in click(page, check, "Check").inner_text()
    area.fill(ENDLESS)
    click(page, check, "Check")
    assert "Stopped after 10 s" in page.locator(".run-status").inner_text()
    page.reload()  # what was written is still there
    assert page.locator(".run-editor textarea").input_value() == ENDLESS


@pytest.mark.parametrize(
    ("name", "answer"),
    [("01_dot_product", "dot_product_by_hand"), ("05_attention", "attend")],
)
def test_an_untouched_exercise_says_so(runs, name, answer):
    page = runs(name)
    check = page.locator(".tag_exercise-check").first
    assert "not attempted yet" in click(page, check, "Check").inner_text()


def test_a_page_loads_python_only_when_it_is_asked(window, site, html):
    if not (html / "_static/runner/run.js").exists():
        pytest.skip("no Python for the pages: .ci/runner gets it")
    page, asked = window(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site}book/02_softmax.html", wait_until="networkidle")
    loaded = [url for url in asked if "/runner/" in url]
    assert {url.split("/")[-1].split("?")[0] for url in loaded} == {"run.js", "run.css"}


def test_the_readers_own_attention_is_compared_in_the_page(runs):
    page = runs("own_attention")
    box = page.locator("#your-attention")
    report = click(page, box, "Check").inner_text()
    assert "broken" in report and "✗" in report  # -1e9 is not -∞
