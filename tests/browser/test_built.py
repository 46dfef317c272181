"""The pages under test are those of the tree as it is, whoever built them."""

import os
import textwrap
from pathlib import Path

import pytest

from tests.book.load import ROOT, extension
from tests.browser import built, chromium
from tests.browser.skips import JUPYTERLAB
from tests.conftest import PAGE

stamp = extension("stamp")


@pytest.fixture
def tree(tmp_path):
    """Return a small tree with the files that decide what pages show."""
    for name in ("_config.yml", "_toc.yml", "requirements.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    for name in ("book/01_a.ipynb", "book/_ext/slim.py", "mha/masks.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as it was\n")
    return tmp_path


def pages(root, output=None, environ=os.environ):
    """Leave pages with a stamp, as a build of the tree does."""
    html = (output or root) / "_build" / "html"
    html.mkdir(parents=True, exist_ok=True)
    (html / stamp.STAMP).write_text(stamp.stamp(root, environ))
    return html


# The stamp

CHANGES = {
    "a chapter": "book/01_a.ipynb",
    "an extension": "book/_ext/slim.py",
    "a docstring": "mha/masks.py",
    "a setting": "_config.yml",
    "the order": "_toc.yml",
}


@pytest.mark.parametrize("name", CHANGES.values(), ids=CHANGES)
def test_pages_are_stale_once_a_source_has_changed(tree, name):
    html = pages(tree)
    assert stamp.is_current(html, tree)
    (tree / name).write_text("as it is\n")
    assert not stamp.is_current(html, tree)


def test_pages_are_stale_once_a_source_came_went_or_moved(tree):
    html = pages(tree)
    chapter, other = tree / "book/01_a.ipynb", tree / "book/02_a.ipynb"
    other.write_text("new\n")
    assert not stamp.is_current(html, tree)
    other.unlink()
    assert stamp.is_current(html, tree)
    chapter.rename(other)
    assert not stamp.is_current(html, tree)


def test_pages_for_an_address_are_not_those_for_none(tree):
    html = pages(tree, environ={"BOOK_ADDRESS": "https://somebody.example/"})
    assert not stamp.is_current(html, tree)


def test_caches_and_checkpoints_are_no_sources(tree):
    html = pages(tree)
    for name in ("mha/__pycache__/a.pyc", "book/.ipynb_checkpoints/01_a.ipynb"):
        (tree / name).parent.mkdir()
        (tree / name).write_text("a copy\n")
    assert stamp.is_current(html, tree)


def test_only_a_change_that_pages_share_makes_all_of_them_outdated(tree):
    class Build:
        old_stamp = stamp.stamp(tree)
        found_docs = frozenset(["book/02_b", "book/01_a"])

    def outdated():
        Build.stamp = stamp.stamp(tree)
        return stamp.outdated(Build, Build, (), (), ())

    (tree / "book/01_a.ipynb").write_text("as it is\n")
    assert outdated() == []
    (tree / "mha/masks.py").write_text("as it is\n")
    assert outdated() == ["book/01_a", "book/02_b"]


def test_a_build_that_fails_or_warns_leaves_no_stamp(tmp_path):
    class App:
        outdir, stamp, _warncount = tmp_path, "as it is", 1

        class builder:
            name = "html"

    (tmp_path / stamp.STAMP).write_text("as it was")
    stamp.take(App)
    stamp.leave(App, None)
    App._warncount = 0
    stamp.leave(App, RuntimeError("no"))
    assert not (tmp_path / stamp.STAMP).exists()
    stamp.leave(App, None)
    assert (tmp_path / stamp.STAMP).read_text() == App.stamp


# Found or built


def test_pages_that_are_current_are_taken_as_they_are(tree):
    html = pages(tree)
    assert built.current_pages(tree, build=None) == html


def test_stale_pages_are_left_alone_and_built_beside_once(tree):
    html, builds = pages(tree), []

    def build(root, output):
        builds.append(output)
        pages(root, output)

    (tree / "book/01_a.ipynb").write_text("as it is\n")
    found = [built.current_pages(tree, build) for _ in range(3)]
    assert builds == [tree / "_build" / "tests"]
    assert set(found) == {tree / "_build" / "tests" / "_build" / "html"}
    assert not stamp.is_current(html, tree)


SMALL = {
    "_toc.yml": "format: jb-book\nroot: book/a\n",
    "_config.yml": """
        title: Small
        only_build_toc_files: true
        sphinx: {local_extensions: {stamp: book/_ext}}
        """,
    "book/a.md": "# A page\n",
    "requirements.txt": "",
}


@pytest.fixture
def small(tmp_path):
    """Return the smallest book that can be built."""
    pytest.importorskip("jupyter_book")
    for name, text in SMALL.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    code = (ROOT / "book" / "_ext" / "stamp.py").read_text("utf-8")
    (tmp_path / "book" / "_ext").mkdir()
    (tmp_path / "book" / "_ext" / "stamp.py").write_text(code, encoding="utf-8")
    return tmp_path


def test_a_book_is_built_and_after_a_change_for_the_worse_says_what_is_wrong(small):
    html = built.current_pages(small)
    assert "A page" in (html / "book" / "a.html").read_text("utf-8")
    assert stamp.is_current(html, small)
    (small / "book/a.md").write_text("# Another page\n\n[gone](gone.md)\n")
    with pytest.raises(RuntimeError, match=r"cannot be built[\s\S]*gone\.md"):
        built.current_pages(small)
    assert not stamp.is_current(html, small)  # so that the next to ask fails as well


def test_all_tests_of_one_page_run_in_one_process():
    tests = (
        "a[book/02_softmax]",
        "b[dark-390-book/02_softmax]",
        "c[light-1200-search]",
    )
    found = [
        PAGE.fullmatch(f"tests/browser/test_pages.py::test_{test}") for test in tests
    ]
    assert [each[1] for each in found] == ["book/02_softmax"] * 2 + ["search"]
    assert not PAGE.fullmatch("tests/browser/test_links.py::test_a[book/02_softmax]")


# No skip without a reason

SKIPS = """
    import pytest

    def test_skips():
        pytest.skip("not today")
"""
MODULE = "import pytest; pytest.importorskip('no_such_package')"
HOOKS = "from tests.browser.skips import *"


@pytest.mark.parametrize(
    ("test", "why"), [(SKIPS, "not today"), (MODULE, "no_such")], ids=["test", "module"]
)
def test_a_skip_is_a_failure_where_chromium_is(pytester, monkeypatch, test, why):
    monkeypatch.setattr(chromium, "find", lambda: "/usr/bin/chromium")
    pytester.makeconftest(HOOKS)
    pytester.makepyfile(test)
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    assert run.ret != 0
    run.stdout.fnmatch_lines(f"*Chromium is here, yet this was skipped: *{why}*")


@pytest.mark.parametrize("test", [SKIPS, MODULE], ids=["test", "module"])
def test_without_chromium_the_tests_skip(pytester, monkeypatch, test):
    monkeypatch.setattr(chromium, "find", lambda: None)
    pytester.makeconftest(HOOKS)
    pytester.makepyfile(test)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(skipped=1)


def test_jupyterlab_may_be_missing_where_chromium_is(pytester, monkeypatch):
    monkeypatch.setattr(chromium, "find", lambda: "/usr/bin/chromium")
    pytester.makeconftest(HOOKS)
    pytester.makepyfile(f"{MODULE[:-1]}, reason={JUPYTERLAB!r})")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(skipped=1)


def test_the_browser_is_found_under_each_of_its_names(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    usual = [name for name in chromium.NAMES if not Path(name).is_absolute()]
    assert chromium.find(usual) is None
    suffix = ".exe" if os.name == "nt" else ""
    for name in reversed(usual):
        (tmp_path / f"{name}{suffix}").touch(mode=0o755)
        assert Path(chromium.find(usual)).stem == name
