"""What a passed exercise shows: a training, a text, a drawing, a time."""

import re

import numpy as np
import pytest

import mha
from exercises import attention, learning, pictures


def texts_in(html):
    return re.sub(r"<[^>]+>", " ", html)


def test_an_attention_learns_whatever_it_is_made_of_and_one_that_cannot_is_refused():
    def loops(Q, K, V):
        rows = []
        for q in Q:
            powers = [np.exp(sum(q * k) / len(q) ** 0.5) for k in K]
            shares = zip(powers, V, strict=True)
            rows.append(sum(p * v for p, v in shares) / sum(powers))
        return np.array(rows)

    assert learning.reversing(loops)["right"] == 500
    refused = attention.wrong_line(lambda Q, K, V: 0 * Q @ K.T @ V + V.mean(0))
    assert "it reads 0 of 500 words backwards" in refused.text
    right = attention.wrong_line(attention_that_is_right)
    assert "this is attention as it should be" in right.text


def test_a_passed_attention_is_one_line_and_a_training_that_a_notebook_shows():
    verdict = attention.attend(attention_that_is_right)
    assert len(str(verdict).splitlines()) == 1
    shown = texts_in(verdict._repr_html_())
    assert "step 0: " in shown and f"step 40: {learning.WORD[::-1]}" in shown
    assert "500 of 500 words backwards" in shown
    assert attention.attend(None)._repr_html_() is None


def attention_that_is_right(Q, K, V):
    return mha.softmax(Q @ K.T / K.shape[-1] ** 0.5) @ V


@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        (lambda Q, K, V: mha.softmax(Q @ K.T) @ V, "scores keep unit variance"),
        (lambda Q, K, V: mha.softmax(Q @ K.T / 2, 0) @ V, "every row of weights sums"),
    ],
)
def test_of_a_wrong_attention_that_learns_a_law_is_named_that_it_breaks(wrong, law):
    assert law in texts_in(attention.wrong_line(wrong)._repr_html_())


def test_slopes_by_hand_train_as_measured_ones_do():
    shown = texts_in(learning.backward_picture(attention.attention_backward.right))
    assert shown.count(": 0.00") == 2 and " ms" in shown


def test_a_map_is_darker_where_a_number_is_larger_and_names_are_escaped():
    drawn = pictures.maps([[[0.0, 1.0]]], ["a < b"])
    assert drawn.index('M0 24h12v12h-12z" fill-opacity="0.06"') < drawn.index(
        'M13 24h12v12h-12z" fill-opacity="1.00"'
    )
    assert "a &lt; b" in drawn
