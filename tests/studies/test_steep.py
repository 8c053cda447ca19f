"""Error estimates at index 2 (P82 sections 3 and 4)."""

from itertools import pairwise

import pytest

from tether.base.status import Status
from tether.studies import steep


def cells(table):
    """Rows of a Markdown table without head and rule."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_difference_stays_while_the_new_estimate_follows_the_error():
    last = steep.smooth_steps()[2:]
    for one, other in pairwise(last):
        assert one.difference == pytest.approx(other.difference, rel=0.1)
        assert one.error / other.error == pytest.approx(4, rel=0.05)
    for step in last:
        assert step.local == pytest.approx(step.error, rel=0.1)
        assert step.difference > 5 * step.error


def test_estimate_after_a_kink():
    """The solution is right again, the difference stays at half the jump for ever."""
    steps = steep.kink_steps()
    for step in steps:
        assert step.error < 1e-12
        assert step.difference == pytest.approx(0.495, rel=0.02)
    for one, other in pairwise(steps[2:]):
        assert one.local / other.local == pytest.approx(4, rel=0.1)


def test_error_at_order_2_vanishes_with_the_step():
    """... whatever the steps before were; the estimate thinks of kinks and does not believe it."""
    steps = steep.smooth_steps(2)
    for one, other in pairwise(steps[2:]):
        assert one.error / other.error == pytest.approx(4, rel=0.15)
    assert steps[-1].error < 1e-4
    assert all(step.local > step.error for step in steps[2:])


@pytest.mark.parametrize("delta", steep.DELTAS)
def test_steep_curve(delta):
    curve = steep.steep(delta)
    old = steep.run(curve, "classical", max_steps=5000)
    assert old.status in (Status.MAX_STEPS, Status.ERROR_TEST_FAILED)
    assert old.t_end < 0.5
    for estimate, most in (("local", 600), ("auto", 1500)):
        new = steep.run(curve, estimate)
        assert new.status == Status.REACHED_END
        assert new.error < 20
        assert new.steps < most


def test_leaving_the_unknown_out_says_nothing_about_its_error():
    for delta in steep.DELTAS[1:]:
        assert steep.run(steep.steep(delta), "exclude").error > 300


@pytest.mark.parametrize("estimate", ["classical", "local", "auto"])
def test_trouble_comes_one_step_after_the_kink(estimate):
    over, after = steep.failures_at_kink(estimate)
    assert over == 0
    assert after >= 4


def test_kink_is_found_to_round_off():
    found = steep.run(steep.kinked(100.0, level=False), "local", 1e-4)
    assert found.status == Status.ERROR_TEST_FAILED
    assert abs(found.t_end - found.curve.kink) < 1e-12
    assert cells(steep.kink_table([found]))[0][2] == "ERROR_TEST_FAILED"
