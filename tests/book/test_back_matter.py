"""The back matter: short answers, each with a way to the cell that shows it."""

import doctest
import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from mha import multi_head_attention
from tests.book.load import extension

BOOK = Path(__file__).parents[2] / "book"
LINK = re.compile(r"\]\((\d\d_\w+)\.ipynb(?:#[^)]*)?\)")
SECTION = re.compile(r"\]\((\d\d_\w+)\.ipynb(?:#([^)]*))?\)")
HEADING = re.compile(r"(#+) (.*)")
ROLE = re.compile(r"\{(?:eq|numref)\}`((?:eq|fig)-[\w-]+)`")
NUMBER = re.compile(
    r"(?<![\w.#-])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?(?!\w)"
)
KINDS = "plain", "markdown"


def read(name):
    return (BOOK / name).read_text(encoding="utf-8")


def questions():
    """Return the pairs (question, answer) of the interview."""
    parts = re.split(r"^### (.*)$", read("interview.md"), flags=re.MULTILINE)[1:]
    answers = [
        re.split(r"^## ", answer, flags=re.MULTILINE)[0] for answer in parts[1::2]
    ]
    return list(zip(parts[::2], answers, strict=True))


def entries():
    """Return the pairs (what people write, what is true) of the errata."""
    found = re.findall(
        r"^(\S.*)\n: ((?:.+\n?(?:  .*\n)*)+)", read("misstatements.md"), re.M
    )
    return [(claim, truth) for claim, truth in found]


@functools.cache
def sections(name):
    """Return what a reader of each section sees, with its subsections, by anchor.

    That is prose, code and text outputs; under "" it is the whole chapter.
    """
    texts, stack = {"": ""}, [(0, "")]
    for cell in json.loads(read(f"{name}.ipynb"))["cells"]:
        for part in parts_of(cell):
            if cell["cell_type"] == "markdown" and (heading := HEADING.match(part)):
                level = len(heading[1])
                anchor = re.sub(r"[^\w -]", "", heading[2].lower()).replace(" ", "-")
                stack = [*(pair for pair in stack if pair[0] < level), (level, anchor)]
            for _, anchor in stack:
                texts[anchor] = texts.get(anchor, "") + part + "\n"
    return texts


def parts_of(cell):
    """Return the text of a cell, cut at its headings, with what it printed."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return re.split(r"^(?=#+ )", source, flags=re.M)
    texts = [source]
    for output in cell["outputs"]:
        data = output.get("data", {})
        texts += ["".join(data.get(f"text/{kind}", [])) for kind in KINDS]
        texts.append("".join(output.get("text", [])))
    return ["\n".join(texts)]


@functools.cache
def home_of(label):
    """Return the chapter that holds the equation or figure."""
    here = re.compile(rf'<a id=\\"{label}\\">')
    found = [
        p.stem for p in BOOK.glob("[0-9]*.ipynb") if here.search(p.read_text("utf-8"))
    ]
    return found[0]


def linked(text):
    """Return the sections behind the links, figures and equations of a text."""
    behind = [sections(name)[anchor] for name, anchor in SECTION.findall(text)]
    for label in ROLE.findall(text):
        holding = (s for s in sections(home_of(label)).values() if f'"{label}"' in s)
        behind.append(min(holding, key=len))
    return "\n".join(behind)


def chapters_of(text):
    """Return the chapters to which a text leads, by links, figures or equations."""
    return {*LINK.findall(text), *map(home_of, ROLE.findall(text))}


def visible(text):
    """Return the text without the addresses behind its links."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"\b(chapter|section|version) [\d.]+", r"\1", text)
    return re.sub(r"\{\w+\}`[^`]*`|`[^`]*`", "name", text)


def uncovered(text):
    """Return the numbers of a text that none of the sections behind its links holds."""
    known = set(NUMBER.findall(plain(linked(text))))
    without_math = re.sub(r"\$[^$]*\$", " ", visible(text))
    return {n for n in NUMBER.findall(plain(without_math)) if telling(n)} - known


def plain(text):
    return text.replace("−", "-").replace("{,}", ",")


def telling(number):
    """Say whether a number is a result, and no small count such as 3 or a year."""
    digits = number.lstrip("-")
    if digits.isdecimal():
        return int(digits) >= 10 and not 1900 <= int(digits) < 2100
    return True


def test_every_answer_leads_to_a_chapter():
    found = questions() + entries()
    assert len(found) > 50 and all(
        question.endswith("?") for question, _ in questions()
    )
    assert [where for where, text in found if not chapters_of(text)] == []


def test_every_result_is_in_a_section_that_is_linked():
    found = {where: uncovered(where + "\n" + text) for where, text in questions()}
    found |= {where: uncovered(where + "\n" + text) for where, text in entries()}
    assert {where: numbers for where, numbers in found.items() if numbers} == {}


@pytest.mark.parametrize("n_kv_heads", [4, 2])
def test_the_cheat_sheet_writes_attention_in_pytorch(n_kv_heads):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    widths = {"W_Q": 12, "W_K": 3 * n_kv_heads, "W_V": 3 * n_kv_heads, "W_O": 12}
    layers = {name: torch.nn.Linear(12, n).double() for name, n in widths.items()}
    X = torch.randn(2, 5, 12).double()
    here = layers | {"F": torch.nn.functional, "X": X, "d_k": 3}
    exec(re.search(r"```python\n(.*?)```", read("cheatsheet.md"), re.S)[1], here)
    weights = {}
    for name, layer in layers.items():
        for key, x in (("W", layer.weight), ("b", layer.bias)):
            x = x.detach().numpy().T
            if name in ("W_K", "W_V"):
                x = x.reshape(*x.shape[:-1], n_kv_heads, 3)
                x = np.repeat(x, 4 // n_kv_heads, axis=-2)
                x = x.reshape(*x.shape[:-2], 12)
            weights[key + name[1:]] = x
    Y = multi_head_attention(X.numpy(), n_heads=4, is_causal=True, **weights)
    np.testing.assert_allclose(here["Y"].detach().numpy(), Y)


def test_the_solutions_list_every_exercise():
    pytest.importorskip("sphinx")
    catalogue = extension("catalogue")
    listed = " ".join(cell for row in catalogue.exercise_rows() for cell in row)
    tasks = [re.findall(r"### Exercise (\d+\.\d+):", read(p.name))
             for p in BOOK.glob("[0-9]*.ipynb")]  # fmt: skip
    numbers = [number for chapter in tasks for number in chapter]
    assert len(numbers) > 50
    assert [
        n for n in numbers if f"(#exercise-{n.replace('.', '-')})" not in listed
    ] == []


def test_the_examples_of_the_prerequisites_print_what_the_page_says():
    blocks = re.findall(r"```pycon\n(.*?)```", read("prerequisites.md"), re.S)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    example = parser.get_doctest("\n".join(blocks), {"np": np}, "examples", "", 0)
    assert len(example.examples) > 10
    runner.run(example)
    assert runner.failures == 0
