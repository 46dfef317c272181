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
from tests.book.test_stored_layers import (
    INCLUDED,
    PAGE,
    PYTHON,
    ROWS,
    STORED,
    layers,
)

sys.modules[layers.__name__] = layers  # where `inspect` looks for the source of a class
# What later blocks of the page need.
DEFINING = [x for x in PYTHON if re.search(r"^(class|QKV =|def flash)", x, re.M)]
OTHERS = [x for x in PYTHON if x not in DEFINING]
# Where the page shows what its blocks print.
SHOWN = "```text\n✗", "```text\nMended", "```text\n(1, 1)"
# The name of a distribution, where it is imported by another.
IMPORTED = {"x-transformers": "x_transformers"}


def needs(library):
    """Skip the test, by name, where a library is missing."""
    if library:
        name = IMPORTED.get(library, library)
        pytest.importorskip(name, reason=f"{library} is not installed")


@functools.cache
def page_once():
    """Return what the definitions of the page leave behind, and what they print."""
    names = {"__name__": "mine"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in DEFINING:
            exec(block, names)
    for name in INCLUDED:
        exec(inspect.getsource(getattr(layers, name)), names)
    return names, printed.getvalue()


def names_of_page():
    """Return what is there once the definitions of the page were copied and run."""
    return dict(page_once()[0])


@pytest.mark.parametrize("i", range(len(ROWS)), ids=[x.library + x.key for x in ROWS])
def test_the_laws_say_what_is_stored(i):
    library, stored = ROWS[i].library, STORED[i]
    needs(library)
    for name, then in (library, stored["version"]), ("torch", stored["torch"]):
        if then and version(name).partition("+")[0] != then:
            pytest.skip(f"stored for {name} {then}")
    assert layers.found(ROWS[i]) == stored


def test_the_number_of_key_heads_is_found():
    names = names_of_page()
    for shared in (1, 2):
        report = laws.check(names["Rotary"](16, 4, shared, turns=(0, 0)))
        assert report.holds
        assert report.tried["said"] == [f"n_kv_heads={shared}"]


def test_wrong_speeds_are_found():
    names = {**names_of_page(), "__name__": "other_speeds"}
    source = next(x for x in PYTHON if "def rotated" in x).split("rotary =")[0]
    exec(source.replace("10000.0", "7.0"), names)
    layer, words = names["Rotary"](16, 4), names["rotary"]
    assert not laws.check(layer, ["equals_reference"], **words).holds


def test_a_declared_law_that_is_not_asked_fails_nothing():
    names = names_of_page()
    report = laws.check(names["Rotary"](16, 4, turns=(0, 0)), breaks=["causal_corner"])
    by = {f.law.slug: f.verdict for f in report.findings}
    assert by["causal_corner"] == "not asked"
    assert report.holds


def test_the_reports_on_the_page_are_what_comes():
    printed = page_once()[1]
    for mark in SHOWN:
        assert PAGE.split(mark)[1].split("```")[0] in printed
    assert re.search(r"`(flash: [^`]+)`", PAGE)[1] in printed


@pytest.mark.parametrize("block", OTHERS, ids=range(len(OTHERS)))
def test_each_block_of_the_page_runs(block):
    used = {
        "transformers": ("bert", "gpt2", "llama"), "keras": ("keras_layer",),
        "jax": ("jax.nn",), "flax": ("flax_nnx",), "timm": ("timm_layer",),
        "x-transformers": ("x_transformers", "cross"),
    }  # fmt: skip
    for library, words in used.items():
        if any(re.search(rf"\b{word}", block) for word in words):
            needs(library)
    names, before = names_of_page(), torch.backends.mha.get_fastpath_enabled()
    try:
        exec(block, names)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    if "(assert_lawful)" in block:
        with pytest.raises(AssertionError, match="empty_rows_give_zero"):
            names["test_my_attention_satisfies_the_laws"](laws.assert_lawful)
    if "def test_no_law" in block:
        names["test_no_law_has_dropped_out"]()


def test_the_line_for_a_shell_finds_the_same(tmp_path):
    (tmp_path / "mine.py").write_text(PYTHON[0].split("\n\n\nsaid =")[0])
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
