"""The laws with other seeds, and all laws where tests/laws asks a few of them."""

import subprocess
import sys

import pytest

from mha import laws, zoo
from tests.laws import test_encoders as encoders
from tests.laws.reports import STORED, broken
from tests.laws.right import RIGHT
from tests.laws.test_blind import (
    ROWS,
    first_keys_with_minus_1e9,
    first_length_for_all,
    mask_of_the_first,
)

# These three are what the zoo has, too.
NAMED = {
    mask_of_the_first: "mask_of_first_sequence",
    first_length_for_all: "mask_of_first_sequence",
    first_keys_with_minus_1e9: "minus_1e9_mask",
}


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_breaks_no_law(name, seed):
    assert broken(laws.check(RIGHT[name], seed=seed)) == []


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("member", zoo.WRONG, ids=lambda member: member.name)
def test_a_bug_breaks_a_law_whatever_the_seed(member, seed):
    found = set(broken(laws.check(member, seed=seed)))
    assert found
    assert found & set(STORED[member.name])


@pytest.mark.parametrize(("subject", "words", "slugs"), ROWS)
def test_a_bug_breaks_the_laws_of_its_row_and_nobody_is_named_falsely(
    subject, words, slugs
):
    report, (first, *_) = laws.check(subject, **words), slugs.split()
    if first == "…":
        assert {*slugs.split()[1:]} <= {*broken(report)}
    else:
        assert broken(report) == slugs.split()
    like = report.looks_like
    assert (like and like.name) == NAMED.get(subject)


@pytest.mark.parametrize("name", encoders.LAWFUL)
def test_a_right_encoder_breaks_no_law(name):
    encoders.test_a_right_encoder_breaks_no_law(name)


@pytest.mark.parametrize("member", zoo.ENCODERS[1:], ids=lambda member: member.name)
def test_a_wrong_encoder_is_named_and_breaks_the_same_laws_on_tensors(member):
    encoders.test_a_wrong_encoder_is_named_and_breaks_the_same_laws_on_tensors(member)


def test_the_kill_matrix_does_not_ask_who_has_imported_torch_before():
    code = "from mha import laws, zoo; print(laws.kill_matrix([laws."
    code += "gradients_are_slopes], [zoo.gradient_stopped]).killed.tolist())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.stdout == "[[True]]\n", done.stderr
