"""Chapter 0: what its prose says is what the package computes."""

import re

import nbformat
import numpy as np
import pytest

pytest.importorskip("matplotlib")

from figures import finding
from figures.live_house import FEATURES, IT, WEIGHTS, WORDS, X, numbers
from mha import scaled_dot_product_attention
from tests.book.load import BOOK, text_of

TEXT = text_of(BOOK / "00_overview.ipynb")
FOUND = numbers()


def row(numbers, digits=2):
    """Return a vector as the prose writes it, such as (1.55, 0.17)."""
    short = [f"{x:.{digits}f}" for x in numbers]
    whole = [f"{x:.0f}" for x in numbers]
    pairs = zip(numbers, short, whole, strict=True)
    words = [w if abs(x - round(x)) < 1e-9 else s for x, s, w in pairs]
    return f"({', '.join(words)})".replace("-", "−")


def cells_of(*names):
    """Return the rows of the table whose head has these names."""
    head = re.escape("| word | " + " | ".join(names) + " |")
    body = re.search(rf"{head}\n\|[- |]+\|\n((?:\|.*\n?)+)", TEXT)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in
            body.strip().split("\n")]  # fmt: skip


def test_the_words_have_the_numbers_of_the_picture():
    rows = cells_of(*FEATURES)
    assert [name for name, *_ in rows] == list(WORDS)
    np.testing.assert_array_equal([list(map(int, r[1:])) for r in rows], X)


def test_queries_keys_and_values_are_those_of_the_first_head():
    Q, K, V = (FOUND["Q"][0], FOUND["K"][0], FOUND["V"][0])
    expected = [
        [word, row(q), row(k), row(v)]
        for word, q, k, v in zip(WORDS, Q, K, V, strict=True)
    ]
    heads = (
        "query: animal, wanting",
        "key: animal, wanting",
        "value: animal, edible",
    )
    assert cells_of(*heads) == expected


def test_scores_become_weights_as_the_table_says():
    scores = FOUND["S"][0, IT]
    scaled = scores / np.sqrt(2)
    powers = np.exp(scaled)
    columns = zip(WORDS, scores, scaled, powers, FOUND["A"][0, IT], strict=True)
    expected = [
        [word, f"{s:.0f}", f"{x:.3f}", f"{power:.2f}", f"{a:.3f}"]
        for word, s, x, power, a in columns
    ]
    expected.append(["total", "", "", f"{powers.sum():.2f}", "1"])
    head = "score", "divided by √2", "$e$ to this power", "weight"
    assert cells_of(*head) == expected


def test_the_weighted_average_is_written_out():
    A, V = FOUND["A"][0, IT], FOUND["V"][0]
    terms = " + ".join(f"{a:.3f}·{row(v)}" for a, v in zip(A, V, strict=True))
    assert f"{terms} = {row(FOUND['H'][0, IT])}" in TEXT
    animal, edible = FOUND["H"][0, IT]
    assert round(animal / edible) == 9 and "nine times as large as edible" in TEXT


def test_the_keys_that_a_reader_tries_give_what_the_answer_says():
    Q, K, V = (FOUND[name][0].copy() for name in "QKV")
    said = []
    for key in ((2, 1), (2.5, 2)):
        K[1] = key
        H, A = scaled_dot_product_attention(Q, K, V, return_weights=True)
        said.append((f"{A[IT, 1]:.3f}", row(H[IT])))
    assert f'At (2, 1), "food" and "dog" get {said[0][0]} each' in TEXT
    assert f'At (2.5, 2), "food" gets {said[1][0]}, and' in TEXT
    assert f"and the output is {said[1][1]}" in TEXT


def test_the_rule_for_queries_is_the_matrix():
    edible, wanting = (X[:, FEATURES.index(name)] for name in ("edible", "wanting"))
    expected = np.stack([2 * wanting, edible], 1)
    np.testing.assert_array_equal(X @ WEIGHTS["W_Q"][:, :2], expected)
    assert "twice its *wanting* is the first number of its query" in TEXT
    assert "its *edible* is the second number" in TEXT


def test_the_bugs_that_training_hides_are_the_stored_ones():
    correct, *wrong = finding.rows()
    padded, alone = zip(*((row.padded, row.alone) for row in wrong), strict=True)
    said = f"between {min(padded):.0f} % and {max(padded):.0f} % of the words"
    assert f"{said}, and the correct one for {correct.padded:.0f} %" in TEXT
    assert f"fall to between {min(alone):.0f} % and {max(alone):.0f} %" in TEXT
    assert len(wrong) == 5 and all(row.broken for row in wrong)


def test_the_real_head_has_the_weights_of_chapter_15():
    cells = nbformat.read(BOOK / "15_real_encoder.ipynb", as_version=4).cells
    said = "".join(o.get("text", "") for c in cells for o in c.get("outputs", ()))
    dog, food = zip(
        *re.findall(r"L4H2, (?:hungry|rotten) +(\S+) +(\S+)", said), strict=True
    )
    assert f'the weight of "dog" falls from {dog[0]} to {dog[1]}' in TEXT
    assert f'that of "food" rises from {food[0]} to {food[1]}' in TEXT
    assert "turn from dog to food: 7, from food to dog: 1" in said
    assert "seven of the 72 prefer" in TEXT and "one turns the other way" in TEXT
    rest = 72 - 7 - 1
    assert f"the other {rest} prefer the same word" in TEXT
    page = (BOOK / "index.md").read_text(encoding="utf-8")
    assert "In seven of them" in page
    assert f"One does the opposite, and in {rest} " in page
