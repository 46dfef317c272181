"""The table of chapters is that of the files and of the contents."""

import pytest
import yaml

from chapters import CHAPTERS, chapter_number
from tests.book.house import BOOK, ROOT


def test_the_table_names_the_files_of_the_book_and_the_contents_in_order():
    files = sorted(path.stem for path in BOOK.glob("[0-9]*.ipynb"))
    assert files == [f"{chapter_number(slug):02}_{slug}" for slug in CHAPTERS]
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [each["file"] for part in contents["parts"] for each in part["chapters"]]
    assert [file[5:] for file in listed if file[5:7].isdigit()] == files


def test_an_unknown_slug_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no chapter is called 'mask'; there are over"):
        chapter_number("mask")
