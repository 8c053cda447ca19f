"""Random systems that switch and slide, against references that locate every switch."""

import pytest
from fuzz_switches import TIMES, make, run
from fuzz_switches.exact import references

SEED = 4


@pytest.mark.parametrize("number", range(24))
def test_a_switched_system(number):
    found = run(SEED, number)
    assert found.kind == "ok", found.text


def test_every_way_on_is_followed():
    """Where number 344 meets two surfaces at once it may go on in two ways: both are solutions."""
    case = make(SEED, 344)
    found = references(case, TIMES)
    assert len(found) == 2
    assert abs(found[0] - found[1])[-1].max() > 1e-3
    assert run(SEED, 344).kind == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_hundred_switched_systems(part):
    """All are compared, and no error is above a hundred tolerances."""
    found = {k: run(SEED, k) for k in range(50 * part, 50 * part + 50)}
    assert not {k: (f.kind, f.text) for k, f in found.items() if f.kind != "ok"}
