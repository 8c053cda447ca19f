"""Random systems that switch and slide, against references that know nothing of surfaces."""

import pytest
from fuzz_switches import run

SEED = 4


@pytest.mark.parametrize("number", range(24))
def test_a_switched_system(number):
    found = run(SEED, number)
    assert found.kind == "ok", found.text


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_hundred_switched_systems(part):
    """None is wrong; where surfaces meet at a tangent, as for number 344, one may fail."""
    found = {k: run(SEED, k) for k in range(50 * part, 50 * part + 50)}
    assert not {k: f.text for k, f in found.items() if f.kind == "wrong"}
    failed = {k: f.text for k, f in found.items() if f.kind == "failed"}
    assert len(failed) <= 1, failed
