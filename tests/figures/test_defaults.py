"""Defaults are part of the interface: a changed one fails, by name or by picture."""

import inspect

import numpy as np
import pytest

import figures

pytest.importorskip("matplotlib")

from mha import plot, view

NAMED = {"rows": None, "cols": None}
MAP = {"kind": "weights", "mask": None, "unit": None, "xlabel": "key"}
DEFAULTS = {
    plot.Picture: {},
    figures.bars: {"ylabel": "weight"},
    figures.batch: {"in_front": False},
    figures.blocks: {"axes": ("batch", "token", "feature")},
    figures.board: {},
    figures.clocks: {},
    plot.heatmap: {**NAMED, **MAP, "ylabel": "query"},
    plot.heatmaps: {**NAMED, **MAP, "ylabel": "query"},
    figures.histogram: {"bins": 40},
    figures.lines: {"xscale": "linear", "yscale": "linear", "reference": None},
    figures.marks: {
        **NAMED, "xlabel": "", "ylabel": "", "names": ("yes", "no"), "sort": False,
    },
    figures.moves: {"names": ("before", "after")},
    figures.paths: {"names": ("X", "Y")},
    figures.points: {"names": None},
    figures.vectors: {"roles": None, "angles": (), "hull": ()},
    figures.walks: {},
    view.View: {},
    view.attention: {"keys": None, "names": None, "first": 0, "layer": 1, "head": 1},
    figures.collapse: {},
    figures.dragons: {"names": ("left dragon", "right dragon", "sheep")},
    figures.bugs: {},
    figures.detected: {},
    figures.exceptions: {},
    figures.turns: {},
    figures.exam: {"margin": 0, "digits": 3, "lower_is_better": False},
    figures.fused: {},
    figures.heads: {"n_heads": 2},
    figures.house: {"lit": "overview", "layout": "wide", "is_causal": False},
    figures.kills: {},
    figures.lanes: {},
    figures.learned: {},
    figures.many_heads: {},
    figures.masks: {"keys": None},
    figures.one_head: {},
    figures.projections: {},
    figures.offsets: {"width": 16},
    figures.online: {"block": 2},
    figures.plane: {"asks": "query", "axes": None},
    figures.scale: {},
    figures.scores: {},
    figures.shadows: {},
    figures.sheet: {},
    figures.softmax: {},
    figures.steps: {"is_causal": False},
    figures.to_weights: {},
}  # fmt: skip


def name_of(function):
    return f"{function.__module__.partition('.')[2]}.{function.__name__}"


def defaults_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


@pytest.mark.parametrize("function", DEFAULTS, ids=name_of)
def test_the_defaults_are_the_ones_written_here(function):
    assert defaults_of(function) == DEFAULTS[function]
    for name, default in defaults_of(function).items():
        assert type(default) is type(DEFAULTS[function][name])  # 0 is not False


def test_no_public_callable_is_forgotten():
    public = {
        getattr(part, name) for part in (plot, view, figures) for name in part.__all__
    }
    assert public == set(DEFAULTS)


TABLE = np.array([[False, True], [True, True]])
E2 = np.eye(2)
SAYS = {"alt": "One sentence."}
WRITTEN_OUT = {
    "bars": (
        lambda **o: figures.bars([0.2, 0.8], ["a", "b"], **SAYS, **o),
        {"ylabel": "weight"},
    ),
    "heatmap": (
        lambda **o: plot.heatmap(E2, **SAYS, **o),
        {"kind": "weights", "mask": E2 < 2, "xlabel": "key", "ylabel": "query"},
    ),
    "marks": (
        lambda **o: figures.marks(TABLE, **SAYS, **o),
        {"rows": [0, 1], "cols": [0, 1], "names": ("yes", "no"), "sort": False},
    ),
    "attention": (
        lambda **o: view.attention(E2, ["a", "b"], **SAYS, **o),
        {"keys": ["a", "b"], "first": 0, "layer": 1, "head": 1},
    ),
    "heads": (
        lambda **o: figures.heads(np.ones((2, 4)), ["a", "b"], **SAYS, **o),
        {"n_heads": 2},
    ),
    "online": (
        lambda **o: figures.online([1, 2, 3, 4], [0, 1, 0, 1], "abcd", **SAYS, **o),
        {"block": 2},
    ),
    "steps": (
        lambda **o: figures.steps(*[E2] * 5, 1, tokens=["a", "b"], **SAYS, **o),
        {"is_causal": False},
    ),
}


@pytest.mark.parametrize(
    ("show", "options"), WRITTEN_OUT.values(), ids=WRITTEN_OUT.keys()
)
def test_leaving_the_defaults_out_shows_the_same(show, options):
    left_out, written_out = show(), show(**options)
    if isinstance(left_out, plot.Picture):
        assert left_out.svg == written_out.svg
    else:
        assert left_out.data == written_out.data


def test_a_table_is_sorted_on_request_only():
    assert (
        figures.marks(TABLE, **SAYS).svg != figures.marks(TABLE, **SAYS, sort=True).svg
    )
