"""The picture of the fused product shows the numbers of both products."""

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

from mha.plot.marks import Shape, Text
from tests.figures.test_contrast import THEMES, scene_of, too_faint

rng = np.random.default_rng(0)
X = rng.integers(0, 5, size=(3, 5))
BLOCKS = rng.integers(0, 4, size=(2, 5, 2))
WORDS = ["dog", "food", "it"]


@pytest.fixture
def scene():
    return scene_of(figures.fused, X, BLOCKS, WORDS, follow=(2, 3))


def test_the_numbers_are_those_of_the_three_tables_in_order(scene):
    texts = [m.words for m in scene.marks if isinstance(m, Text)]
    numbers = [int(words) for words in texts if words.isdigit()]
    tables = [X, *BLOCKS, *(X @ block for block in BLOCKS)]
    assert numbers == [x for table in tables for x in table.ravel()]


def test_each_head_has_one_colour_in_its_matrix_and_in_its_product(scene):
    tints = [m.fill for m in scene.marks if isinstance(m, Shape) and m.fill]
    counted = {role: tints.count(role) for role in tints}
    assert counted == {"ink": X.size, "query": 10 + 6, "amber": 10 + 6}


def test_the_frames_show_a_row_a_column_and_the_number_made_of_them():
    picture = figures.fused(X, BLOCKS, WORDS, follow=(2, 3))
    assert f"The number {X[2] @ BLOCKS[1][:, 1]} needs" in picture.alt
    assert picture.alt.endswith("one column of head 2.")
    assert len(picture.svg) < 60_000 and len(picture.png) < 120_000


@pytest.mark.parametrize("theme", THEMES)
def test_every_number_of_the_product_can_be_read(scene, theme):
    assert too_faint(scene, theme) == []


@pytest.mark.parametrize("blocks", [BLOCKS[:1], BLOCKS[:, :4], [X, X.T]])
def test_matrices_that_cannot_be_multiplied_are_refused(blocks):
    with pytest.raises(ValueError, match="blocks must"):
        figures.fused(X, blocks, WORDS, follow=(0, 0))
