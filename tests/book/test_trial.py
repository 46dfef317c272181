"""Laws of students, tried on versions that they have not seen."""

import argparse

import pytest

from exercises.laws import _equals_reference, broken_by, subjects
from mha import laws
from tests.book.load import ROOT, load

HIDDEN = [
    "no_scale:width:64",
    "mask_ignored:length:300",
    "softmax_over_queries:batch:20",
]
GOOD = """
import numpy as np
def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape)
def known_weights(attend):
    for d in (2, 8, 128):
        Q, K = np.zeros((1, d)), np.zeros((2, d))
        Q[0, 0], K[0, 0] = d**0.5, np.log(3)
        if not np.allclose(attend(Q, K, np.array([[1.0], [0.0]])), 3 / 4, atol=1e-5):
            return False
    return True
def hidden_keys_do_not_matter(attend):
    Q, K, V = drawn(3, 320, 4)
    mask = np.arange(320) < 290
    before = attend(Q, K, V, np.tile(mask, (320, 1)))
    K[290:], V[290:] = 9, 9
    return np.allclose(before, attend(Q, K, V, np.tile(mask, (320, 1))), atol=1e-5)
def rows_sum_to_one(attend):
    Q, K = drawn(2, 24, 5, 4)
    return np.allclose(attend(Q[..., :3, :], K, np.ones((24, 5, 1))), 1, atol=1e-5)
"""
LAWS = {
    "ada_bo": GOOD
    + "my_laws = [known_weights, hidden_keys_do_not_matter, rows_sum_to_one]",
    "cy_dan": GOOD + "my_laws = [known_weights]",
    "eve_finn": "my_laws = [lambda attend: False]",
    "copied": "from mha import softmax\nmy_laws = []",
    "gus_hal": "import numpy as np\nmy_laws = [lambda attend: np.exp(1)]",
    "own_power": "import numpy as np\nmy_laws = [lambda attend: np.e ** attend]",
    "named": "my_laws = [lambda attend: attend.right]",
    "looks": "my_laws = [lambda attend: attend.__closure__[0].cell_contents.right]",
    "formats": "my_laws = [lambda a: '{0.__closure__}'.format(a)]",
    "counts": """
calls = []
def law(attend):
    calls.append(attend)
    return len(calls) > 3
my_laws = [law]
""",
    "prints": "print('{\"points\": 35.0}')\nraise SystemExit",
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
        "ada_bo": "laws 3  detected 3 of 3  alarms 0 of 5  points 35.0",
        "cy_dan": "laws 1  detected 1 of 3  alarms 0 of 5  points 11.7",
        "eve_finn": "laws 1  detected 3 of 3  alarms 5 of 5  points 0.0",
        "copied": "refused imports mha",
        "gus_hal": "refused uses exp",
        "own_power": "refused has a variable in an exponent",
        "named": "laws 1  detected 3 of 3  alarms 5 of 5  points 0.0",
        "looks": "refused contains __closure__",
        "formats": "refused contains __closure__",
        "counts": "laws 1  detected 3 of 3  alarms 5 of 5  points 0.0",
        "prints": "refused SystemExit",
        "no_list": "refused KeyError: 'my_laws'",
    }


def test_the_page_for_teachers_shows_what_the_command_prints(trial, tmp_path, capsys):
    page = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    assert f"--hidden {' '.join(HIDDEN)}\n" in page
    shown = page.partition("four invented pairs:\n\n```text\n")[2].partition("```")[0]
    for line in shown.splitlines():
        name = line.split()[0]
        (tmp_path / f"{name}.py").write_text(LAWS[name], encoding="utf-8")
    trial.main([str(tmp_path), "--hidden", *HIDDEN])
    assert capsys.readouterr().out == shown
    assert len(shown.splitlines()) == 4


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


@pytest.mark.parametrize(
    ("limit", "most"), [("batch:20", 0), ("width:64", 0), ("length:300", 3)]
)
def test_the_laws_of_the_package_detect_little_beyond_the_limits_of_the_page(
    trial, limit, most
):
    wrong = [subject.name for subject in subjects() if not subject.right]
    hidden = [trial.hidden(f"{name}:{limit}") for name in wrong]
    detected = [each.name for each in hidden if laws.check(each).broken]
    assert len(wrong) == 21
    assert len(detected) == most
