"""The laws with other seeds: no false alarm, and no bug of the zoo is lost."""

import pytest

from mha import laws, zoo
from tests.laws.reports import broken, killed_by
from tests.laws.right import RIGHT


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_breaks_no_law(name, seed):
    assert broken(laws.check(RIGHT[name], seed=seed)) == []


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("member", zoo.WRONG, ids=lambda member: member.name)
def test_a_bug_breaks_a_law_whatever_the_seed(member, seed):
    found = set(broken(laws.check(member, seed=seed)))
    assert found
    assert found & set(killed_by(member))
