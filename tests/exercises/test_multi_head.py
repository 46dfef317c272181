"""The exercises of chapter 9, and the bug hunt, tell right answers from mistakes."""

from fractions import Fraction

import numpy as np
import pytest
import torch

import mha
from exercises import multi_head as check
from exercises.multi_head import suspect_exercise
from mha import laws, zoo
from tests.exercises.proof import prove

LETTERS = tuple(check.suspects)


def shares(integers):
    powers = [Fraction(2) ** k for k in integers]
    return [p / sum(powers) for p in powers]


def test_row_without_mask_accepts_fractions_and_floats_and_names_each_slip():
    a, b = shares([0, 2, 1]), shares([1, 1, 2])
    first = [3 * (a[0] + a[2]), 3 * (a[1] + a[2])]
    second = [6 * b[0], 6 * b[1]]
    pairs = list(zip(first, second, strict=True))
    row = [x + y for x, y in pairs] + [x - y for x, y in pairs]
    prove(
        check.row_without_mask,
        row,
        np.array([39, 57, -3, 15]) / 14,
        ["39/14", "57/14", "-3/14", "15/14"],
        [row],  # as a table of one row
        wrong_ways={
            "mask kept": [[Fraction(n, 5) for n in (18, 27, -12, -3)]],
            "no W_O": [first + second],
        },
    )


def by_loops(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    d_k, d_v = W_Q.shape[1] // n_heads, W_V.shape[1] // n_heads
    Y = 0
    for r in range(n_heads):
        k, v = slice(r * d_k, (r + 1) * d_k), slice(r * d_v, (r + 1) * d_v)
        S = (X @ W_Q[:, k]) @ (X @ W_K[:, k]).T / np.sqrt(d_k)
        A = mha.masked_softmax(S, mask)
        Y = Y + A @ (X @ W_V[:, v]) @ W_O[v]
    return Y


def by_torch(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    Q, K, V = (
        torch.from_numpy(X @ W).unflatten(-1, (n_heads, -1)).transpose(0, 1)
        for W in (W_Q, W_K, W_V)
    )
    mask = None if mask is None else torch.from_numpy(mask)
    heads = torch.nn.functional.scaled_dot_product_attention(Q, K, V, mask)
    return heads.transpose(0, 1).flatten(1) @ torch.from_numpy(W_O)


def by_einsum(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    Q, K, V = ((X @ W).reshape(len(X), n_heads, -1) for W in (W_Q, W_K, W_V))
    S = np.einsum("ihc,jhc->hij", Q, K) / np.sqrt(Q.shape[-1])
    A = mha.masked_softmax(S, mask)
    return np.einsum("hij,jhc->ihc", A, V).reshape(len(X), -1) @ W_O


def slip(
    root=None,
    split=lambda x, h: x.reshape(len(x), h, -1).swapaxes(0, 1),
    merge=lambda H: H.swapaxes(0, 1).reshape(H.shape[1], -1),
    hidden=lambda S, mask: np.where(mask, S, -np.inf),
    matrices=lambda W_Q, W_K, W_V, W_O: (W_Q, W_K, W_V, W_O),
    project=lambda X, W: X @ W,
):
    """Return the whole layer as a learner writes it, with some steps of her own."""

    def answer(X, W_Q, W_K, W_V, W_O, n_heads, mask):
        W_Q, W_K, W_V, W_O = matrices(W_Q, W_K, W_V, W_O)
        Q, K, V = (split(project(X, W), n_heads) for W in (W_Q, W_K, W_V))
        divisor = np.sqrt(Q.shape[-1]) if root is None else root(X, Q)
        S = Q @ K.swapaxes(-1, -2) / divisor
        if mask is not None:
            S = hidden(S, mask)
        E = np.exp(S)
        return merge(E / E.sum(-1, keepdims=True) @ V) @ W_O

    return answer


def cut_before_the_projection(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    d = X.shape[1] // n_heads
    x = X.reshape(len(X), n_heads, d).swapaxes(0, 1)
    heads = mha.scaled_dot_product_attention(
        x @ W_Q[:d, :d], x @ W_K[:d, :d], x @ W_V[:d, :d], mask
    )
    return heads.swapaxes(0, 1).reshape(len(X), -1) @ W_O


def without_W_O(X, W_Q, W_K, W_V, W_O, n_heads, mask):
    return by_loops(X, W_Q, W_K, W_V, np.eye(len(W_O)), n_heads, mask)


SLIPS = {
    "root of the number of tokens": slip(root=lambda X, Q: len(X) ** 0.5),
    "root of d_model": slip(root=lambda X, Q: X.shape[1] ** 0.5),
    "root of the whole width": slip(
        root=lambda X, Q: (Q.shape[0] * Q.shape[-1]) ** 0.5
    ),
    "root of the number of heads": slip(root=lambda X, Q: len(Q) ** 0.5),
    "width without root": slip(root=lambda X, Q: Q.shape[-1]),
    "no scale": slip(root=lambda X, Q: 1),
    "split across the tokens": slip(split=lambda x, h: x.reshape(h, len(x), -1)),
    "merge across the tokens": slip(merge=lambda H: H.reshape(H.shape[1], -1)),
    "both across the tokens": slip(
        split=lambda x, h: x.reshape(h, len(x), -1),
        merge=lambda H: H.reshape(H.shape[1], -1),
    ),
    "heads behind the tokens": slip(
        split=lambda x, h: x.reshape(len(x), h, -1),
        merge=lambda H: H.reshape(len(H), -1),
        hidden=lambda S, mask: S,
    ),
    "interleaved": slip(split=lambda x, h: np.stack([x[:, r::h] for r in range(h)])),
    "interleaved both ways": slip(
        split=lambda x, h: np.stack([x[:, r::h] for r in range(h)]),
        merge=lambda H: np.stack(list(H), -1).reshape(H.shape[1], -1),
    ),
    "merge interleaved": slip(
        merge=lambda H: np.dstack(list(H)).reshape(len(H[0]), -1)
    ),
    "heads in the wrong order": slip(merge=lambda H: np.hstack(list(H)[::-1])),
    "hidden scores set to 0": slip(hidden=lambda S, mask: S * mask),
    "mask added": slip(hidden=lambda S, mask: S + mask),
    "mask ignored": slip(hidden=lambda S, mask: S),
    "mask inverted": slip(hidden=lambda S, mask: np.where(mask, -np.inf, S)),
    "causal instead of the given mask": slip(
        hidden=lambda S, mask: np.where(np.tri(len(mask)) > 0, S, -np.inf)
    ),
    "keys made with W_Q": slip(matrices=lambda Q, K, V, W: (Q, Q, V, W)),
    "queries made with W_K": slip(matrices=lambda Q, K, V, W: (K, K, V, W)),
    "W_O transposed": slip(matrices=lambda Q, K, V, W: (Q, K, V, W.T)),
    "transposed matrices": slip(project=lambda X, W: X @ W.T),
    "tokens cut before the projection": cut_before_the_projection,
    "no W_O": without_W_O,
}


def test_many_heads_accepts_loops_einsum_and_torch_and_names_each_mistake():
    assert check.many_heads(slip()).passed
    prove(check.many_heads, by_loops, by_einsum, by_torch)


@pytest.mark.parametrize("name", SLIPS)
def test_many_heads_names_a_slip_in_a_layer_that_is_written_out(name):
    verdict = check.many_heads(SLIPS[name])
    assert verdict.mistake == name, verdict


def test_many_heads_names_the_first_of_two_slips_and_does_not_claim_more():
    two = slip(root=lambda X, Q: 1, hidden=lambda S, mask: S)
    verdict = check.many_heads(two)
    assert verdict.mistake == "no scale"
    assert verdict.text.startswith("on this input, though not on every one, you get")
    swapped = slip(matrices=lambda Q, K, V, W: (Q, V, K, W))
    assert check.many_heads(swapped).mistake == "W_K and W_V exchanged"


def test_many_heads_refuses_the_whole_layer_of_the_package():
    def whole(*given):
        return mha.multi_head_attention(*given)

    verdict = check.many_heads(whole)
    assert verdict.text.startswith("this calls mha.multi_head_attention;")
    verdict = check.many_heads(lambda *given: zoo.right(*given))
    assert verdict.text.startswith("this calls mha.Member.__call__;")


def test_farthest_head_accepts_every_way_to_measure_and_names_each_mistake():
    def by_hand(A):
        mean, far = A.mean(0), []
        for head in A:
            cells = zip(head.ravel(), mean.ravel(), strict=True)
            far.append(sum(abs(x - y) for x, y in cells))
        return far.index(max(far))

    prove(
        check.farthest_head,
        by_hand,
        lambda A: int(torch.from_numpy(A - A.mean(0)).abs().flatten(1).sum(1).argmax()),
        lambda A: np.abs(len(A) * A - A.sum(0)).mean((-1, -2)).argmax(),
        wrong_ways={
            "the nearest head": [lambda A: np.abs(A - A.mean(0)).mean((1, 2)).argmin()],
            "counted from one": [lambda A: by_hand(A) + 1],
            "squares": [lambda A: np.linalg.norm(A - A.mean(0), axis=(1, 2)).argmax()],
        },
    )


def test_matrices_of_torch_accepts_every_way_to_cut_and_names_each_mistake():
    prove(
        check.matrices_of_torch,
        lambda w: tuple(np.split(w.T, 3, axis=1)),
        lambda w: tuple(w.reshape(3, w.shape[1], w.shape[1]).swapaxes(1, 2)),
        lambda w: tuple(part.T for part in torch.from_numpy(w).chunk(3)),
        lambda w: [part.T for part in np.split(w, 3)],
        lambda w: w.reshape(3, w.shape[1], w.shape[1]).swapaxes(1, 2),
        wrong_ways={
            "not transposed": [lambda w: tuple(w.reshape(3, *2 * w.shape[1:]))],
            "not cut": [np.transpose],
        },
    )


# ------------------------------------------------------- the bug hunt


def right_answers():
    return {letter: suspect_exercise(letter).right for letter in LETTERS}


@pytest.mark.parametrize("letter", LETTERS)
def test_a_mistake_is_found_by_slug_sentence_or_member(letter):
    slug = right_answers()[letter]
    member = getattr(zoo, slug)
    prove(suspect_exercise(letter), member, member.wrong, f" zoo.{slug} ")


def test_any_two_wanted_mistakes_break_different_laws():
    matrix = laws.kill_matrix()
    assert len({matrix.killed_by(slug) for slug in check.WANTED}) == len(check.WANTED)
    assert set(right_answers().values()) < set(check.WANTED)


@pytest.mark.parametrize("letter", LETTERS)
def test_a_hint_names_a_law_on_which_suspect_and_accused_differ(letter):
    matrix, exercise = laws.kill_matrix(), suspect_exercise(letter)
    broken = set(matrix.killed_by(exercise.right))
    for mistake in exercise.mistakes:
        named = [law.slug for law in laws.ALL if f'"{law.name}"' in mistake.hint]
        assert len(named) == 1
        would_break = named[0] in matrix.killed_by(mistake.name)
        assert would_break != (named[0] in broken)
        assert ("would break" in mistake.hint) == would_break


@pytest.mark.parametrize("letter", LETTERS)
def test_a_suspect_does_what_its_member_does_and_does_not_say_its_name(letter):
    suspect, slug = check.suspects[letter], right_answers()[letter]
    assert laws.check(suspect).looks_like is getattr(zoo, slug)
    law = laws.equals_reference
    for text in (repr(suspect), suspect.step, repr(law.check(suspect))):
        assert slug not in text and "zoo" not in text


def test_bug_hunt_waits_answers_each_letter_and_passes_with_six():
    assert check.bug_hunt(None).status == "not attempted yet"
    assert check.bug_hunt(dict.fromkeys(LETTERS)).status == "not attempted yet"
    answers = right_answers()
    assert check.bug_hunt(answers).passed

    verdict = check.bug_hunt(answers | {"C": None})
    assert verdict.status == "not yet" and "not accused yet: C" in verdict.text
    assert verdict.text.count("mistake found") == 5


def test_bug_hunt_answers_a_wrong_accusation_with_a_law_and_not_with_the_answer():
    answers = right_answers()
    for letter, slug in answers.items():
        others = {a: None for a in LETTERS if a != letter}
        wrong = "no_scale" if slug != "no_scale" else "mask_ignored"
        verdict = check.bug_hunt(others | {letter: wrong})
        assert verdict.mistake == wrong
        assert slug not in verdict.text
        said = " ".join(verdict.text.split())
        assert any(f'"{law.name}"' in said for law in laws.ALL)


def test_bug_hunt_says_what_is_not_on_the_list():
    verdict = check.bug_hunt({"A": "the dog did it"})
    assert not verdict.passed and "not on the list" in verdict.text
    assert check.bug_hunt({"A": 7}).mistake is None
    text = check.bug_hunt({"G": "no_scale"}).text
    assert "suspects A, B, C, D, E, F, got G" in text
    assert "give a dict" in check.bug_hunt(["no_scale"]).text
