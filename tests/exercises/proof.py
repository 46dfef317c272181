"""What every exercise has to prove before a learner sees it."""

MISTAKES_AT_LEAST = 5


def prove(exercise, *right_ways, wrong_ways=None):
    """Assert that `exercise` knows a stub, several right answers and each mistake.

    `wrong_ways` maps the name of a mistake to further programs, written differently,
    that make it.
    """
    exercise.self_test()
    assert len(exercise.mistakes) >= MISTAKES_AT_LEAST
    assert len(right_ways) >= 2, "one right answer may be the check's own"
    for answer in right_ways:
        verdict = exercise(answer)
        assert verdict.passed, f"a right answer is refused:\n{verdict}"
    hints = {mistake.name: mistake.hint for mistake in exercise.mistakes}
    for name, answers in (wrong_ways or {}).items():
        for answer in answers:
            verdict = exercise(answer)
            assert verdict.status == "not yet", f"{name} passes"
            assert verdict.mistake == name, f"{name}:\n{verdict}"
            assert [h for h in hints.values() if h in verdict.text] == [hints[name]]
            assert exercise.reread in verdict.text
            # The expected value of a prediction would be the solution.
            shows = "\n  expected  " in verdict.text
            assert shows == (exercise.cases != ((),))
