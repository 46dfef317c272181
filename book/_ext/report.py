"""What `mha.laws` and `mha.check` print, set as a page shows it.

A notebook stores the text of a report, which reads the same in a terminal, in
JupyterLab and on GitHub. A page shows the same words: the law, why it should hold, what
was expected beside what came with the differing numbers marked, and the inputs as small
matrices. What is no such report, or cannot be read to the last line, stays as printed.
"""

import re
from html import escape
from itertools import groupby

MARK = re.compile(r"^[✓✗] ", re.MULTILINE)
VERDICT = re.compile(r"(passed|not yet|not attempted yet): (.+)", re.DOTALL)
# A line at the margin, and the indented lines below it.
ITEM = re.compile(r"^\S.*(?:\n .*)*", re.MULTILINE)
TITLE = re.compile(r"(\S+): (\d+ [a-z ]+(?:, \d+ [a-z ]+)*)")
ROW = re.compile(r"    (\S+(?: \S+)*)  +")
BRACKETS = re.compile(r"\[([^\[\]]*)\]")
STACK = re.compile(r"#(\n#)*|\[#(,\s+#)*\]")  # with each pair of brackets as #
ZEROS = re.compile(r"zeros of shape \((\d+), (\d+)\), but (.+)", re.DOTALL)
PLACE = re.compile(r"(\S+) at \[(\d+), (\d+)\]")
ROLES = {"Q": "query", "K": "key", "V": "value"}
NOTES = ("where", "off by", "layer", "seed")
LISTS = {
    "✓ held": "Show what held: {}",
    "– not asked": "Show what was not asked, and why: {}",
    "~ broken as declared": "Show what is broken as declared: {}",
}
VERDICTS = {"passed": "✓", "not yet": "✗", "not attempted yet": "○"}


def html(text):
    """Return a printed report as HTML without empty lines, or None if it is none."""
    text = text.strip("\n")
    if found := VERDICT.fullmatch(text):
        return verdict(*found.groups())
    if not MARK.search(text):
        return None
    items = ITEM.findall(text)
    if "".join(items).replace("\n", "") != text.replace("\n", ""):
        return None  # something stands before the first line at the margin
    try:
        return f'<div class="report">{"".join(map(item, items))}</div>'
    except ValueError:
        return None


def verdict(status, text):
    """Return what an exercise says; what follows its first line keeps its lines."""
    first, *rest = text.split("\n", 1)
    more = "".join(f"<pre>{escape(lines)}</pre>" for lines in rest)
    said = f"<b>{status}</b>: {escape(first)}"
    return f'<div class="report"><p>{mark(VERDICTS[status])}{said}</p>{more}</div>'


def mark(sign):
    """Return the sign before a line."""
    return f'<span class="mark{" wrong" * (sign == "✗")}">{sign}</span> '


def item(text):
    """Return one line of a report with what is indented below it."""
    head, *lines = text.split("\n")
    if MARK.match(head) and head not in LISTS:
        return finding(head[0], head[2:], rows(lines))
    if found := TITLE.fullmatch(head):
        subject, counts = found.groups()
        counts = "".join(f" <span>{each}</span>" for each in counts.split(", "))
        return f'<p class="subject"><code>{escape(subject)}</code>{counts}</p>'
    for start, summary in LISTS.items():
        if head.startswith(start):
            said = head.removeprefix(start).removeprefix(", ")
            texts = [said] * bool(said) + grouped(lines)
            many = sum(len(text.split(", ")) for text in texts if is_list(text))
            inside = "".join(map(paragraph, texts))
            summary = summary.format(many)
            return f"<details><summary>{summary}</summary>{inside}</details>"
    if head == "tried" or head.startswith("behaves like "):
        return f"<p><b>{escape(head)}</b> {escape(' '.join(grouped(lines)))}</p>"
    return f"<pre>{escape(text)}</pre>"


def grouped(lines):
    """Return the texts of lines that stand equally far to the right."""
    groups = groupby(lines, key=lambda line: len(line) - len(line.lstrip()))
    return [" ".join(map(str.strip, group)) for _, group in groups]


def is_list(text):
    """Return whether a text is a list of names."""
    return all(map(str.isidentifier, text.split(", ")))


def paragraph(text):
    """Return a sentence, or names of laws as code."""
    kind = ' class="names"' if is_list(text) else ""
    return f"<p{kind}>{escape(text)}</p>"


def rows(lines):
    """Return ``{name: text}`` of lines with names on the left."""
    found, column = {}, len(ROW.match(lines[0])[0]) if lines else 0
    for line in lines:
        left, text = line[:column], line[column:]
        if left.strip() and ROW.fullmatch(left):
            found[name := left.strip()] = text
        elif found and not left.strip():
            found[name] += "\n" + text
        else:
            raise ValueError(f"no row of a report: {line!r}")
    return found


# ---------------------------------------------------------------- one law


def finding(sign, name, said):
    """Return what a report says of one law."""
    name = name[0].upper() + name[1:]
    head = f'<p class="name">{mark(sign)}{escape(name)}</p>'
    if not said:
        return head
    reason = said.pop("because", "")
    law = "".join(f"<code>{escape(x)}</code> " for x in said.pop("law").split(", "))
    notes = {note: said.pop(note) for note in NOTES if note in said}
    results = {key: said.pop(key) for key in ("expected", "got") if key in said}
    other = dict(zip(results, reversed(results.values()), strict=True))
    seen = "".join(part(key, x, other[key]) for key, x in results.items())
    given = "".join(part(key, x) for key, x in said.items())
    where = "".join(part(key, x) for key, x in notes.items())
    reason = f'<p class="because">because {escape(reason)}</p>' if reason else ""
    return (
        f'{head}{reason}<div class="parts seen">{seen}</div>'
        f'<div class="parts">{given}</div>'
        f'<div class="parts notes">{where}{law}</div>'
    )


def part(name, text, other=""):
    """Return a name with its matrix or its words."""
    role = ROLES.get(name.removeprefix("W_"), "")
    letter, _, low = name.partition("_")
    shown = f"{letter}<sub>{low}</sub>" if low else letter
    style = f' style="color: var(--mha-{role})"' if role else ""
    return f'<span class="part"><b{style}>{shown}</b> {value(text, other)}</span>'


def value(text, other):
    """Return the matrix that a text shows, after words if it begins with some."""
    lead, line, rest = text.partition("\n[")
    if line and not text.startswith("[") and (found := matrix("[" + rest)):
        return f"<span>{escape(lead)}</span> {table(found, None)}"
    found = matrix(text)
    if not found:
        return f"<span>{escape(text)}</span>"
    return table(found, matrix(other))


def matrix(text):
    """Return the rows of a printed array, or None for words and single numbers."""
    if found := ZEROS.fullmatch(text):
        return sparse(int(found[1]), int(found[2]), found[3])
    if not STACK.fullmatch(BRACKETS.sub("#", text)):
        return None
    found = [row.split(", ") for row in BRACKETS.findall(text)]
    return found if len({len(row) for row in found}) == 1 else None


def sparse(height, width, places):
    """Return the rows of an array of which few entries are not 0."""
    found = [["0"] * width for _ in range(height)]
    for number, i, k in PLACE.findall(places):
        found[int(i)][int(k)] = number
    return found


def table(found, other):
    """Return a matrix, with what differs from the other one marked.

    The two have columns of the same width, which is the reason for counting them.
    """
    alike = other and [len(other), len(other[0])] == [len(found), len(found[0])]
    other = other if alike else found
    pairs = zip(sum(found, []), sum(other, []), strict=True)
    wide = [max(map(len, column)) for column in zip(*found, *other, strict=True)]
    label = ", ".join(f"[{', '.join(row)}]" for row in found)
    style = f"--ch: {sum(wide) + len(wide)}; grid-template-columns: "
    style += " ".join(f"{width}ch" for width in wide)
    return (
        f'<span class="matrix" role="img" aria-label="[{label}]" style="{style}">'
        f"{''.join(cell(*pair) for pair in pairs)}</span>"
    )


def cell(text, other):
    """Return an entry: a zero recedes, and what differs is marked."""
    kind = "differs" if text != other else "zero" if text in ("0", "False") else ""
    text = text.replace("-", "−").replace("inf", "∞")
    return f'<i class="{kind}">{text}</i>' if kind else f"<i>{text}</i>"
