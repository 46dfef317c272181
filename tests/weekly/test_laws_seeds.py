"""The laws with other seeds, and all laws where tests/laws asks a few of them."""

import subprocess
import sys

import pytest

from mha import laws, zoo
from tests.laws import test_modules as modules
from tests.laws import test_right as right
from tests.laws import test_zoo as bugs
from tests.laws import zoo_laws
from tests.laws.reports import STORED, broken

SEEDS = 0, 1, 2, 3


@pytest.mark.parametrize("name", right.RIGHT)
def test_what_is_right_breaks_no_law(name):
    right.test_what_is_right_breaks_no_law(name, SEEDS, None)


@pytest.mark.parametrize("ready", modules.READY, ids=lambda x: type(x).__name__)
def test_what_needs_no_adapter_breaks_no_law(ready):
    modules.test_torchs_own_attention_and_that_of_this_package_need_no_adapter(
        ready, None
    )


@pytest.mark.parametrize("seed", SEEDS[1:])
@pytest.mark.parametrize("member", zoo.WRONG, ids=lambda member: member.name)
def test_a_bug_breaks_a_law_whatever_the_seed(member, seed):
    subject = laws.torch(member) if member.on_tensors else member
    assert {*broken(laws.check(subject, seed=seed))} & {*STORED[member.name]}


@pytest.mark.parametrize("name", STORED)
def test_a_member_breaks_the_stored_laws_and_no_other(name):
    assert zoo_laws.computed()[name] == STORED[name]


def test_a_member_is_named_by_its_own_numbers_and_by_no_others():
    bugs.test_a_member_is_named_by_its_own_numbers_and_by_no_others(1, 12)


def test_the_kill_matrix_does_not_ask_who_has_imported_torch_before():
    code = "from mha import laws, zoo; print(laws.kill_matrix([laws."
    code += "gradients_are_slopes], [zoo.gradient_stopped]).killed.tolist())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.stdout == "[[True]]\n", done.stderr
