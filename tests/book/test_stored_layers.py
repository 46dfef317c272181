"""What the page "Test your own attention" shows runs, with the table that is stored.

tests/weekly computes the table again.
"""

import contextlib
import functools
import importlib.util
import inspect
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mha
from mha import laws

torch = pytest.importorskip("torch")

BOOK = Path(__file__).parents[2] / "book"
SCRIPT = BOOK / "_data" / "public_layers.py"


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


layers = load("public_layers", SCRIPT)
catalogue = load("catalogue_of_layers", BOOK / "_ext" / "catalogue.py")
ROWS = layers.rows()
TABLE = json.loads(layers.STORE.read_text(encoding="utf-8"))
STORED = TABLE["layers"]
SLUGS = {law.slug for law in (*laws.ALL, *laws.ENCODER)}
PAGE = (BOOK / "own_attention.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.S)
# What later blocks of the page need.
DEFINING = [
    x for x in PYTHON if re.search(r"^(class|QKV =|rotary =|def change)", x, re.M)
]
OTHERS = [x for x in PYTHON if x not in DEFINING]
INCLUDED = re.findall(
    r"```{literalinclude} _data/public_layers.py\n:pyobject: (\w+)\n```", PAGE
)
# The name of a distribution, where it is imported by another.
IMPORTED = {"x-transformers": "x_transformers"}


def needs(library):
    """Skip the test, by name, where a library is missing."""
    if library:
        name = IMPORTED.get(library, library)
        pytest.importorskip(name, reason=f"{library} is not installed")


# The table


def test_each_row_of_the_script_is_stored_once():
    names = [(row.library, row.layer, row.mode) for row in ROWS]
    assert names == [(x["library"], x["layer"], x["mode"]) for x in STORED]
    assert len({*names}) == len(names)


def test_every_name_of_a_law_that_is_stored_is_one():
    for row in STORED:
        assert SLUGS.issuperset(row["broken"] + row["declared"] + row["not asked"])


def test_the_table_stands_as_the_script_writes_it():
    assert layers.STORE.read_text(encoding="utf-8") == layers.text_of(TABLE)


def test_the_page_shows_the_table_that_is_stored():
    assert "```{catalogue} layers\n```" in PAGE
    shown = list(catalogue.layer_rows())
    assert len(shown) == len(STORED)
    for cells, row in zip(shown, STORED, strict=True):
        names = row["library"], row["version"], row["layer"], row["mode"], row["says"]
        assert all(name in cells[0] for name in names)
        assert cells[1:3] == (row["held"], len(row["not asked"]))
        assert all(f"`{slug}`" in cells[3] for slug in row["broken"] + row["declared"])


# The page


def test_every_adapter_on_the_page_is_that_of_the_script():
    assert len(INCLUDED) == PAGE.count("literalinclude")
    assert all(callable(getattr(layers, name)) for name in INCLUDED)


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


def test_the_report_on_the_page_is_what_comes():
    assert PAGE.split("```text\n✗")[1].split("```")[0] in page_once()[1]


def after(text):
    """Return the block of results that follows this text on the page."""
    return PAGE.split(text)[1].split("```text\n")[1].split("```")[0]


def test_a_rotary_layer_gives_the_reports_and_the_offsets_of_the_page():
    names, printed, laws_of = *page_once(), {}
    assert after("for report in (off, on, backwards)") in printed
    for name in ("off", "on", "backwards"):
        report = names[name]
        assert report.holds
        laws_of[name] = {f.law.slug: f.verdict for f in report.findings}
    assert laws_of["on"] == laws_of["backwards"]
    assert set(names["rotary"]["breaks"]) == {
        slug for slug, verdict in laws_of["on"].items() if verdict == "declared"
    }
    both = zip(laws_of["off"].values(), laws_of["on"].values(), strict=True)
    assert sum(a != b == "not asked" for a, b in both) == 7
    assert "seven laws are not asked" in " ".join(PAGE.split())
    assert after("def change_by_offset") in printed
    assert names["change_by_offset"]((1, 1)) < 1e-12


@pytest.mark.parametrize("gradients", [True, False])
def test_attention_of_torch_gives_nan_for_empty_rows_on_its_fast_path(gradients):
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 4, 8)
    empty = torch.zeros(4, 4, dtype=torch.bool)
    empty[0] = True
    added = torch.full((4, 4), 0.5).triu(1)
    with torch.set_grad_enabled(gradients):
        row = layer(x, x, x, attn_mask=empty, need_weights=False)[0][0, 0]
        biased, hidden = (
            layer(x, x, x, attn_mask=mask, need_weights=False)[0]
            for mask in (added, added > 0)
        )
    assert row.isnan().all() == (not gradients)
    assert not torch.allclose(biased, hidden)


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
    if "def test_" in block:
        with pytest.raises(AssertionError, match="empty_rows_give_zero"):
            names["test_my_attention_satisfies_the_laws"](laws.assert_lawful)


def test_the_line_for_a_shell_finds_the_same(tmp_path):
    (tmp_path / "mine.py").write_text(PYTHON[0].split("\n\n\nreport =")[0])
    line = PAGE.split("```bash\n")[1].split("\n```")[0]
    assert line.startswith("python ")
    line = line.replace("python ", f'"{sys.executable}" ', 1)
    line = line.replace("mine.py", str(tmp_path / "mine.py"))
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "empty_rows_give_zero" in done.stdout


def test_every_broken_law_has_its_explanation_on_the_page():
    for row in STORED:
        for slug in row["broken"]:
            anchor = catalogue.reason(row, slug).partition("(#")[2].rstrip(")")
            assert f"({anchor})=\n### " in PAGE


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


def test_every_word_of_the_conventions_is_in_the_table_of_words():
    words = re.findall(r"^\| `(\w+)` \|", PAGE, re.M)
    assert words == list(laws.Conventions.__dataclass_fields__)
