"""The house picture shows what the package computes, and lights what it is asked."""

import re
import sys
import xml.etree.ElementTree as ET
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import mha
from figures.house import (
    EVERY,
    IT,
    PARTS,
    TABLES,
    WEIGHTS,
    WORDS,
    X,
    facts,
    house,
    numbers,
    short,
    spoken,
)  # fmt: skip
from mha._chapters import CHAPTERS
from mha.plot.marks import Shape, Text
from tests.book.load import extension
from tests.figures.test_contrast import scene_of

LAYOUTS = ("wide", "narrow")
ROLES = {"query", "key", "value", "weight", "output"}
ATTENTION = {name: W for name, W in WEIGHTS.items() if name[-1] in "QKVO"}
every_chapter = pytest.mark.parametrize("slug", PARTS)
with_and_without_mask = pytest.mark.parametrize("is_causal", [False, True])
in_both_layouts = pytest.mark.parametrize("layout", LAYOUTS)


def said(scene):
    return [mark.words for mark in scene.marks if isinstance(mark, Text)]


def colours(scene):
    """Return the roles that are drawn, with a line or an area."""
    shapes = [mark for mark in scene.marks if isinstance(mark, Shape)]
    return {mark.fill for mark in shapes} | {mark.stroke for mark in shapes}


def alt_of(slug):
    with mock.patch.object(
        sys.modules[house.__module__], "Picture", lambda _, alt: alt
    ):
        return house(slug)


def is_number(words):
    return re.fullmatch(r"−?\d*\.?\d+", words) is not None


# ------------------------------------------------------------------ by hand


def test_the_query_of_it_times_the_key_of_dog_is_five():
    found = facts(numbers(), short)
    assert found["product"] == "2·2 + 1·1"
    assert found["score"] == "5"


def test_it_attends_mostly_to_dog_and_receives_mostly_dog():
    """The story beside the picture says so."""
    found = numbers()
    assert found["S"][0, IT].argmax() == WORDS.index("dog")
    assert found["A"][0, IT, 0] > 0.5
    values = found["A"][0, IT, :, None] * found["V"][0]
    assert values[0, 0] > values[1:, 0].sum()


@pytest.mark.parametrize(
    ("x", "cell", "aloud"),
    [
        (2, "2", "2"),
        (0.566, ".57", "0.57"),
        (-1.55, "−1.55", "−1.55"),
        (0.001, "0", "0"),
        (-1e-12, "0", "0"),
        (1.999, "2.00", "2"),
    ],
)
def test_numbers_are_short_in_cells_and_whole_in_words(x, cell, aloud):
    assert (short(x), spoken(x)) == (cell, aloud)


# ------------------------------------------------------------------ laws


@with_and_without_mask
def test_every_number_is_what_the_package_computes(is_causal):
    found = numbers(is_causal)
    Y, A = mha.multi_head_attention(
        X, n_heads=2, is_causal=is_causal, return_weights=True, **ATTENTION
    )
    np.testing.assert_array_equal(found["A"], A)
    np.testing.assert_array_equal(found["Y"], Y)
    N = mha.encoder_layer(X, WEIGHTS, 2, is_causal=is_causal)
    np.testing.assert_array_equal(found["N"], N)
    parts = found["Z"], WEIGHTS["W_1"], None, WEIGHTS["W_2"], None
    np.testing.assert_array_equal(
        mha.layer_norm(found["Z"] + mha.feed_forward(*parts)), N
    )


@with_and_without_mask
def test_a_product_has_its_left_factor_on_the_left_and_its_right_one_above(is_causal):
    """So each matrix follows from the two beside it, head by head."""
    found = numbers(is_causal)
    np.testing.assert_array_equal(found["Q"] @ found["K"], found["S"])
    scaled = found["S"] / np.sqrt(2)
    A = mha.masked_softmax(scaled, found["mask"])
    np.testing.assert_allclose(A, found["A"], atol=1e-15)
    np.testing.assert_array_equal(found["A"] @ found["V"], found["H"])
    np.testing.assert_array_equal(found["C"], np.hstack([*found["H"]]))
    for layout in LAYOUTS:
        at, row = TABLES[layout]["at"], TABLES[layout]["row"]
        assert at["Q"][1] == at["S"][1] and at["K"][0] == at["S"][0]
        assert at["A"][1] == at["H"][1] and at["V"][0] == at["H"][0]
        assert at["K"][1] + 2 * row < at["S"][1] and at["V"][1] + 4 * row < at["H"][1]


@in_both_layouts
def test_every_matrix_is_shown_with_all_its_numbers(layout):
    shown = said(scene_of(house, layout=layout))
    for letter in TABLES["matrices"]:
        M = numbers()[letter]
        for x in (M[0] if M.ndim == 3 else M).ravel():
            assert short(x, 1 if M.min() < 0 else 2) in shown


@in_both_layouts
@every_chapter
def test_what_is_not_lit_has_no_colour(slug, layout):
    scene = scene_of(house, slug, layout)
    of = {"Q": "query", "K": "key", "V": "value", "weights": "weight"}
    lit = EVERY if "all" in PARTS[slug] else PARTS[slug]
    for part, role in of.items():
        if part not in lit and not lit & {"projections", "split", "sheets"}:
            assert role not in colours(scene)
        if part in lit:
            assert role in colours(scene)


def test_a_part_at_rest_has_neither_colours_nor_numbers():
    scene = scene_of(house, {"norm"})
    assert not colours(scene) & ROLES
    assert not any(map(is_number, said(scene)))


def test_a_part_that_is_read_has_its_numbers_and_no_colour():
    """The softmax reads the scores."""
    scene = scene_of(house, "softmax")
    assert colours(scene) & ROLES == {"weight"}
    assert sum(map(is_number, said(scene))) == 2 * 16


@in_both_layouts
def test_the_chapter_on_masks_hides_later_words(layout):
    assert "hides later words" in said(scene_of(house, "masks", layout))
    assert "hides nothing" in said(scene_of(house, layout=layout))
    causal = scene_of(house, "softmax", layout, is_causal=True)
    assert "hides later words" in said(causal)


def test_heads_count_from_one():
    words = said(scene_of(house))
    assert {"head 1", "head 2"} <= set(words) and "head 0" not in words


@every_chapter
def test_the_alt_text_of_each_chapter_is_finished(slug):
    alt = alt_of(slug)
    assert "{" not in alt and "None" not in alt and alt.endswith(".")


def test_the_alt_text_says_the_numbers_that_are_lit():
    assert "2·2 + 1·1 = 5" in alt_of("dot_product")
    assert "0.57 for dog, 0.02 for food" in alt_of("softmax")
    assert "hides 6 of 16 pairs" in alt_of("masks")


def test_every_chapter_has_its_parts():
    assert set(PARTS) == {*CHAPTERS, "since_2017"}
    assert set(TABLES["given"]) | set(TABLES["alt"]) <= set(PARTS)


def test_parts_may_be_named_instead_of_a_chapter():
    named = scene_of(house, {"Q", "K", "scores"})
    assert named.marks == scene_of(house, "dot_product").marks


@in_both_layouts
def test_all_tables_name_known_parts(layout):
    table = TABLES[layout]
    named = {part for parts, *_ in table["lines"] for part in parts}
    rows = [row for kind in ("words", "notes", "outlines") for row in table[kind]]
    named |= {part for parts, *_ in rows for part in parts}
    named |= {part for kind in ("learned", "pills") for part, *_ in table[kind]}
    named |= {part for part, *_ in TABLES["matrices"].values()}
    assert named <= EVERY


@in_both_layouts
def test_nothing_leaves_the_sheet(layout):
    scene = scene_of(house, layout=layout)
    for mark in scene.marks:
        if isinstance(mark, Shape):
            x, y = np.array([p for line in mark.lines for p in line]).T
            assert x.min() >= 0 and x.max() <= scene.width
            assert y.min() >= 0 and y.max() <= scene.height


@in_both_layouts
def test_several_houses_can_share_a_page(layout):
    picture = house("softmax", layout)
    root = ET.fromstring(picture.svg)
    assert not [node for node in root.iter() if node.get("id")]
    assert "<style" not in picture.svg and "url(" not in picture.svg
    assert len(picture.svg) < 60_000 and len(picture.png) < 120_000


@pytest.mark.parametrize(
    "asked",
    [{"lit": "scale"}, {"lit": {"norm"}}, {"lit": "softmax", "is_causal": True}],
)
def test_a_page_shows_the_same_house_to_phones(asked):
    """The page finds in the stored picture what it was asked for."""
    drawings = extension("drawings")
    page = drawings.PICTURE.sub(drawings.both, house(**asked).svg)
    phone = house(**asked, layout="narrow").svg
    phone = re.sub(' data-key="[^"]*"', "", phone)
    assert drawings.legible(phone) in page and page.count("<svg") == 2


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("lit", "message"),
    [
        ("mask", "no chapter 'mask'; there are overview, dot_product"),
        ({"Q", "masks"}, "no part 'masks'; there are K, Q, V"),
        ({"all"}, "no part 'all'"),
        (set(), "no part"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(lit, message):
    with pytest.raises(ValueError, match=message):
        house(lit)


def test_an_unknown_layout_is_refused():
    with pytest.raises(ValueError, match='layout must be "wide" or "narrow", got'):
        house(layout="tall")
