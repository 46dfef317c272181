"""Public layers on trial again, and what the page on other attention shows and says."""

import contextlib
import functools
import inspect
import io
import re
import subprocess
import sys
from importlib.metadata import version

import pytest
import torch

import mha
from mha import laws
from tests.book.test_stored_layers import PAGE, PYTHON, ROWS, STORED, layers

sys.modules[layers.__name__] = layers  # where `inspect` looks for the source of a class
INCLUDE = r"```{literalinclude} _data/public_layers.py\n:pyobject: (\w+)\n```"
SAID = PAGE.partition("```text\nMine:")[2].partition("\n")[0]
MINE = PYTHON[0].split("\n\n\nsaid =")[0], PYTHON[1].split("\n\n\nprint(")[0]


def source(found):
    return f"```python\n{inspect.getsource(getattr(layers, found[1]))}```"


def sections():
    """Return what a reader runs under each heading, with what it needs before."""
    found = {}
    for part in re.split(r"^## ", re.sub(INCLUDE, source, PAGE), flags=re.M):
        before = PYTHON[0].split("\n\n\nclass")[:1]
        for i, section in enumerate(re.split(r"^### ", part, flags=re.M)):
            if blocks := re.findall(r"```python\n(.*?)```", section, re.S):
                found[section.partition("\n")[0]] = before + blocks
            if i == 0:
                before = before + blocks
    return found


SECTIONS = sections()
TESTS = SECTIONS.pop("In your tests and in CI")
MINES, DESIGNS, *_ = SECTIONS


@functools.cache
def run(heading):
    """Return what the blocks under a heading leave behind, and what they print."""
    names = {"__name__": "mine"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in SECTIONS[heading]:
            exec(block, names)
    return names, printed.getvalue()


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


def test_the_number_of_key_heads_is_found():
    names = run(DESIGNS)[0]
    for shared in (1, 2):
        report = laws.check(names["Rotary"](16, 4, shared, turns=(0, 0)))
        assert report.holds
        assert report.tried["said"] == [f"n_kv_heads={shared}"]


def test_wrong_speeds_are_found():
    names = {**run(DESIGNS)[0], "__name__": "other_speeds"}
    source = next(x for x in PYTHON if "def rotated" in x).split("rotary =")[0]
    exec(source.replace("10000.0", "7.0"), names)
    layer, words = names["Rotary"](16, 4), names["rotary"]
    assert not laws.check(layer, ["equals_reference"], **words).holds


def test_a_declared_law_that_is_not_asked_fails_nothing():
    names = run(DESIGNS)[0]
    report = laws.check(names["Rotary"](16, 4, turns=(0, 0)), breaks=["causal_corner"])
    by = {f.law.slug: f.verdict for f in report.findings}
    assert by["causal_corner"] == "not asked"
    assert report.holds


@pytest.mark.parametrize("heading", SECTIONS)
def test_what_is_printed_under_a_heading_runs(heading):
    text, before = (
        "\n".join(SECTIONS[heading]),
        torch.backends.mha.get_fastpath_enabled(),
    )
    for library in re.findall(r"^ *(?:from|import) (\w+)", text, re.M):
        pytest.importorskip(library)
    try:
        printed = run(heading)[1]
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    assert printed.count("tried\n") == text.count("print(laws.check(")


def test_the_reports_on_the_page_are_what_comes():
    printed = "".join(run(x)[1] for x in (MINES, DESIGNS, "A kernel for a GPU"))
    for report in re.findall(r"```text\n(.*?)```", PAGE, re.S):
        assert report in printed or report.startswith("pip install ")
    assert re.search(r"`(flash: [^`]+)`", PAGE)[1] in printed


def test_the_tests_on_the_page_say_the_same(pytester):
    pytester.makepyfile(mine="\n\n\n".join(MINE), test_mine="\n\n\n".join(TESTS[1:]))
    held, broken, unasked = map(int, re.findall(r"\d+", SAID))
    done = pytester.runpytest("-p", "no:xdist")
    done.assert_outcomes(passed=held + 1, failed=broken + 1, skipped=unasked)


def test_the_line_for_a_shell_finds_the_same(tmp_path):
    (tmp_path / "mine.py").write_text(MINE[0])
    line = PAGE.split("```bash\n")[1].split("\n```")[0]
    assert line.startswith("python ")
    line = line.replace("python ", f'"{sys.executable}" ', 1)
    line = line.replace("mine.py", str(tmp_path / "mine.py"))
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "empty_rows_give_zero" in done.stdout


def sizes_asked(**words):
    """Return the heads and widths that a layer is asked for."""
    asked = set()

    def run(x, weights, n_heads, mask=None):
        width = weights["W_Q"].shape[1] // n_heads
        asked.add((n_heads, width))
        wide = dict(weights)
        for name in ("W_K", "W_V"):
            blocks = weights[name].reshape(x.shape[-1], -1, width)
            repeated = blocks.repeat(n_heads // blocks.shape[1], 1)
            wide[name] = repeated.reshape(x.shape[-1], -1)
        four = (wide[name] for name in ("W_Q", "W_K", "W_V", "W_O"))
        return mha.multi_head_attention(x, *four, n_heads, mask)

    assert laws.check(laws.Adapter(run), **words).holds
    return asked


def test_the_sizes_that_a_layer_must_accept_are_those_of_the_page():
    text = " ".join(PAGE.split())
    for words, heads in ({}, "heads"), ({"n_kv_heads": 2}, "heads instead"):
        counts, widths = (listed(x) for x in zip(*sizes_asked(**words), strict=True))
        assert f"there are {counts} {heads}" in text
        assert f"Each head is {widths} columns wide" in text


def listed(numbers):
    """Return the numbers as the page lists them."""
    *first, last = map(str, sorted({*numbers}))
    return " or ".join(filter(None, [", ".join(first), last]))
