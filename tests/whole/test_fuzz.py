"""Functions made from a grammar of Python idioms: traced and called must give the same.

`python -m fuzz --help` in `tests` runs more of them. What was once found wrong stays here.
"""

import pytest
from fuzz.cases import Grammar
from fuzz.compare import judge
from fuzz.found import FOUND_ARGUMENTS, FOUND_LEAVES, FOUND_MODULES, FOUND_VALUES
from fuzz.singles import SCALARS, of_argument, of_leaf, of_value, of_written, singles

SEED = 12
HIDDEN = "hidden by y"


def assert_alike(case, runs=True):
    """Assert that nothing is found; say all that is needed to paste the case."""
    findings = judge(case, runs).findings
    words = "\n".join(f"[{finding.kind}] {finding.words}" for finding in findings)
    assert not findings, f"{case.seed}\n{case.source}\n{case.args} {case.changes}\n{words}"


@pytest.mark.parametrize("part", range(4))
def test_traced_and_called_give_the_same(part):
    for number in range(6 * part, 6 * (part + 1)):
        assert_alike(Grammar(f"{SEED}:{number}").case())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(40))
def test_two_thousand_functions(part):
    for number in range(50 * part, 50 * (part + 1)):
        assert_alike(Grammar(f"{SEED + 1}:{number}").case())


@pytest.mark.slow
def test_every_idiom_by_itself():
    for case in singles():
        assert_alike(case)


def test_the_grammar_makes_functions_of_all_kinds():
    made = [Grammar(f"{SEED}:{number}").case() for number in range(400)]
    assert sum(case.ordinary for case in made) > 30
    assert sum(case.memory for case in made) > 60
    assert sum(bool(case.changes) for case in made) > 60
    assert len({case.source for case in made}) > 390


# --- what was once found wrong ------------------------------------------------------------------


@pytest.mark.parametrize("scalar", SCALARS)
def test_values_once_found_wrong(scalar):
    for value in FOUND_VALUES:
        assert_alike(of_value(value, HIDDEN, scalar), runs=False)


@pytest.mark.parametrize("leaf", FOUND_LEAVES, ids=lambda leaf: leaf.name)
def test_states_once_found_wrong(leaf):
    assert_alike(of_leaf(leaf, HIDDEN))


@pytest.mark.parametrize("leaf", [leaf for leaf in FOUND_LEAVES if leaf.writable],
                         ids=lambda leaf: leaf.name)
def test_writes_once_found_wrong(leaf):
    assert_alike(of_written(leaf, HIDDEN))


@pytest.mark.parametrize(("argument", "use"), FOUND_ARGUMENTS,
                         ids=[f"{argument[0]}: {use}" for argument, use in FOUND_ARGUMENTS])
def test_arguments_once_found_wrong(argument, use):
    assert_alike(of_argument(argument, use, HIDDEN))


@pytest.mark.parametrize("case", FOUND_MODULES, ids=lambda case: case.name)
def test_modules_once_found_wrong(case):
    assert_alike(case)
