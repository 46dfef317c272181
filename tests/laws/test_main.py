"""``python -m mha.laws``: the same from a shell."""

import json
import subprocess
import sys

import pytest

from mha import laws, zoo
from mha._chapters import chapter_number
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
def own(tmp_path, monkeypatch):
    """A module of somebody's own that can be imported."""
    (tmp_path / "own_layers.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_layers"
    sys.modules.pop("own_layers", None)


# By hand


def test_it_prints_the_report_with_the_seed_and_nothing_else(capsys):
    arguments = ["mha:multi_head_attention", "--only", "rows_sum_to_one"]
    assert main(arguments) == 0
    assert capsys.readouterr() == (
        "mha.multi_head_attention: 1 hold\n\n"
        "✓ held\n    rows_sum_to_one\n\n"
        "tried\n    lengths 1 to 3, 5, 7; batches of 1; masks 1k, qk; float64; "
        "left at default: b_Q,\n    b_K, b_V, b_O, is_causal, return_weights; seed 0\n",
        "",
    )


def test_what_is_broken_is_shown_with_its_example_and_its_member(capsys):
    assert main(["mha.zoo:scale_after_softmax", "--seed", "3"]) == 1
    shown = capsys.readouterr().out
    assert "expected  [1]\n    got       [0.707]" in shown
    assert "behaves like zoo.scale_after_softmax\n" in shown
    assert shown.endswith("; seed 3\n")


# Laws


def test_a_dotted_name_leads_to_a_part(capsys):
    assert main(["mha.zoo:right.attention", "--only", "dtype_is_kept"]) == 0
    assert "zoo.right.attention: 1 hold" in capsys.readouterr().out


def test_the_factory_makes_what_is_checked(own, capsys):
    one_law = ["--only", "empty_rows_give_zero"]
    assert main([f"{own}:Maker", "--factory", "it()", *one_law]) == 0
    assert main([own, "--factory", "Maker()", *one_law]) == 0
    adapter = "laws.Adapter(sideways, mask_true='hide')"
    assert main([own, "--factory", adapter, *one_law]) == 0
    assert main([own, "--factory", "laws.Adapter(sideways)", *one_law]) == 1


def test_a_file_is_found_by_its_path_and_may_import_its_neighbour(tmp_path, capsys):
    (tmp_path / "neighbour.py").write_text(
        "from mha import scaled_dot_product_attention"
    )
    (tmp_path / "by_path.py").write_text(
        "from neighbour import scaled_dot_product_attention as mine"
    )
    only = ["--only", "rows_sum_to_one"]
    assert main([f"{tmp_path}/by_path.py:mine", *only]) == 0
    assert ": 1 hold" in capsys.readouterr().out
    assert main([f"{tmp_path}/by_path.py", "--factory", "mine", *only]) == 0


def test_a_convention_is_an_option(own, capsys):
    only = ["--only", "self_only_mask,padding_changes_nothing"]
    adapter = [own, "--factory", "laws.Adapter(sideways)", *only]
    assert main([*adapter, "--mask-true", "hide"]) == 0
    assert "\ntried\n    mask_true='hide'; lengths " in capsys.readouterr().out
    assert main(adapter) == 1
    assert main([*adapter, "--mask-true", "masked"]) == 2
    assert "mask_true must be one of 'attend', " in capsys.readouterr().err


def test_a_design_is_declared_by_two_options(own, capsys):
    report = laws.check(zoo.key_reshaped.attention)
    breaks = ",".join(finding.law.slug for finding in report.broken)
    design = ["--breaks", breaks, "--because", "of its design"]
    target = ["mha.zoo:key_reshaped.attention"]
    assert main([*target, *design]) == 0
    assert "~ broken as declared, because of its design" in capsys.readouterr().out
    assert main(target) == 1


def test_a_mask_that_nothing_is_handed_to_is_no_success(own, capsys):
    assert main([f"{own}:with_padding"]) == 1
    assert "! the argument padding_mask" in capsys.readouterr().out


def test_the_list_says_every_law_with_its_sentence(capsys):
    assert main(["--list"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for law in (*laws.ALL, *laws.ENCODER):
        assert f" {law.slug} {law.name}" in shown


def test_the_page_is_written_besides(tmp_path, capsys):
    page = tmp_path / "report.html"
    assert main(["mha.zoo:no_scale", "--html", str(page)]) == 1
    assert "behaves like" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_module_of_torch_can_be_excused_from_one_law(capsys):
    target = ["torch.nn:MultiheadAttention", "--factory", "it(6, 3)"]
    both = "--only=empty_rows_give_zero,rows_sum_to_one"
    assert main([*target, both]) == 1
    assert main([*target, both, "--except=empty_rows_give_zero"]) == 0


def test_json_says_the_same_as_the_report(own, capsys):
    assert main([f"{own}:halved", "--json", "--seed", "5"]) == 1
    shown = json.loads(capsys.readouterr().out)
    report = laws.check(sys.modules[own].halved, seed=5)
    assert (shown["subject"], shown["seed"]) == ("halved", 5)
    assert [law["law"] for law in shown["laws"]] == [law.slug for law in laws.ALL]
    verdicts = [finding.holds for finding in report.findings]
    assert [law["holds"] for law in shown["laws"]] == verdicts
    broken = [law for law in shown["laws"] if law["holds"] is False]
    for law, finding in zip(broken, report.broken, strict=True):
        assert law["because"] == finding.law.reason
        assert set(law["example"]) == set(finding.example)
    rows = next(law for law in broken if law["law"] == "rows_sum_to_one")
    assert (rows["expected"], rows["got"]) == ([1.0], [0.5])
    assert shown["looks_like"] is None
    chapters = [(law["chapter"], law["chapter_number"]) for law in shown["laws"]]
    assert chapters == [(law.chapter, chapter_number(law.chapter)) for law in laws.ALL]


def test_json_has_a_word_for_nan_and_for_the_member(capsys):
    assert main(["mha.zoo:nan_on_empty_rows", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    (broken,) = [law for law in shown["laws"] if law["holds"] is False]
    assert "nan" in broken["got"][1]
    assert shown["looks_like"]["link"] == zoo.nan_on_empty_rows.link


def test_json_names_the_weights_of_an_encoder_by_their_seed(capsys):
    only = "--only=layers_follow_each_other"
    assert main(["mha.zoo:only_last_layer", "--json", only]) == 1
    (law,) = json.loads(capsys.readouterr().out)["laws"]
    assert law["example"]["layers"].startswith("laws.encoder_weights(seed=")


# Agreement


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("mha:scaled_dot_product_attention", 0),
        ("mha.zoo:mask_ignored", 1),
        ("mha:x", 2),
    ],
)
def test_a_shell_sees_the_status(target, status):
    command = [sys.executable, "-m", "mha.laws", target, "--only=self_only_mask"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert run.returncode == status
    assert bool(run.stderr) == (status == 2)
    assert "Traceback" not in run.stderr


def test_importing_the_laws_loads_no_parser_and_no_torch():
    code = "import sys, mha.laws; print({'torch', 'argparse'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


# Refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_such_module:f"], "cannot import no_such_module: ModuleNotFoundError"),
        (["mha:no_such_name"], "cannot find 'no_such_name' in mha"),
        (["mha"], "say what to check in it: mha:name"),
        (["no/such/file.py:f"], "cannot import no/such/file.py: FileNotFoundError"),
        (["own_layers:halved", "--because", "x"], "because='x' needs breaks="),
        (["own_layers:halved", "--tolerance", "-1"], "tolerance must be"),
        (["own_layers:Maker"], 'Maker is a class; say how to make one, such as --fac'),
        (["own_layers:Maker", "--factory", "it(3)"], "cannot run --factory 'it(3)'"),
        (["own_layers:answer"], "got int"),
        (["own_layers:strange"], "got strange(x)"),
        (["mha:multi_head_attention", "--only", "x"], "no law is called 'x'"),
        (["mha:multi_head_attention", "--except", "x"], "no law is called 'x'"),
        (
            ["own_layers:halved", "--only", "concat_is_a_sum"],
            "no law could be asked of halved",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_run_has_a_status_of_its_own(arguments, message, own, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("python -m mha.laws: ")
    assert message in err


def test_without_a_target_the_parser_helps(capsys):
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2
    assert "say what to check, or --list" in capsys.readouterr().err


def test_the_help_explains_the_status_and_the_factory(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    for word in (
        "exit status",
        "--factory",
        "laws.Adapter",
        "--only",
        "--seed",
        "path/to/file.py:name",
        "--mask-true",
        "--list",
        "assert_lawful",
    ):
        assert word in shown
