"""The exercises of chapter 17 tell right answers from known mistakes."""

import numpy as np
import torch

import mha
from exercises import since_2017 as check
from mha import laws
from tests.exercises.proof import prove


def test_cache_with_windows_accepts_the_number_and_names_each_guess():
    prove(check.cache_with_windows, 37_888 / 196_608, 0.19, "0.193")
    assert check.cache_with_windows(0.17).mistake == "only the layers without a window"


def test_rotate_accepts_loops_complex_numbers_and_torch_and_names_each_mistake():
    def by_complex_numbers(x, positions):
        d = x.shape[-1]
        speeds = 10000.0 ** (-np.arange(0, d, 2) / d)
        turned = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(
            1j * np.outer(positions, speeds)
        )
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)

    def by_loops(x, positions):
        rows, d = [], x.shape[-1]
        for row, t in zip(x, positions, strict=True):
            out = []
            for m in range(d // 2):
                angle = t * 10000 ** (-2 * m / d)
                c, s = np.cos(angle), np.sin(angle)
                a, b = row[2 * m : 2 * m + 2]
                out += [c * a - s * b, s * a + c * b]
            rows.append(out)
        return rows

    def by_torch(x, positions):
        return torch.from_numpy(by_complex_numbers(x, positions))

    def every_row_the_same(x, positions):
        return by_complex_numbers(x, np.arange(len(x)))

    prove(
        check.rotate,
        by_complex_numbers,
        by_loops,
        by_torch,
        wrong_ways={
            "clockwise": [lambda x, positions: by_complex_numbers(x, -positions)],
            "rows counted": [every_row_the_same],
            "counted from one": [
                lambda x, positions: by_complex_numbers(x, positions + 1)
            ],
        },
    )


def test_rotated_queries_and_keys_know_their_offset_only():
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 1, 8))

    def score(i, j):
        turned = check.rotate.right
        return (turned(q, np.array([i])) @ turned(k, np.array([j])).T).item()

    assert np.isclose(score(3, 1), score(103, 101))
    assert not np.isclose(score(3, 1), score(3, 2))


def test_share_heads_accepts_indices_and_torch_and_names_each_mistake():
    def by_index(K, n_heads):
        return K[..., np.arange(n_heads) // (n_heads // K.shape[-3]), :, :]

    def by_torch(K, n_heads):
        K = torch.from_numpy(K)
        return K.repeat_interleave(n_heads // K.shape[-3], -3)

    prove(
        check.share_heads,
        by_index,
        by_torch,
        wrong_ways={
            "in turn": [
                lambda K, n_heads: K[..., np.arange(n_heads) % K.shape[-3], :, :]
            ],
            "one head for all": [
                lambda K, n_heads: K[..., np.zeros(n_heads, int), :, :]
            ],
        },
    )


def test_far_keys_law_accepts_changed_values_and_names_each_mistake():
    def by_changing_each_value(attend):
        rng = np.random.default_rng(3)
        Q, K, V = rng.normal(size=(3, 7, 5))
        Y = attend(Q, K, V)
        for j in range(7):
            louder = V.copy()
            louder[j] += 1e9
            far = abs(np.arange(7) - j) >= 3
            if not np.array_equal(attend(Q, K, louder)[far], Y[far]):
                return False
        return True

    def as_a_test(attend):
        A = attend(np.ones((8, 2)), np.ones((8, 2)), np.eye(8))
        i, j = np.nonzero(A)
        assert (abs(i - j) < 3).all()
        return True

    def last_row_only(attend):
        return not attend(*np.zeros((2, 6, 2)), np.eye(6))[-1, :3].any()

    prove(
        check.far_keys_law,
        by_changing_each_value,
        as_a_test,
        wrong_ways={"passes everything": [lambda attend: attend is not None]},
    )
    assert not check.far_keys_law(last_row_only).passed


def test_the_law_of_a_window_is_broken_by_correct_attention_of_2017():
    law = check.far_keys_law.right
    assert law(check.window_of_3) and not law(mha.scaled_dot_product_attention)
    assert not laws.check(check.window_of_3)
