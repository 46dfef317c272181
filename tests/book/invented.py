"""A class of ten invented learners, each of whom submits chapter 4 in another way."""

import nbformat

from tests.book.load import ROOT

CHAPTER = ROOT / "book" / "04_masks.ipynb"
RIGHT = {
    "4.1": "answer_4_1 = [2 / 9, 6 / 9, 1 / 9, 0]",
    "4.2": "def last_rows_mask(n_q, n_k):\n"
    "    return np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q",
    "4.3": "def batch_mask(lengths):\n"
    "    n = max(lengths)\n"
    "    real = np.arange(n) >= n - np.reshape(lengths, (-1, 1, 1, 1))\n"
    "    return np.tri(n, dtype=bool) & real",
    "4.4": "def safe_masked_softmax(S, mask):\n"
    "    S = np.where(mask, S, -np.inf)\n"
    "    e = np.exp(S - np.maximum(S.max(-1, keepdims=True), -1e300))\n"
    "    total = e.sum(-1, keepdims=True)\n"
    "    return e / np.where(total == 0, 1, total)",
    "4.5": "def denominator_law(attend):\n"
    "    Q, K, V = np.random.default_rng(0).normal(size=(3, 5, 2))\n"
    "    ones = attend(Q, K, np.ones_like(V), mask=causal_mask(5))\n"
    "    return np.allclose(ones, 1, atol=1e-5)",
}
FIRST_ROWS = "def last_rows_mask(n_q, n_k):\n    return causal_mask(n_k)[:n_q]"
ENDLESS = "def batch_mask(lengths):\n    while True:\n        pass"
CRASH = "import os\n\nos._exit(1)"
BORROWED = "def safe_masked_softmax(S, mask):\n    return mha.masked_softmax(S, mask)"
PERCENT = "answer_4_1 = [22, 67, 11, 0]"
EXACT = (
    "def denominator_law(attend):\n"
    "    Q, K, V = np.random.default_rng(0).normal(size=(3, 40, 2))\n"
    "    ones = attend(Q, K, np.ones_like(V) / 10, mask=causal_mask(40))\n"
    "    return (ones == 0.1).all()"
)


def notebook(answers):
    """Return chapter 4 with these answers in place of the stubs."""
    found = nbformat.read(CHAPTER, as_version=4)
    stubs = [c for c in found.cells if "exercise" in c.metadata.get("tags", ())]
    for number, source in answers.items():
        stubs[int(number[2:]) - 1].source = source
    return found


def edit_checks(found):
    """Make every check print what its author would like to read."""
    for cell in found.cells:
        if "exercise-check" in cell.metadata.get("tags", ()):
            name = cell.source.rpartition("(")[2].rstrip(")")
            cell.source = f"{name}\nprint('passed')"
    return found


def without_ids(found):
    """Drop the tags and the ids, as some programs do."""
    for cell in found.cells:
        cell.metadata, cell.id = {}, nbformat.v4.new_code_cell().id
    return found


def with_helper(found):
    """Move a part of an answer to a cell of its own, below the answer."""
    at = next(k for k, c in enumerate(found.cells) if c.source == HELPED)
    found.cells.insert(at + 1, nbformat.v4.new_code_cell(HELPER))
    return found


HELPED = "def last_rows_mask(n_q, n_k):\n    return my_triangle(n_q, n_k)"
HELPER = (
    "def my_triangle(n_q, n_k):\n    return np.tri(n_q, n_k, n_k - n_q, dtype=bool)"
)


def submit(folder):
    """Write what the ten submit."""
    wrong = {"4.1": PERCENT, "4.2": FIRST_ROWS, "4.5": EXACT}
    half = {"4.1": RIGHT["4.1"], "4.2": HELPED}
    loop = RIGHT | {"4.3": ENDLESS}
    crash = RIGHT | {"4.2": CRASH, "4.5": "def denominator_law(attend)\n    ..."}
    lazy = edit_checks(notebook({"4.1": PERCENT}))
    files = {
        "01_all_right/04_masks.ipynb": notebook(RIGHT),
        "02_untouched/04_masks.ipynb": notebook({}),
        "03_endless_loop/04_masks.ipynb": notebook(loop),
        "04_crashes/04_masks.ipynb": notebook(crash),
        "05_known_slips/04_masks.ipynb": notebook(wrong),
        "06_edited_checks/04_masks.ipynb": lazy,
        "07_uses_mha/04_masks.ipynb": notebook(RIGHT | {"4.4": BORROWED}),
        "08_other_name/homework final (2).ipynb": without_ids(notebook(RIGHT)),
        "10_half_done/04_masks.ipynb": with_helper(notebook(half)),
    }
    for name, found in files.items():
        path = folder / name
        path.parent.mkdir(parents=True)
        nbformat.write(found, path)
    (folder / "09_no_notebook").mkdir()
    (folder / "09_no_notebook" / "04_masks.ipynb").write_text("See my e-mail.")
