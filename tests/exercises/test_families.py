"""Slips that have no row: one change of a right program names them."""

import numpy as np
import pytest

from exercises import (
    Exercise,
    attention,
    dot_product,
    encoder_layer,
    families,
    laws,
    long,
    masks,
    multi_head,
    output,
    positions,
    real_encoder,
    real_task,
    scale,
    since_2017,
    split,
    what_heads_learn,
)
from mha import scaled_dot_product_attention as mha_attends


def four_tokens(lengths):
    return np.tri(4, dtype=bool) & (np.arange(4) >= 4 - lengths[:, None, None, None])


def one_length_for_the_batch(Y, mask):
    total = np.where(mask[..., None], Y, 0).sum(1)
    return total / np.linalg.norm(total)


def columns(W_O, n_heads, head):
    return np.where(np.arange(W_O.shape[1]) // (len(W_O) // n_heads) == head, 0, W_O)


@pytest.mark.parametrize(
    ("exercise", "answer", "said"),
    [
        (
            dot_product.scores,
            lambda Q, K: K @ Q.T,
            "you return the right result transposed",
        ),
        (
            dot_product.scores,
            lambda Q, K: Q[:, 1:] @ K[:, 1:].T,
            "Q without its first column",
        ),
        (
            masks.last_rows_mask,
            lambda n_q, n_k: np.tri(n_k, n_q, n_q - n_k, dtype=bool),
            "right for `n_k` in the place of n_q, and `n_q` in the place of n_k",
        ),
        (
            real_encoder.sentence_vectors,
            one_length_for_the_batch,
            "our solution gives with `axis=None` in the place of `axis=1`",
        ),
        (
            multi_head.matrices_of_torch,
            lambda w: [x.T for x in np.split(w, 3)[::-1]],
            "you return `(Y[2], Y[1], Y[0])`",
        ),
        (masks.batch_mask, four_tokens, "axis -1 of your result has the length 4"),
        (
            split.to_heads,
            lambda x, n_heads: np.array(np.split(x, n_heads, axis=-1)),
            "right without axes in front",
        ),
        (what_heads_learn.silence_head, columns, "it may be this: you set columns of"),
        (dot_product.scores, lambda Q, K: np.sin(Q @ K.T), "none of the mistakes"),
        # Ten small numbers may agree by chance, so nothing is said of them.
        (output.head_that_wrote, lambda *case: len(case[0]) - 1, "none of the mist"),
    ],
)
def test_a_change_of_the_right_program_is_told_and_nothing_without_evidence(
    exercise, answer, said
):
    assert said in exercise(answer).text


def test_without_the_solutions_an_answer_is_checked_all_the_same(monkeypatch):
    monkeypatch.setattr(families, "solution_of", lambda *_: ("", {}))
    verdict = real_encoder.sentence_vectors(one_length_for_the_batch)
    assert "the numbers differ" in verdict.text


Q, K, V = np.random.default_rng(0).normal(size=(3, 5, 4))
PAIR, CAUSAL = np.stack([Q, K, V]), np.tri(5, dtype=bool)


def shuffles_in_place(attend):
    keys, values, rng = K.copy(), V.copy(), np.random.default_rng(1)
    before = attend(Q, keys, values)
    rng.shuffle(keys)
    rng.shuffle(values)
    return np.allclose(before, attend(Q, keys, values))


def hides_in_place(attend):
    values = V.copy()
    before = attend(Q, K, values, mask=CAUSAL)
    values[-1] = 100
    return np.allclose(before[:-1], attend(Q, K, values, mask=CAUSAL)[:-1])


CHANGED = np.stack([Q**2, K, V])
ORDER = [2, 0, 4, 1, 3]


def two_masks_by_name(attend):
    half, none = (attend(Q, K, V, mask=M) for M in (CAUSAL, CAUSAL | True))
    return bool(np.isfinite(half).all() and np.isfinite(none).all())


X, W = Q, np.random.default_rng(1).normal(size=(4, 4))


@pytest.mark.parametrize(
    ("exercise", "law", "said"),
    [
        (scale.doubling_law, lambda attend: Q.all(), "never calls the function"),
        (
            scale.doubling_law,
            lambda attend: np.allclose(attend(Q, K, V), attend(Q, K, V)),
            "with the same inputs each time",
        ),
        (
            scale.doubling_law,
            lambda f: (f(Q, K, V) == f(Q, *np.tile([K, V], (2, 1)))).all(),
            "False of correct_attention only by rounding",
        ),
        (
            masks.denominator_law,
            lambda f: (f(Q, K, V, np.arange(5) < 4) == f(Q, K[:4], V[:4])).all(),
            "False of right only by rounding",
        ),
        (
            attention.key_order_law,
            lambda attend: np.allclose(attend(Q, K, V), attend(Q, K[::-1], V)),
            "K changes and V does not",
        ),
        (
            attention.key_order_law,
            lambda f: np.allclose(f(Q, K, 0 * V), f(Q, K[::-1], 0 * V[::-1])),
            "all rows of V are equal in your law",
        ),
        (
            scale.doubling_law,
            lambda attend: np.allclose(attend(Q, K, V), attend(Q, 2 * K, V)),
            "False of every version, right or wrong; from call to call: K times 2",
        ),
        (
            encoder_layer.batch_law,
            lambda norm: np.allclose(norm(PAIR)[1:], norm(CHANGED)[1:]),
            "True of mean of the last sentence for all, and should be False; from "
            "call to call: x[0] with other numbers",
        ),
        (attention.key_order_law, shuffles_in_place, "K and V in another order"),
        (masks.denominator_law, hides_in_place, "0 in the leak too: change a hidden"),
        (
            masks.denominator_law,
            lambda attend: np.isfinite(attend(Q, K, V)).all(),
            "of a query with a hidden key add up to",
        ),
        (
            masks.denominator_law,
            two_masks_by_name,
            "True of every version, right or wrong; from call to call: mask",
        ),
        (
            masks.denominator_law,
            lambda f: np.allclose(f(Q, K, V, CAUSAL), mha_attends(Q, K, V, CAUSAL)),
            "False of no_scale, and should be True",
        ),
        (  # a law that asks whether the order matters, the wrong way round
            positions.tells_order,
            lambda model: np.allclose(model(Q[::-1]), model(Q)[::-1]),
            "True of plain, and should be False",
        ),
        (
            output.own_block_law,
            lambda layer: np.allclose(
                layer(X, W, W, W, -W, 2), -layer(X, W, W, W, W, 2)
            ),
            "your law is True of averaged heads too",
        ),
        (  # one head is asked, and another may leak
            output.own_block_law,
            lambda layer: output._own_block(layer, heads=[2]),
            "first_head_leaks\n  expected  False",
        ),
        (
            since_2017.far_keys_law,
            lambda attend: np.allclose(
                attend(Q, K + np.eye(5, 4, -4), V)[:2], attend(Q, K, V)[:2]
            ),
            "change the values of far keys",
        ),
        (  # exact, so that rounding looks like an order
            positions.tells_order,
            lambda model: not np.array_equal(model(X[ORDER]), model(X)[ORDER]),
            "only by rounding: allow for it",
        ),
        (
            since_2017.far_keys_law,
            lambda attend: attend(Q, K, np.eye(5))[0, 3:].any() == 0,
            "stays True if all of the result but row 0 is replaced",
        ),
    ],
)
def test_a_law_is_told_which_version_it_judges_wrongly(exercise, law, said):
    assert said in exercise(law).text


def test_the_self_test_finds_a_right_answer_that_breaks_its_own_promise():
    cases = tuple((np.ones(shape),) for shape in ((2, 3), (2, 2, 3)))
    sums = {"reread": "page 1", "cases": cases, "mistakes": {}, "axes": 1}
    with pytest.raises(AssertionError, match="in a loop over the axes in front is ref"):
        Exercise("totals", lambda x: x.sum(), **sums).self_test()
    Exercise("sums", lambda x: x.sum(-1), **sums).self_test()


def detached(letters, mask, model, n_heads):
    model = dict(model, positions=model["positions"].detach())
    return real_task._batch_scores(letters, mask, model, n_heads)


def with_a_floor(Q, K):
    lengths = np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(K, axis=1)
    return Q @ K.T / np.maximum(lengths, 0.01)


def twin_by_columns(W_O, n_heads, keep, drop):
    blocks = np.split(W_O.copy(), len(W_O) // (W_O.shape[1] // n_heads))
    blocks[keep] += blocks[drop]
    blocks[drop][:] = 0
    return np.concatenate(blocks)


def first_rows(Y, mask):
    means = [y[: m.sum()].mean(0) for y, m in zip(Y, mask, strict=True)]
    return np.array([mean / np.linalg.norm(mean) for mean in means])


def first_query(attend):
    return np.allclose(attend(Q, K, V)[0], attend(Q, K[::-1], V[::-1])[0])


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (dot_product.cosine, with_a_floor),
        (attention.key_order_law, first_query),
        (output.head_that_wrote, lambda a, b, *rest: output._who(a[:1], b[:1], *rest)),
        (real_task.score_letters, detached),
        (what_heads_learn.drop_twin, twin_by_columns),
        (real_encoder.sentence_vectors, first_rows),
        (laws.shrink, lambda x, fails: laws._shrunk(laws._shrunk(x, fails), fails)),
        (long.decode_step, lambda x, K, V, *W: long._step(x, K[-8:], V[-8:], *W)),
    ],
)
def test_what_is_right_for_most_inputs_only_is_refused(exercise, answer):
    assert not exercise(answer).passed
