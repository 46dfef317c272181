"""Figures to move: honest data, safe text, small, the same on every run."""

import base64
import json
import re
import tomllib
import warnings
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import figures

pytest.importorskip("matplotlib")
pytest.importorskip("IPython")

from IPython.core.formatters import DisplayFormatter

import mha
from mha import laws, plot, view
from mha.view import base as _view

SAYS = "One sentence with the finding."
WORDS = ["the", "dog", "ran"]
LIMIT = 27_000  # characters of script and markup, besides data and still picture
rng = np.random.default_rng(0)
A = mha.softmax(rng.normal(size=(2, 5, 3, 3)))  # layers, heads, queries, keys
S = rng.normal(size=(3, 5))
WALKS = rng.normal(size=(2, 7, 3)) * [2.0, 4.0, 8.0]
NIGHTS = rng.normal(size=(53, 3))
MASKS = {"open": np.ones((3, 5), bool), "two": np.arange(5) < 2}
FIVE = ["a", "b", "c", "d", "e"]
LEARNED = {
    name: {"accuracy": 1.0, "repaired": 0.5, "maps": ["0f30", "f00f"]}
    for name in ("right", "no_scale")
}
ROW, PAIRS, ASKED = [5, 0, 3], np.eye(3, 2), {"query": "ran", "move": "dog"}
VIEWS = {
    "softmax": lambda alt: figures.softmax([3, -2, 0.5], WORDS, alt=alt),
    "scores": lambda alt: figures.scores(ROW, PAIRS, WORDS, "ab", **ASKED, alt=alt),
    "attention": lambda alt: view.attention(A, WORDS, alt=alt),
    "one head": lambda alt: view.attention(A[0, 0], WORDS, alt=alt),
    "other keys": lambda alt: view.attention(mha.softmax(S), WORDS, FIVE, alt=alt),
    "masks": lambda alt: figures.masks(S, WORDS, FIVE, starts=MASKS, alt=alt),
    "scale": lambda alt: figures.scale(WALKS, [4, 16, 64], alt=alt),
    "plane": lambda alt: figures.plane(S[0, :2], S[:, :2], S[:, 2:4], WORDS, alt=alt),
    "dragons": lambda alt: figures.dragons(NIGHTS, [[0.4, 0.2], [0.2, 0.8]], alt=alt),
    "heads": lambda alt: figures.heads(S[:, :4].round(1), WORDS, alt=alt),
    "steps": lambda alt: figures.steps(
        *[np.eye(4)] * 5, 2, tokens=list("abcd"), alt=alt
    ),
    "online": lambda alt: figures.online(S[0], S[1], FIVE, alt=alt),
    "kills": lambda alt: figures.kills(laws.kill_matrix(), alt=alt),
    "learned": lambda alt: figures.learned(
        LEARNED, dict.fromkeys(LEARNED, ()), alt=alt
    ),
    "offsets": lambda alt: figures.offsets(8, alt=alt),
    "collapse": lambda alt: figures.collapse({"a": A[:, 0]}, WORDS, alt=alt),
}


def as_text(picture):
    return base64.b64encode(picture.png).decode()


every_view = pytest.mark.parametrize("name", VIEWS)


def shown(figure):
    """Return the data as the browser will read them, from the HTML itself."""
    html = figure._repr_html_()
    return json.loads(re.search(r'json">(.*?)</script>', html, re.S)[1])


# ------------------------------------------------------------------ by hand


def test_attention_hands_over_weights_of_every_layer_and_head():
    data = shown(view.attention(A, WORDS, alt=SAYS, first=2))
    np.testing.assert_allclose(data["weights"], A, atol=0.5e-4)
    assert data["queries"] == data["keys"] == WORDS and data["first"] == 2


def test_attention_opens_at_the_layer_the_head_and_the_word_that_are_named():
    figure = view.attention(A, WORDS, alt=SAYS, first="dog", layer=2, head=4)
    data = shown(figure)
    assert (data["layer"], data["head"], data["first"]) == (1, 3, 1)
    drawn = plot.heatmap(A[1, 3], WORDS, WORDS, alt=SAYS)
    assert figure.still.svg == drawn.svg


@pytest.mark.parametrize("shape", [(3, 3), (5, 3, 3), (2, 5, 3, 3)])
def test_attention_takes_one_head_many_heads_and_many_layers(shape):
    weights = A.reshape(-1)[: np.prod(shape)].reshape(shape)
    data = shown(view.attention(weights, WORDS, alt=SAYS))
    assert np.shape(data["weights"]) == (1,) * (4 - len(shape)) + shape


def test_attention_takes_tensors_of_any_kind_and_a_list_of_layers():
    torch = pytest.importorskip("torch")
    plain = shown(view.attention(A, WORDS, alt=SAYS))
    tensor = torch.tensor(A, requires_grad=True)
    for weights in (tensor, list(tensor), tuple(A), A.tolist()):
        assert shown(view.attention(weights, WORDS, alt=SAYS)) == plain
    coarse = shown(view.attention(tensor.bfloat16(), WORDS, alt=SAYS))
    np.testing.assert_allclose(coarse["weights"], A, atol=1 / 256)


def test_masks_reach_every_cell_and_keep_their_order():
    data = shown(figures.masks(S, WORDS, FIVE, starts=MASKS, alt=SAYS))
    assert data["starts"] == [
        ["open", [[1, 1, 1, 1, 1]] * 3],
        ["two", [[1, 1, 0, 0, 0]] * 3],
    ]


def test_offsets_hands_over_its_width_and_shows_the_curve_without_a_script():
    figure = figures.offsets(8, alt=SAYS)
    assert shown(figure) == {"width": 8, "first": [3, 4], "most": [100, 40]}
    P = mha.sinusoidal_positional_encoding(41, 8)
    labels = {"xlabel": "offset", "ylabel": "dot product", "alt": SAYS}
    drawn = figures.lines(np.arange(41), {"width 8": P @ P[0]}, **labels)
    assert figure.still.svg == drawn.svg


def test_scale_hands_over_one_width_after_another():
    data = shown(figures.scale(WALKS, [4, 16, 64], alt=SAYS))
    np.testing.assert_allclose(data["scores"], WALKS.swapaxes(1, 2), atol=0.5e-4)
    assert data["widths"] == [4, 16, 64] and data["first"] == 1


def test_scores_hand_over_which_of_them_can_be_moved():
    data = shown(VIEWS["scores"](SAYS))
    assert (data["moved"], data["query"]) == (1, "ran")
    assert data["scores"] == ROW and data["values"] == PAIRS.tolist()


@pytest.mark.parametrize(
    ("token", "sign"),
    [("", "∅"), ("  ", "␣␣"), ("\n", "⏎"), (" a", " a"), ("a\tb", "a⇥b"), (7, "7")],
)
def test_what_cannot_be_seen_gets_a_sign(token, sign):
    data = shown(view.attention([[1.0]], [token], alt=SAYS))
    assert data["queries"] == [sign]


def test_comments_do_not_travel():
    for path in [
        *_view.FOLDER.glob("*.js"),
        *Path(figures.__file__).parent.glob("*.js"),
    ]:
        source = path.read_text(encoding="utf-8")
        comment = re.search(r"^\s*(// .*)$", source, re.M)[1]
        assert comment not in _view.text(path)
        assert _view.text(path).count("\n") > 10


# ------------------------------------------------------------------ laws


@every_view
def test_a_view_is_small_besides_its_data(name):
    figure = VIEWS[name](SAYS)
    whole = len(figure._repr_html_().encode())
    besides = whole - len(figure.data.encode()) - len(as_text(figure.still))
    assert 5_000 < besides <= LIMIT


@every_view
def test_a_view_is_the_same_on_every_run(name):
    first, second = VIEWS[name](SAYS), VIEWS[name](SAYS)
    assert first._repr_html_() == second._repr_html_()
    assert first.still.png == second.still.png


@every_view
def test_a_view_asks_nobody(name):
    """The only addresses are names: of the vocabulary of SVG."""
    html = VIEWS[name](SAYS)._repr_html_().replace("http://www.w3.org/", "")
    assert not re.search(r"https?://|\bfetch\b|import\(|\beval\b|XMLHttp|<link", html)


@every_view
def test_a_view_has_no_id_and_no_style_element(name):
    """Two copies share a page, and a style element may not stand in its body."""
    figure = VIEWS[name](SAYS)
    assert not re.search(r"<style|\bid=", figure._repr_html_())


@every_view
def test_a_view_says_what_it_shows_to_everybody(name):
    figure = VIEWS[name]('Less < more & "so"')
    bundle, _ = DisplayFormatter().format(figure)
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == 'View: Less < more & "so"'
    assert 'aria-label="Less &lt; more &amp; &quot;so&quot;"' in bundle["text/html"]


@every_view
def test_the_still_is_an_image_that_an_untrusted_notebook_keeps(name):
    """JupyterLab drops drawings, styles and scripts there, and keeps such an <img>."""
    figure = VIEWS[name]('Less < more & "so"')
    (image,) = re.findall("<img[^>]*/>", figure._repr_html_())
    assert 'alt="Less &lt; more &amp; &quot;so&quot;"' in image
    assert f'src="data:image/png;base64,{as_text(figure.still)}"' in image
    assert figure.still.png.startswith(b"\x89PNG")


@every_view
def test_a_view_takes_its_colours_from_the_page(name):
    """Colours are names of roles, and each name falls back on the light theme."""
    html = VIEWS[name](SAYS)._repr_html_()
    roles = "query key value weight output wrong ink muted rest paper".split()
    assert set(re.findall(r"var\(--mha-(\w+), #\w+\)", html)) == set(roles)
    parts = re.sub(r"<img[^>]*>|var\(--mha-\w+, #\w+\)", "", html)
    assert set(re.findall(r"#[0-9A-Fa-f]{3,6}\b", parts)) <= {"#000"}  # on a weight


def test_the_still_picture_shows_the_first_state():
    p = mha.softmax(np.array([3, -2, 0.5]))
    assert VIEWS["softmax"](SAYS).still.svg == figures.bars(p, WORDS, alt=SAYS).svg
    p = mha.softmax(np.array(ROW) / np.sqrt(2))
    assert VIEWS["scores"](SAYS).still.svg == figures.bars(p, WORDS, alt=SAYS).svg
    first = mha.softmax(S)
    drawn = plot.heatmap(first, WORDS, FIVE, mask=MASKS["open"], alt=SAYS)
    assert VIEWS["masks"](SAYS).still.svg == drawn.svg


tokens = st.text(st.characters(exclude_categories=()), max_size=30)


@settings(max_examples=25, deadline=None)
@given(token=tokens)
def test_no_token_leaves_its_place(token):
    """Neither the script element nor the JSON ends early, whatever a token holds."""
    figure = view.attention([[1.0]], [token], alt=SAYS)
    html = figure._repr_html_()
    assert html.count("<script") == html.count("</script") == 2
    assert "<" not in figure.data
    assert len(shown(figure)["queries"]) == 1
    html.encode()  # what a notebook has to store


@pytest.mark.parametrize(
    "token", ["</script><script>alert(1)", "<!--", "<b>", '"', "\\", "]]>"]
)
def test_markup_in_a_token_stays_text(token):
    figure = view.attention([[1.0]], [token], alt=SAYS)
    assert shown(figure)["queries"] == [token]
    assert "<script>alert" not in figure._repr_html_()


@pytest.mark.parametrize(
    "token", ["犬", "🐕‍🦺", "כלב", "كلب", "कुत्ता", "e\u0301", "x" * 500]
)
def test_every_script_and_length_is_drawn_without_a_warning(token):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = view.attention(np.full((5, 5), 0.2), [token] * 5, alt=SAYS)
        assert shown(figure)["keys"] == [token] * 5
        figure._repr_html_()


def test_sixty_words_fit():
    weights = mha.softmax(rng.normal(size=(60, 60)))
    figure = view.attention(weights, [f"w{i}" for i in range(60)], alt=SAYS)
    assert len(figure.data) < 60 * 60 * 8


def test_nothing_is_modified():
    before = A.copy(), S.copy(), WALKS.copy()
    for make in VIEWS.values():
        make(SAYS)
    for now, then in zip((A, S, WALKS), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_what_a_figure_needs_is_installed_with_the_package():
    package = Path(mha.__file__).parent
    settings = tomllib.loads((package.parent / "pyproject.toml").read_text("utf-8"))
    shipped = settings["tool"]["setuptools"]["package-data"]
    files = [p for p in package.rglob("*.*") if p.suffix not in (".py", ".pyc")]
    for path in files:
        owner = ".".join(path.parent.relative_to(package.parent).parts)
        assert any(path.match(pattern) for pattern in shipped.get(owner, [])), path
    assert {".js", ".css", ".mplstyle"} <= {path.suffix for path in files}


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused_and_found(bad):
    weights, scores, walks = A.copy(), S.copy(), WALKS.copy()
    weights[1, 4, 2, 0] = scores[2, 4] = walks[1, 6, 2] = bad
    for call, place in (
        (lambda: view.attention(weights, WORDS, alt=SAYS), r"\(1, 4, 2, 0\)"),
        (
            lambda: figures.masks(scores, WORDS, FIVE, starts=MASKS, alt=SAYS),
            r"\(2, 4\)",
        ),
        (lambda: figures.scale(walks, [4, 16, 64], alt=SAYS), r"\(1, 6, 2\)"),
        (lambda: figures.softmax([1, bad], ["a", "b"], alt=SAYS), r"\(1,\)"),
    ):
        with pytest.raises(ValueError, match=f"must be finite, got .* index {place}"):
            call()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"weights": A[0, 0, 0]}, r"\(3,\)"),
        ({"weights": A[None]}, "batch"),
        ({"weights": 2 * A}, "0..1"),
        ({"weights": -A}, "0..1"),
        ({"weights": A[:0]}, "0..1"),
        ({"tokens": ["a", "b"]}, r"\(2, 2\).*\(2, 5, 3, 3\)"),
        ({"keys": FIVE}, r"\(3, 5\).*\(2, 5, 3, 3\)"),
        ({"names": ["one"]}, "5 heads, got 1"),
        ({"first": 3}, "3 tokens, got 3"),
        ({"first": -1}, "got -1"),
        ({"first": "cat"}, "3 tokens, got 'cat'"),
        ({"layer": 0}, r"layer must lie in 1\.\.2, got 0"),
        ({"head": 6}, r"head must lie in 1\.\.5, got 6"),
        ({"alt": " "}, "alt"),
    ],
)
def test_attention_refuses_what_does_not_fit(arguments, says):
    good = {"weights": A, "tokens": WORDS, "alt": SAYS}
    with pytest.raises(ValueError, match=says):
        view.attention(**good | arguments)


@pytest.mark.parametrize(
    ("scores", "labels", "says"),
    [
        ([[1.0]], ["a"], r"\(1, 1\)"),
        ([1.0], ["a", "b"], "2 labels"),
        ([5.1, 0], ["a", "b"], "-5..5"),
        ([], [], "1 to 12, got 0"),
        ([0.0] * 13, ["a"] * 13, "got 13"),
    ],
)
def test_softmax_refuses_what_does_not_fit(scores, labels, says):
    with pytest.raises(ValueError, match=says):
        figures.softmax(scores, labels, alt=SAYS)


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"scores": S.T}, ValueError, r"\(3, 5\), got \(5, 3\)"),
        ({"starts": {}}, ValueError, "at least one"),
        ({"starts": {"x": np.ones((3, 5))}}, TypeError, "'x'.*boolean, got .*float64"),
        ({"starts": {"x": np.ones((5, 3), bool)}}, ValueError, r"\(5, 3\).*\(3, 5\)"),
    ],
)
def test_masks_refuses_what_does_not_fit(arguments, kind, says):
    good = {"scores": S, "tokens": WORDS, "keys": FIVE, "starts": MASKS, "alt": SAYS}
    with pytest.raises(kind, match=says):
        figures.masks(**good | arguments)


@pytest.mark.parametrize(
    ("scores", "widths", "says"),
    [
        (WALKS[0], [4, 16, 64], r"got \(7, 3\)"),
        (WALKS, [4, 16], "n_widths = 2"),
        (WALKS, [4, 64, 16], "grow"),
        (WALKS, [0, 4, 16], "grow"),
        (WALKS, [[4, 16, 64]], "grow"),
        (WALKS[:0], [4, 16, 64], r"\(0, 7, 3\)"),
    ],
)
def test_scale_refuses_what_does_not_fit(scores, widths, says):
    with pytest.raises(ValueError, match=says):
        figures.scale(scores, widths, alt=SAYS)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"scores": [5, 0]}, r"shapes \(2,\) and \(3, 2\), 3 labels, 2 features"),
        ({"values": np.eye(3)}, r"shapes \(3,\) and \(3, 3\)"),
        ({"scores": [5, -1, 3]}, r"in 0\.\.10"),
        ({"scores": [5, 0, 11]}, r"in 0\.\.10"),
        ({"values": -np.eye(3, 2)}, "values must be at least 0, got -1"),
        ({"move": "cat"}, "no word 'cat'; there are the, dog, ran"),
        ({"scores": [5, 0, np.nan]}, "scores must be finite"),
    ],
)
def test_scores_refuse_what_does_not_fit(changes, says):
    fits = {"scores": ROW, "values": PAIRS, "labels": WORDS, "features": "ab"}
    with pytest.raises(ValueError, match=says):
        figures.scores(**{**fits, **ASKED, "alt": SAYS, **changes})


@pytest.mark.parametrize(("width", "says"), [(0, "from 2"), (7, "even"), (34, "32")])
def test_offsets_refuses_a_width_without_pairs(width, says):
    with pytest.raises(ValueError, match=f"{says}.*got {width}"):
        figures.offsets(width, alt=SAYS)
