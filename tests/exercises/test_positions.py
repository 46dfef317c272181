"""The exercises of chapter 10 tell right answers from mistakes."""

import math

import numpy as np
import torch

import mha
from exercises import positions as check
from tests.exercises.proof import prove


def by_loops(n, d_model):
    P = []
    for t in range(n):
        row = []
        for i in range(d_model // 2):
            angle = t / 10000 ** (2 * i / d_model)
            row += [math.sin(angle), math.cos(angle)]
        P.append(row)
    return P


def by_complex_numbers(n, d_model):
    rate = np.exp(-np.arange(0, d_model, 2) * math.log(10000) / d_model)
    z = np.exp(1j * np.outer(np.arange(n), rate))
    return np.stack([z.imag, z.real], axis=-1).reshape(n, d_model)


def by_torch(n, d_model):
    P = torch.zeros(n, d_model, dtype=torch.float64)
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = torch.arange(n)[:, None] / 10000 ** (i / d_model)
    P[:, 0::2], P[:, 1::2] = angle.sin(), angle.cos()
    return P


def in_halves_by_torch(n, d_model):
    P = by_torch(n, d_model)
    return torch.cat([P[:, 0::2], P[:, 1::2]], dim=1)


def doubled_twice(n, d_model):
    """Write 2i for an i that counts 0, 2, 4 already."""
    P = np.zeros((n, d_model))
    for t in range(n):
        for i in range(0, d_model, 2):
            P[t, i] = math.sin(t / 10000 ** (2 * i / d_model))
            P[t, i + 1] = math.cos(t / 10000 ** (2 * i / d_model))
    return P


def spaced_to_the_end(n, d_model):
    """Let the slowest hand have 1/10000, as tensor2tensor does."""
    rate = torch.logspace(0, -4, d_model // 2, dtype=torch.float64)
    angle = torch.outer(torch.arange(n, dtype=torch.float64), rate)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def test_encode_positions_accepts_loops_complex_numbers_and_torch():
    prove(
        check.encode_positions,
        by_loops,
        by_complex_numbers,
        by_torch,
        wrong_ways={
            "in halves": [in_halves_by_torch],
            "counted from one": [lambda n, d: by_torch(n + 1, d)[1:]],
            "axes exchanged": [lambda n, d: by_torch(n, d).T],
            "exponent doubled twice": [doubled_twice],
            "the last hand too slow": [spaced_to_the_end],
            "whole numbers": [lambda n, d: by_torch(n, d).long()],
        },
    )


def test_likeness_of_positions_accepts_a_formula_a_product_and_two_decimals():
    P = mha.sinusoidal_positional_encoding(204, 4)
    halfway = np.cos(100) + np.cos(0.1)
    prove(
        check.likeness_of_positions,
        P[103] @ P[203],
        P[3] @ P[103],
        math.cos(100) + math.cos(1),
        1.4,
        1.402,
        1.403,
        np.array([1.4026]),
        torch.tensor(1.4026),
        wrong_ways={
            "only the fast hand": [0.86],
            "divided by the lengths": [mha.cosine_similarity(P[[103]], P[[203]])[0, 0]],
        },
    )
    for wrong in (1.39, 1.41, 0.0, 100.0, halfway, float("nan")):
        assert not check.likeness_of_positions(wrong).passed


def turn_from_the_table(k, d_model):
    """Solve P[t] R = P[t + k] for R, k of either sign."""
    P = mha.sinusoidal_positional_encoding(4 * d_model + 10, d_model)
    first, last = max(0, -k), len(P) - max(0, k)
    return np.linalg.lstsq(P[first:last], P[first + k : last + k], rcond=None)[0]


def turn_by_blocks(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = torch.tensor(k / 10000 ** (2 * i / d_model), dtype=torch.float64)
        blocks.append(torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()]).view(2, 2))
    return torch.block_diag(*blocks)


def turn_doubled_twice(k, d_model):
    """Write 2i for an i that counts 0, 2, 4 already."""
    R = np.zeros((d_model, d_model))
    for i in range(0, d_model, 2):
        angle = k / 10000 ** (2 * i / d_model)
        R[i, i] = R[i + 1, i + 1] = math.cos(angle)
        R[i + 1, i], R[i, i + 1] = math.sin(angle), -math.sin(angle)
    return R


def test_turn_by_accepts_blocks_and_a_least_squares_fit():
    prove(
        check.turn_by,
        turn_by_blocks,
        lambda k, d: np.linalg.matrix_power(turn_by_blocks(1, d).numpy(), k),
        wrong_ways={
            "turned back": [lambda k, d: turn_by_blocks(k, d).T],
            "always one step": [lambda k, d: turn_by_blocks(1, d)],
            "never back": [lambda k, d: turn_by_blocks(abs(k), d)],
            "exponent doubled twice": [turn_doubled_twice],
        },
    )
    np.testing.assert_allclose(
        turn_from_the_table(2, 4), turn_by_blocks(2, 4), atol=1e-6
    )


def count_by_loops(mask):
    rows = []
    for row in mask:
        seen, ids = 0, []
        for real in row:
            ids.append(seen if real else 0)
            seen += int(real)
        rows.append(ids)
    return rows


def test_position_ids_accepts_loops_sums_and_torch():
    prove(
        check.position_ids,
        count_by_loops,
        lambda mask: (np.cumsum(mask, axis=1) - 1) * mask,
        lambda mask: (torch.from_numpy(mask).cumsum(-1) - 1) * torch.from_numpy(mask),
        lambda mask: mask @ np.triu(np.ones(2 * mask.shape[-1:])) * mask - mask,
        wrong_ways={
            "a plain cumsum": [lambda mask: torch.from_numpy(mask).cumsum(-1)],
            "filler counted": [
                lambda mask: np.arange(mask.shape[1]) * mask,
            ],
            "filler keeps a number": [
                lambda mask: torch.from_numpy(mask).cumsum(-1) - 1,
            ],
            "mask not used": [lambda mask: [range(len(row)) for row in mask]],
            "filler at -1": [lambda mask: mask.cumsum(-1) * mask - 1],
            "only the negative ones set to 0": [
                lambda mask: (torch.from_numpy(mask).cumsum(-1) - 1).clamp(min=0),
            ],
        },
    )


def by_every_pair(model):
    """Exchange each pair of neighbours in turn."""
    X = np.random.default_rng(0).normal(size=(4, 8))
    for a in range(3):
        order = list(range(4))
        order[a], order[a + 1] = order[a + 1], order[a]
        if not np.allclose(model(X[order]), model(X)[order]):
            return True
    return False


def by_undoing(model):
    """Shuffle, and put the outputs back with the inverse order."""
    X = np.random.default_rng(1).normal(size=(7, 4))
    order = np.array([2, 4, 6, 0, 1, 3, 5])
    back = np.argsort(order)
    return bool(np.abs(model(X[order])[back] - model(X)).max() > 1e-9)


def without_forgiving(model):
    X = np.random.default_rng(2).normal(size=(7, 4))
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    return not (model(X[order])[order] == model(X)).all()


def shifted_by(n):
    """Return a law that moves `n` tokens one place on, in a circle."""

    def law(model):
        X = np.random.default_rng(n).normal(size=(n, 4))
        shifted = np.roll(X, 1, axis=0)
        return not np.allclose(model(shifted), np.roll(model(X), 1, axis=0))

    return law


def only_the_last_row_compared(model):
    X = np.random.default_rng(3).normal(size=(5, 6))
    order = [1, 2, 4, 0, 3]
    return not np.allclose(model(X[order])[-1], model(X)[order[-1]])


def on_equal_tokens(value, order=(2, 0, 3, 1)):
    """Return a law that shuffles tokens which are all equal."""

    def law(model):
        X, shuffle = np.full((len(order), 6), value), list(order)
        return not np.allclose(model(X[shuffle]), model(X)[shuffle])

    return law


def exchanging(a, b, n):
    """Return a law that exchanges two of n tokens."""

    def law(model):
        X = np.random.default_rng(7).normal(size=(n, 4))
        order = list(range(n))
        order[a], order[b] = b, a
        return not np.allclose(model(X[order]), model(X)[order])

    return law


def test_tells_order_accepts_pairs_and_an_undone_shuffle():
    prove(
        check.tells_order,
        by_every_pair,
        by_undoing,
        wrong_ways={
            "false alarm": [without_forgiving],
            "never True": [lambda model: False],
            "equal tokens": [on_equal_tokens(0.0), on_equal_tokens(1.0)],
            "two equal tokens": [on_equal_tokens(0.0, (1, 0))],
            "only two in the middle exchanged": [exchanging(1, 2, 5)],
            "only the middle two of four exchanged": [exchanging(1, 2, 4)],
            "True and False exchanged": [lambda model: not by_undoing(model)],
            "all shifted in a circle": [shifted_by(n) for n in (4, 5, 7)],
            "only the last two exchanged": [only_the_last_row_compared],
        },
    )
