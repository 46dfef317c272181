"""What the page for teachers says of the laws of the package, and of their limits."""

import pytest

import trial
from exercises.laws import subjects
from mha import laws


@pytest.mark.parametrize(
    ("limit", "most"), [("batch:20", 0), ("width:64", 0), ("length:300", 3)]
)
def test_the_laws_of_the_package_detect_little_beyond_the_limits_of_the_page(
    limit, most
):
    wrong = [subject.name for subject in subjects() if not subject.right]
    hidden = [trial.hidden(f"{name}:{limit}") for name in wrong]
    detected = [each.name for each in hidden if laws.check(each).broken]
    assert len(wrong) == 21
    assert len(detected) == most
