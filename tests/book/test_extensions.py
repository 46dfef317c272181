"""What the Sphinx extensions of the book promise about its pages."""

import json
import re
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")

from tests.book.load import ROOT, extension, load

# Formulas

MACROS = {"R": "\\mathbb{R}"}


def test_a_formula_is_typeset_with_our_macros_and_readable_aloud():
    formulas = extension("formulas")
    css, html = formulas.typeset([("x \\in \\R", False)], MACROS)
    assert '<mi mathvariant="double-struck">R</mi>' in html["x \\in \\R", False]
    assert "mjx-c.mjx-c1D465" in css  # the letter x of the fonts


def test_inline_and_displayed_formulas_are_told_apart():
    formulas = extension("formulas")
    _, html = formulas.typeset([("x", False), ("x", True)], {})
    assert 'display="true"' in html["x", True]
    assert 'display="true"' not in html["x", False]


def test_a_formula_with_a_mistake_is_marked():
    formulas = extension("formulas")
    _, html = formulas.typeset([("\\frac{1}", False)], {})
    assert re.search('data-mjx-error="[^"]+"', html["\\frac{1}", False])


def test_lines_that_break_are_aligned():
    formulas = extension("formulas")

    class Block(dict):
        def __init__(self, tex, **options):
            super().__init__(options)
            self.tex = tex

        def astext(self):
            return self.tex

    broken = formulas.displayed(Block("a &= b \\\\ c &= d"))
    assert broken == "\\begin{split}a &= b \\\\ c &= d\\end{split}"
    whole = "\\begin{aligned}a \\\\ b\\end{aligned}"
    assert formulas.displayed(Block(whole)) == whole
    assert formulas.displayed(Block("a \\\\ b", nowrap=True)) == "a \\\\ b"


def test_a_formula_is_typeset_once_for_all_pages_in_a_fixed_order():
    formulas = extension("formulas")
    x, y, z = ("x", False), ("x", True), ("z", False)
    pages = {"b": {"formulas": [x, z]}, "a": {"formulas": [y, x, x]}}
    env = SimpleNamespace(all_docs=pages, metadata=pages)
    assert formulas.formulas_of(env) == [y, x, z]


# How many processes write it


@pytest.mark.parametrize(
    ("system", "cores", "expected"),
    [("linux", 2, 2), ("linux", 64, 4), ("linux", None, 1), ("darwin", 8, 1)],
)
def test_the_book_is_written_by_one_process_a_core_where_it_can_fork(
    monkeypatch, system, cores, expected
):
    quick = extension("quick")
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr("sys.platform", system)
    assert quick.processes() == expected


# What a page loads

PAGE = """<i class="fa-solid fa-bars"></i>
<script defer src="_static/scripts/fontawesome.js?digest=1"></script>
<script src="_static/documentation_options.js"></script>
<script src="_static/doctools.js"></script>
<script src="searchindex.js"></script>
<script type="text/x-thebe-config">{}</script>"""
FONT = 'var a={bars:[448,512,["navicon"],"f0c9","M0 9"]},b={bars:[4,5,[],"f0","M1"]}'


def test_icons_become_drawings_and_the_script_for_them_goes():
    slim = extension("slim")
    page = slim.slim(PAGE, slim.Icons(FONT))
    assert '<path fill="currentColor" d="M1"/>' in page
    assert "fontawesome" not in page and "thebe" not in page


def test_an_icon_is_found_by_its_other_name():
    slim = extension("slim")
    assert slim.Icons(FONT).shape("navicon") == ("448", "512", "M0 9")


def test_the_search_index_stays_where_the_results_are():
    slim = extension("slim")
    icons = slim.Icons(FONT)
    assert "searchindex.js" not in slim.slim(PAGE, icons)
    assert "searchindex.js" in slim.slim(PAGE + '<div id="search-results">', icons)


def test_scripts_wait_for_the_page_but_the_options_do_not():
    slim = extension("slim")
    page = slim.slim(PAGE, slim.Icons(FONT))
    assert '<script defer src="_static/doctools.js">' in page
    assert '<script src="_static/documentation_options.js">' in page


def test_the_front_door_is_a_whole_page():
    slim = extension("slim")
    door = slim.redirect('<meta http-equiv="Refresh" content="0; url=a/b.html" />', "A")
    assert door.startswith("<!DOCTYPE html>") and "<title>A</title>" in door
    assert door.count("a/b.html") == 2


# Where it is published

FORK = {
    "BOOK_ADDRESS": "https://somebody.example/book",
    "BOOK_REPOSITORY": "https://github.com/somebody/book.git",
}


def test_a_fork_is_named_by_the_environment_alone():
    publish = extension("publish")
    address, repository, branch = publish.addresses(FORK)
    assert address == "https://somebody.example/book/"
    assert repository == "https://github.com/somebody/book"
    assert branch == "main"
    assert publish.addresses({}) == ("", "", "main")


def test_an_address_that_is_none_is_refused():
    publish = extension("publish")
    with pytest.raises(ValueError, match="BOOK_ADDRESS must start with https://"):
        publish.addresses({"BOOK_ADDRESS": "somebody.example"})


def test_launch_links_appear_only_where_they_work():
    publish = extension("publish")
    github = publish.theme_options("https://github.com/somebody/book", "main")
    other = publish.theme_options("https://git.example/somebody/book", "main")
    assert "launch_buttons" in github and "launch_buttons" not in other


def test_colab_opens_the_copy_that_installs_the_package(monkeypatch):
    publish = extension("publish")
    monkeypatch.delenv("BOOK_BRANCH", raising=False)
    path = "somebody/book/blob/main/book/01_dot_product.ipynb"
    button = {"url": f"{publish.COLAB}/github/{path}"}
    context = {"header_buttons": [{"buttons": [button, {"url": "other"}]}]}
    publish.point_at_copies(None, "", "", context, None)
    assert button["url"].endswith("/blob/colab/book/01_dot_product.ipynb")


def test_the_copy_for_colab_installs_before_it_computes(tmp_path):
    colab = load(ROOT / ".ci" / "colab", "colab")
    colab.main(FORK["BOOK_REPOSITORY"], tmp_path)
    pattern = "book/**/[0-9]*.ipynb"
    copies = sorted(path.relative_to(tmp_path) for path in tmp_path.glob(pattern))
    assert copies == sorted(path.relative_to(ROOT) for path in ROOT.glob(pattern))
    for name in copies:
        copy = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        stored = json.loads((ROOT / name).read_text(encoding="utf-8"))
        added, *rest = (c for c in copy["cells"] if c not in stored["cells"])
        assert rest == [] and "install" == added["id"]
        assert next(c for c in copy["cells"] if c["cell_type"] == "code") == added
        source = "".join(added["source"])
        assert FORK["BOOK_REPOSITORY"] in source
        assert f"%cd /content/head-by-head/{name.parent.as_posix()}" in source
        # a second run clones nothing, and every path is absolute
        assert "[ -d /content/head-by-head ] ||" in source
        assert "clone --quiet --depth 1 " in source and " head-by-head" not in source
