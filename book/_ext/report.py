"""What `mha.laws` and the exercises print, set as a page shows it.

A notebook stores the text of a report, which reads the same in a terminal, in
JupyterLab and on GitHub. A page shows the same words: the law, why it should hold, what
was expected beside what came with the differing numbers marked, and the inputs as small
matrices. What is no such report, or cannot be read to the last line, stays as printed.
"""

import re
from html import escape
from itertools import chain, groupby

MARK = re.compile(r"^[✓✗] ", re.MULTILINE)
VERDICT = re.compile(
    r"(passed|not yet|not attempted yet): (.+(?:\n {3}\b.+)*)(?:\n((?s:.+)))?"
)
ITEM = re.compile(r"^\S.*(?:\n .*)*", re.MULTILINE)  # with the indented lines below
TITLE = re.compile(r"(\S+): (\d+ [a-z ]+(?:, \d+ [a-z ]+)*)")
ROW = re.compile(r"    (\S+(?: \S+)*)  +")
BRACKETS = re.compile(r"\[([^\[\]]*)\]")
STACK = re.compile(r"#(\n#)*|\[#(,\s+#)*\]")  # with each pair of brackets as #
ZEROS = re.compile(r"zeros of shape \((\d+), (\d+)\), but (.+)", re.DOTALL)
PLACE = re.compile(r"(\S+) at \[(\d+), (\d+)\]")
ROLES = {"Q": "query", "K": "key", "V": "value"}
RESULTS, NOTES = ("expected", "got", "off by"), ("where", "layer", "shapes", "seed")
SIGNS = {"passed": "✓", "not yet": "✗", "not attempted yet": "○"}
FOLDED = {
    "✓ held": "Show the laws that held",
    "– not asked": "Show the laws that were not asked, and why",
    "~ broken as declared": "Show the laws that are broken as declared",
}


def html(text):
    """Return a printed report as HTML without empty lines, or None if it is none."""
    text = text.strip("\n")
    if found := VERDICT.fullmatch(text):
        return f'<div class="report">{verdict(*found.groups())}</div>'
    items = ITEM.findall(text)
    if not MARK.search(text) or re.sub(r"\n+", "\n", text) != "\n".join(items):
        return None
    try:
        return f'<div class="report">{"".join(map(item, items))}</div>'
    except ValueError:
        return None


def verdict(status, first, more):
    """Return what an exercise says; what follows its first line keeps its lines."""
    more = f"<pre>{escape(more)}</pre>" if more else ""
    return f"<p>{mark(SIGNS[status])}<b>{status}</b>: {escape(first)}</p>{more}"


def mark(sign):
    """Return the sign before a line."""
    return f'<span class="mark{" wrong" * (sign == "✗")}">{sign}</span> '


def item(text):
    """Return one line of a report with what is indented below it."""
    head, *lines = text.split("\n")
    name, _, reason = head.partition(", ")
    if name in FOLDED:
        texts = filter(None, [reason, *grouped(lines)])
        said = "".join(f"<p>{escape(text)}</p>" for text in texts)
        return f"<details><summary>{FOLDED[name]}</summary>{said}</details>"
    if MARK.match(head):
        return finding(head[0], head[2:], rows(lines))
    if found := TITLE.fullmatch(head):
        counts = found[2].replace(", ", "</span> <span>")
        return f'<p class="subject"><b>{found[1]}</b> <span>{counts}</span></p>'
    if head in ("tried", "hint") or head.startswith("behaves like "):
        return f"<p><b>{escape(head)}</b> {escape(' '.join(grouped(lines)))}</p>"
    return f"<pre>{escape(text)}</pre>"


def grouped(lines):
    """Return the texts of lines that stand equally far to the right."""
    groups = groupby(lines, key=lambda line: len(line) - len(line.lstrip()))
    return [" ".join(map(str.strip, group)) for _, group in groups]


def rows(lines):
    """Return ``{name: text}`` of lines with names on the left."""
    found, column = {}, len(ROW.match(lines[0])[0]) if lines else 0
    for line in lines:
        left, text = line[:column], line[column:]
        if ROW.fullmatch(left):
            found[name := left.strip()] = text
        elif found and not left.strip():
            found[name] += "\n" + text
        else:
            raise ValueError(f"no row of a report: {line!r}")
    return found


# ---------------------------------------------------------------- one law


def finding(sign, name, said):
    """Return what a report says of one law: the reason, the results, the inputs."""
    head = f'<p class="name">{mark(sign)}{escape(name[0].upper() + name[1:])}</p>'
    if not said:
        return head
    if reason := said.pop("because", ""):
        reason = f'<p class="because">because {escape(reason)}</p>'
    law = escape(said.pop("law"))
    notes = "".join(part(x, said.pop(x), "") for x in NOTES if x in said)
    results = {x: said.pop(x) for x in RESULTS if x in said}
    other = {"expected": results.get("got", ""), "got": results.get("expected", "")}
    seen = "".join(part(x, text, other.get(x, "")) for x, text in results.items())
    given = "".join(part(x, text, "") for x, text in said.items())
    return (
        f'{head}{reason}<div class="parts seen">{seen}</div><div class="parts">{given}'
        f'</div><p class="notes">{notes}<code>{law}</code></p>'
    )


def part(name, text, other):
    """Return a name with its matrix or its words."""
    letter, _, low = name.partition("_")
    role = ROLES.get(low if letter == "W" else name)
    style = f' style="color: var(--mha-{role})"' if role else ""
    shown = f"{letter}<sub>{low}</sub>" if low else name
    return f'<span class="part"><b{style}>{shown}</b>&nbsp;{value(text, other)}</span>'


def value(text, other):
    """Return a text, or the matrix that it shows, perhaps after some words."""
    words, line, rest = text.partition("\n[")
    if line and words[0] != "[" and (found := matrix(line[1:] + rest)):
        return f"{escape(words)} {table(found, found)}"
    if not (found := matrix(text)):
        return f"<span>{escape(text)}</span>"
    other = matrix(other) or found
    alike = len(other) == len(found) and len(other[0]) == len(found[0])
    return table(found, other if alike else found)


def matrix(text):
    """Return the rows of a printed array, or None for words and single numbers."""
    if found := ZEROS.fullmatch(text):
        filled = [["0"] * int(found[2]) for _ in range(int(found[1]))]
        for number, i, k in PLACE.findall(found[3]):
            filled[int(i)][int(k)] = number
        return filled
    found = [row.split(", ") for row in BRACKETS.findall(text)]
    whole = STACK.fullmatch(BRACKETS.sub("#", text))
    return found if whole and len(set(map(len, found))) == 1 else None


def table(found, other):
    """Return a matrix, in which zeros recede and what differs is marked.

    The columns are counted in digits, so that the other matrix has the same ones.
    """
    columns = zip(*found, *other, strict=True)
    wide = [max(len(x) - x.count(".") / 2 for x in column) for column in columns]
    style = f"--ch: {sum(wide) + len(wide)}; grid-template-columns: "
    style += " ".join(f"{width:g}ch" for width in wide)
    label = ", ".join(f"[{', '.join(row)}]" for row in found)
    pairs = zip(chain(*found), chain(*other), strict=True)
    cells = "".join(f"<i{look(*pair)}>{signs(pair[0])}</i>" for pair in pairs)
    head = f'<span class="matrix" role="img" aria-label="[{label}]" style="{style}">'
    return f"{head}{cells}</span>"


def look(text, other):
    """Return the class of an entry, if it has one."""
    kind = "differs" if text != other else "zero" if text in ("0", "False") else ""
    return kind and f' class="{kind}"'


def signs(text):
    """Return a number as a page shows it."""
    return text.replace("-", "−").replace("inf", "∞")
