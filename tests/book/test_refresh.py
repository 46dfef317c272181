"""`.ci/refresh` keeps the notebooks in one form, and a typo costs one line."""

import difflib
import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from tests.book.load import ROOT, load

GOOD = "04_masks.ipynb"


@pytest.fixture
def refresh(tmp_path, monkeypatch):
    """Return the script, set on an empty book; it may not start a kernel."""
    module = load(ROOT / ".ci" / "refresh", "refresh")
    monkeypatch.setattr(module, "BOOK", tmp_path)
    monkeypatch.setattr(module, "execute", refuse)
    return module


def refuse(notebook, folder):
    raise AssertionError("a cell was run")


def cells():
    return [
        new_markdown_cell("# Who may look?\n\nA mask sayz it.", id="title"),
        new_code_cell("print(1 + 1)", id="sum", outputs=[printed("2\n")]),
        new_markdown_cell("That is two.", id="0fe1a2b3c4d5"),
    ]


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def store(module, cells, name=GOOD):
    """Write a notebook in form, and return its path."""
    path = module.BOOK / name
    notebook = nbformat.from_dict({"cells": cells})  # unlike new_notebook, no new ids
    module.write(path, module.in_form(notebook, path.stem))
    return path


def edited(path, change):
    """Write back what `change` makes of the JSON, as an editor would."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change(notebook)
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")


def ids(path):
    return [cell["id"] for cell in json.loads(path.read_text("utf-8"))["cells"]]


def test_a_typo_is_a_diff_of_one_line_and_stays_in_form(refresh):
    path = store(refresh, cells())
    before = path.read_text(encoding="utf-8")
    path.write_bytes(before.replace("sayz", "says").encode())
    assert refresh.check(path)
    refresh.main(["--form"])
    after = path.read_text(encoding="utf-8")
    diff = difflib.unified_diff(before.split("\n"), after.split("\n"), n=0)
    assert list(diff)[3:] == ['-    "A mask sayz it."', '+    "A mask says it."']
    assert ids(path) == ["title", "sum", "0fe1a2b3c4d5"]


@pytest.mark.parametrize("bad", [None, "not valid", "é", "a" * 65, "title"])
def test_a_missing_invalid_or_taken_id_is_replaced_and_only_that_one(refresh, bad):
    path = store(refresh, cells())
    edited(path, lambda n: n["cells"][1].update(id=bad))
    if bad is None:
        edited(path, lambda n: n["cells"][1].pop("id"))
    assert not refresh.check(path)
    refresh.main(["--form"])
    first, new, last = ids(path)
    assert (first, last) == ("title", "0fe1a2b3c4d5")
    assert re.fullmatch("masks-[0-9a-f]{4}", new)
    assert refresh.check(path)


def chapter_of(*texts):
    return nbformat.v4.new_notebook(cells=[new_markdown_cell(text) for text in texts])


def equation(name, number):
    return f'<a id="eq-{name}"></a>\n\n$$\nx = {name} \\tag{{{number}}}\n$$'


def test_equations_figures_and_links_get_their_numbers(refresh):
    far = nbformat.writes(chapter_of(equation("far", "2.1")))
    (refresh.BOOK / "02_softmax.ipynb").write_text(far)
    figure = '<a id="fig-c"></a>\n\n**Figure 2.7.** A caption.'
    links = "[equation (7.7)](#eq-b), [(1.1)](02_softmax.ipynb#eq-far)"
    links += ", [Chapter 3](17_long.ipynb), [1](solutions/04_masks.ipynb#exercise-4-1)"
    one, two = equation("a", "9.9"), equation("b", "4.1")
    text = refresh.in_form(chapter_of(f"{one}\n\n{two}", figure, links), "04_masks")
    assert re.findall(r"tag\{(\S+?)\}", text) == ["4.1", "4.2"]
    assert "**Figure 4.1.** A caption." in text
    assert "[equation (4.2)](#eq-b), [(2.1)](02_softmax.ipynb#eq-far)" in text
    assert "[Chapter 17](17_long.ipynb)" in text
    assert "solutions/04_masks.ipynb#cell-id=exercise-4-1" in text
    with pytest.raises(SystemExit, match="04_masks: a link to eq-nowhere"):
        refresh.in_form(chapter_of("[(1.1)](#eq-nowhere)"), "04_masks")
