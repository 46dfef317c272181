"""What the book stores instead of computing on the page is what its script gives."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

DATA = Path(__file__).parents[2] / "book" / "_data"
CLOSE = 0.02  # between machines; the limits of neighbouring cells are 0.25 apart

spec = importlib.util.spec_from_file_location("two_dragons", DATA / "two_dragons.py")
two_dragons = importlib.util.module_from_spec(spec)
spec.loader.exec_module(two_dragons)

TABLE = json.loads(two_dragons.STORE.read_text(encoding="utf-8"))
GRID = [
    (h, m, kind)
    for kind, targets in (("", (1, 2, 4)), (" named", (1, 2)))
    for h in targets
    for m in (1, 2, 4)
]


def spread(name):
    return np.min(TABLE[name]), np.max(TABLE[name])


# By hand


def test_the_hero_wants_the_first_creatures_in_order():
    (query, keys, values), target = two_dragons.draw(torch_rng(), 3, h=2)
    assert query.shape == (3, 1, two_dragons.TOKEN)
    contents = values[:, :, two_dragons.N : two_dragons.N + two_dragons.P]
    np.testing.assert_array_equal(target[:, 0], contents[:, :2].flatten(1))
    assert not keys[:, :, two_dragons.N :].any()


def test_the_query_names_what_it_wants():
    (query, _, values), target = two_dragons.draw(torch_rng(), 3, h=2, named=True)
    contents = values[:, :, two_dragons.N : two_dragons.N + two_dragons.P]
    pointers = query.unflatten(-1, (2, two_dragons.N))[:, 0]
    np.testing.assert_array_equal(target[:, 0], (pointers @ contents).flatten(1))


def torch_rng():
    return two_dragons.torch.Generator().manual_seed(0)


# Laws


@pytest.mark.parametrize(("h", "m", "kind"), GRID)
def test_every_cell_of_the_grid_ends_at_its_limit(h, m, kind):
    low, high = spread(f"h={h} m={m}{kind}")
    limit = min(m, h) / h
    assert limit - CLOSE <= low <= high <= limit + CLOSE


@pytest.mark.parametrize("name", ["width 8", "width 128", "width 512", "deep reader"])
def test_width_and_depth_do_not_lift_the_limit(name):
    low, high = spread(name)
    assert 0.5 - CLOSE <= low <= high <= 0.5 + CLOSE


@pytest.mark.parametrize("name", ["only the sum", "two layers", "two queries"])
def test_each_way_round_gets_everything(name):
    assert spread(name)[0] > 0.98


def test_reading_keys_break_the_bound_unless_the_dragons_are_named():
    assert spread("reading keys")[0] > 0.6
    assert abs(np.subtract(spread("reading keys, named"), 0.5)).max() <= CLOSE


def test_twins_know_what_one_head_knows():
    assert abs(np.subtract(spread("twins"), 0.5)).max() <= CLOSE


# Agreement


def test_the_table_holds_every_cell_of_the_script_and_five_seeds_each():
    assert list(TABLE) == list(two_dragons.cells())
    assert {len(row) for row in TABLE.values()} == {len(two_dragons.SEEDS)}


def test_the_table_stands_as_the_script_writes_it():
    assert two_dragons.STORE.read_text(encoding="utf-8") == two_dragons.text_of(TABLE)


def test_training_again_gives_what_is_stored():
    """Half as many steps as the script takes are enough to get there."""
    again = two_dragons.run(seed=1, steps=500, **two_dragons.cells()["h=2 m=1"])
    assert abs(again - TABLE["h=2 m=1"][1]) < CLOSE
