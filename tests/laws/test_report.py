"""What the report says, and what `assert_lawful` makes of it in somebody's tests."""

import html.parser
import json

import numpy as np
import pytest
import torch

import mha
from mha import laws, zoo
from tests.laws.reports import broken

ROTARY = ["key_order_is_free", "equals_reference"]


def refuses_rows(Q, K, V, mask=None):
    """A mask of one row is an error here."""
    if mask is not None and len(mask) == 1:
        raise ValueError("one row is too few: " + "really " * 40)
    return mha.scaled_dot_product_attention(Q, K, V, mask)


def never_read(Q, K, V, key_padding_mask=None):
    return mha.scaled_dot_product_attention(Q, K, V)


def at_random(Q, K, V, mask=None, rng=np.random.default_rng(0)):  # noqa: B008
    Y = mha.scaled_dot_product_attention(Q, K, V, mask)
    return Y * (rng.random(Y.shape) < 0.9) / 0.9


class WrongLayer(torch.nn.Module):
    """Divides by the root of the width of all heads together."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for letter in "QKVO":
            setattr(self, f"W_{letter}", torch.nn.Linear(d_model, d_model))

    def forward(self, x, attention_mask=None):
        batch, n, d = x.shape
        cut = (batch, n, self.n_heads, -1)
        three = self.W_Q(x), self.W_K(x), self.W_V(x)
        Q, K, V = (y.view(cut).transpose(1, 2) for y in three)
        Y = zoo.scale_sqrt_d_model.attention(Q, K, V, attention_mask)
        return self.W_O(Y.transpose(1, 2).reshape(batch, n, d))


def run(X, weights, n_heads, padding_mask=None):
    return mha.multi_head_attention(X, n_heads=n_heads, **weights)


SUBJECTS = {
    "right": mha.multi_head_attention,
    "wrong layer": WrongLayer(6, 3),
    "unread mask": laws.Adapter(run, name="my layer"),
    "refuses": refuses_rows,
    "nothing comes back": lambda Q, K, V, mask=None: Q if len(Q) == 2 else None,
    "encoder": zoo.no_residual,
}


@pytest.fixture(scope="module")
def reports():
    return {name: laws.check(subject) for name, subject in SUBJECTS.items()}


def blocks(report):
    """Return {first line: the other lines}."""
    parts = (block.splitlines() for block in repr(report).split("\n\n"))
    return {first: [line.strip() for line in rest] for first, *rest in parts}


def complaint(subject, **options):
    with pytest.raises(AssertionError) as raised:
        laws.assert_lawful(subject, **options)
    return str(raised.value)


# By hand


def test_a_right_function_has_three_blocks():
    earned = [law for law in laws.ALL if law.chapter != "laws"]
    report = laws.check(mha.multi_head_attention, only=earned)
    said = blocks(report)
    assert list(said) == [
        f"mha.multi_head_attention: {len(earned)} hold", "✓ held", "tried",
    ]  # fmt: skip
    assert " ".join(said["✓ held"]).split(", ") == [law.slug for law in earned]


def test_what_was_tried_is_said_in_words():
    report = laws.check(mha.multi_head_attention, only=["rows_sum_to_one"], seed=4)
    report.tried.update(lengths=[1, 2, 3, 5, 7, 8], batches=[1, 2], masks=["b1qk"])
    report.tried.update(dtypes=["float64"], others=["b_K", "scale"])
    assert report.inputs == (
        "lengths 1 to 3, 5, 7, 8; batches of 1, 2; masks b1qk; float64; "
        "left at default: b_K, scale; seed 4"
    )


def test_an_error_is_told_once_with_its_place_and_the_laws_that_met_it(reports):
    report = reports["refuses"]
    met = [finding for finding in report.broken if finding.verdict == "raised"]
    assert len(met) > 3
    (head,) = [line for line in blocks(report) if "raised ValueError" in line]
    assert head == f"✗ it raised ValueError, met by {len(met)} laws"
    lines = blocks(report)[head]
    assert all(finding.law.slug in " ".join(lines) for finding in met)
    assert any(line.startswith("where   test_report.py:") for line in lines)
    shown = "\n".join(report.failures)
    assert shown.count("one row is too few") == 1
    assert "really …" in shown
    assert all(f.got.endswith("really ") and len(f.got) > 280 for f in met)
    assert f"{len(met)} raised an error" in report.title


def test_nothing_that_comes_back_is_told_once_too(reports):
    report = reports["nothing comes back"]
    assert sum("returned NoneType" in line for line in blocks(report)) == 1


def test_the_laws_that_were_not_asked_stand_under_their_reason():
    report = laws.check(mha.scaled_dot_product_attention)
    assert set(report.unasked) >= {"it has no weight matrices"}
    lines = blocks(report)["– not asked"]
    place = lines.index("it has no weight matrices")
    assert lines[place + 1].startswith("head_owns_its_columns, ")


# Laws


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_line_is_wider_than_a_page(reports, name):
    report = reports[name]
    lines = f"{report}\n{report.complaint}".splitlines()
    assert [line for line in lines if len(line) > 88] == []


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_law_stands_in_one_block(reports, name):
    report = reports[name]
    shown = repr(report)
    assert all(finding.law.slug in shown for finding in report.findings)
    counted = ["✓ held" in blocks(report), len(report.failures) > 0]
    assert counted == [any(report.findings), bool(report.broken)]


def test_declared_laws_may_break_and_nobody_is_named():
    report = laws.check(
        zoo.key_reshaped.attention, only=ROTARY, breaks=ROTARY, because="of its design"
    )
    assert [finding.verdict for finding in report.findings] == ["declared"] * 2
    assert blocks(report)["~ broken as declared, because of its design"]
    assert report.broken == [] and report.looks_like is None


def test_a_declared_law_that_holds_is_an_expectation_that_is_not_met():
    breaks = ["rows_sum_to_one"]
    report = laws.check(mha.multi_head_attention, breaks=breaks)
    assert broken(report) == breaks and not report
    assert "declared broken, but it holds" in repr(report)
    assert "declared broken, but it holds" in complaint(zoo.right, breaks=breaks)


def test_a_design_is_declared_with_the_laws_that_it_breaks():
    with pytest.raises(ValueError, match="because='no scale' needs breaks="):
        laws.check(mha.multi_head_attention, because="no scale")
    with pytest.raises(ValueError, match="no law is called 'x'"):
        laws.check(mha.multi_head_attention, breaks="x")


def test_an_error_is_never_as_declared():
    report = laws.check(refuses_rows, breaks=["padding_changes_nothing"])
    finding = next(f for f in report.findings if f.declared)
    assert finding.verdict == "raised" and finding in report.broken


def test_what_is_not_asked_is_no_broken_expectation():
    report = laws.check(never_read, breaks=["empty_rows_give_zero"])
    assert report.holds and "empty_rows_give_zero" in repr(report)


def test_where_two_calls_differ_no_other_law_is_asked(monkeypatch):
    if not hasattr(laws, "calls_agree"):
        pytest.skip("the law is not there yet")
    report = laws.check(at_random)
    assert broken(report) == ["calls_agree"]
    reasons = {f.why for f in report.findings if f.law.slug != "calls_agree"}
    assert reasons == {"two calls on the same input differ"}
    assert report.looks_like is None
    alone = laws.check(at_random, only=["rows_sum_to_one"])
    assert "two calls on the same input differ" not in repr(alone)


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_json_says_what_the_report_says(reports, name):
    report = reports[name]
    said = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert (said["subject"], said["holds"]) == (report.subject, report.holds)
    assert [law["verdict"] for law in said["laws"]] == [
        finding.verdict for finding in report.findings
    ]
    assert said["tried"]["lengths"] == report.tried["lengths"]
    assert said["unread"] == list(report.unread)


class Page(html.parser.HTMLParser):
    """Checks that every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open += [tag] * (tag != "meta")
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_page_stands_alone_and_says_all(reports, name):
    report = reports[name]
    page = Page(report.to_html())
    assert page.tags[:2] == ["html", "head"] and page.tags.count("table") == 1
    assert page.tags.count("tr") == 1 + len(report.findings)
    text = " ".join(page.words)
    for words in (report.title, *report.warnings, *report.failures, report.inputs):
        assert " ".join(words.split()) in " ".join(text.split())


# assert_lawful


def test_what_fails_is_short_and_shows_the_smallest_example():
    lines = complaint(zoo.mask_ignored).splitlines()
    report = laws.check(zoo.mask_ignored)
    assert lines[0] == report.title
    assert lines[1].startswith(f"broken: {report.broken[0].law.slug}, ")
    assert sum(line.startswith("✗") for line in lines) == 1
    assert any(line.startswith("behaves like zoo.mask_ignored") for line in lines)
    assert len(lines) < 25


@pytest.mark.parametrize(
    ("argument", "word"),
    [
        ("key_padding_mask", "mask_true='attend' or 'hide'"),
        ("scores_bias", "mask_true='added'"),
        ("my_lengths", "mask_shape='lengths'"),
    ],
)
def test_an_argument_that_looks_like_a_mask_and_gets_none_fails(argument, word):
    names = {"attention": mha.scaled_dot_product_attention}
    code = f"def mine(Q, K, V, {argument}=None): return attention(Q, K, V)"
    exec(code, names)
    text = " ".join(complaint(names["mine"]).split())
    assert f"the argument {argument} looks like a mask" in text
    assert word in text
    assert laws.check(names["mine"]).holds


def test_a_second_mask_is_noted_and_does_not_fail():
    layer = torch.nn.MultiheadAttention(6, 3)
    report = laws.check(layer, only=["self_only_mask"])
    assert "left at default: key, value,\n    key_padding_mask" in repr(report)
    assert report.complaint == ""


def test_where_nothing_can_be_asked_it_fails():
    matrices = ["concat_is_a_sum", "parameters_ignore_heads"]
    others = [law for law in laws.ALL if law.slug not in matrices]
    text = complaint(mha.scaled_dot_product_attention, except_=others)
    assert "no law could be asked" in text and "it has no weight matrices" in text


def test_a_lawful_one_passes_with_its_conventions():
    def hides(Q, K, V, mask=None):
        shown = None if mask is None else ~mask
        return mha.scaled_dot_product_attention(Q, K, V, shown)

    laws.assert_lawful(hides, mask_true="hide")
    assert "mask_inverted" in complaint(hides)


TEST = """
import numpy as np

def mine(Q, K, V):
    E = np.exp(Q @ K.T / K.shape[1] ** 0.5)
    return E / E.sum(0) @ V

def test_mine(assert_lawful):
    assert_lawful(mine)
"""


def test_in_somebodys_tests_the_trace_ends_in_their_line(pytester):
    """Nothing of the package is shown, and the first line says what broke."""
    pytester.makeconftest('pytest_plugins = ["mha.testing"]')
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess("-p", "no:xdist")
    result.assert_outcomes(failed=1)
    shown = result.stdout.str()
    assert "    assert_lawful(mine)" in shown
    assert "_check.py" not in shown
    (first, *_) = [line for line in shown.splitlines() if line.startswith("E  ")]
    assert "AssertionError: mine: " in first and " broken, " in first
