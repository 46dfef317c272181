"""What a passed exercise shows: a training, a text, a drawing, a time."""

import re
from html import unescape

import numpy as np
import pytest

import mha
from exercises import (
    attention,
    learning,
    masks,
    multi_head,
    output,
    pictures,
    split,
    why_heads,
)


def texts_in(html):
    return unescape(re.sub(r"<[^>]+>", " ", html))


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
    narrow = attention.wrong_line(lambda Q, K, V: Q)
    assert narrow.text.startswith("the result has shape (1, 2), expected (1, 1)")
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


def test_a_mask_that_shows_the_future_has_the_lower_loss_and_writes_nonsense():
    shown = texts_in(learning.guessing_picture(masks.batch_mask.right))
    colleague, mine = re.findall(
        r'loss ([\d.]+), and after "dogs" it goes on to "(\w+)"', shown
    )
    assert float(colleague[0]) < 0.01 and colleague[1] != "dogsdogs"
    assert mine == ("1.40", "dogsdogs")
    assert float(mine[0]) == round(3 / 7 * np.log(26), 2)


def test_two_heads_name_both_neighbours_and_one_head_names_one():
    for n_heads, least in ((1, np.log(2)), (2, 0)):
        losses, _, texts = learning.neighbours(multi_head.many_heads.right, n_heads)
        assert abs(losses[-1] - least) < 0.01
        assert (texts == ["tplane", "lanetp"]) == (n_heads == 2)


def test_a_readout_of_one_head_guesses_along_a_line_and_of_two_heads_each_night():
    drawn = learning.readout_picture(why_heads.rebuild.right)
    first, second = drawn.split("two heads, 0.8")[-2:]
    seen = [re.findall(r'd="M(\d+) (\d+)L(\d+) (\d+)"', x) for x in (first, second)]
    assert not any(a[:2] == a[2:] for a in seen[0][:5])
    assert all(a[:2] == a[2:] for a in seen[1]) and len(seen[1]) == 60


def test_a_fused_matrix_is_timed_and_the_head_that_wrote_is_framed():
    times = re.findall(r"([\d.]+) ms", learning.fuse_picture(split.fuse.right))
    assert len(times) == 2 and all(float(time) > 0 for time in times)
    drawn = learning.writer_picture(output.head_that_wrote.right)
    assert "without W_O: head 3" in drawn and "without W_O: head 1" in drawn


def test_a_map_is_darker_where_a_number_is_larger_and_names_are_escaped():
    drawn = pictures.maps([[[0.0, 1.0]]], ["a < b"])
    assert drawn.index('M0 24h12v12h-12z" fill-opacity="0.06"') < drawn.index(
        'M13 24h12v12h-12z" fill-opacity="1.00"'
    )
    assert "a &lt; b" in drawn
