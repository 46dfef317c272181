"""The real task of chapter 13: its words, its code, and what is said of its runs."""

import ast
import json
import re

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from _data import stress, stress_baselines, stress_runs
from _data.stress_words import vowel_groups
from figures import finding
from mha import zoo
from tests.book.load import BOOK, ROOT

FIVE = (
    "mask_ignored mask_zero_score softmax_over_queries split_without_transpose "
    "merge_without_transpose"
).split()
README = " ".join((ROOT / "README.md").read_text("utf-8").split("[![")[-1].split())


def means(column, padding="fixed"):
    """Return the mean of a column for correct attention and for the five."""
    runs = stress_runs.stored()
    found = {}
    for name in ("right", *FIVE):
        rows = stress_runs.select(runs, name, padding)
        found[name] = 100 * np.mean([run[column] for run in rows])
    return found.pop("right"), found


def test_each_stored_word_has_one_stressed_letter_and_it_is_a_vowel():
    pairs = stress.read_words()
    lines = (BOOK / "_data" / "stress_words.txt").read_text("utf-8").split()
    assert all(sum(c.isupper() for c in line) == 1 for line in lines)
    assert len(pairs) == len(dict(pairs)) == 28_669
    # A silent e at the end is a group too where it is spoken, as in "karate".
    assert np.mean([target in vowel_groups(word) for word, target in pairs]) > 0.999


def test_no_family_is_divided():
    parts = stress.split(stress.read_words())
    families = [{word[:5] for word, _ in pairs} for pairs in parts.values()]
    assert (
        not families[0] & families[1] and not (families[0] | families[1]) & families[2]
    )
    assert {"photograph", "photography", "photographic"} <= dict(parts["test"]).keys()


def test_the_chapter_prints_the_code_that_was_trained():
    book = json.loads((BOOK / "13_real_task.ipynb").read_text("utf-8"))
    code = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    printed = {
        node.name: ast.dump(node)
        for text in code
        for node in ast.parse(text).body
        if hasattr(node, "name")
    }
    ran = {
        node.name: ast.dump(node)
        for node in ast.parse((BOOK / "_data" / "stress.py").read_text("utf-8")).body
        if hasattr(node, "name")
    }
    shared = printed.keys() & ran.keys()
    assert {"split", "as_batch", "StressFinder", "train"} <= shared
    assert all(printed[name] == ran[name] for name in shared)


def test_the_stored_model_does_what_was_stored_of_its_training():
    pairs = stress.split(stress.read_words())["test"]
    again = stress_runs.judged(stress.load("right"), pairs)
    first, *_ = stress_runs.select(stress_runs.stored(), "right")
    for column in ("fixed", "alone", "three"):
        assert abs(again[column] - first[column]) < 0.004  # weights of 16 bits
    assert again["same"] > 0.999


def test_five_bugs_pass_the_padded_test_and_fall_one_word_at_a_time():
    correct, padded = means("fixed")
    alone, fallen = means("alone")
    assert alone == pytest.approx(correct)
    assert min(correct - x for x in fallen.values()) > 1
    assert sum(correct - x > 5 for x in fallen.values()) >= 4
    for name in ("right", *FIVE):
        assert len(stress_runs.select(stress_runs.stored(), name)) == 5
    said = [min(padded.values()), max(padded.values()), correct]
    said += [min(fallen.values()), max(fallen.values())]
    text = r"between (\d+) % and (\d+) %.*? (\d+) %.*? between (\d+) % and (\d+) %"
    for page in (README, (BOOK / "13_real_task.ipynb").read_text("utf-8")):
        assert [*map(int, re.search(text, page).groups())] == [*map(round, said)]
    assert re.search(r"!\[(.*?)\]", README)[1] == finding.alt()


@torch.no_grad()
def test_the_validation_words_are_harder_for_a_rule_that_learns_nothing():
    parts = stress.split(stress.read_words())
    found = {
        name: stress_baselines.accuracy(stress_baselines.first_vowel, parts[name])
        for name in ("validation", "test")
    }
    assert found["validation"] < found["test"] - 0.05


def test_no_other_letter_in_the_place_of_the_a_moves_the_stress_of_photograph():
    model = stress.load("right")
    for letter in "abcdefghijklmnopqrstuvwxyz":
        assert stress.mark(model, f"photogr{letter}ph").startswith("phOto")


def test_chapter_12_says_how_well_each_layer_is_read():
    model, pairs = stress.load("right"), stress.split(stress.read_words())["test"]
    letters, mask, targets = stress.as_batch(pairs)
    X, shares = model.embed(letters) + model.positions[: letters.shape[-1]], []
    for layer in (lambda X, mask: X, *model.encoder.layers):
        X = layer(X, mask)
        scores = model.score(model.encoder.final_norm(X))[..., 0]
        best = scores.masked_fill(~mask[:, 0, 0], -torch.inf).argmax(-1)
        shares.append(round(100 * (best == targets).float().mean().item()))
    said = "for {} % before the first layer, for {} % after it, and for {} % after"
    assert said.format(*shares) in (BOOK / "12_encoder.ipynb").read_text("utf-8")


def test_accuracy_reveals_the_versions_that_the_chapter_names():
    runs = stress_runs.stored()
    found = {
        name: [run["fixed"] for run in stress_runs.select(runs, name)]
        for name in stress_runs.names(runs)
        if name in dir(zoo)
    }
    correct = found.pop("right")
    worse = {name for name, shares in found.items() if max(shares) < min(correct)}
    revealed = "mask_inverted mask_of_first_sequence both_without_transpose "
    revealed += "gradient_stopped key_reshaped input_split_before_projection "
    revealed += "scale_after_softmax mask_in_wrong_order writes_into_its_input "
    revealed += "dropout_in_evaluation"
    assert worse == {*revealed.split()}
    far = [np.mean(correct) - np.mean(found[name]) for name in found.keys() - worse]
    assert max(far) < 0.015
    assert all(len(shares) == 5 for shares in found.values())


def test_what_was_trained_of_the_zoo_is_what_computes_something_else_here():
    groups = stress_runs.compared()
    runs = stress_runs.stored()
    trained = {name for name in stress_runs.names(runs) if name in dir(zoo)}
    assert trained - {"right"} <= {*groups["compute something else"]}
    assert sum(map(len, groups.values())) == len(zoo.WRONG)
