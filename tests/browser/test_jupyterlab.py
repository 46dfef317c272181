"""Every notebook in JupyterLab, as a learner first meets it: untrusted and not run."""

import json
import re

import nbformat
import pytest

from tests.book.house import refresh
from tests.book.load import ROOT
from tests.browser.jupyterlab import enter, notebooks, serve
from tests.browser.skips import JUPYTERLAB

pytest.importorskip("jupyterlab", reason=JUPYTERLAB)

CHAPTERS = [name for name in notebooks() if "/" not in name]
RAW = re.compile(
    r"""\{(doc|eq|ref|numref|term|cite|math|py)\b[^}\n]*\}`   # a role
    | ```\{ | ^:\w+: | ^\([\w-]+\)=$                           # a directive, a label
    | \\(tag|begin|frac|sqrt|text|operatorname)\b | \$\$       # a formula
    | </?(a|p|b|div|svg|details|summary)\b                     # HTML
    | Undefined\ control\ sequence""",
    re.VERBOSE | re.MULTILINE,
)
FOLDS = re.compile(r"<details>.*?</details>", re.DOTALL)
SOLUTIONS = "book/solutions/06_why_heads.ipynb"
RUN = "02_softmax"  # a chapter that takes few seconds and has two views
LEAST = 200  # pixels; no figure of the book is narrower
COLUMN = 700  # pixels; a wider figure shrinks to the column of the notebook


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serve(tmp_path_factory.mktemp("jupyterlab")) as url:
        yield url


@pytest.fixture(scope="module")
def lab(chromium, server):
    """Return a page with JupyterLab, on the screen of a small laptop."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    enter(page, server)
    yield page
    page.close()


@pytest.fixture(scope="module")
def look(lab, request):
    """Return the cells of a notebook, what is seen at first, and what when unfolded."""
    lab.evaluate("path => book.open(path)", f"book/{request.param}.ipynb")
    lab.evaluate("book.expand()")
    first = lab.evaluate("book.look()")
    lab.evaluate("book.unfold()")
    unfolded = lab.evaluate("book.look()")
    lab.evaluate("book.close()")
    return stored(request.param), first, unfolded


def each(names=CHAPTERS):
    return pytest.mark.parametrize("look", names, indirect=True)


def stored(name):
    text = (ROOT / "book" / f"{name}.ipynb").read_text(encoding="utf-8")
    return json.loads(text)["cells"]


def prose(cells):
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]


def written(cells):
    """Return the Markdown that code cells have written."""
    outputs = [output for c in cells for output in c.get("outputs", ())]
    return ["".join(o.get("data", {}).get("text/markdown", "")) for o in outputs]


def figures(cells):
    """Return the ids of the cells whose output is a figure."""
    return [c["id"] for c in cells if any(map(is_figure, c.get("outputs", ())))]


def is_figure(output):
    data = output.get("data", {})
    return "image/png" in data or "<img " in "".join(data.get("text/html", ""))


def tagged(cells, tag):
    return [c["id"] for c in cells if tag in c["metadata"].get("tags", ())]


def size_of_its_own(image):
    """Tell whether an image is large enough to be read, and not blown up."""
    natural, width = image
    return width > LEAST and (abs(width - natural) < 2 or COLUMN < width < natural)


# At first


@each(notebooks())
def test_no_markup_is_seen_as_text(look):
    for seen in look[1:]:
        assert [found[0] for found in RAW.finditer(seen["text"])] == []
        assert seen["broken"] == seen["dialogs"] == []


@each(notebooks())
def test_no_output_is_an_error_or_scrolls_sideways(look):
    assert look[2]["errors"] == look[2]["wide"] == []


@each()
def test_every_hint_and_answer_is_folded_and_opens(look):
    cells, first, unfolded = look
    folds = sum(text.count("<details>") for text in prose(cells) + written(cells))
    assert first["folds"] == [False] * folds
    assert unfolded["folds"] == [True] * folds


@each()
def test_no_solution_is_seen_unasked(look):
    assert not re.search("^passed: ", look[2]["text"], re.MULTILINE)


@each()
def test_every_figure_is_an_image_of_its_own_size_and_nothing_else(look):
    cells, _, seen = look
    assert len(figures(cells)) > 0
    for name in figures(cells):
        (shown,) = seen["cells"][name]["outputs"]
        assert shown["text"] == "", f"loose labels in the output of {name}"
        (image,) = shown["images"]
        assert size_of_its_own(image), (name, image)


@each()
def test_every_caption_is_seen_unless_it_would_answer_a_question(look):
    cells, first, unfolded = look
    text = "\n\n".join(prose(cells))
    captions = [
        re.findall(r"^\*\*Figure ([\d.]+)\.\*\*", part, re.MULTILINE)
        for part in (FOLDS.sub("", text), text)
    ]
    assert [first["captions"], unfolded["captions"]] == captions
    assert len(captions[1]) == len(figures(cells))


@each()
def test_equations_have_the_numbers_of_the_file(look):
    cells, _, seen = look
    tags = re.findall(r"\\tag\{([\d.]+)\}", "".join(prose(cells)))
    assert len(tags) > 0
    assert seen["numbers"] == [f"({tag})" for tag in tags]


@each()
def test_a_link_within_a_notebook_has_a_target(look):
    seen = look[2]
    assert set(seen["links"]) <= set(seen["anchors"])


@each([name for name in CHAPTERS if "overview" not in name])
def test_what_a_reader_is_to_predict_is_folded(look):
    cells, first, unfolded = look
    asked = tagged(cells, "predict")
    assert len(asked) > 0
    for name in asked:
        assert first["cells"][name]["outputs"] == [], name
        assert unfolded["cells"][name]["outputs"] != [], name


@each()
def test_not_even_the_first_line_of_a_folded_answer_is_seen(look):
    cells, first, _ = look
    previews = {
        name: first["cells"][name]["preview"] for name in tagged(cells, "predict")
    }
    assert {name: line for name, line in previews.items() if line} == {}


# Deeper sections


def test_a_deeper_section_is_closed_at_first_and_opens(lab):
    lab.evaluate(
        """content => jupyterapp.serviceManager.contents.save(
            "book/deeper.ipynb", { type: "notebook", format: "json", content })""",
        nbformat.reads(refresh().in_form(deeper(), "00_deeper"), 4),
    )
    lab.evaluate("book.open('book/deeper.ipynb')")
    closed, _ = lab.evaluate("book.look()"), lab.evaluate("book.expand()")
    opened = lab.evaluate("book.look()")
    lab.evaluate("book.close()")
    assert "## " not in opened["text"]
    assert [("Below" in seen["text"]) for seen in (closed, opened)] == [False, True]
    for seen in (closed, opened):
        assert "Deeper: more" in seen["text"] and "Next" in seen["text"]


def deeper():
    texts = "# Title", "## Deeper: more\n\nWhy.", "Below.", "## Next"
    return nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_markdown_cell, texts)])


# Links


@pytest.fixture
def opened(lab):
    """Return a function that opens a notebook in JupyterLab, to be closed again."""

    def open_one(notebook, **kernel):
        script = "([path, kernel]) => book.open(path, kernel)"
        lab.evaluate(script, [f"book/{notebook}.ipynb", kernel])
        lab.evaluate("book.expand()")
        return lab.locator(".jp-NotebookPanel:visible")

    yield open_one
    lab.evaluate("book.close()")


def test_a_link_to_an_equation_leads_there(lab, opened):
    notebook = opened("02_softmax")
    links = notebook.locator("a[href='#eq-softmax']").filter(visible=True)
    links.last.click()
    lab.wait_for_function("book.arrived('eq-softmax')")


@pytest.mark.parametrize(
    ("name", "href", "path"),
    [
        ("16_long", "02_softmax.ipynb", "book/02_softmax.ipynb"),
        ("00_overview", "prerequisites.md", "book/prerequisites.md"),
        ("08_output", "mha/heads.py", "mha/heads.py"),
        ("08_output", "solutions/08_output.ipynb", "book/solutions/08_output.ipynb"),
        ("solutions/08_output", "08_output.ipynb", "book/08_output.ipynb"),
    ],
)
def test_a_link_to_another_file_opens_it_in_jupyterlab(lab, opened, name, href, path):
    notebook = opened(name)
    notebook.locator(f".jp-RenderedMarkdown a[href*='{href}']").first.click()
    lab.wait_for_function(
        "path => jupyterapp.shell.currentWidget?.context?.path === path", arg=path
    )


def test_a_link_to_a_solution_leads_to_its_exercise(chromium, tmp_path):
    with serve(tmp_path, settings={}) as url:  # as a learner has it
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        enter(page, url)
        page.evaluate("path => book.open(path)", "book/06_why_heads.ipynb")
        page.locator("a[href$='#cell-id=exercise-6-5']").click()
        page.wait_for_function("path => book.path() === path", arg=SOLUTIONS)
        page.wait_for_function("book.arrived('exercise-6-5')")
        page.close()


# After Run all


def test_after_run_all_figures_are_images_and_views_are_alive(lab, opened):
    notebook = opened(RUN, name="python3", shouldStart=True)
    lab.evaluate("book.run()")
    seen = lab.evaluate("book.look()")
    cells = stored(RUN)
    assert seen["errors"] == seen["wide"] == seen["dialogs"] == []
    printing = [c["id"] for c in cells if c.get("outputs")]
    assert [each for each in printing if not seen["cells"][each]["outputs"]] == []
    views = notebook.locator(".mha-view .live")
    images = [image for each in figures(cells) for image in pictures(seen, each)]
    assert len(images) + views.count() == len(figures(cells))
    assert [image for image in images if not size_of_its_own(image)] == []
    assert moves(notebook.locator(".mha-softmax"))


def pictures(seen, name):
    return [
        image for output in seen["cells"][name]["outputs"] for image in output["images"]
    ]


def moves(view):
    """Tell whether the weights change with the temperature, by keyboard."""
    before = view.get_attribute("data-weights")
    view.get_by_role("slider", name="temperature").press("ArrowRight")
    return before and view.get_attribute("data-weights") != before
