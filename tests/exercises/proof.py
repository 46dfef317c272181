"""What every exercise has to prove before a learner sees it."""

import inspect

MISTAKES_AT_LEAST = 5


def prove(exercise, *right_ways, wrong_ways=None):
    """Assert that `exercise` knows a stub, several right answers and each mistake.

    `wrong_ways` maps the name of a mistake to further programs, written differently,
    that make it.
    """
    stays_quiet_on_a_stub(exercise)
    assert len(right_ways) >= 2, "one right answer may be the check's own"
    for answer in (exercise.right, *right_ways):
        verdict = exercise(answer)
        assert verdict.passed, f"a right answer is refused:\n{verdict}"
    names_each_mistake(exercise, wrong_ways or {})


def stays_quiet_on_a_stub(exercise):
    stubs = [None, ...]
    if callable(exercise.right):
        stubs += _stubs(list(inspect.signature(exercise.right).parameters))
    for stub in stubs:
        assert exercise(stub).status == "not attempted yet"


def _stubs(names):
    """Return functions of these arguments whose bodies hold nothing."""
    bodies = ["...", "pass", '"""Say what it does."""', "raise NotImplementedError"]
    found = []
    for body in bodies:
        scope = {}
        exec(f"def stub({', '.join(names)}):\n    {body}", scope)
        found.append(scope["stub"])
    return found


def names_each_mistake(exercise, wrong_ways):
    names = [m.name for m in exercise.mistakes]
    assert len(set(names)) == len(names) >= MISTAKES_AT_LEAST
    assert len({m.hint for m in exercise.mistakes}) == len(names)
    assert set(wrong_ways) <= set(names)
    for mistake in exercise.mistakes:
        answers = [mistake.answer, *wrong_ways.get(mistake.name, ())]
        for answer in answers:
            verdict = exercise(answer)
            assert verdict.status == "not yet", f"{mistake.name} passes"
            assert verdict.mistake == mistake.name, f"{mistake.name}:\n{verdict}"
            hints = [m.hint for m in exercise.mistakes if m.hint in verdict.text]
            assert hints == [mistake.hint]
            assert exercise.reread in verdict.text
            # The expected value of a prediction would be the solution.
            assert ("expected" in verdict.text) == (exercise.cases != ((),))
