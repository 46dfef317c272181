"""A report, as text and from a shell."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

import mha
from mha import laws, zoo
from mha.laws.__main__ import main

OWN = """
import numpy as np
from mha import laws, zoo

answer = 42

def halved(Q, K, V):
    return zoo.right.attention(Q, K, V) / 2

def sideways(X, weights, n_heads, mask=None):
    shown = None if mask is None else ~mask
    return zoo.right(X, n_heads=n_heads, mask=shown, **weights)

class Maker:
    def __call__(self, Q, K, V, mask=None):
        return zoo.right.attention(Q, K, V, mask)

def strange(x):
    return x

def with_padding(Q, K, V, padding_mask=None):
    return zoo.right.attention(Q, K, V)
"""


@pytest.fixture
def own(tmp_path):
    """A file of somebody's own."""
    path = tmp_path / "own_layers.py"
    path.write_text(OWN)
    yield str(path)
    sys.modules.pop("own_layers", None)


def test_the_report_in_full():
    def doubled(Q, K, V):
        return 2 * mha.scaled_dot_product_attention(Q, K, V)

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
        "to see it again\n"
        "    from mha import laws\n"
        "    import numpy as np\n"
        "    print(laws.rows_sum_to_one.ask(doubled, {'Q': np.array([[0.0, 0.0]]), "
        "'K':\n    np.array([[0.0, 0.0], [0.0, 0.0]])}))\n\n"
        "– not asked\n    it has no is_causal\n        causal_corner\n\n"
        "✓ held\n    calls_agree\n\n"
        "tried\n    batches of 1; float64; 1 to 13 tokens; seed 0"
    )


def test_numbers_that_print_alike_are_told_apart():
    finding = laws.every_dtype_gives_the_numbers.check(zoo.computes_in_float32)
    assert "off by    at most " in repr(finding)


def test_a_wide_example_is_told_by_what_is_left_of_it():
    zeros = np.zeros((16, 16))
    zeros[3, 5] = 2
    text = laws.report._text(zeros)
    assert text == "zeros of shape (16, 16), but 2 at [3, 5]"
    assert laws.report._text(zeros + 1) == "shape (16, 16), of which 256 are not 0"


def test_what_was_tried_and_handed_over_is_told_in_short_lines_and_truly():
    layer = torch.nn.MultiheadAttention(8, 2)
    report = laws.check(layer, ["empty_rows_give_zero"])
    assert max(map(len, repr(report).splitlines())) <= 88
    assert "its matrices hold 1.41 Q, K and V" in repr(report)
    one_length = laws.check(layer, [laws.parameters_ignore_heads])
    assert "; 3 tokens;" in repr(one_length)
    plain = laws.check(
        mha.scaled_dot_product_attention, ["every_dtype_gives_the_numbers"]
    )
    assert "float16, float32" in repr(plain) and "bfloat16" not in repr(plain)


def test_the_code_to_see_it_again_runs_and_its_lines_are_short(capsys):
    four = "rotary(), window(4), sink(0.5), soft_cap(30)"
    attend = mha.scaled_dot_product_attention
    for report in (
        laws.check(zoo.ignores_strides, ["strides_change_nothing"]),
        laws.check(attend, ["equals_reference"], design=four),
    ):
        text = repr(report).partition("see it again\n")[2].partition("\n\n")[0]
        assert max(map(len, text.splitlines())) <= 88
        exec(textwrap.dedent(text), {})
    said = capsys.readouterr().out
    assert "Failure(" in said and "✗ the numbers equal those" in said


def test_padding_is_compared_with_what_is_correct():
    def forgets(Q, K, V, mask=None):
        n = len(K) // 4 * 4 or len(K)
        mask = mask if mask is None else mask[:, :n]
        return mha.scaled_dot_product_attention(Q, K[:n], V[:n], mask)

    finding = laws.padding_changes_nothing.check(forgets)
    X = finding.example["X"]
    correct = mha.scaled_dot_product_attention(X, X, X)
    np.testing.assert_allclose(finding.expected, correct)
    assert "the other is correct" in finding.where
    assert not np.allclose(finding.got, correct, atol=1e-3)


def test_an_error_is_told_once_with_its_place():
    def fails(Q, K, V, mask=None):
        if len(K) > 2:
            raise KeyError("c_attn")
        return mha.scaled_dot_product_attention(Q, K, V, mask)

    report = laws.check(fails, ["rows_sum_to_one", "output_in_hull"])
    (block,) = report.failures
    line = fails.__code__.co_firstlineno + 2
    assert block.startswith("✗ it raised KeyError, met by 2 laws")
    assert f"where   test_report.py:{line}\n" in block


def test_an_error_about_many_sizes_is_told_once_and_every_broken_law_is_listed():
    def fails(Q, K, V, mask=None):
        if mask is not None:
            raise ValueError(f"a mask of shape {mask.shape}")
        if len(K) != len(Q):
            raise IndexError(f"{len(Q)} and {len(K)}")
        if len(K) > 16:
            raise KeyError("long")
        return mha.scaled_dot_product_attention(Q, K, V)

    report = laws.check(fails)
    told = repr(report).partition("to see it again")[0]
    assert all(told.count(f"{x}, met by ") == 1 for x in ("ValueError", "IndexError"))
    assert "\n✗ it raised KeyError, met by " in told
    assert len(report.broken) > 5
    assert all(finding.law.slug in told for finding in report.broken)


def test_reasons_and_examples_say_what_they_mean():
    def truths(Q, K, V, mask=None):
        mask = mask if mask is None else mask.astype(bool)
        return mha.scaled_dot_product_attention(Q, K, V, mask)

    (why,) = laws.check(truths, ["float_masks_are_added"]).unasked
    assert why == (
        "a mask of floats, all 0, should hide nothing, but hides keys here; "
        "hand over booleans"
    )
    (why,) = laws.check(truths, ["causal_corner"], design="alibi()").unasked
    assert why == "with positions, the laws try n_q = n_k only"
    finding = laws.check(truths, ["equals_reference"], design="alibi()").findings[0]
    assert finding.example["queries_times"] == 1


@pytest.mark.parametrize(
    ("target", "more", "status", "said"),
    [
        ("mha:multi_head_attention", ["--only", "rows_sum_to_one"], 0, "1 hold"),
        ("{}:halved", [], 1, "rows_sum_to_one"),
        ("{}:sideways", ["--factory", "laws.Adapter(it, mask_true='hide')",
                         "--only", "self_only_mask"], 0, "1 hold"),
        ("{}:Maker", ["--factory", "it()", "--only", "self_only_mask"], 0, "1 hold"),
        ("{}:with_padding", ["--only", "calls_agree"], 1, "looks like a mask"),
        ("mha.zoo:no_scale", ["--breaks", "scores_keep_unit_variance,equals_reference",
                              "--because", "W_Q"], 0, "because W_Q"),
        ("mha.zoo:no_scale", ["--except", "scores_keep_unit_variance"], 1,
         "equals_reference"),
        ("mha:encoder", ["--final-norm", "--only", "equals_reference"], 1,
         "final_norm=True"),
        ("{}:Maker", [], 2, "Maker is a class; say how to make one"),
        ("{}:answer", [], 2, "subject must be an attention function"),
        ("{}:strange", [], 2, "got strange(x)"),
        ("{}:nobody", [], 2, "cannot find 'nobody'"),
        ("{}", [], 2, "say what to check in it"),
        ("nowhere.py:f", [], 2, "cannot import nowhere.py"),
        ("mha:encoder", ["--only", "gravity"], 2, "no law is called 'gravity'"),
        ("mha:encoder", ["--mask-true", "maybe"], 2, "mask_true must be one of"),
        ("mha:encoder", ["--only", "rows_sum_to_one"], 2, "no law could be asked"),
    ],
)  # fmt: skip
def test_from_a_shell(target, more, status, said, own, capsys):
    assert main([target.format(own), *more]) == status
    out, err = capsys.readouterr()
    assert said in " ".join((err if status == 2 else out).split())
    assert (err if status != 2 else out) == ""


def test_all_laws_are_listed_from_a_shell(capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    for law in (*laws.ALL, *laws.ENCODER):
        assert f"  {law.slug}\n" in listed
    with pytest.raises(SystemExit):
        main([])


def test_the_command_prints_the_report_and_leaves_with_its_status():
    command = [sys.executable, "-m", "mha.laws", "mha.zoo:mask_ignored"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 1, done.stderr
    assert "behaves like zoo.mask_ignored" in done.stdout
    with subprocess.Popen(command, stdout=-1, stderr=-1) as unread:
        unread.stdout.close()
        assert unread.stderr.read() == b""
