"""Every page, light and dark, wide and narrow, in a real browser."""

import gzip
import re
from contextlib import suppress
from functools import cache
from types import SimpleNamespace

import pytest
import yaml

from tests.browser.conftest import ROOT
from tests.browser.windows import EMPTY

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
playwright = pytest.importorskip("playwright.sync_api")

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
PAGES = [
    TOC["root"],
    *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"]),
    "genindex",
    "search",
]


def page_of(slug):
    """Return the page of a chapter, or of the back matter."""
    known = {re.sub(r"book/(\d\d_)?", "", page): page for page in PAGES}
    return known[slug]


def watch(windows, page, host):
    """Return a list that fills with whatever goes wrong while the page loads."""
    wrong = []

    def requested(request):
        if not request.url.startswith((host, "data:", "blob:", EMPTY)):
            wrong.append(f"foreign {request.url}")

    def answered(response):
        if response.status >= 400:
            wrong.append(f"{response.status} {response.url}")

    handlers = {
        "console": lambda said: said.type == "error" and wrong.append(said.text),
        "pageerror": lambda error: wrong.append(str(error)),
        "requestfailed": lambda request: wrong.append(f"failed {request.url}"),
        "request": requested,
        "response": answered,
    }
    for event, handler in handlers.items():
        windows.listen(page, event, handler)
    return wrong


# All rules on a wide page, those of colours in the dark too, the others on a phone too.
# Formulas are left out where they are drawn (hidden from readers), not their MathML.
COLOURS = ["color-contrast", "link-in-text-block"]
NO_COLOURS = {"rules": {rule: {"enabled": False} for rule in COLOURS}}
LOOKS = [("light", 1280), ("dark", 1280), ("dark", 390), ("light", 390)]
DRAWN = {"exclude": [["mjx-math"]]}
CALM = "*, *::before, *::after { transition: none !important }"
# The theme gives code that scrolls a tab stop, some time after the width has changed,
# or after a fold with it was opened.
TAB_STOPS = """[...document.querySelectorAll(
    "pre, .cell_output > .output, .pst-scrollable-table-container"
)].every((node) => node.closest("details:not([open])")
    || node.scrollWidth <= node.clientWidth || node.tabIndex === 0)"""
# Most of the time goes into colours, and most of that into code: thousands of words in
# a dozen pairs of colours. Of elements whose colours, size and weight are alike, also
# those of all that they stand in, the first three are looked at that a process meets on
# any page. Call with the themes, one by one, and with what was met.
NEW_LOOKS = """(seen) => {
    const known = new Map(), names = new Map();
    const behind = (node) => { // what shows through or covers
        if (!(node instanceof Element)) return "";
        if (!known.has(node)) {
            const its = getComputedStyle(node);
            const own = [its.backgroundColor, its.backgroundImage, its.opacity,
                its.filter, its.mixBlendMode].join();
            const clear = own === "rgba(0, 0, 0, 0),none,1,none,normal";
            known.set(node, behind(node.parentNode) + (clear ? "" : `|${own}`));
        }
        return known.get(node);
    };
    const look = (node) => {
        const its = getComputedStyle(node);
        return [its.color, its.fontSize, its.fontWeight, its.textShadow,
            its.textDecorationLine, behind(node)].join();
    };
    const short = (text) => [...text].reduce( // two hashes of 32 bits, by FNV-1a
        ([a, b], sign) => [Math.imul(a ^ sign.codePointAt(0), 16777619),
                           Math.imul(b ^ sign.codePointAt(0), 2246822519)],
        [2166136261, 374761393]).join();
    const says = (node) => [...node.childNodes].some((inside) =>
        inside.nodeType === Node.TEXT_NODE && inside.data.trim());
    for (const node of document.querySelectorAll("body *")) {
        if (node.closest("svg, mjx-math") || !(says(node) || node.matches("input")))
            continue;
        const long = look(node);
        if (!names.has(long)) names.set(long, short(`${node.localName} ${long}`));
        const name = names.get(long);
        if ((seen[name] ??= 0) < 3) node.setAttribute("data-new-look", "");
        seen[name] += 1;
    }
    return seen;
}"""
NEW = {"include": [["[data-new-look]"]], "exclude": DRAWN["exclude"]}
# What neither is new nor has to do with it goes, except what may lie behind it.
DROP_THE_REST = """() => {
    const kept = new Set();
    for (const node of document.querySelectorAll("[data-new-look]")) {
        for (let at = node; at; at = at.parentElement) kept.add(at);
        for (const inside of node.querySelectorAll("*")) kept.add(inside);
    }
    for (const node of document.querySelectorAll("body *"))
        if (!kept.has(node) && getComputedStyle(node).position === "static")
            node.remove();
    return document.querySelectorAll("[data-new-look]").length;
}"""


# The other rules look at elements and not at colours. Without the thousands of words
# of code and of signatures, signs of formulas and lines of figures they find the same,
# and much faster. Views have tests of their own, with all rules (test_figures.py).
SET_ASIDE = """() => {
    const drawn = [...document.querySelectorAll(
        "pre, mjx-math, svg[role=img], dt.sig em.sig-param, .mha-view")]
        .filter((node) => node.matches(".mha-view")
            || !node.closest("a, button, summary, .mha-view")
                && !node.querySelector("a, button, input, [tabindex]"));
    window.aside = drawn.map((node) => [node, [...node.childNodes]]);
    for (const [node] of aside) {
        node.replaceChildren(node.matches("pre, em") ? node.textContent : "");
        node.style.overflow = "hidden"; // without its spans code would not wrap
    }
}"""
PUT_BACK = """() => aside.forEach(([node, inside]) => {
    node.replaceChildren(...inside);
    node.style.overflow = "";
})"""


def barriers(page, options, context=DRAWN):
    """Return what axe objects to, one line each."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.Axe().axe_script)
    options = {"resultTypes": ["violations"], "preload": False, **options}
    found = page.evaluate(
        "([context, options]) => axe.run(context ?? document, options)",
        [context, options],
    )
    return [
        f"{v['id']}: {node['html'][:200]}"
        for v in found["violations"]
        for node in v["nodes"]
    ]


def turn(page, theme, width):
    """Show an open page in another theme or width."""
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(f'document.documentElement.dataset.theme == "{theme}"')
    with suppress(playwright.TimeoutError):
        page.wait_for_function(TAB_STOPS, timeout=2000)


# What can be wider than its column, with everything unfolded, and what is.
SIDEWAYS = """() => {
    const folds = [...document.querySelectorAll("article details:not([open])")];
    folds.forEach((fold) => { fold.open = true; });
    const edge = document.querySelector("article, .bd-search-container")
        .getBoundingClientRect().right;
    const wide = [...document.querySelectorAll(`article :is(pre, .output, div.math,
            mjx-container, .pst-scrollable-table-container)`)]
        .filter((node) => node.getClientRects().length && !node.closest(".mha-view")
                && (node.getBoundingClientRect().right > edge
                    || (!node.matches("mjx-container:not([display])")
                        && node.scrollWidth > node.clientWidth + 1)))
        .map((node) => `${node.tagName} ${node.textContent.trim().slice(0, 60)}`);
    folds.forEach((fold) => { fold.open = false; });
    return wide;
}"""
# Text in static figures, in pixels of the screen.
SMALL_TEXT = """() => {
    const folds = [...document.querySelectorAll("article details:not([open])")];
    folds.forEach((fold) => { fold.open = true; });
    const small = [...document.querySelectorAll("svg.mha-picture text")]
        .filter((text) => text.getClientRects().length && text.textContent.trim())
        .map((text) => {
            const { a, b } = text.getScreenCTM();
            const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
            return [size, `${size.toFixed(1)} px: ${text.textContent}`];
        })
        .filter(([size]) => size < 9).map(([, text]) => text);
    folds.forEach((fold) => { fold.open = false; });
    return small;
}"""


def looks(page, seen):
    """Return how wide a page is in each look, and what axe objects to there."""
    page.add_style_tag(content=CALM)
    found = {}
    for theme, width in LOOKS:
        turn(page, theme, width)
        sideways = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        found[theme, width] = SimpleNamespace(sideways=sideways, barriers=[])
        if width == 1280:
            seen[theme] = page.evaluate(NEW_LOOKS, seen.get(theme, {}))
        if theme == "light":
            found[theme, width].wide = page.evaluate(SIDEWAYS)
            found[theme, width].small = page.evaluate(SMALL_TEXT)
            page.evaluate(SET_ASIDE)
            found[theme, width].barriers += barriers(page, NO_COLOURS)
            page.evaluate(PUT_BACK)
    for theme in (
        ("light", "dark") if page.locator(NEW["include"][0][0]).count() else ()
    ):
        turn(page, theme, 1280)
        found[theme, 1280].barriers += barriers(page, {"runOnly": COLOURS}, NEW)
    return found


# What the opening of a chapter shows on the first screen of a small computer.
OPENED = """() => {
    const opening = document.querySelector(".opening");
    if (!opening) return null;
    const all = (names) => opening.querySelectorAll(names);
    return {
        parts: all("h1, .promise, .strip").length,
        bottom: all(".parts")[0].getBoundingClientRect().bottom + scrollY,
        seen: [...all(".place, .takes, .runs")].filter((node) =>
            node.checkVisibility() && node.getClientRects().length).length,
    };
}"""
# The boxes for guesses, and the folds with the answers.
ASKED = """() => ({
    boxes: [...document.querySelectorAll(".your-guess textarea")]
        .filter((box) => box.getClientRects().length).map((box) => box.id),
    folds: document.querySelectorAll("details.reveal:not(.deeper)").length,
    empty: document.querySelectorAll("details.reveal > summary:only-child").length,
})"""
UNFOLD = "document.querySelectorAll('details.deeper').forEach((d) => { d.open = true })"


@pytest.fixture(scope="session")
def visit(windows, site):
    """Return a function that opens a page once and says what was seen."""
    seen = {}

    @cache
    def look_around(name):
        page, asked_for = windows.take(), set()
        wrong = watch(windows, page, site)
        windows.listen(page, "request", lambda request: asked_for.add(request.url))
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(f"{site}{name}.html", wait_until="load")
        found = SimpleNamespace(
            opened=page.evaluate(OPENED),
            raw_math=page.evaluate(RAW_MATH),
            files=asked_for,
            wrong=wrong,
        )
        page.evaluate(UNFOLD)
        found.asked = page.evaluate(ASKED)
        found.looks = looks(page, seen)
        page.wait_for_load_state("networkidle")
        windows.give_back(page)
        return found

    return look_around


# Formulas that were left as TeX, or that MathJax could not read.
RAW_MATH = """[...document.querySelectorAll(".math")]
    .filter((node) => !node.querySelector("mjx-container math")
                      || node.querySelector("[data-mjx-error]"))
    .map((node) => node.textContent.slice(0, 80))"""

every_page = pytest.mark.parametrize("name", PAGES)
every_look = pytest.mark.parametrize(("theme", "width"), LOOKS)


@every_page
def test_nothing_fails_and_nobody_else_is_asked(visit, name):
    assert visit(name).wrong == []


@every_page
@every_look
def test_no_page_scrolls_sideways(visit, name, theme, width):
    needed, there = visit(name).looks[theme, width].sideways
    assert needed <= there


def test_what_scrolls_in_a_fold_gets_its_tab_stop_when_the_fold_opens(open_page):
    page = open_page("book/01_dot_product")
    page.evaluate("""() => {
        const fold = document.querySelector("article details:not([open])");
        const wide = document.createElement("pre");
        wide.id = "wide";
        wide.textContent = "w".repeat(1000);
        wide.style = "width: 9em; overflow: auto";
        fold.append(wide);
    }""")
    page.wait_for_function("wide.tabIndex === -1 && wide.hasAttribute('tabindex')")
    page.evaluate("wide.closest('details').open = true")
    page.wait_for_function("wide.tabIndex === 0")


@every_page
@pytest.mark.parametrize("width", [1280, 390])
def test_no_code_output_formula_or_table_scrolls_sideways(visit, name, width):
    assert visit(name).looks["light", width].wide == []


@every_page
@pytest.mark.parametrize("width", [1280, 390])
def test_text_in_a_figure_is_at_least_nine_pixels_high(visit, name, width):
    assert visit(name).looks["light", width].small == []


@every_page
@every_look
def test_axe_finds_no_barrier(visit, name, theme, width):
    assert visit(name).looks[theme, width].barriers == []


@every_page
def test_every_formula_is_typeset(visit, name):
    assert visit(name).raw_math == []


def test_every_page_has_a_title_and_a_description_of_its_own(html):
    pages = [(html / f"{name}.html").read_text("utf-8") for name in PAGES[:-2]]
    for kind in (
        r"<title>([^<]+)</title>",
        r'<meta name="description" content="([^"]+)"',
    ):
        texts = [re.findall(kind, page) for page in pages]
        assert all(len(found) == 1 for found in texts), kind
        assert len(set(map(tuple, texts))) == len(texts), kind


def test_the_book_works_from_the_file_system(window, windows, html):
    page = window()
    wrong = watch(windows, page, "file://")
    page.goto((html / "book" / "05_attention.html").as_uri(), wait_until="load")
    page.locator("a.next-page, .next-next a, a.right-next").first.click()
    page.wait_for_load_state("load")
    assert "06_why_heads" in page.url and wrong == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_follows_the_readers_theme(open_page, theme):
    page = open_page("book/01_dot_product", theme=theme)
    assert page.evaluate("document.documentElement.dataset.theme") == theme


CHAPTERS = [name for name in PAGES if re.match(r"book/\d", name)]


@cache
def zipped(path):
    return len(gzip.compress(path.read_bytes()))


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_first_view_of_a_chapter_is_light(visit, html, site, name):
    """At most 350 kB as a server sends it, gzip and all."""
    files = [url for url in visit(name).files if url.startswith(site)]
    sizes = [zipped(html / url.removeprefix(site).partition("?")[0]) for url in files]
    assert 100_000 < sum(sizes) < 350_000


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_opens_within_the_first_screen(visit, name):
    opened = visit(name).opened
    assert opened["parts"] == opened["seen"] == 3
    assert opened["bottom"] < 800


@pytest.mark.parametrize("name", [n for n in CHAPTERS if "overview" not in n])
def test_every_prediction_of_a_chapter_has_its_box_and_its_fold(visit, name):
    asked = visit(name).asked
    assert asked["boxes"] and len(set(asked["boxes"])) == len(asked["boxes"])
    assert asked["folds"] >= len(asked["boxes"])
    assert asked["empty"] == 0


@every_page
def test_a_page_waits_for_three_stylesheets_at_most(html, name):
    head = (html / f"{name}.html").read_text("utf-8").partition("</head>")[0]
    assert 1 <= len(re.findall(r'rel="stylesheet"', head)) <= 3
    assert len(re.findall(r'name="viewport"', head)) == 1


# Type


def lines_of(page, selector):
    """Return how many letters a line of long paragraphs has, on average."""
    counts = page.locator(selector).evaluate_all("""found => found
        .map((node) => [node.textContent.length, Math.round(
            node.getBoundingClientRect().height
            / parseFloat(getComputedStyle(node).lineHeight))])
        .filter(([letters, lines]) => lines >= 3)
        .map(([letters, lines]) => letters / (lines - 0.5))""")
    assert len(counts) > 5
    return sum(counts) / len(counts)


@pytest.mark.parametrize("width", [1280, 1600])
def test_a_line_of_prose_has_about_68_letters(open_page, width):
    page = open_page(page_of("attention"), width=width)
    assert 60 < lines_of(page, "article section > p:not(:has(mjx-container))") < 75


def test_headings_fall_in_size_and_do_not_rise_in_weight(open_page):
    page = open_page(page_of("multi_head"))
    looks = [
        page.locator(f"article {tag}").first.evaluate("""node => {
            const { fontSize, fontWeight } = getComputedStyle(node);
            return [parseFloat(fontSize), Number(fontWeight)]; }""")
        for tag in ("h1", "h2", "h3", "section > p")
    ]
    sizes, weights = zip(*looks, strict=True)
    assert list(sizes) == sorted(set(sizes), reverse=True)
    assert list(weights) == sorted(weights, reverse=True)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_links_in_the_text_are_ink_with_a_line_below(open_page, theme):
    page = open_page(page_of("attention"), theme=theme)
    page.wait_for_function(f'document.documentElement.dataset.theme == "{theme}"')
    look = "node => getComputedStyle(node).color"
    ink = page.locator("article section > section > p").first.evaluate(look)
    links = page.locator("article section > section > p a")
    assert set(links.evaluate_all(f"all => all.map({look})")) == {ink}
    lines = "all => all.map((node) => getComputedStyle(node).textDecorationLine)"
    assert set(links.evaluate_all(lines)) == {"underline"}


# A full stop or its like, which a formula before it could leave to the next line.
LOOSE = re.compile(r"</mjx-container></span>[.,;:!?)\]]")


@every_page
def test_no_full_stop_can_wrap_alone_after_a_formula(html, name):
    page = (html / f"{name}.html").read_text("utf-8")
    for inside in re.findall(
        r'<span class="together">.*?</mjx-container></span>.', page
    ):
        page = page.replace(inside, "")
    assert LOOSE.findall(page) == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_bar_over_folded_code_says_which_figure_it_draws(html, name):
    page = (html / f"{name}.html").read_text("utf-8")
    assert "Show code cell" not in page
    for cell in page.split('<div class="cell ')[1:]:
        bar = re.search(r'<summary>\s*<span class="admonition-title">([^<]*)', cell)
        number = re.search(r'class="caption-number">Figure ([\d.]+\d)', cell)
        if bar and number and cell.startswith("tag_hide-input"):
            assert bar[1] == f"Code of Figure {number[1]}"


def test_the_bibliography_typesets_its_formulas(html):
    page = (html / "book" / "bibliography.html").read_text("utf-8")
    assert "mjx-container" in page and "$" not in page


# Where there is no such page


@pytest.mark.parametrize("address", ["gone", "book/gone", "book/deeper/gone"])
def test_an_address_that_leads_nowhere_shows_the_way(open_page, site, html, address):
    page = open_page("search")
    text = (html / "404.html").read_text("utf-8")
    page.route("**/gone*", lambda route: route.fulfill(body=text, status=404))
    page.goto(f"{site}{address}.html")
    assert page.locator("h1").inner_text() == "No such page"
    assert page.locator("a").evaluate("node => node.href") == f"{site}index.html"
    assert barriers(page, {}) == []
    page.get_by_role("searchbox").fill("softmax")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li")
    assert page.url.startswith(f"{site}search.html?q=softmax")


def test_without_scripts_the_text_and_the_figures_are_there(open_page):
    page = open_page("book/02_softmax", java_script_enabled=False)
    assert page.locator("article h1").inner_text().startswith("2. Softmax")
    assert page.locator("svg.mha-picture").count() >= 2
    assert page.locator("mjx-container").count() >= 10
    paper = "getComputedStyle(document.body).getPropertyValue('--pst-color-background')"
    assert page.evaluate(paper) == "#fff"


def test_icons_exist_for_what_reads_no_svg(open_page, site):
    page = open_page(page_of("softmax"))
    links = page.locator("link[rel~='icon'], link[rel='apple-touch-icon']")
    addresses = links.evaluate_all("all => all.map((link) => link.href)")
    assert len(addresses) == 3
    for address in addresses:
        assert page.request.get(address).ok
