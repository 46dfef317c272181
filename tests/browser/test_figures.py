"""Every figure of mha.view, moved by mouse, finger and keyboard in a real browser.

What a figure shows stands in its data attributes with four decimals; the package must
come to the same numbers.
"""

import json
import re

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")
pytest.importorskip("axe_playwright_python")

from axe_playwright_python.sync_playwright import Axe

import mha
from mha import laws, view
from tests.browser.windows import EMPTY

SHOWN = 1.01e-4  # four decimals in, four decimals out
WORDS = ["dog", "food", "it", "hungry"]
SCORES = np.array([5.0, 0.0, 3.0, 4.0])
VALUES = np.array([[2.0, 0], [0, 2], [1, 1], [1, 0]])
rng = np.random.default_rng(0)
S = rng.normal(size=(4, 4)).round(4)
MASKS = {"causal": mha.causal_mask(4), "all open": np.ones((4, 4), bool)}
A = mha.softmax(2 * rng.normal(size=(2, 5, 4, 4)))
WIDTHS = 2 ** np.arange(2, 11)
WALKS = np.cumsum(rng.normal(size=(3, 16, 1024)), axis=-1)[..., WIDTHS - 1]
NIGHTS, PAIRS = rng.normal(size=(53, 3)), rng.normal(size=(4, 2))
KILLED = laws.KillMatrix(
    ("right", *"abcdef"),
    ("one", "two_words", "three", "four", "five"),
    np.vstack([np.zeros(5), np.eye(6, 5) + np.eye(6, 5, -1)]).astype(bool),
)
TRACKS = {"kept": rng.normal(size=(4, 4, 3)), "equal": np.ones((4, 4, 3))}
LEARNED = {
    "right": {"accuracy": 1.0, "repaired": 1.0, "maps": ["0ff0", "1ee1"]},
    "no_scale": {"accuracy": 1.0, "repaired": 0.97, "maps": ["0ff0", "0ff0"]},
    "tied_query_key": {"accuracy": 0.9996, "repaired": 0.2244, "maps": ["f00f"] * 2},
}
BROKEN = {"right": (), "no_scale": ("one_law",), "tied_query_key": ("two", "one_law")}
LONG = "Donaudampfschifffahrtsgesellschaftskapitän"
ANY = ["הכלב", "犬", "🐕‍🦺", "", "<b>&amp;</b>", LONG, "</script>"] * 9
FIGURES = {
    "softmax": lambda: figures.softmax(SCORES, WORDS, alt="Four shares"),
    "scores": lambda: figures.scores(
        SCORES,
        VALUES,
        WORDS,
        ["animal", "edible"],
        query="it",
        move="food",
        alt="One score to drag",
    ),
    "attention": lambda: view.attention(A, WORDS, alt="Two layers of five heads"),
    "any words": lambda: view.attention(
        np.stack([np.eye(63), np.eye(63)[::-1]]),
        ANY,
        names=["self", "mirror"],
        alt="63 words of many scripts",
    ),
    "masks": lambda: figures.masks(S, WORDS, starts=MASKS, alt="A mask to paint"),
    "scale": lambda: figures.scale(WALKS, WIDTHS, alt="Weights at nine widths"),
    "plane": lambda: figures.plane(
        PAIRS[0], PAIRS, PAIRS, WORDS, alt="A query to drag"
    ),
    "dragons": lambda: figures.dragons(
        NIGHTS, [[0.4, 0.2], [0.2, 0.8]], alt="Two looks"
    ),
    "heads": lambda: figures.heads(S, WORDS, alt="16 numbers in two heads"),
    "steps": lambda: figures.steps(
        *[np.eye(4)] * 5, 2, tokens=WORDS, is_causal=True, alt="Nine steps"
    ),
    "online": lambda: figures.online(SCORES, S[0], WORDS, alt="Four keys in blocks"),
    "kills": lambda: figures.kills(KILLED, alt="Six wrong versions and five laws"),
    "learned": lambda: figures.learned(LEARNED, BROKEN, alt="Three versions"),
    "offsets": lambda: figures.offsets(16, alt="Two positions and eight hands"),
    "collapse": lambda: figures.collapse(TRACKS, WORDS, alt="Two kinds of layer"),
}
every_figure = pytest.mark.parametrize("name", FIGURES)
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<title>Figure</title>
<meta name="viewport" content="width=device-width"><style>
:root {{ color-scheme: light dark; }} body {{ background: #fff; color: #222; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #121212; color: #ccc; }} }}
{}</style></head><body><main><h1>Figure</h1>{}</main></body></html>"""
DARK = {
    "query": "#62B4FF", "key": "#FFA552", "value": "#63E6BE", "weight": "#DCDAFF",
    "output": "#E08BD6", "wrong": "#FF8098", "ink": "#CED6DD", "muted": "#98A2AE",
    "rest": "#48566B", "paper": "#14181E",
}  # fmt: skip
# What a page may hand to a figure: nothing, or the colours of the book when it is dark.
COLOURS = dict.fromkeys(["light", "dark"], "")
roles = "".join(f"--mha-{role}: {colour};" for role, colour in DARK.items())
COLOURS["book, dark"] = f":root {{{roles}}} body {{ background: #14181E }}"


class Figure:
    """One figure on a page, and the hands that move it."""

    def __init__(self, page, place=0):
        self.page, self.root = page, page.locator(".mha-view").nth(place)

    def data(self, name):
        return self.root.get_attribute(f"data-{name}")

    def numbers(self, name):
        return np.array(self.data(name).split(), dtype=float)

    def button(self, name):
        return self.root.get_by_role("button", name=name, exact=True)

    def radio(self, name):
        return self.root.get_by_role("radio", name=name, exact=True)

    def slider(self, name):
        return self.root.get_by_role("slider", name=re.compile(name))

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def aim(self):
        return re.sub("[\u2068\u2069]", "", self.root.locator(".aim").inner_text())

    @property
    def says(self):
        return re.sub("[\u2068\u2069]", "", self.root.locator(".readout").inner_text())


@pytest.fixture
def show(window, windows):
    """Return a function that shows figures on a page; in the end nothing went wrong."""
    wrong = []

    def foreign(request):
        if not request.url.startswith(("data:", EMPTY)):
            wrong.append(request.url)

    def show_all(*figures, theme="light", width=800, **options):
        page = window(theme=theme.rpartition(" ")[2], width=width, **options)
        windows.listen(
            page, "console", lambda m: m.type == "error" and wrong.append(m.text)
        )
        windows.listen(page, "pageerror", lambda error: wrong.append(str(error)))
        windows.listen(page, "request", foreign)
        drawn = "".join(f._repr_html_() for f in figures)
        page.set_content(PAGE.format(COLOURS[theme], drawn))
        return Figure(page)

    yield show_all
    assert wrong == []


def agree(found, expected):
    np.testing.assert_allclose(found, np.ravel(expected), rtol=0, atol=SHOWN)


def middle(node):
    box = node.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


# ------------------------------------------------------------------ all of them


@every_figure
@pytest.mark.parametrize(
    ("theme", "width"), [("light", 800), ("dark", 330), ("book, dark", 390)]
)
def test_axe_finds_no_barrier_and_nothing_scrolls_sideways(show, name, theme, width):
    figure = show(FIGURES[name](), theme=theme, width=width)
    figure.page.wait_for_function("!document.getAnimations().length")
    found = Axe().run(figure.page, options={"resultTypes": ["violations"]})
    assert [v["id"] for v in found.response["violations"]] == []
    assert figure.page.evaluate("document.documentElement.scrollWidth") <= width


@every_figure
def test_targets_are_large_enough_for_a_finger(show, name):
    figure = show(FIGURES[name](), width=390)
    nodes = figure.root.locator("button, fieldset label, input[type=range], .law")
    boxes = [node.bounding_box() for node in nodes.all() if node.is_visible()]
    assert boxes and min(min(b["width"], b["height"]) for b in boxes) >= 24


@every_figure
def test_tab_reaches_the_figure_and_leaves_it_and_the_focus_is_seen(show, name):
    figure = show(FIGURES[name]())
    stops = 0
    for _ in range(12):
        figure.press("Tab")
        if not figure.page.evaluate("!!document.activeElement.closest('.mha-view')"):
            break
        look = "getComputedStyle(document.activeElement).outlineStyle"
        assert figure.page.evaluate(look) != "none"
        stops += 1
    assert 1 <= stops < 12


@every_figure
def test_scripts_replace_the_still_picture_and_without_them_it_stays(show, name):
    still = ".still img"
    assert not show(FIGURES[name]()).root.locator(still).is_visible()
    assert (
        show(FIGURES[name](), java_script_enabled=False)
        .root.locator(still)
        .is_visible()
    )


@every_figure
def test_a_figure_asks_for_one_thing_in_a_frame_of_its_own(show, name):
    """A dark JupyterLab hands over no colours, so the frame has a background."""
    figure = show(FIGURES[name](), theme="dark")
    assert figure.root.locator(".task").inner_text().startswith("Try this: ")
    live = figure.root.locator(".live")
    assert live.evaluate("node => getComputedStyle(node).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert live.evaluate("node => getComputedStyle(node).borderTopWidth") == "1px"


@every_figure
def test_nothing_moves_by_itself_and_without_motion_nothing_glides(show, name):
    figure = show(FIGURES[name](), reduced_motion="reduce")
    longest = """root => Math.max(...[...root.querySelectorAll("*")].flatMap((node) =>
        getComputedStyle(node).transitionDuration.split(",").map(parseFloat)))"""
    assert figure.root.evaluate(longest) == 0
    figure = show(FIGURES[name]())
    figure.page.wait_for_timeout(500)
    assert figure.page.evaluate("document.getAnimations().length") == 0


@every_figure
def test_marks_are_seen_where_the_reader_sets_the_colours(show, name):
    """With forced colours every role is the colour of text, on the reader's paper."""
    figure = show(FIGURES[name](), theme="dark", forced_colors="active")
    role = "getComputedStyle(root).getPropertyValue('--weight')"
    assert figure.root.evaluate(f"root => {role}") == "CanvasText"
    paper = "getComputedStyle(document.body).backgroundColor"
    for mark in figure.root.locator("i").all():
        if mark.is_visible():
            colours = mark.evaluate(f"""node => [{paper},
                getComputedStyle(node).backgroundColor,
                getComputedStyle(node).borderTopColor]""")
            assert len(set(colours)) > 1


@every_figure
def test_two_copies_on_one_page_do_not_disturb_each_other(show, name):
    first = show(FIGURES[name](), FIGURES[name]())
    second = Figure(first.page, 1)
    before = dict(second.root.evaluate("root => ({...root.dataset})"))
    for node in first.root.locator("input[type=radio]").all():
        node.check()
    for node in first.root.locator("input[type=range]").all():
        node.press("End")
    checked = second.root.locator("input:checked").count()
    assert checked == first.root.locator("input:checked").count()
    assert second.root.evaluate("root => ({...root.dataset})") == before
    assert first.root.locator(".live").count() == 1


# How JupyterLab and VS Code run the scripts of an output: in place, and elsewhere.
LIKE_AN_EDITOR = """([html, elsewhere]) => {
    const host = document.querySelector("main");
    host.innerHTML = html;
    for (const old of [...host.querySelectorAll("script")]) {
        const script = document.createElement("script");
        script.type = old.type;
        script.text = old.textContent;
        if (elsewhere) document.body.append(script); else old.replaceWith(script);
    }
}"""


@every_figure
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_figure_comes_alive_when_an_editor_inserts_it(show, name, elsewhere):
    figure = show()
    twice = 2 * FIGURES[name]()._repr_html_()
    figure.page.evaluate(LIKE_AN_EDITOR, [twice, elsewhere])
    for place in (0, 1):
        assert Figure(figure.page, place).root.locator(".live").count() == 1


# ------------------------------------------------------------------ softmax


def test_softmax_follows_the_keyboard(show):
    figure = show(FIGURES["softmax"]())
    agree(figure.numbers("weights"), mha.softmax(SCORES))
    figure.slider("temperature").focus()
    figure.press("ArrowRight", "ArrowRight", "ArrowRight")
    agree(figure.numbers("weights"), mha.softmax(SCORES / 10**0.06))
    figure.press("Home")
    agree(figure.numbers("weights"), mha.softmax(SCORES / 0.1))
    figure.slider("hungry").press("End")
    agree(figure.numbers("weights"), [0.5, 0, 0, 0.5])
    assert "“dog” 0.50" in figure.says and "2.00 of 4" in figure.says
    figure.button("back to the start").press("Enter")
    agree(figure.numbers("weights"), mha.softmax(SCORES))


def test_softmax_follows_the_mouse(show):
    figure = show(FIGURES["softmax"]())
    box = figure.slider("temperature").bounding_box()
    height = box["y"] + box["height"] / 2
    figure.page.mouse.move(box["x"] + box["width"] / 2, height)
    figure.page.mouse.down()
    figure.page.mouse.move(box["x"] + box["width"] - 1, height, steps=5)
    figure.page.mouse.up()
    p = mha.softmax(SCORES / 10)
    agree(figure.numbers("weights"), p)
    agree(figure.numbers("effective"), np.exp(-np.sum(p * np.log(p))))


def test_what_is_added_to_all_scores_moves_no_share(show):
    figure = show(FIGURES["softmax"]())
    figure.slider("add to all").press("End")
    scaled = figure.root.locator(".row .result > span").all_inner_texts()
    assert scaled == ["s / T", "10.0", "5.0", "8.0", "9.0"]
    agree(figure.numbers("weights"), mha.softmax(SCORES))


def test_the_second_word_has_a_temperature_of_its_own(show):
    figure = show(FIGURES["softmax"]())
    logs = np.arange(-1, 1.01, 0.02)
    shares = [mha.softmax(SCORES / 10**log)[3] for log in logs]
    assert 0 < np.argmax(shares) < len(logs) - 1
    assert figure.aim == "○ “hungry” has 0.24 at T = 1.00."
    figure.slider("temperature").fill(f"{logs[np.argmax(shares)]:.2f}")
    assert figure.aim.startswith("✓ Reached. ")
    assert f"gives “hungry” its most, {max(shares):.2f}" in figure.aim
    assert figure.says.endswith(figure.aim)  # heard as well as seen
    figure.slider("food").press("ArrowRight")
    assert figure.aim.startswith("○")


# ------------------------------------------------------------------ scores


def agrees_with_food_at(figure, score):
    s = np.where(np.array(WORDS) == "food", score, SCORES)
    A = mha.softmax(s / np.sqrt(2))
    agree(figure.numbers("weights"), A)
    agree(figure.numbers("output"), A @ VALUES)


def test_one_score_follows_the_keyboard(show):
    figure = show(FIGURES["scores"]())
    agrees_with_food_at(figure, 0)
    slider = figure.slider("score of .*food")
    assert slider.get_attribute("aria-valuetext") == "0.0"
    slider.focus()
    figure.press("ArrowRight", "ArrowUp", "ArrowRight")
    agrees_with_food_at(figure, 1.5)
    assert slider.get_attribute("aria-valuetext") == "1.5"
    figure.press("End")
    agrees_with_food_at(figure, 10)
    figure.button("back to the start").press("Enter")
    agrees_with_food_at(figure, 0)


def test_one_score_is_dragged_by_the_end_of_its_bar(show):
    figure = show(FIGURES["scores"]())
    assert figure.aim == "○ “food” has the weight 0.017, “dog” has 0.566."
    room = figure.root.locator(".moves").bounding_box()
    height = room["y"] + room["height"] / 2
    figure.page.mouse.move(room["x"] + 1, height)
    figure.page.mouse.down()
    figure.page.mouse.move(room["x"] + room["width"] / 2, height, steps=5)
    figure.page.mouse.up()
    agrees_with_food_at(figure, 5)
    assert figure.aim.startswith("✓ Reached. Both have the weight 0.365")
    assert "“food” 0.365" in figure.says and "1.00 animal, 0.82 edible" in figure.says


# ------------------------------------------------------------------ attention


def test_attention_follows_the_mouse(show):
    figure = show(FIGURES["attention"]())
    agree(figure.numbers("weights"), A[0, 0, 0])
    figure.button("it").hover()
    agree(figure.numbers("weights"), A[0, 0, 2])
    figure.button("layer 2, head 4").click()
    agree(figure.numbers("weights"), A[1, 3, 2])
    beside = figure.root.locator(".words b").all_inner_texts()
    assert beside == [f"{w:.2f}" for w in A[1, 3, 2].round(4)]
    assert figure.says.startswith("layer 2, head 4: “it” attends to ")


def test_attention_follows_the_keyboard(show):
    figure = show(FIGURES["attention"]())
    figure.press("Tab", "ArrowDown", "ArrowRight", "ArrowRight")
    agree(figure.numbers("weights"), A[1, 2, 0])
    figure.press("Tab", "Tab", "ArrowUp")  # from the first word round to the last
    agree(figure.numbers("weights"), A[1, 2, 3])
    figure.press("Tab")
    assert not figure.page.evaluate("!!document.activeElement.closest('.mha-view')")


def test_attention_follows_a_finger(show):
    figure = show(FIGURES["attention"](), has_touch=True, width=390)
    figure.button("hungry").tap()
    figure.button("layer 1, head 5").tap()
    agree(figure.numbers("weights"), A[0, 4, 3])


def test_attention_opens_where_it_is_told(show):
    figure = show(view.attention(A, WORDS, first="it", layer=2, head=3, alt="It"))
    agree(figure.numbers("weights"), A[1, 2, 2])
    pressed = figure.root.locator("button[aria-pressed=true]")
    names = [node.get_attribute("aria-label") for node in pressed.all()]
    assert names == ["layer 2, head 3", None]
    assert pressed.last.inner_text() == "it"


END = """path => {
    const { x, y } = path.getPointAtLength(path.getTotalLength());
    return new DOMPoint(x, y).matrixTransform(path.getScreenCTM()).y;
}"""


def test_a_line_is_as_wide_as_its_weight_and_ends_at_its_word(show):
    figure = show(FIGURES["attention"](), reduced_motion="reduce")
    figure.button("it").click()
    lines = figure.root.locator(".ladder path")
    row = A[0, 0, 2].round(4)
    for line, weight, token in zip(lines.all(), row, WORDS, strict=True):
        width = line.evaluate("node => parseFloat(getComputedStyle(node).strokeWidth)")
        assert width == pytest.approx(1 + 11 * weight, abs=0.01)
        text = figure.root.locator(".words span").get_by_text(token, exact=True)
        assert line.evaluate(END) == pytest.approx(middle(text)[1], abs=4)


def test_heads_that_agree_with_the_first_are_counted(show):
    """As many are found as there are heads with the same largest weight."""
    figure = show(FIGURES["attention"]())
    best = A[:, :, 0].argmax(-1)
    same = int((best == best[0, 0]).sum())
    assert 1 < same < 10
    assert figure.aim == "○ You have found 1."
    for head in figure.root.locator(".picker button").all():
        head.click()
    assert figure.aim.startswith(f"✓ Reached. There are {same} of them")
    assert figure.root.locator(".picker .found").count() == same


def test_the_heads_that_agree_are_shown_on_request(show):
    figure = show(FIGURES["attention"]())
    figure.button("show them").click()
    best = A[:, :, 0].argmax(-1)
    found = [
        "found" in (node.get_attribute("class") or "")
        for node in figure.root.locator(".picker button").all()
    ]
    assert found == (best == best[0, 0]).ravel().tolist()


def test_one_head_alone_needs_no_picker(show):
    figure = show(view.attention(A[0, 0], WORDS, alt="One head"))
    assert figure.root.locator(".picker").count() == 0
    assert figure.says.startswith("“dog” attends to ")


def test_the_map_tells_every_cell_and_takes_a_row(show):
    figure = show(FIGURES["attention"](), reduced_motion="reduce")
    frame = figure.root.locator(".map .edge").bounding_box()
    side = frame["width"] / 4
    x, y = frame["x"] + 1.5 * side, frame["y"] + 2.5 * side
    figure.page.mouse.move(x, y)
    assert figure.says == f"layer 1, head 1: “it” gives {A[0, 0, 2, 1]:.2f} to “food”."
    figure.page.mouse.click(x, y)
    assert figure.data("query") == "2"
    assert middle(figure.root.locator(".map .frame"))[1] == pytest.approx(y, abs=1.5)


def test_words_from_right_to_left_are_walked_as_all_others(show):
    words = ["הכלב", "אכל", "את"]
    figure = show(view.attention(np.eye(3), words, alt="Each at itself"))
    figure.button(words[0]).press("ArrowDown")
    assert figure.data("query") == "1"


def test_any_word_is_shown_as_it_is(show):
    figure = show(FIGURES["any words"]())
    shown = figure.root.locator(
        "[aria-label='the word that attends'] button"
    ).all_inner_texts()
    assert shown == [word or "∅" for word in ANY]
    assert figure.root.locator("b, i, script").get_by_text("&amp;").count() == 0


# ------------------------------------------------------------------ masks


def expect_mask(figure, mask):
    """The figure shows this mask, its weights, its sums and its empty rows."""
    weights = mha.masked_softmax(S, mask)
    assert figure.data("mask") == " ".join("".join(map(str, r)) for r in 1 * mask)
    agree(figure.numbers("weights"), weights)
    agree(figure.numbers("sums"), weights.sum(-1))
    assert int(figure.data("empty")) == (~mask.any(-1)).sum()
    sums = figure.root.locator("tr td:last-child").all_inner_texts()
    assert sums == [f"{s:.2f}" for s in weights.sum(-1)]


def cell(figure, i, j):
    return figure.root.locator("td button").nth(4 * i + j)


def test_masks_follow_the_mouse_and_say_when_a_row_is_empty(show):
    figure = show(FIGURES["masks"]())
    mask = mha.causal_mask(4)
    expect_mask(figure, mask)
    cell(figure, 0, 0).click()
    mask[0, 0] = False
    expect_mask(figure, mask)
    assert "“dog” may attend to nothing: weights 0, sum 0" in figure.says
    assert figure.radio("own").is_checked()
    figure.radio("all open").check()
    expect_mask(figure, np.ones((4, 4), bool))
    figure.radio("own").check()
    expect_mask(figure, mask)


def test_a_quick_stroke_paints_all_cells_on_its_way(show):
    figure = show(FIGURES["masks"]())
    figure.page.mouse.move(*middle(cell(figure, 3, 3)))
    figure.page.mouse.down()
    figure.page.mouse.move(*middle(cell(figure, 3, 0)), steps=1)
    figure.page.mouse.up()
    figure.page.mouse.move(*middle(cell(figure, 1, 0)))
    mask = mha.causal_mask(4)
    mask[3] = False
    expect_mask(figure, mask)


def test_masks_follow_the_keyboard(show):
    figure = show(FIGURES["masks"]())
    figure.radio("causal").focus()
    figure.press("Tab", "ArrowRight", "Space", "ArrowDown", "Enter")
    mask = mha.causal_mask(4)
    mask[0, 1], mask[1, 1] = True, False
    expect_mask(figure, mask)
    label = "food attends to food: covered, 0"
    assert figure.page.evaluate("document.activeElement.ariaLabel") == label


def test_masks_follow_a_finger(show):
    figure = show(FIGURES["masks"](), has_touch=True, width=390)
    cell(figure, 0, 3).tap()
    mask = mha.causal_mask(4)
    mask[0, 3] = True
    expect_mask(figure, mask)


def test_a_sum_that_is_not_one_is_reached_by_an_empty_row_only(show):
    figure = show(FIGURES["masks"]())
    assert figure.aim.startswith("○ Every sum is 1")
    for i, j in ((3, 0), (3, 2), (2, 1), (2, 2)):
        cell(figure, i, j).click()
        assert figure.aim.startswith("○ Every sum is 1")
    cell(figure, 2, 0).click()
    assert figure.aim.startswith("✓ Reached. The sum of “it” is 0")
    figure.radio("causal").check()
    assert figure.aim.startswith("○")


def test_in_an_empty_row_one_open_cell_gets_all(show):
    mask = mha.causal_mask(4) & (np.arange(4) > 0)
    figure = show(figures.masks(S, WORDS, starts={"both": mask}, alt="A mask"))
    assert figure.aim == "○ The row of “dog” is empty and sums to 0."
    cell(figure, 0, 3).click()
    assert figure.aim.startswith("✓ Reached. “hungry” gets 1.00")
    cell(figure, 0, 2).click()
    assert figure.aim.startswith("○ In the row of “dog” 2 keys are open")


# The colours of all cells with a weight and of their numbers, as bytes of sRGB.
SHADES = """root => {
    const paint = new OffscreenCanvas(1, 1).getContext("2d");
    const bytes = (colour) => {
        paint.fillStyle = colour;
        paint.fillRect(0, 0, 1, 1);
        return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    return [...root.querySelectorAll(".w")].map((node) => getComputedStyle(node))
        .map((style) => [bytes(style.backgroundColor), bytes(style.color)]);
}"""


def luminance(colours):
    x = np.array(colours) / 255
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("theme", ["light", "book, dark"])
def test_a_number_can_be_read_on_every_weight(show, theme):
    weights = np.linspace(0.005, 0.995, 100)
    scores = np.stack([np.log(weights / (1 - weights)), 0 * weights], axis=-1)
    tokens = [f"{w:.3f}" for w in weights]
    starts = {"all open": np.ones((100, 2), bool)}
    drawn = figures.masks(scores, tokens, ["a", "b"], starts=starts, alt="All shades")
    figure = show(drawn, theme=theme, reduced_motion="reduce")
    light = np.sort(luminance(figure.root.evaluate(SHADES)), axis=1) + 0.05
    assert light.shape == (200, 2)
    assert min(light[:, 1] / light[:, 0]) >= 4.5


# ------------------------------------------------------------------ collapse


def scaled(tokens):
    """Return the two numbers of each token that are seen."""
    return (tokens / np.sqrt((tokens**2).sum(-1).mean()))[:, :2]


def test_collapse_follows_the_keyboard_to_the_last_layer(show):
    figure = show(FIGURES["collapse"]())
    agree(figure.numbers("points"), scaled(TRACKS["kept"][0]))
    figure.slider("layer").focus()
    figure.press("ArrowRight")
    agree(figure.numbers("points"), scaled(TRACKS["kept"][1]))
    assert figure.says.startswith("kept, after layer 1: the words differ by")
    figure.press("End")
    assert figure.aim == "○ kinds of layer seen after layer 3: 1 of 2."
    figure.radio("equal").check()
    kept = json.loads(FIGURES["collapse"]().data)["differ"][0][-1]
    assert figure.aim.endswith(f"the words still differ in: kept ({kept}).")
    assert figure.aim.startswith("✓ Reached.") and figure.data("differ") == "0"
    assert len(set(map(tuple, figure.numbers("points").reshape(4, 2)))) == 1


# ------------------------------------------------------------------ scale


def expect_width(figure, draw, at):
    """The figure shows the weights of one draw at one width, raw and divided."""
    raw = mha.softmax(WALKS[draw, :, at])
    divided = mha.softmax(WALKS[draw, :, at] / np.sqrt(WIDTHS[at]))
    both = np.array([raw, divided])
    agree(figure.numbers("raw"), raw)
    agree(figure.numbers("divided"), divided)
    agree(figure.numbers("largest"), both.max(-1))
    effective = np.exp(-(both * np.log(both)).sum(-1))
    np.testing.assert_allclose(figure.numbers("effective"), effective, atol=2e-3)
    assert f"dₖ = {WIDTHS[at]}. Raw: largest weight {raw.max():.2f}" in figure.says


def test_scale_follows_the_keyboard(show):
    figure = show(FIGURES["scale"]())
    expect_width(figure, 0, 4)
    figure.slider("width").focus()
    figure.press("ArrowRight")
    expect_width(figure, 0, 5)
    figure.press("End")
    expect_width(figure, 0, 8)
    figure.press("Tab", "ArrowRight")
    expect_width(figure, 1, 8)


def test_scale_follows_the_mouse(show):
    figure = show(FIGURES["scale"]())
    figure.radio("3").click()
    box = figure.slider("width").bounding_box()
    figure.page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
    expect_width(figure, 2, 0)


def test_luck_is_ruled_out_after_all_draws_at_the_last_width(show):
    figure = show(FIGURES["scale"]())
    figure.slider("width").press("End")
    assert figure.aim == "○ Draws seen at dₖ = 1024: 1 of 3."
    figure.radio("2").check()
    figure.radio("3").check()
    least = mha.softmax(WALKS[..., -1]).max(-1).min()
    assert figure.aim.startswith("✓ Reached. ") and f"{least:.2f} or more" in figure.aim


# ------------------------------------------------------------------ offsets


def test_offsets_show_a_dot_product_that_ignores_where_the_pair_is(show):
    figure = show(FIGURES["offsets"]())
    P = mha.sinusoidal_positional_encoding(141, 16)
    agree(figure.numbers("dot"), [P[3] @ P[7]])
    figure.slider("position").press("End")
    assert (figure.data("t"), figure.data("s")) == ("100", "104")
    agree(figure.numbers("dot"), [P[3] @ P[7]])
    agree(figure.numbers("cosines"), np.cos(4 * 10000 ** (-np.arange(8) / 8)))
    figure.slider("offset").press("End")
    agree(figure.numbers("dot"), [P[100] @ P[140]])


def test_the_task_of_offsets_is_a_rise_with_distance(show):
    figure = show(FIGURES["offsets"]())
    assert figure.aim.startswith("○ Not yet")
    figure.slider("offset").press("Home")  # offset 0 is larger than all, and no answer
    assert figure.aim.startswith("○ Not yet")
    for _ in range(5):  # the dot product of offset 5 is larger than that of offset 4
        figure.slider("offset").press("ArrowRight")
    assert figure.aim.startswith("✓ Reached. ")
