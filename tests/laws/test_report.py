"""A report: data that is printed, shown, pickled and kept, and a command."""

import json
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

import mha
from mha import laws, zoo
from mha.laws.__main__ import main
from tests.laws.reports import broken

attend = mha.scaled_dot_product_attention
OWN = """
import torch
from mha import laws, scaled_dot_product_attention, zoo

answer = 42

def halved(Q, K, V):
    return scaled_dot_product_attention(Q, K, V) / 2

def unscaled(Q, K, V, mask=None):
    return scaled_dot_product_attention(Q, K, V, mask, scale=1.0)

def raising(Q, K, V, mask=None):
    raise IndexError("a slip")

layer = laws.torch(zoo.right)

def strange(x):
    return x
"""


def doubled(Q, K, V):
    return 2 * attend(Q, K, V)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A file of somebody's own."""
    path = tmp_path / "own_layers.py"
    path.write_text(OWN)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield str(path)
    sys.modules.pop("own_layers", None)


# As data


def test_a_report_is_data():
    report = laws.check(doubled, ["rows_sum_to_one", "calls_agree", "causal_corner"])
    wrong, held, unasked = report.findings
    assert (wrong.verdict, held.verdict, unasked.verdict) == (
        "broken", "holds", "not asked",
    )  # fmt: skip
    assert report.broken == [wrong] and report.held == ["calls_agree"]
    assert report.unasked == {"it takes no is_causal": ["causal_corner"]}
    assert not report and not report.holds and not wrong and held and not unasked
    assert wrong.law == "rows_sum_to_one"
    assert wrong.sentence == laws.rows_sum_to_one.sentence
    assert wrong.expected.tolist() == [1] and wrong.got.tolist() == [2]
    assert {x: y.any() for x, y in wrong.example.items()} == {"Q": False, "K": False}


def test_its_records_are_json_with_all_that_is_shown_of_each_law():
    few = ["rows_sum_to_one", "calls_agree", "causal_corner"]
    records = json.loads(json.dumps(laws.check(doubled, few).records()))
    assert [x["law"] for x in records] == few
    assert [x["verdict"] for x in records] == ["broken", "holds", "not asked"]
    assert (records[0]["got"], records[2]["why"]) == ("[2]", "it takes no is_causal")


def test_the_report_in_full():
    report = laws.check(doubled, ["rows_sum_to_one", "calls_agree", "causal_corner"])
    assert repr(report) == (
        "doubled: 1 hold, 1 broken, 1 not asked\n\n"
        "✗ every row of weights sums to one\n"
        "    law       laws.rows_sum_to_one\n"
        "    Q         [[0, 0]]\n"
        "    K         [[0, 0], [0, 0]]\n"
        "    expected  [1]\n"
        "    got       [2]\n"
        "    shapes    Q (1, 2), K (2, 2), V (2, 2)\n"
        "    seed      0\n"
        "    because   each exponential is divided by the sum of its row, whatever the "
        "scores\n\n"
        "– not asked\n    it takes no is_causal\n        causal_corner\n\n"
        "✓ held\n    calls_agree\n\n"
        "tried\n    2 to 13 tokens; batches of 1"
    )


def test_a_report_that_names_a_bug_in_full():
    report = laws.check(zoo.mask_ignored.attention, ["self_only_mask", "calls_agree"])
    assert repr(report) == (
        "attention: 1 hold, 1 broken\n\n"
        "✗ a token that may attend only to itself depends on itself only\n"
        "    law       laws.self_only_mask\n"
        "    X         [[0, 0], [0, 0]]\n"
        "    mask      [[True, False], [False, True]]\n"
        "    others    [[0, 0], [0, 1]]\n"
        "    expected  [[0, 0]]\n"
        "    got       [[0, 0.5]]\n"
        "    where     tokens [0] stay, the others change\n"
        "    shapes    Q (2, 2), K (2, 2), V (2, 2), mask (2, 2)\n"
        "    seed      0\n"
        "    because   no other key gets any weight\n\n"
        "behaves like zoo.mask_ignored\n"
        "    The mask is taken as an argument and never used.\n\n"
        "✓ held\n    calls_agree\n\n"
        "tried\n    2 to 13 tokens; batches of 1"
    )


def test_printing_showing_and_pickling_call_nothing():
    calls = []

    def counted(Q, K, V):
        calls.append(1)
        return 2 * attend(Q, K, V)

    report = laws.check(counted, ["rows_sum_to_one", "calls_agree", "causal_corner"])
    asked = len(calls)
    first, shown = repr(report), report._repr_html_()
    assert (repr(report), report._repr_html_()) == (first, shown)
    kept = pickle.loads(pickle.dumps(report))
    assert (repr(kept), kept._repr_html_()) == (first, shown)
    assert len(calls) == asked


def test_a_notebook_shows_matrices_as_tables_and_marks_what_differs():
    shown = laws.check(doubled)._repr_html_()
    assert '<td class="differs"><b>2</b></td>' in shown
    assert "<summary>Laws that held</summary>" in shown
    assert "equals_reference" in shown
    named = laws.check(lambda Q, K, V: 3 * attend(Q, K, V), [])
    assert named.title == "<lambda>: no law was asked"
    assert "&lt;lambda&gt;" in named._repr_html_()


# What may be broken

DOUBLE = {"rows_sum_to_one": "a sum of two", laws.output_in_hull: "a sum of two"}
FEW = ["rows_sum_to_one", "output_in_hull", "calls_agree", "causal_corner"]


def test_a_law_that_is_broken_as_expected_fails_nothing_and_is_told_with_its_reason():
    report = laws.check(doubled, FEW, expected=DOUBLE)
    assert report.holds and report.broken == []
    assert report.expected == {"a sum of two": ["rows_sum_to_one", "output_in_hull"]}
    assert "1 hold, 2 broken as expected, 1 not asked" in repr(report)
    told = "~ expected\n    a sum of two\n        rows_sum_to_one, output_in_hull"
    assert told in repr(report)
    assert "a sum of two: rows_sum_to_one, output_in_hull" in report._repr_html_()
    laws.assert_lawful(doubled, FEW, expected=DOUBLE)
    assert not laws.check(doubled, [*FEW, "equals_reference"], expected=DOUBLE)


@pytest.mark.parametrize(
    ("law", "but"),
    [("calls_agree", "it holds"), ("causal_corner", "it was not asked (it takes no ")],
)
def test_a_law_that_is_not_broken_as_expected_fails_and_says_why(law, but):
    report = laws.check(doubled, FEW, expected=DOUBLE | {law: "dropout"})
    assert [x.law for x in report.broken] == [law] and not report
    said = f"{law} was expected to be broken (dropout), but {but}"
    assert said in " ".join(repr(report).split()) and said in report._repr_html_()


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"gravity": "it floats"}, "no law is called 'gravity'"),
        ({"calls_agree": ""}, "says why: {law: reason}"),
        (["calls_agree"], "says why: {law: reason}"),
        ({"concat_is_a_sum": "it has no W_O"}, "concat_is_a_sum cannot be in expected"),
        ({"calls_agree": "dropout"}, "it is in skip="),
    ],
)
def test_what_cannot_be_expected_is_refused(expected, said):
    with pytest.raises(ValueError, match=said):
        laws.check(doubled, skip=["calls_agree"], expected=expected)


def test_each_law_is_an_item_of_pytest_that_says_what_the_report_says():
    options = {
        "expected": DOUBLE | {"calls_agree": "dropout"},
        "skip": ["dtype_is_kept"],
    }
    mark = laws.parametrize(doubled, **options)
    report, outcomes = laws.check(doubled, **options), []
    for item, finding in zip(mark.args[1], report.findings, strict=True):
        assert item.id == finding.law
        outcome = None
        try:
            item.values[0]()
        except (laws.Unlawful, pytest.skip.Exception, pytest.xfail.Exception) as error:
            outcome = type(error)
            assert finding.why in " ".join(str(error).split())
        outcomes.append(outcome)
    by_verdict = {
        "holds": None, "broken": laws.Unlawful, "not as expected": laws.Unlawful,
        "expected": pytest.xfail.Exception, "not asked": pytest.skip.Exception,
    }  # fmt: skip
    assert outcomes == [by_verdict[x.verdict] for x in report.findings]
    assert set(outcomes) == {*by_verdict.values()}


# In words


def test_numbers_that_print_alike_are_told_apart():
    finding = laws.every_dtype_gives_the_numbers.check(zoo.computes_in_float32)
    assert "off by    at most " in repr(finding)


def test_a_wide_example_is_told_by_what_is_left_of_it_in_short_lines():
    report = laws.check(
        zoo.no_output_projection, ["concat_is_a_sum", "equals_reference"],
        sizes=laws.Sizes(16, 2),
    )  # fmt: skip
    assert "zeros of shape (16, 16)" in repr(report)
    assert "shape (5, 16), of which" not in repr(report)
    assert max(map(len, repr(report).splitlines())) <= 88


def test_both_wrong_answers_are_shown_beside_the_correct_one():
    finding = laws.masked_weights_are_zero.check(zoo.mask_ignored.attention)
    assert finding.correct.tolist() == [[1, 0]]
    assert "correct   [[1, 0]]" in repr(finding)


def test_one_mistake_raises_one_error_and_every_broken_law_is_listed():
    def fails(Q, K, V, mask=None):
        if mask is not None:
            raise ValueError(f"a mask of shape {mask.shape}")
        if len(K) > 16:
            raise KeyError("long")
        return attend(Q, K, V)

    report = laws.check(fails)
    told = repr(report)
    assert "✗ it raised an error, met by " in told
    assert told.count("ValueError: a mask of shape") == 3  # two laws were refused
    assert all(finding.law in told for finding in report.broken)
    assert all(finding.verdict == "raised" for finding in report.broken)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda V: (V, V), "returns tuple, where a NumPy array is due"),
        (lambda V: V[0], "returns shape (2,), where (1, 2) is due"),
        (torch.tensor, "returns Tensor, where a NumPy array is due: hand it over as "
                       "laws.torch(f)"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_told_as_what_it_is(returned, said):
    (finding,) = laws.check(lambda Q, K, V: returned(V), ["rows_sum_to_one"]).broken
    assert (finding.verdict, finding.got) == ("raised", said)


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (3, "a subject must be a function, got int"),
        (lambda x: x, r"<lambda>\(x\) is called like none of"),
        (nn.Linear, r"Linear\(in_features, .* is called like none of"),
        (lambda X, layers: X, "write a function that is, and call <lambda> in it"),
        (max, "max tells no arguments"),
    ],
)
def test_what_cannot_be_called_is_shown_the_signatures(subject, said):
    with pytest.raises(TypeError, match=said) as error:
        laws.check(subject)
    assert "attend(Q, K, V, mask=None)" in str(error.value)


def test_a_reference_of_another_signature_is_refused():
    with pytest.raises(TypeError, match="they must have the same signature"):
        laws.check(mha.encoder, reference=attend)
    assert laws.check(mha.multi_head_attention, [], reference=attend) is not None


# From a shell


@pytest.mark.parametrize(
    ("target", "more", "status", "said"),
    [
        ("mha:multi_head_attention", ["--only", "rows_sum_to_one"], 0, "1 hold"),
        ("{}:layer", ["--only", "rows_sum_to_one"], 0, "1 hold"),
        ("{}:halved", ["--only", "rows_sum_to_one"], 1, "got [0.5]"),
        ("{}:unscaled", ["--reference", "{}:unscaled", "--only", "rows_sum_to_one",
         "scores_keep_unit_variance"], 0, "not keep it"),
        ("{}:unscaled", ["--only", "equals_reference", "--tolerance", "9"], 0, "hold"),
        ("mha.zoo:no_scale", ["--seed", "5", "--only", "equals_reference"], 1,
         "seed 5"),
        ("{}:halved", ["--skip", "rows_sum_to_one"], 1, "laws.output_in_hull"),
        ("{}:unscaled", ["--reference", "{}:raising"], 2, "raised IndexError: a slip"),
        ("{}:answer", [], 2, "subject must be a function"),
        ("{}:strange", [], 2, "strange(x) is called like none"),
        ("{}:nobody", [], 2, "cannot find 'nobody'"),
        ("{}", [], 2, "say what to check in it"),
        ("nowhere.py:f", [], 2, "No such file"),
        ("mha:encoder", ["--only", "gravity"], 2, "no law is called 'gravity'"),
    ],
)  # fmt: skip
def test_from_a_shell(target, more, status, said, own, capsys):
    assert main([x.format(own) for x in (target, *more)]) == status
    out, err = capsys.readouterr()
    assert said in " ".join((err if status == 2 else out).split())
    assert (err if status != 2 else out) == ""


def test_from_a_shell_the_report_says_why_nothing_was_asked(capsys):
    assert main(["mha:encoder", "--only", "rows_sum_to_one"]) == 2
    assert "norms stand around its attention" in capsys.readouterr().out


def test_all_laws_are_listed_from_a_shell(capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    for law in laws.ALL:
        assert f"  {law.name}\n      {law.sentence}\n" in listed
    with pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 2


def test_the_command_prints_the_report_and_leaves_with_its_status():
    command = [sys.executable, "-m", "mha.laws", "mha.zoo:mask_ignored"]
    command += ["--only", "self_only_mask"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 1, done.stderr
    assert "behaves like zoo.mask_ignored" in done.stdout
    with subprocess.Popen(command, stdout=-1, stderr=-1) as unread:
        unread.stdout.close()
        assert unread.stderr.read() == b""


def test_an_encoder_is_judged_as_a_whole():
    report = laws.check(
        zoo.residual_from_the_input, [*laws.ENCODER, "equals_reference"]
    )
    expected = {"silent_parts_pass_the_input_on", "equals_reference"}
    assert {*broken(report)} == expected
    assert "layers" in report.broken[0].example
    assert "drawn at random" in repr(report)
