"""Chapter 14 with many versions of its model; without the weights it is skipped."""

import numpy as np
import pytest

import mha
import pretrained
from tests.book.test_stored_minilm import CLOSE, TABLE, full, minilm, model

__all__ = ["full", "model"]  # the fixtures


@pytest.mark.parametrize("name", ["L1H3", "L4H2", "L6"])
def test_silencing_again_gives_what_is_stored(name, model, full):
    likeness, wins = minilm.silence(model, minilm.cells(model)[name], full)
    assert abs(likeness - TABLE[name][0]) < CLOSE
    assert abs(wins - TABLE[name][1]) < 0.06  # one triple of twenty


@pytest.mark.parametrize("n_heads", [h for h in range(1, 385) if 384 % h == 0])
def test_with_no_number_of_heads_does_the_retrieval_test_of_the_chapter_fail(
    n_heads, model
):
    tokens = model.tokenize(minilm.SIXTY)
    X, mask = model.look_up(tokens.ids), tokens.mask
    options = {"activation": "gelu", "eps": pretrained.EPS}
    Y = mha.encoder(X, model.layers, n_heads, mask[:, None, None], **options)
    mean = Y.mean(1, where=mask[..., None])
    E = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    assert minilm.found(E)[0] == 1
