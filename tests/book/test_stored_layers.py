"""The page "Test your own attention" shows the table that is stored, and two reports.

tests/weekly computes the table again, and runs all that the page shows.
"""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from mha import laws, zoo
from tests.book.load import extension, load
from tests.laws import zoo_laws

torch = pytest.importorskip("torch")

BOOK = Path(__file__).parents[2] / "book"
SCRIPT = BOOK / "_data" / "public_layers.py"
layers, catalogue = load(SCRIPT), extension("catalogue")
ROWS = layers.rows()
TABLE = json.loads(layers.STORE.read_text(encoding="utf-8"))
STORED = TABLE["layers"]
NAMES = {law.name for law in laws.ALL}
PAGE = (BOOK / "own_attention.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.S)
INCLUDED = re.findall(
    r"```{literalinclude} _data/public_layers.py\n:pyobject: (\w+)\n```", PAGE
)


# The table


def test_each_row_of_the_script_is_stored_once():
    names = [(row.library, row.layer, row.mode) for row in ROWS]
    assert names == [(x["library"], x["layer"], x["mode"]) for x in STORED]
    assert len({*names}) == len(names)


def test_every_name_of_a_law_that_is_stored_is_one():
    for row in STORED:
        assert NAMES.issuperset(row["broken"] + row["not asked"])


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
        assert all(f"`{law}`" in cells[4] for law in row["broken"])


def test_the_page_says_how_many_public_layers_break_a_law():
    broken = [row["broken"] for row in STORED if row["broken"]]
    empty = sum("empty_rows_give_zero" in names for names in broken)
    page = " ".join(PAGE.split())
    assert f"Of the {len(STORED)} rows of the table, {len(broken)} break a law" in page
    assert f"break a law, and {empty} of these the one about" in page


def test_the_page_on_the_zoo_says_what_two_public_suites_caught():
    store = BOOK / "_data" / "public_suites.json"
    stored = json.loads(store.read_text(encoding="utf-8"))
    judge, cs336 = (set(stored[suite]) for suite in ("torch-judge", "cs336"))
    wrong = {member.name for member in zoo.WRONG}
    missed = wrong - judge - cs336
    assert judge | cs336 <= wrong and stored["asked about"] <= len(wrong)
    page = " ".join((BOOK / "api_laws.md").read_text(encoding="utf-8").split())
    assert f"catch {len(judge)} of the {stored['asked about']} members" in page
    assert f"catch {len(cs336)}. Together they catch {len(judge | cs336)}." in page
    assert {"padding_hides_queries", "minus_1e9_mask", "no_max_subtraction"} <= missed


def test_each_member_of_the_zoo_breaks_a_law_that_stands_beside_it():
    page = (BOOK / "api_laws.md").read_text(encoding="utf-8")
    broken = json.loads(zoo_laws.STORE.read_text(encoding="utf-8"))
    placed = []
    for line in re.findall(r"^\| (?:\*\*|none of).*", page, re.M):
        members, names = (re.findall(r"`(\w+)`", cell) for cell in line.split("|")[2:4])
        assert NAMES.issuperset(names)
        assert [one for one in members if not {*names} & {*broken[one]}] == []
        placed += members
    assert sorted(placed) == sorted(member.name for member in zoo.WRONG)


# The page


def printed(blocks, names=None):
    """Return what these blocks print, one after another."""
    names = {"__name__": "mine"} if names is None else names
    with contextlib.redirect_stdout(io.StringIO()) as text:
        for block in blocks:
            exec(block, names)
    return text.getvalue()


def test_the_first_reports_on_the_page_are_what_comes():
    """But for the number of laws that hold, which a new law changes."""
    text = re.sub(r"\d+ hold", "hold", printed(PYTHON[:3]))
    first, second, *_ = re.findall(r"^```text\n(M.*?)```", PAGE, re.S | re.M)
    for shown in first, second:
        assert re.sub(r"\d+ hold", "hold", shown) in text


def test_every_adapter_on_the_page_is_that_of_the_script():
    assert len(INCLUDED) == PAGE.count("literalinclude")
    assert all(callable(getattr(layers, name)) for name in INCLUDED)


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


def test_every_broken_law_has_its_explanation_on_the_page():
    for row in STORED:
        for law in row["broken"]:
            anchor = catalogue.reason(row, law).partition("(#")[2].rstrip(")")
            assert f"({anchor})=\n**" in PAGE
