"""Laws of students that try to earn more than they find, and the limits of our own."""

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


ODD = {
    "prints": ("print('{\"points\": 35.0}')\nraise SystemExit", "refused SystemExit"),
    "no_list": ("print('no laws')", "refused KeyError: 'my_laws'"),
    "named": (
        "my_laws = [lambda attend: attend.right]",
        "laws 1  detected 2 of 2  alarms 5 of 5  points 0.0",
    ),
}


def test_odd_laws_earn_nothing(tmp_path, capsys):
    for name, (source, _) in ODD.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    trial.main(
        [str(tmp_path), "--hidden", "no_scale:width:64", "mask_ignored:batch:20"]
    )
    printed = capsys.readouterr().out.splitlines()
    assert dict(line.split("  ", 1) for line in printed) == {
        name: said for name, (_, said) in ODD.items()
    }
