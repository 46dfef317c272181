"""The table of chapters: the package names chapters by slug, and one table counts."""

import pytest
import yaml

from mha._chapters import CHAPTERS, chapter_number
from tests.book.house import BOOK, ROOT


def test_a_chapter_has_the_number_of_its_place_in_the_table():
    assert chapter_number("overview") == 0
    assert chapter_number("dot_product") == 1
    assert chapter_number("masks") == 4


def test_the_table_names_the_files_of_the_book_in_order():
    files = sorted(path.stem for path in BOOK.glob("[0-9]*.ipynb"))
    assert files == [f"{chapter_number(slug):02}_{slug}" for slug in CHAPTERS]


def test_the_contents_list_the_chapters_in_the_order_of_the_table():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [
        chapter["file"] for part in contents["parts"] for chapter in part["chapters"]
    ]
    numbered = [file[8:] for file in files if file[5:7].isdigit()]
    assert numbered == list(CHAPTERS)


def test_an_unknown_slug_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no chapter is called 'mask'; there are over"):
        chapter_number("mask")
