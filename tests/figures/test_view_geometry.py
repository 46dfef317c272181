"""Dragons, heads and the plane: the scripts are handed what the package says."""

import json

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

import mha
from figures.dragons import evened
from mha import plot
from tests.tolerances import assert_close

SAYS = "One sentence with the finding."
SHOWN = 0.5001e-4  # four decimals travel
WORDS = ["dog", "food", "it", "hungry"]
QUERY, KEYS = [2.0, 1.0], [[2, 1], [0, 0], [1, 1], [1, 2]]
VALUES = [[2, 0], [0, 2], [1, 1], [1, 0]]
NIGHTS = np.random.default_rng(0).normal(size=(53, 3)) * [1, 2, 3] + [0, 0.5, 0]
LOOKS = [[0.4, 0.2], [0.2, 0.8]]
CELLS = np.arange(4 * 6).reshape(4, 6)


def data_of(figure):
    return json.loads(figure.data)


def show_plane(**changed):
    good = {"query": QUERY, "keys": KEYS, "values": VALUES, "words": WORDS}
    return figures.plane(**{**good, "alt": SAYS, **changed})


def show_dragons(**changed):
    return figures.dragons(**{"nights": NIGHTS, "looks": LOOKS, "alt": SAYS, **changed})


def show_heads(**changed):
    return figures.heads(**{"cells": CELLS, "words": WORDS, "alt": SAYS, **changed})


# ------------------------------------------------------------------ by hand


def test_plane_hands_over_its_numbers_and_the_corners_of_the_hull():
    data = data_of(show_plane(asks="it", axes=["ab", "cd"]))
    assert data["query"] == QUERY and data["keys"] == KEYS and data["values"] == VALUES
    assert sorted(data["hull"]) == [[0, 2], [1, 0], [2, 0]]
    assert data["words"] == WORDS and data["asks"] == "it"
    assert data["axes"] == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(("longest", "reach"), [(2, 4), (10, 17), (0, 1)])
def test_the_plane_has_room_for_the_longest_arrow(longest, reach):
    assert data_of(show_plane(query=[0, -longest], keys=np.zeros((4, 2))))["reach"] == (
        reach
    )


def test_the_plane_stands_still_with_the_output_of_the_package():
    home = mha.scaled_dot_product_attention(
        np.array([QUERY]), np.array(KEYS, float), np.array(VALUES, float)
    )
    drawn = figures.vectors(
        {**dict(zip(WORDS, VALUES, strict=True)), "output": home[0]},
        alt=SAYS,
        roles={**dict.fromkeys(WORDS, "value"), "output": "output"},
        hull=WORDS,
    )
    assert show_plane().still.svg == drawn.svg


def test_dragons_stand_still_on_a_line():
    s = evened(NIGHTS)
    a = np.array([0.4, 0.2, 0.4])
    guess = np.outer(s @ a, a) / (a @ a)
    drawn = figures.moves(
        {"one head, 0.4 / 0.2 / 0.4": (s[:, :2], guess[:, :2])},
        xlabel="left dragon glow",
        ylabel="right dragon glow",
        names=("the night", "the best guess"),
        alt=SAYS,
    )
    assert show_dragons().still.svg == drawn.svg


def test_heads_offer_every_number_that_divides_the_width():
    data = data_of(show_heads(n_heads=3))
    assert data["counts"] == [1, 2, 3, 6] and data["first"] == 3
    assert data["cells"] == [[str(x) for x in row] for row in CELLS.tolist()]


def test_heads_stand_still_with_the_swap_and_without():
    right, wrong = mha.split_heads(CELLS, 3), CELLS.reshape(3, 4, 2)
    panels = [(x, f"head {r}") for r, x in enumerate(right, 1)]
    panels += [(x, f"head {r}, no swap") for r, x in enumerate(wrong, 1)]
    names = {"xlabel": "column", "ylabel": "taken for"}
    drawn = plot.heatmaps(panels, WORDS, ["", ""], kind="scores", alt=SAYS, **names)
    assert show_heads(n_heads=3).still.svg == drawn.svg


def test_heads_take_names_as_well_as_numbers():
    cells = [["da", "db"], ["fa", "fb"]]
    assert data_of(figures.heads(cells, WORDS[:2], alt=SAYS))["cells"] == cells


# ------------------------------------------------------------------ laws


def test_the_nights_keep_the_premises_of_the_theorem():
    s = np.array(data_of(show_dragons())["nights"])
    assert_close(s.T @ s / len(s), np.eye(3), atol=1e-3)
    assert_close(s, evened(NIGHTS), atol=SHOWN)


def test_nights_that_keep_the_premises_are_left_alone():
    assert_close(evened(evened(NIGHTS)), evened(NIGHTS))


def test_one_head_is_worth_one_creature_on_these_nights():
    s = evened(NIGHTS)
    for a in np.random.default_rng(1).dirichlet(np.ones(3), size=11):
        home = s @ a[:, None]
        error = s - home @ np.linalg.lstsq(home, s, rcond=None)[0]
        worth = 1 - (error**2).sum(0) / (s**2).sum(0)
        assert_close(worth, a**2 / (a @ a))
        assert worth[:2].mean() <= 0.5 + 1e-12


def test_the_numbers_of_the_reader_are_not_modified():
    nights, keys, cells = NIGHTS.copy(), np.array(KEYS, float), CELLS.copy()
    show_dragons(nights=nights)
    show_plane(keys=keys)
    show_heads(cells=cells)
    np.testing.assert_array_equal(nights, NIGHTS)
    np.testing.assert_array_equal(keys, KEYS)
    np.testing.assert_array_equal(cells, CELLS)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"query": [1, 2, 3]}, r"query must have shape \(2,\) .* got \(3,\)"),
        ({"keys": KEYS[:3]}, r"keys must have shape \(4, 2\) .* got \(3, 2\)"),
        ({"values": np.ones((4, 3))}, r"values .* got \(4, 3\)"),
        ({"query": [np.nan, 0]}, "query must be finite"),
        ({"words": list("abcdefghi")}, "1 to 8, got 9"),
        ({"words": []}, "1 to 8, got 0"),
        ({"alt": ""}, "alt"),
    ],
)
def test_plane_refuses_what_does_not_fit(changed, says):
    with pytest.raises(ValueError, match=says):
        show_plane(**changed)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"nights": NIGHTS[:9]}, r"10 to 400, got \(9, 3\)"),
        ({"nights": NIGHTS[:, :2]}, r"got \(53, 2\)"),
        ({"nights": np.tile(NIGHTS, (8, 1))}, r"got \(424, 3\)"),
        ({"nights": NIGHTS[:, [0, 1, 1]]}, "combination of the others"),
        ({"nights": np.full((53, 3), np.inf)}, "nights must be finite"),
        ({"looks": [[0.7, 0.4], [0.5, 0.5]]}, "sum at most 1"),
        ({"looks": [[-0.1, 0.4], [0.5, 0.5]]}, "not negative"),
        ({"looks": [[0.5, 0.5]]}, "two pairs"),
        ({"names": ["left", "right"]}, "three, got 2"),
        ({"alt": ""}, "alt"),
    ],
)
def test_dragons_refuses_what_does_not_fit(changed, says):
    with pytest.raises(ValueError, match=says):
        show_dragons(**changed)


@pytest.mark.parametrize(
    ("changed", "kind", "says"),
    [
        ({"n_heads": 4}, ValueError, r"d_model \(6\) .* n_heads \(4\)"),
        ({"n_heads": 0}, ValueError, "n_heads"),
        ({"n_heads": 2.0}, TypeError, "n_heads"),
        ({"cells": CELLS[0]}, ValueError, r"\(n, d_model\).*got \(6,\)"),
        ({"cells": CELLS.reshape(2, 12)}, ValueError, r"got \(2, 12\)"),
        ({"cells": CELLS[:, :0]}, ValueError, r"got \(4, 0\)"),
        ({"words": WORDS[:3]}, ValueError, "words must be 4, .* got 3"),
        ({"alt": ""}, ValueError, "alt"),
    ],
)
def test_heads_refuses_what_does_not_fit(changed, kind, says):
    with pytest.raises(kind, match=says):
        show_heads(**changed)
