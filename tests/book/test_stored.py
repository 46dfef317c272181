"""What the book stores instead of computing: each table is whole, and its tasks right.

Chapters print what is stored, so their outputs tell if a number changes. The scripts
train a part again in tests/weekly/test_remade.py.
"""

import pytest

pytest.importorskip("torch")

import torch

import mha
from _data import cost, induction, masks_elsewhere, trained_positions, two_dragons
from _data.training import stored
from tests.tolerances import FLOAT32, assert_close

TASKS = [f"{t} {w}" for t in trained_positions.TASKS for w in trained_positions.WAYS]
CURVES = [f"curve {way}" for way in trained_positions.WAYS[1:]]
WAYS = [f"{way}, n = {n}" for way in cost.WAYS for n in cost.sizes_of(way)]
WHOLE = {  # the entries of each table, and how many runs an entry holds
    "two_dragons": (list(two_dragons.cells()), 5),
    "trained_positions": ([*TASKS, *CURVES, "reverse turned, longer"], 5),
    "cost": (["where", *WAYS], None),
    "masks_elsewhere": (["versions", *masks_elsewhere.LIBRARIES], None),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_table_holds_what_its_script_yields(name):
    entries, runs = WHOLE[name]
    assert list(stored(name)) == entries
    for entry in stored(name).values() if runs else ():
        assert len(entry) in (runs, len(trained_positions.FEW_SEEDS))


# The tasks, by hand


def test_from_the_second_round_on_a_text_to_copy_tells_its_next_letter():
    letters, periods = induction.texts(211, seed=0)
    for text, period in zip(letters.tolist(), periods[:, 0].tolist(), strict=True):
        assert text[period:] == text[:-period]
        assert len(set(text)) == period and 5 <= period <= 12


@pytest.mark.parametrize("way", cost.WAYS)
def test_every_way_to_attention_ends_at_the_same_numbers(way):
    Q, K, V = cost.draw(613)
    expected = cost.by_hand(Q, K, V)
    if "causal" in way:
        expected = mha.scaled_dot_product_attention(Q, K, V, is_causal=True)
    assert_close(cost.WAYS[way](Q, K, V), expected, FLOAT32)


OF_TORCH = [name for name in masks_elsewhere.LIBRARIES if name.startswith("torch ")]


@pytest.mark.parametrize("name", OF_TORCH)
def test_pytorch_reads_masks_as_chapter_4_says(name):
    found = masks_elsewhere.answers_of(masks_elsewhere.LIBRARIES[name])
    table = stored("masks_elsewhere")
    if torch.__version__.partition("+")[0] != table["versions"]["torch"]:
        found["no key"] = table[name]["no key"]  # it has changed, and may again
    assert found == table[name]
