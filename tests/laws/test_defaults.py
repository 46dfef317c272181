"""Defaults of the laws and the checks are part of the API."""

import inspect

import pytest

from mha import check, laws, zoo

WORDS = """
mask_true mask_shape layout n_kv_heads scale causal tolerance dtype device
""".split()
DEFAULTS = {
    laws.Adapter: dict(
        kind="layer", batch_first=None, biases=False, name="", positional=False,
        **dict.fromkeys(WORDS),
    ),
    laws.Conventions: dict(positional=False) | dict.fromkeys(WORDS),
    laws.Failure: dict(where=""),
    laws.Law: dict(
        equation="", chapter="laws", reason="", level="attention", sees_all=False,
        orderless=False,
    ),
    laws.Law.check: dict(seed=0),
    laws.Law.search: dict(seed=0),
    laws.assert_lawful: dict(except_=(), seed=0, breaks=(), because=""),
    laws.check: dict(only=None, seed=0, breaks=(), because=""),
    laws.encoder_weights: dict(n_layers=1),
    laws.kill_matrix: dict(laws=None, members=None),
    check.Exercise: dict(
        praise="", names=(), observe=None, forbidden=(), also_right=()
    ),
    check.Mistake: {},
    check.Verdict: dict(mistake=None),
}  # fmt: skip


@pytest.mark.parametrize("what", DEFAULTS, ids=lambda what: what.__qualname__)
def test_every_default_is_what_the_table_says(what):
    parameters = inspect.signature(what).parameters.values()
    got = {p.name: p.default for p in parameters if p.default is not p.empty}
    assert got == DEFAULTS[what]
    # True == 1 and 0 == False, which a signature must not hide.
    expected = {name: type(x) for name, x in DEFAULTS[what].items()}
    assert {name: type(x) for name, x in got.items()} == expected


def test_a_report_with_the_default_seed_is_that_of_seed_zero():
    report = laws.check(zoo.no_scale.attention)
    assert repr(report) == repr(laws.check(zoo.no_scale.attention, seed=0))
    assert {finding.law for finding in report.findings} == set(laws.ALL)
