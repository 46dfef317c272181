#!/usr/bin/env python3
"""Grade a folder of submitted notebooks with the checks of the book.

book/grade.py submissions/                    every notebook in the folder
book/grade.py submissions/ --chapter masks    only one chapter was set
book/grade.py submissions/ --csv marks.csv    write the results for a spreadsheet too
book/grade.py submissions/ --json             print them as JSON instead

A student is a folder inside `submissions`, or a file in it. Of each notebook only the
cells that the student wrote are run, each notebook in a process of its own, and the
checks are those of this copy of the book. Answers that do not end are stopped.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

from grading import report
from grading.notebooks import chapters
from grading.run import grade, student_of


def main(arguments=None):
    """Grade, and print the table."""
    options = parsed(arguments)
    folder = options.folder
    if not folder.is_dir():
        sys.exit(f"there is no folder {folder}")
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not hidden(path.relative_to(folder))
    ]
    if not files:
        sys.exit(f"{folder} holds no files")
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [
            pool.submit(
                grade, path, student_of(path, folder), options.chapter,
                options.seconds, options.gigabytes,
            )
            for path in files
        ]  # fmt: skip
        results = [result for run in runs for result in run.result()]
    if options.csv:
        report.write_csv(results, options.csv)
    sys.stdout.reconfigure(errors="replace")  # names, on a terminal without Unicode
    print(report.as_json(results) if options.json else report.table(results))


def hidden(path):
    """Return whether a file is a program's own, such as a checkpoint."""
    return any(part.startswith((".", "__")) for part in path.parts)


def called(name):
    """Return the chapter that is called masks, 04_masks or 4."""
    for each in chapters():
        if name in (each.slug, each.path.stem, str(each.number)):
            return each
    known = ", ".join(each.slug for each in chapters())
    raise argparse.ArgumentTypeError(f"no chapter {name!r}; there are {known}")


def parsed(arguments):
    """Return the options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the submissions")
    parser.add_argument("--chapter", type=called, help="masks, 04_masks or 4")
    parser.add_argument(
        "--seconds", type=float, default=30, help="for one answer, by default 30"
    )
    parser.add_argument(
        "--gigabytes", type=float, default=4, help="of memory on Linux, by default 4"
    )
    parser.add_argument(
        "--jobs", type=int, default=min(4, cpu_count() or 1), help="how many at once"
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a table too")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
