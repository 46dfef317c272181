"""Sphinx extension: what a reader sees first of a chapter.

Above and below the title stand the place of the chapter in its part, what it promises,
what it takes, how to run it, the parts of a layer with today's lit, its law with what
breaks it, and what one needs. Everything is computed: the place from the table of
contents, the law from the package, run against a wrong version while the book is built.

A notebook only has to begin with a title, a paragraph that promises, and if it needs
something a paragraph in its first cell that starts with "You need". One that needs no
other chapter says "School mathematics is enough here."
"""

import re
import sys
from functools import cache
from html import escape
from pathlib import Path
from types import MappingProxyType

import numpy as np
import yaml
from docutils import nodes

from mha import laws, zoo

sys.path.append(str(Path(__file__).parents[1]))  # the book's own figures and data
from _data.designs import exceptions
from figures.strip import strip
from figures.thumbs import thumb

CHAPTER = re.compile(r"book/(\d\d)_(\w+)")
NUMERALS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")
NEED = "You need "
NO_NEED = "School mathematics is enough here."
HEAD = re.compile(r'<h1>.*?</h1>\s*(?P<promise><p class="promise">.*?</p>)?', re.DOTALL)
NEEDS = re.compile(r'\s*<p class="need">.*?</p>', re.DOTALL)


def slug(page):
    """Return the slug of a chapter's page, or None for another page."""
    found = CHAPTER.fullmatch(page)
    return found and found[2]


# Where the chapter stands


def parts(toc):
    """Return ``[(caption, pages)]`` of the parts that hold chapters."""
    found = []
    for part in toc.get("parts", ()):
        pages = [each["file"] for each in part["chapters"] if slug(each["file"])]
        if pages and "caption" in part:  # the overview stands before all parts
            found.append((part["caption"], pages))
    return found


def place(page, all_parts):
    """Return the part of a chapter, and a square for each of the part's chapters.

    A chapter that stands before all parts has its number instead.
    """
    for numeral, (caption, pages) in zip(NUMERALS, all_parts, strict=False):
        if page in pages:
            here = pages.index(page) + 1
            squares = '<i class="on"></i>' * here + "<i></i>" * (len(pages) - here)
            return (
                f'<p class="place"><b>Part {numeral}</b> '
                f"<span>{escape(caption)}</span> "
                f'<span class="squares" aria-hidden="true">{squares}</span> '
                f'<span><span class="visually-hidden">chapter </span>'
                f"{here} of {len(pages)}</span></p>"
            )
    return f'<p class="place"><b>Chapter {int(CHAPTER.fullmatch(page)[1])}</b></p>'


# What one needs


def is_need(node):
    """Return whether a paragraph says what one needs."""
    text = node[0] if isinstance(node, nodes.paragraph) and len(node) else None
    return isinstance(text, nodes.Text) and text.startswith(NEED)


def pieces(paragraph):
    """Return the first sentence of "You need …" in pieces, and what comes after it.

    Commas and "and" separate two pieces, but not inside brackets, and each piece has a
    link: what has none belongs to the one before it. So "scores (chapter 1), which you
    have seen, and masks (chapter 4)" has two pieces.
    """
    found, depth, rest = [[]], 0, None
    for node in in_one_line(paragraph):
        if rest is not None or not isinstance(node, nodes.Text):
            (found[-1] if rest is None else rest).append(node)
            continue
        for part in re.split(r"(\.\s|\.$|,?\s+and,?\s|,\s|[()])", node):
            depth += {"(": 1, ")": -1}.get(part, 0)
            if rest is not None:
                rest.append(nodes.Text(part))
            elif depth == 0 and re.fullmatch(r"\.\s?", part):
                rest = []
            elif depth == 0 and re.fullmatch(r",?\s+and,?\s|,\s", part):
                found.append([nodes.Text(part)])
            elif part:
                found[-1].append(nodes.Text(part))
    return together(found), rest or []


def in_one_line(paragraph):
    """Return what follows "You need", with one text for all lines between two links."""
    found = []
    for node in paragraph.children:
        if not isinstance(node, nodes.Text):
            found.append(node.deepcopy())
        elif found and isinstance(found[-1], nodes.Text):
            found[-1] = nodes.Text(found[-1] + node)
        else:
            found.append(nodes.Text(node))
    found[0] = nodes.Text(found[0].removeprefix(NEED))
    return found


def together(found):
    """Return the pieces as chips, each with a link if there is one.

    A relative clause belongs to what it follows, and so does what stands at the end.
    Another piece without a link belongs to the next one, as in "heads and W_O (8)".
    """
    chips, waiting = [], []
    for at, piece in enumerate(found):
        text = "".join(node.astext() for node in piece)
        is_clause = re.match(r"\W*(which|who|whose|where)\b", text)
        if chips and not has_link(piece) and (is_clause or not any_link(found[at:])):
            chips[-1] += piece
        elif has_link(piece) or not any_link(found[at:]):
            chips.append(waiting + piece)
            waiting = []
        else:
            waiting = waiting + piece
    # a comma or an "and" in front separates two chips, and is part of neither
    return [chip[1:] if count else chip for count, chip in enumerate(chips)]


def any_link(pieces):
    """Return whether one of these pieces has a link."""
    return any(map(has_link, pieces))


def has_link(piece):
    """Return whether one of these nodes is a link, or holds one."""
    return any(any(node.findall(nodes.reference)) for node in piece)


def chips(paragraph):
    """Make chips of the pieces of "You need …", in the paragraph itself."""
    needed, rest = pieces(paragraph)
    paragraph.clear()
    paragraph += nodes.inline("", NEED, classes=["head"])
    for count, piece in enumerate(needed):
        if count:
            paragraph += nodes.inline("", ", ", classes=["visually-hidden"])
        chip = nodes.inline("", "", classes=["chip"])
        chip += piece
        paragraph += chip
    if "".join(node.astext() for node in rest).strip():
        after = nodes.inline("", "", classes=["after"])
        after += rest
        paragraph += [nodes.Text(" "), after]
    paragraph["classes"].append("need")


def mark(app, tree, page):
    """Mark the paragraph that promises, and the one that says what one needs."""
    title = tree.next_node(nodes.title)
    if not slug(page) or title is None:
        return
    after = title.parent.children[title.parent.index(title) + 1 :]
    for count, node in enumerate(after):
        if not isinstance(node, nodes.paragraph):
            break
        if is_need(node):
            chips(node)
        elif node.astext() == NO_NEED:
            node["classes"].append("need")
        elif count == 0:
            node["classes"].append("promise")


# The law


# Where a chapter has several laws, the first one is shown, unless one is named here.
SHOWN = {"concat_is_a_sum"}
# The chapter on designs that break a law on purpose.
DESIGNS = "since_2017"


@cache
def laws_of(chapter):
    """Return the laws of a chapter, in the order of the book."""
    return [law for law in (*laws.ALL, *laws.ENCODER) if law.chapter == chapter]


def broken_by(law):
    """Return a wrong version that breaks a law, of its own chapter if there is one.

    With it comes what the law found, on the smallest input.
    """
    wrong = (*zoo.WRONG, *zoo.ENCODERS[1:])
    for member in sorted(wrong, key=lambda each: each.chapter != law.chapter):
        finding = law.check(member)
        if finding.holds is False:
            return member, finding
    raise LookupError(f"no member of the zoo breaks {law.slug}")


def so_many(number, one):
    """Return a number with its noun, such as two keys."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    word = words[number] if number < len(words) else str(number)
    many = one[:-1] + "ies" if one.endswith("y") and one[-2] not in "aeo" else one + "s"
    return f"{word} {one if number == 1 else many}"


def size(example):
    """Return in words how large the smallest input is, or nothing."""
    if "Q" in example and "K" in example:
        n_q, n_k = example["Q"].shape[-2], example["K"].shape[-2]
        return f"{so_many(n_q, 'query')} and {so_many(n_k, 'key')} are enough: "
    if "X" in example:
        n = example["X"].shape[-2]
        return f"{so_many(n, 'token')} {'is' if n == 1 else 'are'} enough: "
    numbers = {k: v for k, v in example.items() if isinstance(v, int) and k != "seed"}
    sizes = " and ".join(f"{name} = {value}" for name, value in numbers.items())
    return f"At {sizes}: " if sizes else ""


def number(x):
    """Return a number with at most three decimals."""
    text = f"{float(x):.3f}".rstrip("0").rstrip(".")
    return {"-0": "0", "nan": "NaN"}.get(text, text).replace("-", "−")


def seen(finding):
    """Return what a law expected and what it got, where the two differ most."""
    expected, got = finding.expected, finding.got
    if isinstance(expected, str) or isinstance(got, str):
        return f"expected {expected}, got {got}"
    expected, got = np.broadcast_arrays(*map(np.float64, (expected, got)))
    far = np.where(np.isfinite(got), np.abs(expected - got), np.inf)
    at = np.unravel_index(np.argmax(far), far.shape)
    return f"expected {number(expected[at])}, got {number(got[at])}"


@cache
def counterexample(law):
    """Return one line on what breaks a law, with the smallest input that was found."""
    member, finding = broken_by(law)
    found = f"{size(finding.example)}{seen(finding)}."
    return f"{member.wrong} {found[0].upper()}{found[1:]}"


def formula(text):
    """Return plain text as HTML, with the subscripts of d_k, Σ_j and head_{1,2}."""
    low = r"(?<!\w)(\w|LN|head|encoder|min|max)_(?:\{([^}]*)\}|([A-Za-z0-9]+))"
    return re.sub(low, r"\1<sub>\2\3</sub>", escape(text))


def broken_on_purpose(law, others, chapters):
    """Return which later designs break a law, or another of its chapter, or nothing."""
    number, address = chapters.get(DESIGNS, (None, None))
    if not address:
        return ""
    designs, says = exceptions(law.slug), "Broken on purpose by"
    if not designs:
        found = (exceptions(other.slug) for other in others)
        designs = sorted({name for names in found for name in names}, key=str.lower)
        says = "Another law of this chapter is broken on purpose by"
    if not designs:
        return ""
    listed = " and ".join(filter(None, (", ".join(designs[:-1]), designs[-1])))
    link = f'<a href="{escape(address)}#the-law">chapter {number}</a>'
    return f"<p>{says} {escape(listed)} ({link}).</p>"


def card(chapter, anchor, chapters=MappingProxyType({})):
    """Return the law of a chapter, with what breaks it, or nothing."""
    found = laws_of(chapter)
    if not found:
        return ""
    law = next((law for law in found if law.slug in SHOWN), found[0])
    more = len(found) - 1
    more = f"See it break, and {more} more" if more else "See it break"
    says = [
        '<p class="kind">The law of this chapter</p>',
        f'<p class="name">{formula(law.name[0].upper() + law.name[1:])}</p>',
        f'<p class="formula">{formula(law.equation)}</p>' if law.equation else "",
    ]
    breaks = [
        '<p><span class="cross" aria-hidden="true">✗</span> '
        f"{formula(counterexample(law))}</p>",
        f'<p><a href="#{anchor}">{more}</a></p>' if anchor else "",
        broken_on_purpose(law, found, chapters),
    ]
    columns = "".join(f"<div>{''.join(each)}</div>" for each in (says, breaks))
    return f'<div class="law-card">{columns}</div>'


def anchor_of_law(tree):
    """Return the anchor of the section on the law, or None."""
    for section in tree.findall(nodes.section):
        if section[0].astext().startswith("The law") and section["ids"]:
            return section["ids"][0]
    return None


# Its figures


def with_figures(takes, env, page):
    """Return the line on what the chapter takes, with a link to its first figure."""
    found = env.toc_fignumbers.get(page, {}).get("figure", {})
    in_order = sorted(found.items(), key=lambda item: item[1])
    names = [".".join(map(str, number)) for _, number in in_order]
    if not names:
        return takes
    words = f"Figure {names[0]}" if len(names) == 1 else f"{len(names)} figures"
    link = f'<a href="#{in_order[0][0]}">{words}</a> · '
    before, mark, after = takes.partition('<span id="solved-here">')
    return f"{before}{link}{mark}{after}" if mark else takes


# How to run it


def runs(context):
    """Return the buttons: where the page can be launched, and its notebook."""
    found = []
    for group in context.get("header_buttons", ()):
        if group.get("label") == "launch-buttons":
            found += [(each["text"], each["url"]) for each in group["buttons"]]
    found.sort(key=lambda button: button[0] != "Colab")  # the faster of the two
    links = [f'<a href="{escape(url)}">{escape(name)}</a>' for name, url in found]
    source = context.get("sourcename") or ""
    if source.endswith(".ipynb"):
        url = f"{context['pathto']('_sources', 1)}/{source}"
        links.append(f'<a href="{escape(url)}" download>Notebook</a>')
    return f'<p class="runs">{" ".join(links)}</p>' if links else ""


# All of it


def addresses(app, page):
    """Return ``{slug: (number, address)}`` of all chapters, as this page links them."""
    found = {}
    for other in sorted(app.env.found_docs):
        if match := CHAPTER.fullmatch(other):
            address = app.builder.get_relative_uri(page, other)
            found[match[2]] = int(match[1]), address
    return found


@cache
def read_parts(path):
    """Return the parts in a table of contents."""
    return parts(yaml.safe_load(Path(path).read_text(encoding="utf-8")))


def compose(body, **given):
    """Return the body of a page with its opening around the title."""
    head = HEAD.search(body)
    if not head:
        return body
    need = NEEDS.search(body)
    if need:
        body = body[: need.start()] + body[need.end() :]
        head = HEAD.search(body)
    title = head[0].removesuffix(head["promise"] or "").rstrip()
    order = (
        given["place"], title, head["promise"] or "", given["takes"], given["runs"],
        given["thumb"], given["card"], given["strip"], need[0].strip() if need else "",
    )  # fmt: skip
    inside = "\n".join(filter(None, order))
    opening = f'<div class="opening"><div class="parts">\n{inside}\n</div></div>'
    return body[: head.start()] + opening + body[head.end() :]


def show(app, pagename, templatename, context, doctree):
    """Write the opening of a chapter."""
    chapter = slug(pagename)
    if not chapter or not doctree:
        return
    chapters = addresses(app, pagename)
    context["body"] = compose(
        context["body"],
        place=place(pagename, read_parts(str(Path(app.srcdir) / "_toc.yml"))),
        takes=with_figures(context.get("takes", ""), app.env, pagename),
        thumb=thumb(chapter),
        runs=runs(context),
        card=card(chapter, anchor_of_law(doctree), chapters),
        strip=strip(chapter, chapters),
    )


def setup(app):
    """Register with Sphinx."""
    # words.py looks for words at 500, and finds none in what has become chips
    app.connect("doctree-resolved", mark, priority=400)
    # publish.py sends the launch buttons elsewhere at 900
    app.connect("html-page-context", show, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
