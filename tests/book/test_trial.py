"""Laws of students, tried on versions that they have not seen."""

import argparse

import pytest

import trial
from tests.book.load import ROOT

HIDDEN = [
    "no_scale:width:64",
    "mask_ignored:length:600",
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
    K, V = drawn(2, 640, 4)
    Q, mask = K[:3], np.tile(np.arange(640) < 590, (3, 1))
    before = attend(Q, K, V, mask)
    K[590:], V[590:] = 9, 9
    return np.allclose(before, attend(Q, K, V, mask), atol=1e-5)
def rows_sum_to_one(attend):
    Q, K = drawn(2, 24, 5, 4)
    return np.allclose(attend(Q[..., :3, :], K, np.ones((24, 5, 1))), 1, atol=1e-5)
"""
LAWS = {
    "ada_bo": f"{GOOD}my_laws = [known_weights, hidden_keys_do_not_matter, "
    "rows_sum_to_one]",
    "cy_dan": f"{GOOD}my_laws = [known_weights]",
    "eve_finn": "my_laws = [lambda attend: False]",
    "gus_hal": "import numpy as np\nmy_laws = [lambda attend: np.exp(1)]",
}
OUTSIDE = "import numpy as np\nnp.testing.assert_(True)\nnp.savetxt('found.json', [1])"
REFUSED = {
    "from mha import softmax": "uses from mha",
    "np.exp(1)": "uses exp",
    "attend.__closure__[0].cell_contents": "uses __closure__",
    "import numpy as np\nnp.sum(attend) ** 2": "",
}


LINES = {
    "ada_bo": "laws 3  detected 3 of 3  alarms 0 of 5  points 35.0",
    "cy_dan": "laws 1  detected 1 of 3  alarms 0 of 5  points 11.7",
    "eve_finn": "laws 1  detected 3 of 3  alarms 5 of 5  points 0.0",
    "gus_hal": "refused uses exp",
}


def tried(folder, names, capsys):
    """Return what the command prints of the laws of these pairs."""
    for name in names:
        (folder / f"{name}.py").write_text(LAWS[name], encoding="utf-8")
    trial.main([str(folder), "--hidden", *HIDDEN])
    return capsys.readouterr().out.splitlines()


def test_a_pair_gets_the_line_that_the_page_for_teachers_shows(tmp_path, capsys):
    """One pair here, and all four once a week."""
    (line,) = tried(tmp_path, ["cy_dan"], capsys)
    assert line == f"cy_dan  {LINES['cy_dan']}"
    page = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    assert f"--hidden {' '.join(HIDDEN)}\n" in page
    shown = page.partition("four invented pairs:\n\n```text\n")[2].partition("```")[0]
    assert [x.split("  ", 1) for x in shown.splitlines()] == [*map(list, LINES.items())]


def test_a_file_that_does_not_end_or_writes_a_file_is_refused(tmp_path):
    for name, source, seconds, why in (
        ("endless", "while True:\n    pass", 4, "did not end within 4 seconds"),
        ("writes", OUTSIDE, 60, "PermissionError: a law may not use open"),
    ):
        path = tmp_path / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        line = trial.line_of(path, HIDDEN, seconds)
        assert line == f"{name}  refused {why}"


@pytest.mark.parametrize("source", REFUSED)
def test_words_that_compute_attention_or_look_behind_it_are_refused(source):
    assert trial.not_allowed(source) == REFUSED[source]


@pytest.mark.parametrize("text", ["no_scale", "no_scale:depth:4", "right:width:4"])
def test_a_hidden_version_needs_a_member_a_size_and_a_limit(text):
    with pytest.raises(argparse.ArgumentTypeError, match="NAME:SIZE:LIMIT"):
        trial.hidden(text)
