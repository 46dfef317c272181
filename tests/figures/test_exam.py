"""The figures of the ten wrong attentions show what is stored and what laws find."""

import json
from pathlib import Path

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

from figures import ten
from figures.exam import verdict
from mha.plot.marks import Text
from tests.book.load import extension
from tests.figures.test_contrast import THEMES, scene_of, too_faint

DATA = Path(__file__).parents[2] / "book" / "_data"
CARDS = json.loads((DATA / "cards.json").read_text(encoding="utf-8"))["exam"]


def words(scene):
    return [mark.words for mark in scene.marks if isinstance(mark, Text)]


def test_a_row_is_worse_only_if_all_its_seeds_are():
    assert verdict([0.5, 0.8], [0.9, 1.0]) == "worse"
    assert verdict([0.5, 0.95], [0.9, 1.0]) == ""
    assert verdict([0.5, 0.8], [0.9, 1.0], margin=0.2) == ""
    assert verdict([0.5, 0.8], [0.9, 1.0], lower_is_better=True) == "better"


def test_each_cell_is_the_mean_of_its_seeds():
    scene = scene_of(figures.exam, CARDS, alt="x.")
    means = [f"{np.mean(CARDS[c][n]):.3f}" for c in CARDS for n in CARDS[c]]
    shown = [word for word in words(scene) if word[0] in "01" and "." in word]
    assert sorted(shown) == sorted(means)


def test_the_chapter_says_what_is_tinted():
    """What chapter 12 lists below the figure, with the margin that it draws with."""
    found = {
        name: [k for k, c in enumerate(CARDS) if _worse(CARDS[c], name)]
        for name in ten.NAMES
    }
    assert found == {
        "right": [],
        "no_scale": [4],
        "scale_sqrt_n": [1, 2],
        "scale_sqrt_d_model": [],
        "scale_after_softmax": [4],
        "softmax_over_queries": [1, 3, 4],
        "merge_without_transpose": [0, 1, 2, 3, 4],
        "split_without_transpose": [0, 1, 2, 3, 4],
        "input_split_before_projection": [0, 1, 2, 3, 4],
        "tied_query_key": [0, 1, 2, 3, 4],
        "no_output_projection": [4],
    }


def _worse(column, name):
    return verdict(column[name], column[ten.RIGHT], margin=0.002) == "worse"


@pytest.mark.parametrize("theme", THEMES)
def test_every_word_of_both_figures_can_be_read(theme):
    tables = ({}, {"lower_is_better": True})  # red, and purple
    for scene in (scene_of(figures.exam, CARDS, alt="x.", **how) for how in tables):
        assert too_faint(scene, theme) == []
    assert too_faint(scene_of(figures.bugs), theme) == []


def test_a_table_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="1 to 5 columns, got 0"):
        figures.exam({}, alt="x.")


def test_a_page_shows_the_ten_bugs_to_phones():
    drawings = extension("drawings")
    page = drawings.PICTURE.sub(drawings.both, figures.bugs().svg)
    assert drawings.legible(ten.ten("narrow").svg(ten.alt())) in page


def test_the_maps_of_a_version_need_its_laws():
    table = {"right": {"accuracy": 1, "repaired": 1, "maps": ["0"]}}
    with pytest.raises(ValueError, match=r"for each member, not \['right'\]"):
        figures.learned(table, {}, alt="x.")
