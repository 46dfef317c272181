"""What chapter 15 stores is what its script gives; without weights it is skipped."""

import json

import pytest

import pretrained
from _data import minilm

TABLE = json.loads(minilm.STORE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model():
    if pretrained.find() is None:
        pytest.skip(f"no model on this machine. {pretrained.WAYS}")
    return pretrained.load()


# Laws


def test_silence_costs_something_and_a_layer_more_than_any_of_its_heads():
    likeness = {name: row[0] for name, row in TABLE.items()}
    assert max(likeness.values()) < 1
    for i in range(1, 7):
        heads = [likeness[f"L{i}H{r}"] for r in range(1, 13)]
        assert likeness[f"L{i}"] < min(heads)


# Agreement


def test_the_table_holds_every_cell_and_stands_as_the_script_writes_it(model):
    assert list(TABLE) == list(minilm.cells(model))
    assert minilm.STORE.read_text(encoding="utf-8") == minilm.text_of(TABLE)


def test_the_rows_of_chapter_0_are_those_of_the_model(model):
    rows = {end: minilm.shared(model, end) for end in ("hungry", "rotten")}
    assert minilm.IT.read_text(encoding="utf-8") == minilm.text_of(rows)


def test_the_excerpt_of_the_reference_is_what_the_tests_compare_with():
    stored = minilm.EXCERPT.read_text(encoding="utf-8")
    assert stored == minilm.text_of(minilm.excerpt())
