"""The picture of all laws and all wrong versions."""

import pytest

import figures
from figures import detected
from mha import laws
from mha.plot.marks import Text
from tests.figures.test_pipeline import scene_of


@pytest.fixture(scope="module")
def matrix():
    return laws.kill_matrix()


def test_every_law_has_a_row_that_counts_its_marks(matrix):
    marks = scene_of(detected, matrix, alt="x.").marks
    words = [mark.words for mark in marks if isinstance(mark, Text)]
    for law in laws.ALL:
        row = words.index(law.slug.replace("_", " "))
        assert words[row + 1] == str(len(matrix.kills(law.slug)))


def test_every_broken_law_is_a_mark(matrix):
    marks = scene_of(detected, matrix, alt="x.").marks
    assert sum(getattr(m, "fill", "") == "wrong" for m in marks) == matrix.killed.sum()


def test_a_picture_needs_its_words(matrix):
    with pytest.raises(ValueError, match="alt must say"):
        figures.detected(matrix, alt="")
