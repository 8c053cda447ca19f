"""Solutions that meet several surfaces at one time: copies of one system are as good as one."""

import numpy as np
import pytest

from tether import solve_dae

FORCES = {
    "max": lambda x: max(x, 0.0),
    "abs": abs,
    "square": lambda x: max(x, 0.0) ** 2,
    "kink by if": lambda x: x * (x + 1.0) if x > 0.0 else 0.0,
    "nested": lambda x: max(x, 0.0) ** 2 - max(max(x, 0.0) - 0.5 * x, 0.0) ** 2,
    "jump": np.sign,
    "jump by if": lambda x: 1.0 if x > 0.0 else 0.0,
}
RUN = {"start": "quiet", "rtol": 1e-8, "atol": 1e-10}


def copies_of(count, force, level, back):
    """Make copies of v' = 2 sin(t) - v + back w with w = force(v - level)."""

    def fun(t, y, yp):
        left = []
        for k in range(count):
            v, w = y[2 * k], y[2 * k + 1]
            left += [yp[2 * k] + v - 2.0 * np.sin(t) - back * w, w - force(v - level)]
        return left

    return fun


@pytest.mark.parametrize("force", FORCES)
@pytest.mark.parametrize(
    ("level", "back"),
    [(1.0, 0.1), (1.0, 0.0), (1.0, -1.5), (0.0, -0.1), (0.0, -1.5)],
    ids=["passed", "without effect", "may hold", "starts there", "starts held"],
)
def test_copies_go_as_one(force, level, back):
    one, two, five = [
        solve_dae(copies_of(count, FORCES[force], level, back), (0, 8), [0.0, 0.0] * count, **RUN)
        for count in (1, 2, 5)
    ]
    assert one.success
    for many in (two, five):
        assert many.success, many.message
        ends = many.y[::2, -1]
        assert np.ptp(ends) < 1e-9
        assert np.allclose(ends, one.y[0, -1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("force", ["max", "abs", "square", "kink by if", "nested"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_nothing_is_held_on_kinks(force, count):
    """The equations are the same on both sides of them: there is no other structure to look for."""
    sol = solve_dae(copies_of(count, FORCES[force], 1.0, 0.1), (0, 8), [0.0] * 2 * count, **RUN)
    one = solve_dae(copies_of(1, FORCES[force], 1.0, 0.1), (0, 8), [0.0, 0.0], **RUN)
    assert "structure" not in sol.how
    assert (sol.nfev, len(sol.t)) == (one.nfev, len(one.t))


def test_one_is_passed_while_another_holds():
    """A block at rest on dry friction, and a kink and a jump that another unknown passes."""

    def fun(t, y, yp):
        v, x, w = y
        friction = np.sign(v)
        return [yp[0] - 0.5 * np.sin(t) + friction, yp[1] - 1.0,
                w - max(x - 1.0, 0.0) - np.sign(x - 1.0) - 2.0 * max(x - 1.0 + v, 0.0)]

    sol = solve_dae(fun, (0, 3), [0.0, 0.0, -1.0], **RUN)
    assert sol.success
    assert np.allclose(sol.y[:, -1], [0.0, 3.0, 2.0 + 1.0 + 4.0], atol=1e-7)


LAWS = {
    "if": lambda h: 1.0 if h > 0 else -1.0,
    "if not": lambda h: -1.0 if h <= 0 else 1.0,
    "where": lambda h: np.where(h > 0, 1.0, -1.0),
    "sign": np.sign,
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("algebraic", [False, True])
def test_two_surfaces_are_passed_ever_faster(law, algebraic):
    """A spiral into their corner, in less than one second; there is no mixture of one alone.

    Pulled by t - 2, it leaves the corner at 46/15, when the share for b is used up, to b < 0 < a.
    """
    def spiral(t, y, yp):
        a, b = y[:2]
        above_a, above_b = (y[2], y[3]) if algebraic else (law(a), law(b))
        found = [yp[0] - 0.3 * above_a - 1.2 * above_b - (t - 2 if t > 2 else 0.0),
                 yp[1] + 4.5 * above_a + 2 * above_b]
        return [*found, y[2] - law(a), y[3] - law(b)] if algebraic else found

    start = [0.0, 0.8, -1.0, 1.0][: 4 if algebraic else 2]
    held = solve_dae(spiral, (0, 3), start, **RUN)
    assert held.success, held.message
    assert np.abs(held.y[:2, held.t > 1]).max() < 1e-9
    sol = solve_dae(spiral, (0, 4), start, **RUN)
    assert sol.success, sol.message
    gone, left = 46 / 15, 4 - 46 / 15
    exact = [-0.9 * left + ((4 - 2) ** 2 - (gone - 2) ** 2) / 2, -2.5 * left]
    assert sol.y[:2, -1] == pytest.approx(exact, abs=1e-6)
