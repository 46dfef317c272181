"""Public layers on trial again, and what the page on other attention shows and says."""

import inspect
import json
import re
import subprocess
import sys
from importlib.metadata import version
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import mha
from mha import designs, laws
from tests.book.load import load
from tests.book.test_stored_layers import PAGE, PYTHON, ROWS, STORED, layers, printed
from tests.weekly import planted

INCLUDE = r"```{literalinclude} _data/public_layers.py\n:pyobject: (\w+)\n```"
WHOLE = re.sub(
    INCLUDE, lambda x: f"```python\n{inspect.getsource(getattr(layers, x[1]))}```", PAGE
)
BEFORE, TESTS = WHOLE.split("(own-ci)=")
FOLDS = re.findall(r"<summary>(.*?)</summary>\n(.*?)</details>", TESTS, re.S)
LIBRARIES = {name: text for name, text in FOLDS if "def " in text}


def python(text):
    """Return the blocks of Python in a text."""
    return re.findall(r"```python\n(.*?)```", text, re.S)


# The table


@pytest.mark.parametrize("i", range(len(ROWS)), ids=[x.library + x.key for x in ROWS])
def test_the_laws_say_what_is_stored(i):
    library, stored = ROWS[i].library, STORED[i]
    pytest.importorskip(library.replace("-", "_") or "torch")
    then = stored["version"]
    if library not in ("", "torch") and version(library) != then:
        pytest.skip(f"stored for {library} {then}")
    found = layers.found(ROWS[i])
    # Another PyTorch may refuse more, but what is broken stays broken.
    same = all(found[x] == stored[x] for x in ("version", "torch"))
    parts = found if same else ["broken"]
    assert {x: found[x] for x in parts} == {x: stored[x] for x in parts}


@pytest.mark.parametrize(
    ("row", "i"),
    [(row, i) for row in planted.rows() for i in range(len(planted.PLANTED[row.key]))],
    ids=lambda x: x if isinstance(x, int) else x.key,
)
def test_a_mistake_that_is_put_into_a_public_layer_breaks_a_law(row, i):
    pytest.importorskip(row.library.replace("-", "_"))
    assert planted.broken(row, planted.PLANTED[row.key][i]) - planted.broken(row)


def test_a_public_suite_catches_what_is_stored():
    pytest.importorskip("torch_judge")
    suites = load(layers.STORE.with_name("public_suites.py"))
    stored = json.loads(suites.STORE.read_text(encoding="utf-8"))
    members = [suites.zoo.right, *suites.zoo.WRONG]
    caught = [x.name for x in members if suites.fails_torch_judge(x)]
    assert caught == stored["torch-judge"]


# What the page shows


def test_all_that_is_printed_before_the_tests_runs_and_gives_the_reports():
    text = printed(python(BEFORE))
    for report in re.findall(r"```text\n(.*?)```", BEFORE, re.S):
        assert report in text or report.startswith("pip install ")
    assert text.count("tried\n") == 16
    # Mine, an added mask, PyTorch's encoder layer and stack on the fast path, and the
    # two wrong designs.
    assert text.count(" broken, ") == 6


def test_a_slip_behind_an_adapter_of_the_page_is_found():
    names = {"__name__": "mine"}
    printed(python(BEFORE), names)
    names["varlen"] = lambda q, k, v, text: v + q.mean((0, 1))
    report = laws.check(laws.torch(names["packed"], axes=4))
    assert "batches_and_heads_stay_apart" in {x.law for x in report.broken}
    names["padded"] = lambda m, X, mask=None: m(X)
    report = names["laws"].check(names["pooled"], reference=names["mean"])
    assert "padding_changes_nothing" in {x.law for x in report.broken}


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_adapters_of_a_fold_run(name):
    for library in re.findall(r"^ *(?:from|import) (\w+)", LIBRARIES[name], re.M):
        pytest.importorskip(library)
    names = {"__name__": "mine"}
    printed(PYTHON[:2], names)
    helpers = python(LIBRARIES[next(iter(LIBRARIES))])[:3]
    text = printed(helpers + python(LIBRARIES[name]), names)
    assert text.count("tried\n") >= 3


def test_the_workflow_on_the_page_runs_its_tests_and_keeps_what_they_say(tmp_path):
    mine = "\n\n\n".join(block.split("print(")[0] for block in PYTHON[:3])
    (tmp_path / "mine.py").write_text(mine)
    (tmp_path / "test_mine.py").write_text("\n\n".join(python(TESTS)[:2]))
    workflow = yaml.safe_load(re.search(r"```yaml\n(.*?)```", PAGE, re.S)[1])
    steps = workflow["jobs"]["laws"]["steps"]
    run = next(x["run"] for x in steps if "pytest" in x.get("run", ""))
    command = [sys.executable, *run.split()[1:], "--disable-plugin-autoload"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.startswith("python ") and done.returncode == 0, done.stdout + done.stderr
    held, unasked = re.search(r"Mended: (\d+) hold, (\d+) not asked", PAGE).groups()
    kept = ElementTree.parse(tmp_path / steps[-1]["with"]["path"]).getroot()
    cases = kept.findall(".//testcase")
    ours = [x for x in cases if x.get("name").startswith("test_my_")]
    assert len(ours) == int(held) + int(unasked)
    assert sum(x.find("skipped") is not None for x in ours) == int(unasked)
    (expected,) = kept.findall(".//skipped[@type='pytest.xfail']")
    assert expected.get("message") == "fast path; none of our sequences is empty"


def test_the_line_for_a_shell_finds_the_same(tmp_path):
    mine = "\n\n\n".join(block.split("print(")[0] for block in PYTHON[:3])
    (tmp_path / "mine.py").write_text(mine)
    line = PAGE.split("```bash\n")[1].split("\n```")[0]
    assert line.startswith("python ")
    line = line.replace("python ", f'"{sys.executable}" ', 1)
    line = line.replace("mine.py", str(tmp_path / "mine.py"))
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "padding_changes_nothing" in done.stdout


# What a pass does not mean


def wide(most):
    """Return attention that is doubled for wider queries."""

    def attend(Q, K, V, mask=None):
        Y = mha.scaled_dot_product_attention(Q, K, V, mask)
        return Y * (2 if Q.shape[-1] > most else 1)

    return attend, None


def long(most):
    """Return attention that forgets the keys behind so many."""

    def attend(Q, K, V, mask=None):
        mask = None if mask is None else mask[..., :most]
        K, V = K[..., :most, :], V[..., :most, :]
        return mha.scaled_dot_product_attention(Q, K, V, mask)

    return attend, None


def rotary(most):
    """Return attention whose angles begin again after so many tokens."""

    def attend(Q, K, V, mask=None, most=most):
        Q, K = (designs.rotary(x, at=np.arange(x.shape[-2]) % most) for x in (Q, K))
        return designs.weights(designs.scores(Q, K), mask) @ V

    def reference(Q, K, V, mask=None):
        return attend(Q, K, V, mask, most=10**6)

    return attend, reference


def window(most):
    """Return attention whose window is one too wide."""

    def attend(Q, K, V, mask=None, w=most + 1):
        mask = designs.both(mask, designs.window(Q, K, w))
        return designs.weights(designs.scores(Q, K), mask) @ V

    def reference(Q, K, V, mask=None):
        return attend(Q, K, V, mask, w=most)

    return attend, reference


@pytest.mark.parametrize(
    ("make", "found", "passes"),
    [(wide, 63, 64), (long, 4098, 5000), (rotary, 500, 521), (window, 500, 1000)],
)
def test_what_the_page_says_of_sizes(make, found, passes):
    for most, holds in ((found, False), (passes, True)):
        subject, reference = make(most)
        assert laws.check(subject, reference=reference).holds == holds
