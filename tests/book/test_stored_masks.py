"""What chapter 4 says about the masks of libraries is what its script finds."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import mha

torch = pytest.importorskip("torch")


SCRIPT = Path(__file__).parents[2] / "book" / "_data" / "masks_elsewhere.py"

spec = importlib.util.spec_from_file_location("masks_elsewhere", SCRIPT)
elsewhere = importlib.util.module_from_spec(spec)
spec.loader.exec_module(elsewhere)

TABLE = json.loads(elsewhere.STORE.read_text(encoding="utf-8"))
KINDS = [*elsewhere.MASKS, "no key"]
OF_TORCH = [name for name in elsewhere.LIBRARIES if name.startswith("torch ")]


# By hand


def test_each_answer_says_which_keys_were_averaged():
    q, k = np.zeros((1, 1)), np.zeros((3, 1))
    expected = {"True": 1, "0, -inf": 1, "1.0, 0.0": (np.e + 110) / (np.e + 2)}
    for kind, answer in expected.items():
        mask = elsewhere.MASKS[kind]
        Y = mha.scaled_dot_product_attention(q, k, elsewhere.VALUES, mask)
        np.testing.assert_allclose(Y, answer, rtol=1e-6)
    hidden = mha.scaled_dot_product_attention(
        q, k, elsewhere.VALUES, ~elsewhere.MASKS["True"]
    )
    np.testing.assert_allclose(hidden, 55)


# Agreement


@pytest.mark.parametrize("name", OF_TORCH)
def test_pytorch_answers_as_stored(name):
    found = elsewhere.answers_of(elsewhere.LIBRARIES[name])
    version = torch.__version__.partition("+")[0]
    if version != TABLE["versions"]["torch"]:
        found["no key"] = TABLE[name]["no key"]  # it has changed, and may again
    assert found == TABLE[name]


def test_every_library_answered_every_mask():
    assert list(TABLE) == ["versions", *elsewhere.LIBRARIES]
    for name in elsewhere.LIBRARIES:
        assert list(TABLE[name]) == KINDS


def test_floats_are_added_read_as_true_or_false_or_refused():
    by_floats = {}
    for name in elsewhere.LIBRARIES:
        floats = TABLE[name]["0, -inf"], TABLE[name]["1.0, 0.0"]
        by_floats.setdefault(floats, []).append(name.split()[0].partition(".")[0])
    assert by_floats == {
        ("1.0", "23.9"): ["torch", "torch", "torch", "onnxruntime"],
        ("55.0", "1.0"): ["flax", "keras"],
        ("refused", "refused"): ["jax", "x_transformers"],
    }


def test_a_missing_library_is_no_refusal():
    def missing(mask):
        raise ImportError

    with pytest.raises(ImportError):
        elsewhere.answer_of(missing, elsewhere.MASKS["True"])


def test_the_table_stands_as_the_script_writes_it():
    assert elsewhere.STORE.read_text(encoding="utf-8") == elsewhere.text_of(TABLE)
