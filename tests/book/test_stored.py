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
    (u, h, kind)
    for kind, targets in (("", (1, 2, 4)), (" named", (1, 2)))
    for u in targets
    for h in (1, 2, 4)
]


def spread(name):
    return np.min(TABLE[name]), np.max(TABLE[name])


# By hand


def test_the_unknowns_are_the_contents_of_the_first_tokens_in_order():
    (query, keys, values), target = two_dragons.draw(torch_rng(), 3, u=2)
    assert query.shape == (3, 1, two_dragons.TOKEN)
    contents = values[:, :, two_dragons.N : two_dragons.N + two_dragons.P]
    np.testing.assert_array_equal(target[:, 0], contents[:, :2].flatten(1))
    assert not keys[:, :, two_dragons.N :].any()


def test_the_query_names_the_unknowns():
    (query, _, values), target = two_dragons.draw(torch_rng(), 3, u=2, named=True)
    contents = values[:, :, two_dragons.N : two_dragons.N + two_dragons.P]
    pointers = query.unflatten(-1, (2, two_dragons.N))[:, 0]
    np.testing.assert_array_equal(target[:, 0], (pointers @ contents).flatten(1))


@pytest.mark.parametrize("options", [{}, {"discrete": True}])
def test_contents_have_the_mean_and_the_variance_of_the_premises(options):
    (_, keys, values), _ = two_dragons.draw(torch_rng(), 2000, u=2, **options)
    contents = values[:, :, two_dragons.N : two_dragons.N + two_dragons.P]
    columns = contents.flatten(1)
    np.testing.assert_allclose(columns.mean(0), 0, atol=0.1)
    np.testing.assert_allclose(columns.T.cov(), np.eye(columns.shape[1]), atol=0.15)
    assert set(contents.flatten().tolist()) == {1, -1} or "discrete" not in options
    assert not keys[:, :, two_dragons.N :].any()


@pytest.mark.parametrize(("first", "linear"), [("linear", True), ("non-linear", False)])
def test_only_one_of_the_first_layers_makes_values_linear_in_the_contents(
    first, linear
):
    model = two_dragons.make(0, 1, {"u": 2}, first=first)
    x, y = two_dragons.torch.randn(2, 50, two_dragons.TOKEN, generator=torch_rng())
    middle = model.embed_values((x + y) / 2)
    mean = (model.embed_values(x) + model.embed_values(y)) / 2
    assert two_dragons.torch.allclose(middle, mean, atol=1e-5) is linear


def torch_rng():
    return two_dragons.torch.Generator().manual_seed(0)


# Laws


@pytest.mark.parametrize(("u", "h", "kind"), GRID)
def test_every_cell_of_the_grid_ends_at_its_limit(u, h, kind):
    low, high = spread(f"u={u} h={h}{kind}")
    limit = min(h, u) / u
    assert limit - CLOSE <= low <= high <= limit + CLOSE


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("width 8", 1 / 2),
        ("width 128", 1 / 2),
        ("width 512", 1 / 2),
        ("deep readout", 1 / 2),
        ("contents ±1, linear readout", 1 / 2),
        ("linear layer first, u=2", 1 / 2),
        ("linear layer first, u=4", 1 / 4),
    ],
)
def test_what_leaves_the_premises_in_place_does_not_lift_the_limit(name, limit):
    low, high = spread(name)
    assert limit - CLOSE <= low <= high <= limit + CLOSE


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("only the sum", 0.98),
        ("two layers", 0.98),
        ("two queries", 0.98),
        ("contents ±1, deep readout", 0.98),
        ("non-linear layer first, u=2", 0.98),
        ("non-linear layer first, u=4", 0.9),
    ],
)
def test_each_way_round_gets_nearly_everything(name, least):
    assert spread(name)[0] > least


def test_keys_that_see_contents_break_the_bound_unless_the_unknowns_are_named():
    assert spread("keys see contents")[0] > 0.6
    assert abs(np.subtract(spread("keys see contents, named"), 0.5)).max() <= CLOSE


def test_twins_know_what_one_head_knows():
    assert abs(np.subtract(spread("twins"), 0.5)).max() <= CLOSE


# Agreement


def test_the_table_holds_every_cell_of_the_script_and_five_seeds_each():
    assert list(TABLE) == list(two_dragons.cells())
    assert {len(row) for row in TABLE.values()} == {len(two_dragons.SEEDS)}


def test_the_table_stands_as_the_script_writes_it():
    assert two_dragons.STORE.read_text(encoding="utf-8") == two_dragons.text_of(TABLE)


@pytest.mark.parametrize(
    "name", ["u=2 h=1", "contents ±1, linear readout", "linear layer first, u=2"]
)
def test_training_again_gives_what_is_stored(name, monkeypatch):
    """A fifth of the steps that the script takes is enough to get there."""
    monkeypatch.setattr(two_dragons, "TEST", 10_000)
    again = two_dragons.run(seed=1, steps=200, **two_dragons.cells()[name])
    assert abs(again - TABLE[name][1]) < CLOSE


@pytest.mark.parametrize(
    "name", ["contents ±1, deep readout", "non-linear layer first, u=2"]
)
def test_a_short_training_already_passes_the_limit(name, monkeypatch):
    monkeypatch.setattr(two_dragons, "TEST", 10_000)
    again = two_dragons.run(seed=1, steps=200, **two_dragons.cells()[name])
    assert 0.6 < again < TABLE[name][1]
