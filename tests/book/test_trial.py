"""Laws of students, tried on versions that they have not seen."""

import argparse

import pytest

from exercises.laws import _equals_reference, broken_by, subjects
from mha import laws
from tests.book.load import ROOT, load

HIDDEN = [
    "no_scale:width:40",
    "mask_ignored:length:100",
    "softmax_over_queries:batch:6",
]
GOOD = """
import numpy as np
def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape)
def known_weights(attend):
    for d in (2, 8, 64):
        Q, K = np.zeros((1, d)), np.zeros((2, d))
        Q[0, 0], K[0, 0] = d**0.5, np.log(3)
        if not np.allclose(attend(Q, K, np.array([[1.0], [0.0]])), 3 / 4, atol=1e-5):
            return False
    return True
def hidden_keys_do_not_matter(attend):
    Q, K, V = drawn(3, 120, 4)
    mask = np.arange(120) < 90
    before = attend(Q, K, V, np.tile(mask, (120, 1)))
    K[90:], V[90:] = 9, 9
    return np.allclose(before, attend(Q, K, V, np.tile(mask, (120, 1))), atol=1e-5)
def rows_sum_to_one(attend):
    Q, K = drawn(2, 8, 5, 4)
    return np.allclose(attend(Q[..., :3, :], K, np.ones((8, 5, 1))), 1, atol=1e-5)
"""
LAWS = {
    "good": GOOD
    + "my_laws = [known_weights, hidden_keys_do_not_matter, rows_sum_to_one]",
    "one": GOOD + "my_laws = [known_weights]",
    "always_false": "my_laws = [lambda attend: False]",
    "copied": "from mha import softmax\nmy_laws = []",
    "own_softmax": "import numpy as np\nmy_laws = [lambda attend: np.exp(1)]",
    "no_list": "print('no laws')",
}


@pytest.fixture(scope="module")
def trial():
    return load(ROOT / "book" / "trial.py")


def test_laws_earn_by_what_they_detect_and_lose_by_false_alarms(
    trial, tmp_path, capsys
):
    for name, source in LAWS.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    trial.main([str(tmp_path), "--hidden", *HIDDEN])
    printed = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert printed == {
        "good": "laws 3  detected 3 of 3  alarms 0 of 5  points 35.0",
        "one": "laws 1  detected 1 of 3  alarms 0 of 5  points 11.7",
        "always_false": "laws 1  detected 3 of 3  alarms 5 of 5  points 0.0",
        "copied": "refused imports mha",
        "own_softmax": "refused calls exp",
        "no_list": "refused KeyError: 'my_laws'",
    }


def test_a_file_that_does_not_end_is_stopped(trial, tmp_path, capsys):
    (tmp_path / "endless.py").write_text("while True:\n    pass", encoding="utf-8")
    trial.main([str(tmp_path), "--hidden", *HIDDEN, "--seconds", "2"])
    said = "endless  refused did not end within 2 seconds\n"
    assert capsys.readouterr().out == said


def test_a_hidden_version_is_correct_up_to_its_limit(trial):
    assert not any(broken_by(_equals_reference, trial.hidden(h)) for h in HIDDEN[:2])
    assert broken_by(_equals_reference, subjects()[5])


@pytest.mark.parametrize("text", ["no_scale", "no_scale:depth:4", "right:width:4"])
def test_a_hidden_version_needs_a_member_a_size_and_a_limit(trial, text):
    with pytest.raises(argparse.ArgumentTypeError, match="NAME:SIZE:LIMIT"):
        trial.hidden(text)


def test_the_laws_of_the_package_do_not_reach_large_batches(trial):
    assert not laws.check(trial.hidden("no_scale:batch:20")).broken
    assert not laws.check(trial.hidden("mask_ignored:width:40")).broken
    assert laws.check(trial.hidden("mask_ignored:length:100")).broken
