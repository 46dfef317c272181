"""The chapters are numbered from 0: in titles, contents, figures and equations."""

import re

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("sphinx_multitoc_numbering")
pytest.importorskip("myst_parser")

from sphinx.application import Sphinx

from tests.book.load import ROOT, extension

EXTENSIONS = ["myst_parser", "sphinx_multitoc_numbering", "from_zero"]
SETTINGS = {
    "extensions": EXTENSIONS,
    "numfig": True,
    "math_numfig": True,
    "numfig_format": {"figure": "Figure %s"},
    "myst_enable_extensions": ["dollarmath"],
}
CHAPTER = """# Chapter {0}

```{{figure}} dot.svg
:name: fig-{0}

A dot.
```

See {{numref}}`fig-{0}` and {{eq}}`eq-{0}`, and {{doc}}`front`.

```{{math}}
:label: eq-{0}
x
```
"""
FRONT = """# Front

```{toctree}
:numbered: 1

zero
```

```{toctree}
:numbered: 1
:caption: Part one

one
two
```

```{toctree}
:caption: Reference

back
```
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a small book that is built as ours is."""
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    for name in ("zero", "one", "two", "back"):
        (tmp_path / f"{name}.md").write_text(CHAPTER.format(name), encoding="utf-8")
    (tmp_path / "front.md").write_text(FRONT, encoding="utf-8")
    (tmp_path / "dot.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "conf.py").write_text("")
    return tmp_path


def built(folder):
    out = folder / "_build"
    settings = SETTINGS | {"root_doc": "front"}
    app = Sphinx(
        folder,
        folder,
        out,
        out / "trees",
        "html",
        settings,
        None,
        None,
        keep_going=True,
    )
    app.build()
    pages = ("front", "zero", "one", "two", "back")
    return app.env, {p: (out / f"{p}.html").read_text(encoding="utf-8") for p in pages}


def numbers_of(page):
    """Return what a page calls its title, figure and equation; links say the same."""
    title = re.search(r'<h1>(?:<span class="section-number">(.*?)</span>)?', page)[1]
    figure = re.search(r'caption-number">(.*?)<', page)[1].strip()
    equation = re.search(r'class="eqno">\((.*?)\)', page)[1]
    link = re.search(r'<span class="std std-numref">(.*?)</span>', page)[1]
    assert link == figure and f"({equation})</a>" in page
    return (title or "").strip(), figure, equation


def test_the_first_chapter_has_the_number_zero_everywhere(folder):
    _, pages = built(folder)
    for number, name in enumerate(("zero", "one", "two")):
        wanted = f"{number}.", f"Figure {number}.1", f"{number}.1"
        assert numbers_of(pages[name]) == wanted
        assert f"{number}. Chapter {name}" in pages["front"]
    assert "Chapter zero" in pages["one"]


def test_a_page_without_a_number_gets_none(folder):
    _, pages = built(folder)
    assert numbers_of(pages["back"]) == ("", "Figure 1", "1")


def test_a_second_build_leaves_the_numbers_as_they_are(folder):
    _, before = built(folder)
    with (folder / "one.md").open("a", encoding="utf-8") as file:
        file.write("\nOne more line.\n")
    env, after = built(folder)
    assert "One more line." in after["one"]
    assert env.toc_secnumbers["zero"][""] == (0,)
    for name in ("zero", "one", "two"):
        assert numbers_of(after[name]) == numbers_of(before[name])


def test_a_number_that_is_none_stays_none():
    moved = extension("from_zero").moved
    assert [moved(x, -1) for x in ((3, 2), (1,), None, ())] == [(2, 2), (0,), None, ()]
