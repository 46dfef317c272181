"""Sphinx extension: the search puts first the page that is about the word.

Sphinx's index says which pages hold a word. Here it learns how often, and search.js,
which comes to the page as Sphinx's "scorer", ranks by titles, headings and frequency.
"""

from collections import Counter
from functools import cache
from pathlib import Path

from sphinx.search import WordCollector
from sphinx.search.en import SearchEnglish

SCRIPT = Path(__file__).with_suffix(".js")


def count(app, tree):
    """Note how often a page uses each word, beside the other facts about it."""
    collector = WordCollector(tree, SearchEnglish({}))
    tree.walk(collector)
    words = Counter(word.lower() for word in collector.found_words)
    app.env.metadata[app.env.docname]["words"] = dict(words)


def times(pages, stem):
    """Return ``{stem: [page, times, page, times, ...]}``; once is not mentioned.

    `pages` holds ``{word: times}`` for each page, in the order of the index.
    """
    found = {}
    for number, words in enumerate(pages):
        stems = Counter()
        for word, often in words.items():
            stems[stem(word)] += often
        for word, often in stems.items():
            if often > 1:
                found.setdefault(word, []).extend((number, often))
    return found


def share_stems(app, tree, docname):
    """Let the index stem each word of the book once, not once for each page."""
    indexer = getattr(app.builder, "indexer", None)
    if indexer and not hasattr(indexer.lang.stem, "cache_info"):
        indexer.lang.stem = cache(indexer.lang.stem)


def teach(app):
    """Let the index say how often."""
    indexer = getattr(app.builder, "indexer", None)
    if indexer is None:
        return []
    freeze = indexer.freeze

    def freeze_with_times():
        index = freeze()
        pages = [app.env.metadata[name].get("words", {}) for name in index["docnames"]]
        known = index["terms"].keys() | index["titleterms"].keys()
        found = times(pages, lambda word: indexer.lang.stem(word).lower())
        index["times"] = {word: found[word] for word in found if word in known}
        return index

    indexer.freeze = freeze_with_times
    return []


def rank_by_script(app, config):
    """Name the script that ranks."""
    config.html_search_scorer = str(SCRIPT)


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", rank_by_script)
    app.connect("doctree-read", count)
    app.connect("doctree-resolved", share_stems)
    app.connect("html-collect-pages", teach)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
