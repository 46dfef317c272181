"""`.ci/refresh` keeps the notebooks in one form, and a typo costs one line."""

import difflib
import json
import re
import shutil
import subprocess

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from tests.book import house
from tests.book.load import ROOT, load

STORED = sorted(house.BOOK.glob("[0-9]*.ipynb"))
GOOD = "04_masks.ipynb"


@pytest.fixture
def refresh(tmp_path, monkeypatch):
    """Return the script, set on an empty book; it may not start a kernel."""
    module = load(ROOT / ".ci" / "refresh", "refresh")
    monkeypatch.setattr(module, "BOOK", tmp_path)
    monkeypatch.setattr(module, "SECONDS", tmp_path / "seconds.json")
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


def nameless():
    return nbformat.from_dict({**new_markdown_cell("Look."), "id": ""})


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
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell["id"] for cell in notebook["cells"]]


def run(module, *arguments):
    """Run the script and return what it hands to the shell."""
    try:
        module.main(list(arguments))
    except SystemExit as end:
        return end.code
    return 0


# ------------------------------------------------------------------------ ids


def test_valid_ids_are_kept_when_the_text_changes(refresh):
    path = store(refresh, cells())
    edited(path, lambda n: n["cells"][0].update(source="# Another title"))
    run(refresh, "--form")
    assert ids(path) == ["title", "sum", "0fe1a2b3c4d5"]


def test_a_typo_is_a_diff_of_one_line_and_stays_in_form(refresh):
    path = store(refresh, cells())
    before = path.read_text(encoding="utf-8")
    path.write_bytes(before.replace("sayz", "says").encode())
    assert run(refresh, "--check") == 0
    run(refresh, "--form")
    after = path.read_text(encoding="utf-8")
    diff = difflib.unified_diff(before.split("\n"), after.split("\n"), n=0)
    assert list(diff)[3:] == ['-    "A mask sayz it."', '+    "A mask says it."']


@pytest.mark.parametrize("bad", [None, "", "not valid", "é", "a" * 65, 3])
def test_a_missing_or_invalid_id_is_replaced_and_only_that_one(refresh, bad):
    path = store(refresh, cells())
    edited(path, lambda n: n["cells"][1].update(id=bad))
    if bad is None:
        edited(path, lambda n: n["cells"][1].pop("id"))
    assert "--form 04_masks" in run(refresh, "--check")
    run(refresh, "--form")
    first, new, last = ids(path)
    assert (first, last) == ("title", "0fe1a2b3c4d5")
    assert new.startswith("masks-") and len(new) == len("masks-") + 4
    assert run(refresh, "--check") == 0


def test_of_two_equal_ids_the_first_stays(refresh):
    path = store(refresh, cells())
    edited(path, lambda n: n["cells"][2].update(id="title"))
    assert run(refresh, "--check") != 0
    run(refresh, "--form")
    first, second, new = ids(path)
    assert (first, second) == ("title", "sum")
    assert new not in ("title", "sum")


def test_new_ids_are_the_same_on_every_run_and_differ_for_equal_cells(refresh):
    found = [ids(store(refresh, [nameless(), nameless()])) for _ in range(2)]
    assert found[0] == found[1]
    assert len(set(found[0])) == 2


def test_a_new_id_avoids_one_that_a_later_cell_holds(refresh):
    (taken,) = ids(store(refresh, [nameless()]))
    path = store(refresh, [nameless(), new_markdown_cell("Later.", id=taken)])
    assert ids(path)[1] == taken != ids(path)[0]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_ids_are_valid_and_unique(path):
    found = ids(path)
    assert len(found) == len(set(found))
    assert all(map(house.refresh().VALID_ID.fullmatch, found))


# ------------------------------------------------------------- form and check


@pytest.mark.parametrize(
    "change",
    [
        lambda n: n["metadata"].update(authors=["me"]),
        lambda n: n["cells"][1].update(execution_count=7),
        lambda n: n["cells"][1]["metadata"].update(collapsed=True),
        lambda n: n["cells"][0].update(source="\n# Who may look?\n\n"),
        lambda n: n.update(nbformat_minor=4),
    ],
)
def test_form_mends_what_check_refuses_and_runs_nothing(refresh, capsys, change):
    path = store(refresh, cells())
    edited(path, change)
    assert "04_masks" in run(refresh, "--check")
    assert "04_masks.ipynb, line " in capsys.readouterr().out
    assert run(refresh, "--form") == 0
    assert run(refresh, "--check") == 0


@pytest.mark.parametrize("end", ["", "\n\n", "\r\n"])
def test_a_file_ends_with_one_line_break(refresh, end):
    path = store(refresh, cells())
    text = path.read_bytes().decode()
    path.write_bytes((text.rstrip("\n") + end).encode())
    assert run(refresh, "--check") != 0
    run(refresh, "--form")
    assert path.read_bytes().decode() == text


def test_check_is_quiet_about_a_good_chapter_and_names_the_bad_one(refresh, capsys):
    store(refresh, cells())
    assert run(refresh, "--check") == 0
    assert capsys.readouterr().out == ""
    bad = store(refresh, cells(), "05_attention.ipynb")
    edited(bad, lambda n: n["metadata"].update(authors=["me"]))
    before = bad.read_bytes()
    said = run(refresh, "--check")
    assert "05_attention" in said and "04_masks" not in said
    assert bad.read_bytes() == before


def test_form_touches_only_the_chapters_that_are_named(refresh):
    paths = [store(refresh, cells(), name) for name in (GOOD, "05_attention.ipynb")]
    for path in paths:
        edited(path, lambda n: n["metadata"].update(authors=["me"]))
    run(refresh, "--form", "attention")
    assert "04_masks" in run(refresh, "--check")
    assert run(refresh, "--check", "05_attention") == 0


@pytest.mark.parametrize("name", ["04_masks", "masks", "book/04_masks.ipynb"])
def test_a_chapter_is_found_by_its_name_with_or_without_number(refresh, name):
    path = store(refresh, cells())
    store(refresh, cells(), "09_multi_masks.ipynb")
    assert refresh.chosen(name) == path


@pytest.mark.parametrize("name", ["mask", "05_masks", "04_"])
def test_a_chapter_that_does_not_exist_is_refused(refresh, name):
    store(refresh, cells())
    assert "no notebook" in run(refresh, "--check", name)


# --------------------------------------------------------------- stale outputs


def test_code_that_changed_under_the_same_output_is_named(refresh, capsys, monkeypatch):
    path = store(refresh, cells())
    committed = refresh.read(path)
    monkeypatch.setattr(refresh, "committed", lambda path: committed)
    edited(path, lambda n: n["cells"][1].update(source=["print(1 + 2)"]))
    assert run(refresh, "--check") == 0
    said = capsys.readouterr().out
    assert "    sum: print(1 + 2)\n" in said
    assert "run .ci/refresh 04_masks" in said


def test_code_that_was_run_since_it_changed_is_not_named(refresh, capsys, monkeypatch):
    path = store(refresh, cells())
    committed = refresh.read(path)
    monkeypatch.setattr(refresh, "committed", lambda path: committed)
    new = {"source": ["print(1 + 2)"], "outputs": [printed(["3\n"])]}
    edited(path, lambda n: n["cells"][1].update(new))
    run(refresh, "--check")
    assert capsys.readouterr().out == ""


def test_a_cell_that_was_never_run_is_named_before_it_gets_a_count(refresh, capsys):
    path = store(refresh, cells())
    edited(path, lambda n: n["cells"][1].update(execution_count=None))
    run(refresh, "--form")
    assert "    sum: print(1 + 1)\n" in capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_the_last_commit_is_asked(refresh):
    path = store(refresh, cells())
    assert refresh.committed(path) is None
    settings = ("user.name=me", "user.email=me@example.org", "commit.gpgsign=false")
    git = ["git", "-C", str(refresh.BOOK)]
    git += [word for setting in settings for word in ("-c", setting)]
    for command in (["init", "-q"], ["add", GOOD], ["commit", "-qm", "A mask"]):
        subprocess.run([*git, *command], check=True)
    stored = path.read_text(encoding="utf-8")
    path.unlink()
    assert nbformat.v4.writes(refresh.committed(path)) + "\n" == stored


# ------------------------------------------------------------------- execution


def test_without_an_option_a_chapter_is_run_and_its_outputs_stored(refresh):
    refresh.execute = house.refresh().execute  # a real kernel, in the folder of house
    path = store(refresh, [new_code_cell("print(6 * 7)", id="product")])
    assert run(refresh, "masks") == 0
    (cell,) = refresh.read(path).cells
    assert (cell.id, cell.outputs) == ("product", [printed("42\n")])
    assert not refresh.SECONDS.exists()


def test_seconds_are_stored_on_request_only(refresh, monkeypatch):
    monkeypatch.setattr(refresh, "execute", lambda notebook, folder: None)
    clock = iter([0.0, 9.0, 9.0, 18.0])
    monkeypatch.setattr(refresh, "cpu_seconds", lambda: next(clock))
    store(refresh, cells())
    run(refresh)
    assert not refresh.SECONDS.exists()
    run(refresh, "--seconds")
    assert json.loads(refresh.SECONDS.read_text()) == {"04_masks": 10}


@pytest.mark.parametrize(("spent", "stored"), [(6.0, 5), (4.0, 5), (15.0, 15), (1, 2)])
def test_seconds_near_what_is_stored_leave_it(refresh, spent, stored):
    refresh.SECONDS.write_text('{"04_masks": 5}')
    refresh.note_seconds("04_masks", spent, refresh.SECONDS)
    assert json.loads(refresh.SECONDS.read_text()) == {"04_masks": stored}


# ---------------------------------------------------------------- numbers and folds


def chapter_of(*texts):
    cells = [nbformat.v4.new_markdown_cell(text) for text in texts]
    return nbformat.v4.new_notebook(cells=cells)


def equation(name, number):
    return f'<a id="eq-{name}"></a>\n\n$$\nx = {name} \\tag{{{number}}}\n$$'


def test_equations_and_figures_are_numbered_in_their_order(refresh):
    first, second = equation("a", "9.9"), equation("b", "4.1")
    figure = '<a id="fig-c"></a>\n\n**Figure 2.7.** A caption.'
    notebook = chapter_of(f"{first}\n\nand\n\n{second}", figure)
    text = refresh.in_form(notebook, "04_masks")
    assert re.findall(r"tag\{(\S+?)\}", text) == ["4.1", "4.2"]
    assert "**Figure 4.1.** A caption." in text


def test_links_get_the_number_of_what_they_lead_to(refresh):
    (refresh.BOOK / "02_softmax.ipynb").write_text(
        nbformat.writes(chapter_of(equation("far", "2.1")))
    )
    links = "[equation (7.7)](#eq-a), [(1.1)](02_softmax.ipynb#eq-far)"
    text = refresh.in_form(chapter_of(equation("a", "1.1"), links), "04_masks")
    assert "[equation (4.1)](#eq-a), [(2.1)](02_softmax.ipynb#eq-far)" in text


def test_links_to_chapters_get_their_numbers(refresh):
    links = "[Chapter 3](04_masks.ipynb), [chapter 3](../16_long.ipynb#fig-x-y-no)"
    text = refresh.in_form(chapter_of(links.partition("#")[0] + ")"), "05_attention")
    assert "[Chapter 4](04_masks.ipynb), [chapter 16](../16_long.ipynb)" in text


def test_links_to_a_solution_lead_to_the_cell_with_the_address(refresh):
    link = "[Solution](solutions/04_masks.ipynb#%sexercise-4-1)"
    for written in (link % "", link % "cell-id="):
        text = refresh.in_form(chapter_of(written), "04_masks")
        assert link % "cell-id=" in text
    solution = chapter_of('<a id="exercise-4-1"></a>\n\n## Exercise 4.1: Predict')
    solution.cells[0].id = "another"
    assert '"id": "exercise-4-1"' in refresh.in_form(solution, "04_masks")


def test_a_link_to_an_unknown_equation_is_refused(refresh):
    with pytest.raises(SystemExit, match="04_masks: a link to eq-nowhere"):
        refresh.in_form(chapter_of("[(1.1)](#eq-nowhere)"), "04_masks")


@pytest.mark.parametrize(
    ("tag", "folded"), [("hide-input", "source_hidden"), ("predict", "outputs_hidden")]
)
def test_what_a_tag_folds_on_a_page_jupyterlab_folds_too(refresh, tag, folded):
    cell = nbformat.v4.new_code_cell("1", metadata={"tags": [tag], "more": 1})
    notebook = nbformat.v4.new_notebook(cells=[cell])
    stored = nbformat.reads(refresh.in_form(notebook, "04_masks"), 4).cells[0]
    assert stored.metadata == {"tags": [tag], "jupyter": {folded: True}}
