"""The maps and the view that any reader can use: what they show, take and refuse."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import figures
from figures.scene import LIGHT, Scene, picture
from mha import causal_mask, plot, softmax, view
from tests.figures.reading import SVG, shows, words

SAYS = "It has a finding."
WORDS = ["dog", "food", "it"]
A = np.array([[0.125, 0.5, 0.375], [0.0, 0.25, 0.75]])
LARGE = softmax(np.random.default_rng(0).normal(size=(11, 13)) * 3)
LABELS = {"xlabel": "x", "ylabel": "y"}


def drawing(alt):
    scene = Scene(60, 40)
    scene.text(5, 30, "*W*_Q", math=True)
    scene.hatched(20, 5, 20, 20)
    return picture(scene, alt)


PICTURES = {
    "heatmap": lambda alt: figures.heatmap(A, ["now", "was"], WORDS, alt=alt),
    "masked": lambda alt: figures.heatmap(A, alt=alt, mask=A > 0.3),
    "large": lambda alt: figures.heatmaps([(LARGE, "a"), (LARGE, "b")], alt=alt),
    "scores": lambda alt: figures.heatmap(LARGE - 0.5, alt=alt, kind="scores"),
    "mask": lambda alt: figures.heatmap(causal_mask(7), alt=alt, kind="mask"),
    "lines": lambda alt: figures.lines([1, 2], {"a": [1, 2]}, **LABELS, alt=alt),
    "bars": lambda alt: figures.bars([0.2, 0.8], WORDS[:2], alt=alt),
    "scene": drawing,
}
every_picture = pytest.mark.parametrize("name", PICTURES)


@cache
def drawn_once(name):
    return PICTURES[name](f' Weights "a" & <b>: é, {name}. ')


def place(picture, word):
    """Return where a word stands."""
    for node in ET.fromstring(picture.svg).iter(f"{SVG}text"):
        if "".join(node.itertext()).strip() == word:
            at = re.search(r"translate\((\S+) (\S+)\)", node.get("transform", ""))
            return [float(x) for x in (at.groups() if at else map(node.get, "xy"))]
    raise AssertionError(f"{word} is not written")


def opacities(picture, role):
    """Return how densely the areas of a role are filled, in their order."""
    looks = rf'fill="var\(--mha-{role},[^"]*"(?: fill-opacity="([\d.]+)")?'
    return [float(share or 1) for share in re.findall(looks, picture.svg)]


# ------------------------------------------------------------------ every picture


@every_picture
def test_a_picture_has_alt_text_and_comes_for_screen_and_for_paper(name):
    alt, drawn = f'Weights "a" & <b>: é, {name}.', drawn_once(name)
    root = ET.fromstring(drawn.svg)
    assert (root.get("role"), root.get("aria-label")) == ("img", alt)
    bundle, _ = drawn._repr_mimebundle_()
    assert bundle["text/plain"] == repr(drawn) == f"Picture: {alt}"
    assert bundle["image/svg+xml"] == drawn.svg
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")


def test_a_picture_without_alt_text_is_refused():
    with pytest.raises(ValueError, match="alt must say in one sentence"):
        figures.heatmap(A, alt="  ")


@every_picture
def test_a_picture_leaves_every_colour_to_the_page_and_styles_only_itself(name):
    svg = drawn_once(name).svg
    assert "currentColor" in svg or "var(--mha-ink" in svg
    assert set(re.findall(r"var\(--mha-(\w+)", svg)) <= {*LIGHT, "ground"}
    assert re.findall(r"#[0-9a-fA-F]{6}", re.sub(r"var\([^)]*\)", "", svg)) == []
    assert "<style" not in svg and "DejaVu" not in svg.partition(">")[2]


@every_picture
def test_a_picture_is_small_and_fits_a_column(name):
    drawn = drawn_once(name)
    assert float(ET.fromstring(drawn.svg).get("viewBox").split()[2]) <= 436
    assert len(drawn.svg) < 60_000 and len(drawn.png) < 120_000


def test_pictures_share_a_page_without_sharing_ids():
    own = [
        re.findall(r'\bid="([^"]+)"', drawn.svg) for drawn in map(drawn_once, PICTURES)
    ]
    everything = [each for some in own for each in some]
    assert len(everything) == len(set(everything)) > 0
    for ids, drawn in zip(own, map(drawn_once, PICTURES), strict=True):
        assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', drawn.svg)) == set(ids)


# ------------------------------------------------------------------ maps


def test_queries_are_rows_and_keys_are_columns():
    drawn = drawn_once("heatmap")
    for weight, query, key in (("0.12", "now", "dog"), ("0.25", "was", "food")):
        assert place(drawn, weight)[0] == pytest.approx(place(drawn, key)[0], abs=2)
        assert place(drawn, weight)[1] == pytest.approx(place(drawn, query)[1], abs=3)
    assert place(drawn, "now")[1] < place(drawn, "was")[1]


def test_the_opacity_of_a_cell_is_its_weight():
    """Zero is the background and one the hue, whatever the theme."""
    found = opacities(drawn_once("heatmap"), "weight")
    np.testing.assert_allclose(found, sorted(A[A > 0]), atol=0.01)


def test_a_large_map_has_one_mark_for_each_shade_and_a_legend():
    large = np.kron(np.array([[0.0, 0.5], [0.25, 1.0]]), np.ones((5, 5)))
    drawn = figures.heatmap(large, alt=SAYS)
    assert opacities(drawn, "weight")[:3] == [0.25, 0.5, 1.0]
    assert {"0.00", "0.50", "1.00", "weight"} <= set(words(drawn))
    signed = figures.heatmap(large - 0.5, alt=SAYS, kind="scores", unit="change")
    assert opacities(signed, "amber")[:2] == [1.0, 0.5]
    assert {"−0.50", "0.00", "0.50", "change"} <= set(words(signed))


def test_scores_are_whole_where_they_can_be_and_keep_their_sign():
    S = np.array([[5.0, -3.0, -np.inf]])
    assert shows(figures.heatmap(S, alt=SAYS, kind="scores"), [5, -3], 0)
    assert shows(figures.heatmap(S / 2, alt=SAYS, kind="scores"), [2.5, -1.5])
    assert "5" in words(figures.heatmap(S, alt=SAYS, kind="scores"))
    assert "0.00" in words(figures.heatmap([[-0.001, 1.5]], alt=SAYS, kind="scores"))


def test_a_masked_cell_is_hatched_and_shows_a_weight_that_leaks():
    cells = np.array([[True, False, False]])
    drawn = figures.heatmap(np.array([[0.5, 0.5, 0.0]]), alt=SAYS, mask=cells)
    assert words(drawn).count("0.50") == 2 and "0.00" not in words(drawn)
    strokes = re.findall(r'd="([^"]+)" fill="none" stroke="var\(--mha-muted', drawn.svg)
    assert [path.count("M") for path in strokes] == [2 + 3]
    infinite = figures.heatmap([[0.5, -np.inf]], alt=SAYS, kind="scores")
    assert "--mha-muted" in infinite.svg and "−∞" not in words(infinite)


def test_tight_cells_leave_out_what_is_not_needed_and_titles_are_broken():
    panels = [(np.array([[0.5, 1.0, 0.25, 0.0]]), "a long name of one panel")] * 4
    drawn = figures.heatmaps(panels, ["a long name of a row"], alt=SAYS)
    assert {".50", "1", ".25", "0"} <= set(words(drawn))
    assert "a long name of one panel" not in words(drawn)


def test_every_token_of_a_long_sentence_is_named():
    tokens = [f"token{k}" for k in range(13)]
    keys = [token.upper() for token in tokens]
    drawn = figures.heatmaps([(np.eye(13), "head")] * 4, tokens, keys, alt=SAYS)
    assert {*tokens, *keys} <= set(words(drawn))
    lines = sorted(place(drawn, token)[1] for token in tokens)
    assert min(np.diff(lines)) > 9  # the size of the type: no name covers another
    assert {"$5", "$6$"} <= set(
        words(figures.heatmap(np.eye(2), ["$5", "$6$"], alt=SAYS))
    )


def test_names_and_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="3 and 3 names for 2 by 3"):
        figures.heatmap(A, WORDS, WORDS, alt=SAYS)
    with pytest.raises(ValueError, match=r"between 0 and 1, got 0 to 1\.5"):
        figures.heatmap(A * 2, alt=SAYS)


# ------------------------------------------------------------------ plain maps


def written(picture):
    """Return what stands in the cells of each panel."""
    return [[text.get_text() for text in ax.texts] for ax in picture.figure.axes]


def test_a_plain_map_has_alt_text_for_its_image_and_refuses_to_go_without():
    drawn = plot.heatmap(A, ["now", "was"], WORDS, alt=f" {SAYS} ")
    shown, about = drawn._repr_mimebundle_()
    assert shown["text/plain"] == repr(drawn) == f"Picture: {SAYS}"
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert about == {"image/png": {"alt": SAYS}}
    with pytest.raises(ValueError, match="alt must say in one sentence"):
        plot.heatmap(A, alt=None)


def test_queries_are_rows_keys_are_columns_and_cells_hold_their_numbers():
    drawn = plot.heatmap([A, A], ["now", "$5"], WORDS, alt=SAYS)
    assert written(drawn) == [["0.12", "0.50", "0.38", "0.00", "0.25", "0.75"]] * 2
    left, right = drawn.figure.axes
    assert [t.get_text() for t in left.get_xticklabels()] == WORDS
    assert [t.get_text() for t in left.get_yticklabels()] == ["now", "$5"]
    assert (left.get_title(), right.get_title()) == ("head 1", "head 2")
    np.testing.assert_array_equal(left.images[0].get_array(), A)
    assert left.images[0].get_clim() == (0, 1)


def test_a_large_plain_map_has_a_legend_and_scores_are_tinted_from_zero():
    for S in (LARGE - 0.5, 3 * LARGE):
        drawn = plot.heatmap(S, alt=SAYS)
        assert len(drawn.figure.axes) == 2 and written(drawn)[0] == []
        most = np.abs(S).max()
        assert drawn.figure.axes[0].images[0].get_clim() == (-most, most)


def test_a_plain_map_hatches_what_is_masked():
    drawn = plot.heatmap([[5.0, -np.inf]], alt=SAYS)
    assert written(drawn) == [["5"]]
    assert [patch.get_x() for patch in drawn.figure.axes[0].patches] == [0.5]
    (ax,) = plot.heatmap(causal_mask(3), alt=SAYS).figure.axes
    assert len(ax.patches) == 3 and not ax.texts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": A[0]}, r"\(\[heads,\] n_q, n_k\), got \(3,\)"),
        ({"A": A[:0]}, r"got \(0, 3\)"),
        ({"rows": WORDS}, "rows must hold 2 names, got 3"),
        ({"cols": WORDS[:2]}, "cols must hold 3 names, got 2"),
    ],
)
def test_misfits_are_refused_by_name_and_number(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot.heatmap(**{"A": A, "alt": SAYS, **arguments})


# ------------------------------------------------------------------ the view

W = softmax(np.random.default_rng(1).normal(size=(2, 5, 3, 3)))


@pytest.mark.parametrize("shape", [(3, 3), (5, 3, 3), (2, 5, 3, 3)])
def test_the_view_takes_one_head_many_heads_and_many_layers(shape):
    weights = (
        W.reshape(-1, 3, 3)[0] if len(shape) == 2 else W[0] if len(shape) == 3 else W
    )
    data = json.loads(view.attention(weights, WORDS, alt=SAYS).data)
    expected = weights.reshape((1,) * (4 - len(shape)) + shape)
    np.testing.assert_array_equal(data["weights"], expected.round(4))
    assert data["queries"] == data["keys"] == WORDS


def test_the_view_opens_where_it_is_told_and_stands_still_there():
    shown = view.attention(W, WORDS, alt=f" {SAYS} ", first=2, layer=2, head=3)
    data = json.loads(shown.data)
    assert [data[key] for key in ("query", "layer", "head")] == [2, 1, 2]
    assert repr(shown) == f"View: {SAYS}"
    numbers = [float(text) for text in written(shown.still)[0]]
    np.testing.assert_array_equal(numbers, W[1, 2].round(2).ravel())
    html = shown._repr_html_()
    assert base64.b64encode(shown.still.png).decode() in html
    assert html.count(f'="{SAYS}"') == 2 and "://www.w3.org/2000/svg" in html


@pytest.mark.parametrize(
    ("token", "sign"),
    [(" ", "␣"), ("\n", "\\n"), ("", "∅"), ("\x00", "\\x00"), ("\ud83d", "\\ud83d")],
)
def test_what_cannot_be_seen_gets_a_sign(token, sign):
    data = json.loads(view.attention([[1.0]], [token], alt=SAYS).data)
    assert data["queries"] == [sign]


def test_markup_in_a_token_stays_text():
    shown = view.attention(np.eye(2), ["</script><b>", "<!--"], alt="<i>")
    html = shown._repr_html_()
    assert html.count("</script>") == 2 and "<b>" not in html and "<i>" not in html


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"weights": W[None]}, "of a batch show one sentence"),
        ({"weights": W[..., :2]}, r"with \(3, 3\) words, got \(2, 5, 3, 2\)"),
        ({"weights": 2 * W}, "must lie in 0..1"),
        ({"weights": W * np.nan}, "must lie in 0..1"),
        ({"first": 3}, "first must lie in 0..2, got 3"),
        ({"layer": 3}, "layer must lie in 1..2, got 3"),
        ({"head": 0}, "head must lie in 1..5, got 0"),
        ({"alt": " "}, "alt must say"),
    ],
)
def test_the_view_refuses_what_does_not_fit(arguments, says):
    with pytest.raises(ValueError, match=says):
        view.attention(**{"weights": W, "tokens": WORDS, "alt": SAYS, **arguments})


# ------------------------------------------------------------------ views of the book


FOUR = [*WORDS, "hungry"]
VIEWS = {
    "softmax": lambda: figures.softmax([3, 2, 0, 1], FOUR, alt=SAYS),
    "online": lambda: figures.online([3, 2, 0, 1], [1, 2, 3, 4], FOUR, alt=SAYS),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_the_book_has_a_still_its_words_and_asks_nobody(name):
    shown = VIEWS[name]()
    html = shown._repr_html_()
    assert isinstance(shown, view.View) and html == VIEWS[name]()._repr_html_()
    assert base64.b64encode(shown.still.png).decode() in html
    assert html.startswith(f'<div class="mha-view mha-{name}"') and SAYS in repr(shown)
    assert set(re.findall(r"https?://[^\"' ]+", html)) == {"http://www.w3.org/2000/svg"}
    assert len(html) - len(shown.data) < 60_000
