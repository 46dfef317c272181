"""What the page "Test your own attention" shows runs, and its table is what comes."""

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from importlib.metadata import version
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


@pytest.mark.parametrize("i", range(len(ROWS)), ids=[x.library + x.key for x in ROWS])
def test_the_laws_say_what_is_stored(i):
    library, stored = ROWS[i].library, STORED[i]
    needs(library)
    if library and version(library).partition("+")[0] != stored["version"]:
        pytest.skip(f"stored for {library} {stored['version']}")
    assert layers.found(ROWS[i]) == stored


def test_every_name_of_a_law_that_is_stored_is_one():
    for row in STORED:
        assert SLUGS.issuperset(row["broken"] + row["declared"] + row["not asked"])
        asked = row["held"] + len(row["broken"] + row["declared"] + row["not asked"])
        assert asked in (len(laws.ALL), len(SLUGS))


def test_the_table_stands_as_the_script_writes_it():
    assert layers.STORE.read_text(encoding="utf-8") == layers.text_of(TABLE)


def test_the_page_shows_the_table_that_is_stored():
    assert "```{catalogue} layers\n```" in PAGE
    shown = list(catalogue.layer_rows())
    assert len(shown) == len(STORED)
    for cells, row in zip(shown, STORED, strict=True):
        names = row["library"], row["version"], row["layer"], row["mode"], row["says"]
        assert all(name in cells[0] for name in names)
        assert cells[1:4] == (row["lines"], row["held"], len(row["not asked"]))
        assert all(f"`{slug}`" in cells[4] for slug in row["broken"] + row["declared"])


@pytest.mark.parametrize("row", [row for row in ROWS if row.run])
def test_an_adapter_is_short(row):
    assert 1 < row.lines <= 17


# The page


def test_every_adapter_on_the_page_is_that_of_the_script():
    assert len(INCLUDED) == PAGE.count("literalinclude")
    made = {row.run.__name__ for row in ROWS if row.run}
    others = {"put", "Fused", "MultiHeadedAttention", "attention_of_lengths"}
    for name in INCLUDED:
        assert callable(getattr(layers, name))
        assert name in made | others


def names_of_page():
    """Return what is there once the definitions of the page were copied and run."""
    names = {"__name__": "mine"}
    for block in PYTHON[:2]:
        exec(block, names)
    for name in INCLUDED:
        exec(inspect.getsource(getattr(layers, name)), names)
    return names


def test_the_report_on_the_page_is_what_comes(capsys):
    names_of_page()
    printed = capsys.readouterr().out
    shown = PAGE.split("```text\n✗")[1].split("```")[0]
    assert shown in printed


@pytest.mark.parametrize("block", PYTHON[1:], ids=range(1, len(PYTHON)))
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
    if "breaks=" in block:
        assert names["report"].holds


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
        width = x.shape[-1] // n_heads
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
    heads, widths = (set(x) for x in zip(*sizes_asked(), strict=True))
    span = f"between {min(heads)} and {max(heads)} heads, and each is between "
    text = " ".join(PAGE.split())
    assert f"{span}{min(widths)} and {max(widths)} columns wide" in text
    assert 3 in widths
    few = sorted({h for h, _ in sizes_asked(n_kv_heads=2)})
    assert f"`n_kv_heads=2`, there are {few[0]}, {few[1]} or {few[2]} heads" in text


def test_every_word_of_the_conventions_is_in_the_table_of_words():
    words = re.findall(r"^\| `(\w+)` \|", PAGE, re.M)
    assert words == list(laws.Conventions.__dataclass_fields__)
