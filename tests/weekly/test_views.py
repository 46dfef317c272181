"""Every live view: targets, focus, motion, forced colours. Axe sees it on its page."""

import re

import pytest
import yaml

pytest.importorskip("matplotlib")

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


every_figure = pytest.mark.parametrize("name", FIGURES)


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


def test_the_page_has_the_colours_of_the_palette():
    named = {role: colour.upper() for role, colour in LIGHT.items()}
    assert {role: named.get(role, DAY[role]) for role in DAY} == DAY
    assert set(DARK) == set(DAY)
