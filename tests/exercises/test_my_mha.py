"""The chain of exercises: a file that starts empty and ends as an encoder."""

import re
import subprocess
import sys
import types

import numpy as np
import pytest

from exercises import my_mha
from tests.book.load import ROOT

START = (ROOT / "book" / "my_mha_start.py").read_text(encoding="utf-8")
PAGE = (ROOT / "book" / "my_mha.md").read_text(encoding="utf-8")
STEPS = pytest.mark.parametrize("name", my_mha.STEPS)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def masked_softmax(S, mask):
    S = np.where(mask, S, -np.inf)
    top = S.max(-1, keepdims=True)
    e = np.exp(S - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def attention(Q, K, V, mask=None):
    S = Q @ K.swapaxes(-1, -2) / K.shape[-1] ** 0.5
    return (softmax(S, -1) if mask is None else masked_softmax(S, mask)) @ V


def split_heads(x, n_heads):
    return x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-3, -2)


def merge_heads(heads):
    x = heads.swapaxes(-3, -2)
    return x.reshape(*x.shape[:-2], -1)


def multi_head(
    X, W_Q, W_K, W_V, W_O, n_heads, mask=None, b_Q=0, b_K=0, b_V=0, b_O=0
):  # fmt: skip
    made = (X @ W_Q + b_Q, X @ W_K + b_K, X @ W_V + b_V)
    Q, K, V = (split_heads(x, n_heads) for x in made)
    return merge_heads(attention(Q, K, V, mask)) @ W_O + b_O


def layer_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias


def feed_forward(x, W_1, b_1, W_2, b_2):
    return np.maximum(x @ W_1 + b_1, 0) @ W_2 + b_2


def parts(weights, n_heads, mask):
    """Return a residual branch and a norm for each of the two parts of a layer."""
    w = weights
    names = [name for name in w if name[-1] in "QKVO"]
    attend = {"n_heads": n_heads, "mask": mask} | {name: w[name] for name in names}
    feed = {name: w[name] for name in ("W_1", "b_1", "W_2", "b_2")}
    yield lambda X: multi_head(X, **attend), (w["gain_1"], w["bias_1"])
    yield lambda X: feed_forward(X, **feed), (w["gain_2"], w["bias_2"])


def encoder_layer(X, weights, n_heads, mask=None):
    for part, norm in parts(weights, n_heads, mask):
        X = layer_norm(X + part(X), *norm)
    return X


def encoder(X, layers, n_heads, mask=None):
    for weights in layers:
        X = encoder_layer(X, weights, n_heads, mask)
    return X


def stress_scores(letters, model, n_heads):
    X = model["embed"][letters] + model["positions"][: len(letters)]
    for weights in model["layers"]:
        for part, norm in parts(weights, n_heads, None):
            X = X + part(layer_norm(X, *norm))
    w, b = model["score"]
    return layer_norm(X, *model["final_norm"]) @ w + b


def chunked_attention(Q, K, V, block_size=512):
    top = np.full((*Q.shape[:-1], 1), -np.inf, Q.dtype)
    total = mix = 0.0
    for start in range(0, K.shape[-2], block_size):
        keys = np.s_[..., start : start + block_size, :]
        S = Q @ K[keys].swapaxes(-1, -2) / K.shape[-1] ** 0.5
        above = np.maximum(top, S.max(-1, keepdims=True))
        e, old, top = np.exp(S - above), np.exp(top - above), above
        total, mix = old * total + e.sum(-1, keepdims=True), old * mix + e @ V[keys]
    return mix / total


def causal_model(X, layers, n_heads):
    for weights in layers:
        for part, norm in parts(weights, n_heads, np.tri(X.shape[-2], dtype=bool)):
            X = X + part(layer_norm(X, *norm))
    return X


@STEPS
def test_a_step_knows_its_right_answer_and_its_slips(name):
    my_mha.STEPS[name].self_test()
    assert my_mha.STEPS[name](globals()[name]).passed


@STEPS
def test_the_file_to_start_from_has_a_stub_of_each_step(name):
    space = {}
    exec(START, space)
    assert my_mha.STEPS[name](space[name]).status == "not attempted yet"


@pytest.mark.parametrize("name", my_mha.TRIALS)
def test_the_laws_hold_of_a_right_step(name):
    assert my_mha.laws_of(name, globals()[name])


def test_the_report_shows_what_is_done_as_on_the_page(capsys):
    space = {"softmax": softmax, "masked_softmax": masked_softmax}
    space["attention"] = lambda Q, K, V, mask=None: (
        masked_softmax(Q @ K.swapaxes(-1, -2), True if mask is None else mask) @ V
    )
    my_mha.report(space)
    shown = PAGE.partition("```text\nchapter 2")[2].partition("```")[0]
    assert capsys.readouterr().out == f"chapter 2{shown}"


def test_a_right_file_gets_a_line_for_each_step_and_uses_the_words_that_are_typed(
    capsys, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["my_mha.py", "potato", "telephone", "x1"])
    my_mha.report({name: globals()[name] for name in my_mha.STEPS})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(my_mha.STEPS)
    assert all("passed" in line for line in lines)
    for name, line in zip(my_mha.STEPS, lines, strict=True):
        assert ("laws hold" in line) == (name in my_mha.TRIALS)
    said = dict(zip(my_mha.STEPS, lines, strict=True))
    assert said["stress_scores"].endswith("it says potAto tElephone")
    assert "alice was the pigeon" in said["causal_model"]
    shown = [line.split() for line in PAGE.splitlines() if "passed: it" in line]
    assert [row[4:6] for row in shown] == [["it", "says"], ["it", "writes:"]]
    assert "it writes: alice was the pigeon" in PAGE


def test_attention_in_32_bits_stays_there_and_no_mask_hides_nothing():
    def root_of_numpy(Q, K, V, mask=None):
        S = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
        return (softmax(S, -1) if mask is None else masked_softmax(S, mask)) @ V

    said = my_mha.STEPS["attention"](root_of_numpy).text
    assert said.startswith("the result has 64 bits, and the inputs have 32")

    def zeros_of_numpy(Q, K, V, block_size=512):
        return chunked_attention(Q, K, V, block_size) + np.zeros(V.shape[-1])

    said = my_mha.STEPS["chunked_attention"](zeros_of_numpy).text
    assert said.startswith("the result has 64 bits, and the inputs have 32")
    hides = my_mha.STEPS["attention"](
        lambda Q, K, V, mask=None: (
            masked_softmax(Q @ K.swapaxes(-1, -2) / K.shape[-1] ** 0.5, mask) @ V
        )
    )
    assert hides.text.startswith("without a mask nothing is hidden")


def test_blocks_of_which_all_scores_are_kept_exceed_the_budget():
    def at_once(Q, K, V, block_size):
        return attention(Q, K, V)

    said = my_mha.STEPS["chunked_attention"](at_once).text
    assert re.match(r"your answer held \d+\.\d MB at once, where all scores take", said)


def test_the_page_lists_every_step_and_its_commands_run_as_printed(pytester):
    rows = re.findall(r"^\| \[?(\d+)\b.*\| `(\w+)\(", PAGE, re.M)
    numbers = re.findall(r'"""Chapter (\d+)', START)
    assert rows == [*zip(numbers, my_mha.STEPS, strict=True)]
    for command in ("book/my_mha.py", "-m pytest -n0 book/my_mha.py"):
        assert f".venv/bin/python {command}\n" in PAGE
    own = ROOT / "book" / "my_mha.py"
    if own.exists():  # a learner's; it is not ours to write over
        pytest.skip("there is a book/my_mha.py")
    own.write_text(START, encoding="utf-8")
    try:
        command = [sys.executable, "book/my_mha.py"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outcomes = pytester.runpytest_inprocess("-n0", own).parseoutcomes()
        assert outcomes == {"skipped": len(my_mha.STEPS) + len(my_mha.TRIALS)}
    finally:
        own.unlink()


def test_a_failing_step_says_in_pytest_what_the_notebook_says():
    request = types.SimpleNamespace(
        module=types.SimpleNamespace(softmax=lambda x, _: x)
    )
    verdict = my_mha.STEPS["softmax"](request.module.softmax)
    with pytest.raises(pytest.fail.Exception) as failure:
        my_mha.test_step("softmax", request)
    assert str(failure.value) == str(verdict)
    for attempt in (my_mha.test_laws, my_mha.test_step):
        with pytest.raises(pytest.skip.Exception):
            attempt("multi_head", request)
