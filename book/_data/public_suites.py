"""Ask two public test suites about the zoo: python book/_data/public_suites.py FOLDER

Both are for people who write attention themselves, and were made without the zoo in
sight. FOLDER is a copy of github.com/stanford-cs336/assignment1-basics, of which the
tests of the attention function are run; that of its layer needs a file of weights.

    pip install torch-judge==0.1.1 einops jaxtyping
"""

import contextlib
import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from mha import zoo

STORE = Path(__file__).with_suffix(".json")
TASKS = "attention", "causal_attention", "mha"


def module_of(member):
    """Return the class that torch-judge asks for, which attends like the member."""

    class Layer(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            self.n_heads = num_heads
            for x in "qkvo":
                setattr(self, f"W_{x}", nn.Linear(d_model, d_model))

        def forward(self, Q, K, V):
            four = [getattr(self, f"W_{x}") for x in "qkvo"]
            biases = {f"b_{x}": W.bias for x, W in zip("QKVO", four, strict=True)}
            given = (Q, *(W.weight.T for W in four), self.n_heads)
            return member(*given, X_k=K, X_v=V, **biases)

    return Layer


def fails_torch_judge(member):
    """Return whether a test of one of the three tasks fails."""
    from torch_judge.tasks import get_task

    causal = partial(member.attention, is_causal=True)
    answers = member.attention, causal, module_of(member)
    for task, answer in zip(map(get_task, TASKS), answers, strict=True):
        name = task["function_name"]
        for test in task["tests"]:
            try:
                exec(test["code"].replace("{fn}", name), {name: answer})
            except Exception:
                return True
    return False


class WithMember:
    """A plugin of pytest that puts a member in the place of the learner's function."""

    def __init__(self, member):
        self.member, self.ran, self.failed = member, 0, False

    def pytest_runtest_setup(self, item):
        item.module.run_scaled_dot_product_attention = self.member.attention

    def pytest_runtest_logreport(self, report):
        self.ran += report.when == "call"
        self.failed |= report.failed


def fails_cs336(member, folder):
    """Return whether one of its two tests of the attention function fails."""
    asked = WithMember(member)
    options = ["tests/test_model.py", "-k", "scaled_dot", "--disable-plugin-autoload"]
    with contextlib.chdir(folder):
        pytest.main([*options, "-q", "-p", "no:cacheprovider"], plugins=[asked])
    assert asked.ran == 2
    return asked.failed


if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(sys.argv[1]))
    torch.manual_seed(0)
    members, cs336 = [zoo.right, *zoo.WRONG], partial(fails_cs336, folder=sys.argv[1])
    caught = {
        suite: [x.name for x in members if fails(x)]
        for suite, fails in (("torch-judge", fails_torch_judge), ("cs336", cs336))
    }
    caught["asked about"] = len(zoo.WRONG)
    STORE.write_text(json.dumps(caught) + "\n", encoding="utf-8")
