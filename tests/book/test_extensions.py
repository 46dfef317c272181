"""What the Sphinx extensions of the book promise about its pages."""

import json
import re
from pathlib import Path
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


def test_a_wide_formula_comes_in_pieces_that_begin_with_a_relation():
    formulas = extension("formulas")
    tex = "a + b + c + d + e + f + g + h = i + j + k + l + m + n + o + p = q"
    _, html = formulas.typeset([(tex, True), ("a = b", True)], {})
    pieces = html[tex, True].split("<mjx-piece>")[1:]
    assert len(pieces) == 3
    assert all(
        re.match(r"<mjx-mo[^>]*><mjx-c class=\"mjx-c3D\"", p) for p in pieces[1:]
    )
    assert "mjx-piece" not in html["a = b", True]


def test_a_formula_that_cannot_break_says_how_much_room_it_needs():
    formulas = extension("formulas")
    tex = "\\begin{aligned} a &= b + c + d + e + f + g + h + i + j + k \\end{aligned}"
    _, html = formulas.typeset([(tex, True)], {})
    assert 16 < float(re.search(r"--need: ([\d.]+)", html[tex, True])[1]) < 30


def test_no_piece_begins_within_brackets_while_there_is_another_way():
    formulas = extension("formulas")
    tex = "f(a = b, c = d, e = g) = h(i = j, k = l, m = n) = o(p = q, r = s, t = u)"
    _, html = formulas.typeset([(tex, True)], {})
    assert html[tex, True].count("<mjx-piece>") == 3


def paragraph(*parts):
    """Return a paragraph of text and formulas, and itself after keep_together."""
    from docutils import nodes

    tree = nodes.paragraph("", "", *parts)
    extension("formulas").keep_together(tree)
    return tree


def test_a_formula_stays_with_the_signs_around_it():
    from docutils import nodes

    x = nodes.math("", "x")
    tree = paragraph(nodes.Text("all of ("), x, nodes.Text("), and more"))
    assert [child.astext() for child in tree] == ["all of ", "(x),", " and more"]
    assert tree[1]["classes"] == ["together"]
    assert tree.astext() == "all of (x), and more"


def test_a_formula_between_words_is_left_as_it_is():
    from docutils import nodes

    tree = paragraph(nodes.Text("here "), nodes.math("", "x"), nodes.Text(" is"))
    assert isinstance(tree[1], nodes.math)


def test_dollars_in_a_title_become_a_formula(tmp_path):
    from docutils import nodes

    formulas = extension("formulas")
    title = nodes.Text("Without $O(n^2)$ memory")
    entry = nodes.citation("", nodes.paragraph("", "", title))
    tree = nodes.document(None, None, "", entry)
    formulas.read_titles(tree)
    assert [node.astext() for node in tree.findall(nodes.math)] == ["O(n^2)"]
    assert tree.astext() == "Without O(n^2) memory"
    source = tmp_path / "a.bib"
    source.write_text("title = {Without {$O(n^2)$} memory}", encoding="utf-8")
    assert formulas.formulas_of_titles([source]) == [("O(n^2)", False)]


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


def test_the_theme_asks_all_boxes_before_it_writes_to_one():
    slim, theme = extension("slim"), pytest.importorskip("pydata_sphinx_theme")
    static = Path(theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    script = (static / slim.THEME).read_text(encoding="utf-8")
    assert all(len(pattern.findall(script)) == 1 for pattern, _ in slim.STOPS)
    for pattern, _ in slim.STOPS:
        assert not pattern.search(slim.ask_at_once(script))


def test_scripts_wait_for_the_page_but_the_options_do_not():
    slim = extension("slim")
    page = slim.slim(PAGE, slim.Icons(FONT))
    assert '<script defer src="_static/doctools.js">' in page
    assert '<script src="_static/documentation_options.js">' in page


def test_each_word_that_folds_code_is_named_by_what_the_code_draws():
    slim = extension("slim")
    number = '<span class="caption-number">Figure 2.3 </span>'
    output = '<div class="cell_output docutils">'
    assert slim.label("source", f"{output}{number}") == "Code of Figure 2.3"
    assert slim.label("source", f"{output}<table>") == "Code of the table"
    assert slim.label("source", f"{output}<pre>") == "Code of the output"
    assert slim.label("source", "") == "Code"
    assert slim.label("output", f"{output}{number}") == "Output"


BAR = """<div class="cell tag_hide-input"><summary>
<span class="collapsed admonition-title">Show code cell source</span>
<span class="expanded admonition-title">Hide code cell source</span>
</summary>{}</div>"""


def test_a_bar_takes_the_number_of_its_own_cell():
    slim = extension("slim")
    numbers = ("4.1", "4.2")
    captions = [f'<span class="caption-number">Figure {n} </span>' for n in numbers]
    page = slim.name_folds("".join(map(BAR.format, captions)))
    assert re.findall(r"Code of Figure ([\d.]+)", page) == list(numbers)
    assert "code cell" not in page


def test_one_viewport_stays_and_a_description_ends_with_a_sentence():
    slim = extension("slim")
    tag = '<meta name="viewport" content="width=device-width" />'
    assert slim.one_viewport(f"a{tag}b{tag}c{tag}d") == f"a{tag}bcd"
    start = '<meta name="description" content="'
    cut = slim.DESCRIPTION.sub(slim.whole_sentences, f'{start}One. Two is cut..." />')
    assert cut == f'{start}One." />'
    whole = f'{start}No sentence ends here..." />'
    assert slim.DESCRIPTION.sub(slim.whole_sentences, whole) == whole


# What fits its column


def highlighted(code):
    """Return Python code as a page holds it."""
    from pygments import highlight
    from pygments.lexers import PythonLexer

    return highlight(code, PythonLexer(), extension("fit").Lines())


LONG = "    total = 'a string that makes this line long' + name\n"


def test_each_line_of_a_wide_block_knows_its_indent():
    html = highlighted(f"def total(name):\n{LONG}\n    return total\n")
    assert f'style="--columns: {len(LONG) - 1}"' in html
    assert re.findall(r"--indent: (\d+)", html) == ["4", "4"]
    assert html.count('<span class="line"') == 3  # an empty line needs none


def test_the_text_of_a_block_stays_what_it_was():
    code = f"def total(name):\n{LONG}\n    return total\n"
    text = re.sub("<[^>]*>", "", highlighted(code)).replace("&#39;", "'")
    assert text == f"{code}\n"  # the last one stands behind the block


def test_a_narrow_block_is_left_alone():
    assert "line" not in highlighted("a = 1\nb = 2\n")


def test_only_code_with_a_colour_of_its_own_gets_a_tag():
    html = highlighted("from math import tau\nprint(tau, 2)\n")
    assert re.findall('<span class="(\\w+)">', html) == ["kn", "kn", "nb", "mi"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_code_without_a_tag_has_the_colour_of_the_text(theme):
    styles = pytest.importorskip("pygments.styles")
    from pygments.token import Text

    style = styles.get_style_by_name(f"a11y-high-contrast-{theme}")
    plain = style.style_for_token(Text)
    for kind in extension("fit").PLAIN:
        assert style.style_for_token(kind) == plain, kind


PICTURE = """<svg class="mha-picture" viewBox="0 0 716 200" style="display: block">
<text style="font-size: 8.5px">a</text><text style="font-size: 30px">b</text></svg>"""


def test_small_text_in_a_picture_may_grow_and_large_text_stays():
    fit = extension("fit")
    page = fit.DRAWING.sub(fit.legible, PICTURE)
    least = fit.LEAST * 716 / fit.COLUMN
    assert f'style="--on-a-phone: {least:.2f}px; display' in page
    assert "font-size: max(8.5px, var(--least, 0px))" in page
    assert "font-size: 30px" in page


def a_table(columns):
    """Return the HTML of a table with one row."""
    heads = "".join(f"<th>head {i}</th>" for i in range(columns))
    cells = "".join(f"<td><code>cell_{i}</code></td>" for i in range(columns))
    return (
        f'<table class="table"><thead><tr>{heads}</tr></thead>'
        f"<tbody><tr>{cells}</tr></tbody></table>"
    )


def test_a_wide_table_keeps_the_head_of_each_cell_and_what_it_is():
    fit = extension("fit")
    wide = fit.TABLE.sub(fit.table, a_table(5))
    assert re.findall(r'data-head="(.*?)"', wide) == [f"head {i}" for i in range(5)]
    roles = re.findall(r'role="(\w+)"', wide)
    assert roles.count("cell") == roles.count("columnheader") == 5
    assert roles.count("table") == 1 and roles.count("rowgroup") == 2


@pytest.mark.parametrize(
    ("cell", "is_card"), [("−2", False), ("(2, 0)", False), ("1,000,000", True)]
)
def test_a_table_of_short_numbers_stays_a_table_on_a_phone(cell, is_card):
    fit = extension("fit")
    numbers = re.sub("<code>cell_[1-4]</code>", cell, a_table(5))
    assert ("data-head" in fit.TABLE.sub(fit.table, numbers)) == is_card


def test_names_in_a_narrow_table_may_break_and_the_rest_stays():
    fit = extension("fit")
    narrow = fit.TABLE.sub(fit.table, a_table(3))
    assert narrow.replace("<wbr>", "") == a_table(3)
    assert "<code>cell_<wbr>0</code>" in narrow


# One stylesheet

STYLES = """@charset "UTF-8";
/* a comment { */
.used, .gone { color: red; background: url("../images/a.svg") }
.gone:hover { color: red }
:is(.gone, p) { content: "}" }
@media print { .gone { color: red } .used { color: blue } }
@media print { .gone { color: red } }
@font-face { src: url(../vendor/icons.woff) }
@keyframes turn { from { top: 0 } }
"""


def test_rules_that_no_page_needs_go_and_the_rest_stays(tmp_path):
    bundle = extension("bundle")
    (tmp_path / "_static" / "styles").mkdir(parents=True)
    (tmp_path / "_static" / "styles" / "a.css").write_text(STYLES)
    css = bundle.bundle(["_static/styles/a.css"], tmp_path, {"used"})
    assert css == (
        '.used{color: red;background: url("images/a.svg")}'
        ':is(.gone, p){content: "}"}'
        "@media print{.used{color: blue}}"
        "@keyframes turn{from{top: 0}}"
    )


def test_a_page_loads_the_bundle_once_and_its_own_styles_after_it():
    bundle = extension("bundle")
    link = '<link rel="stylesheet" href="../_static/{}.css?v=1" />'
    page = "".join(map(link.format, ("a", "b", "own")))
    linked = bundle.relink(page, "book", ["_static/a.css", "_static/b.css"], "7")
    assert list(bundle.sheets(linked, "book")) == [bundle.BUNDLE, "_static/own.css"]
    assert "../_static/pages.css?v=7" in linked
    again = bundle.relink(linked, "book", ["_static/a.css", "_static/b.css"], "8")
    assert again == linked.replace("v=7", "v=8")


def test_a_build_that_writes_nothing_leaves_the_bundle_as_it_is(tmp_path):
    bundle = extension("bundle")
    builder = SimpleNamespace(name="html")
    app = SimpleNamespace(outdir=str(tmp_path), builder=builder)
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a.css").write_text("p { color: red }")
    link = '<link rel="stylesheet" href="_static/a.css?v=1" />'
    (tmp_path / "search.html").write_text(link)
    bundle.bundle_all(app, None)
    first = (tmp_path / bundle.BUNDLE).read_text()
    bundle.bundle_all(app, None)  # the search names the bundle already
    assert (tmp_path / bundle.BUNDLE).read_text() == first == "p{color: red}"


# What the search knows


def test_the_index_says_how_often_and_leaves_once_unsaid():
    search = extension("search")
    pages = [{"mask": 1, "masks": 2, "a": 1}, {"mask": 1}, {"masks": 5}]
    found = search.times(pages, lambda word: word.removesuffix("s"))
    assert found == {"mask": [0, 3, 2, 5]}


# Addresses of before, and addresses of nothing

CONF = """
import sys
sys.path.insert(0, {folder!r})
extensions = ["moved"]
project = "Small"
html_theme = "basic"
moved_pages = {pages!r}
"""


def build(tmp_path, pages):
    """Build a small book, and return its folder and what Sphinx warns of."""
    import io

    from sphinx.application import Sphinx

    source, out = tmp_path / "source", tmp_path / "out"
    (source / "book").mkdir(parents=True)
    folder = str(ROOT / "book" / "_ext")
    conf = CONF.format(folder=folder, pages=pages)
    (source / "conf.py").write_text(conf, encoding="utf-8")
    (source / "index.rst").write_text("Front\n=====\n\n.. toctree::\n\n   book/new\n")
    (source / "book" / "new.rst").write_text("Masks & more\n============\n")
    warnings = io.StringIO()
    app = Sphinx(
        source, source, out, tmp_path / "trees", "html", status=None, warning=warnings
    )
    app.build()
    return out, warnings.getvalue()


def test_an_old_address_leads_to_the_page_of_today(tmp_path):
    out, warnings = build(tmp_path, {"book/old": "book/new"})
    page = (out / "book" / "old.html").read_text(encoding="utf-8")
    assert warnings == ""
    assert page.startswith("<!DOCTYPE html>")
    assert '<meta http-equiv="refresh" content="0; url=new.html">' in page
    assert '<link rel="canonical" href="new.html">' in page
    assert '<a href="new.html">Masks &amp; more</a>' in page
    assert "old" not in (out / "searchindex.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ({"book/old": "book/gone"}, "book/gone, which is no page"),
        ({"book/new": "index"}, "yet it is a page"),
        ({"book/old": "index"}, "must share a folder"),
    ],
)
def test_a_wrong_line_of_the_table_is_a_warning(tmp_path, pages, said):
    assert said in build(tmp_path, pages)[1]


def test_an_old_address_names_the_published_one():
    page = extension("moved").page("book/new", "New", "https://somebody.example/b/")
    assert 'rel="canonical" href="https://somebody.example/b/book/new.html"' in page


def test_the_page_for_nothing_knows_the_address_of_the_book_if_it_has_one():
    lost = extension("lost")
    with_address = lost.page("A & B", "https://somebody.example/b/")
    assert '<base href="https://somebody.example/b/">' in with_address
    assert "A &amp; B" in with_address and "<script>" not in with_address
    assert "<script>" in lost.page("A")


# Icons


def test_the_icons_show_the_squares_of_the_logo():
    preview = extension("preview")
    svg = preview.LOGO.read_text("utf-8")
    image = preview.raster(svg, 32)
    assert image.shape == (32, 32, 4)
    for x, y, side, _, colour in preview.squares(svg):
        red, green, blue, opacity = image[int(2 * y + side), int(2 * x + side)]
        assert f"#{red:02x}{green:02x}{blue:02x}" == colour and opacity == 255
    assert image[1, 30, 3] == 0  # the upper right is empty


def test_an_icon_file_holds_a_png_that_can_be_read(tmp_path):
    from matplotlib.image import imread

    preview = extension("preview")
    image = preview.raster(preview.LOGO.read_text("utf-8"), 32)
    data = preview.ico(image)
    offset = int.from_bytes(data[18:22], "little")
    (tmp_path / "a.png").write_bytes(data[offset:])
    assert (imread(tmp_path / "a.png") * 255 == image).all()


def test_the_tile_of_a_phone_has_a_white_ground():
    preview = extension("preview")
    tile = preview.on_white(preview.raster(preview.LOGO.read_text("utf-8"), 19))
    assert (tile[..., 3] == 255).all() and (tile[0, 0] == 255).all()


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
