"""Every live view at several widths and themes: barriers, targets, focus, contrast."""

import re

import numpy as np
import pytest
import yaml

pytest.importorskip("matplotlib")
pytest.importorskip("axe_playwright_python")

from axe_playwright_python.sync_playwright import Axe

from figures.scene import LIGHT
from tests.book.load import ROOT
from tests.browser.test_figures import FIGURES

CSS = ROOT / "book" / "_static" / "figures.css"
DAY = dict(re.findall(r"--mha-(\w+): (#\w{6});", CSS.read_text(encoding="utf-8")))
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
OPTIONS = CONFIG["sphinx"]["config"]["html_theme_options"]
DARK = {
    name.removeprefix("mha-"): colour
    for name, colour in OPTIONS["dark_css_variables"].items()
    if name.startswith("mha-") and colour.startswith("#")
}


def rgb(colour):
    """Return the three parts of a colour such as #25215F, from 0 to 1."""
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255


def luminance(colour):
    linear = np.where(
        colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4
    )
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(one, other):
    """Return the ratio of luminances, from 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


every_figure = pytest.mark.parametrize("name", FIGURES)
ROLES = "".join(f"--mha-{role}: {colour};" for role, colour in DARK.items())
IN_THE_BOOK = f":root {{{ROLES}}} body {{ background: #14181E }}"


@every_figure
@pytest.mark.parametrize(
    ("theme", "style", "width"),
    [("light", "", 800), ("dark", "", 330), ("dark", IN_THE_BOOK, 390)],
)
def test_axe_finds_no_barrier_and_nothing_scrolls_sideways(
    show, name, theme, style, width
):
    figure = show(FIGURES[name](), theme=theme, style=style, width=width)
    figure.page.wait_for_function("!document.getAnimations().length")
    found = Axe().run(figure.page, options={"resultTypes": ["violations"]})
    assert [v["id"] for v in found.response["violations"]] == []
    assert figure.page.evaluate("document.documentElement.scrollWidth") <= width


@every_figure
def test_targets_are_large_enough_for_a_finger(show, name):
    figure = show(FIGURES[name](), width=390)
    nodes = "button, label:has([type=radio]), input[type=range], .handle"
    boxes = [
        node.bounding_box()
        for node in figure.root.locator(nodes).all()
        if node.is_visible()
    ]
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


@pytest.mark.parametrize("colours", [DAY, DARK], ids=["light", "dark"])
def test_words_can_be_read_on_the_page_in_both_themes(colours):
    paper = rgb(colours["paper"])
    assert contrast(rgb(colours["ink"]), paper) >= 7
    assert contrast(rgb(colours["muted"]), paper) >= 4.5


def test_the_page_has_the_colours_of_the_palette():
    named = {role: colour.upper() for role, colour in LIGHT.items()}
    assert {role: named.get(role, DAY[role]) for role in DAY} == DAY
    assert set(DARK) == set(DAY)
