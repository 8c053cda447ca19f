"""Equations as physics gives them: raw mechanisms of any index, solved without a hint."""

import math
import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tether import ConsistencyWarning, Status, analyze, gallery, solve_dae
from tether.gallery import raw_mechanisms as raw

RTOLS = (1e-4, 1e-6, 1e-8)
G = raw.GRAVITY
RAW = [
    raw.double_pendulum(), raw.slider_crank(), raw.closed_chain(5), raw.closed_chain(10),
    raw.fekete_index_3(), raw.duplicated_pendulum(), raw.parallel_cranks(), raw.prescribed(3),
    raw.prescribed(4), raw.prescribed(5),
]


def solve_roughly(problem, rtol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsistencyWarning)
        return solve_dae(problem.fun, (0, problem.t_end), problem.rough, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("rtol", RTOLS)
@pytest.mark.parametrize("problem", RAW, ids=lambda p: p.name)
def test_approximate_values_are_all_it_takes(problem, rtol):
    sol = solve_roughly(problem, rtol)
    assert sol.success, sol.message
    assert f"index {problem.index} reduced to 1" in sol.how
    assert np.abs(sol.drift).max() < 1e-12
    assert sol.drift.shape[1] == len(sol.t)
    # one row of the equations as written is the position constraint itself
    given = np.array([problem.fun(t, y, yp)[-1] for t, y, yp in zip(sol.t, sol.y.T, sol.yp.T,
                                                                    strict=True)], float)
    assert np.abs(given).max() < 1e-12


# --- against ODEs in minimal coordinates ---------------------------------------------------------


def pendulum():
    problem = gallery.get("pend-i3")

    def slopes(t, y):
        return [y[1], -9.8 * math.sin(y[0])]

    def lift(y):
        sin, cos = math.sin(y[0]), math.cos(y[0])
        return np.array([sin, -cos, y[1] * cos, y[1] * sin])

    return problem.fun, problem.y0, 10.0, slopes, [math.pi / 2, 0.0], lift


def double_pendulum():
    problem = raw.double_pendulum()

    def slopes(t, y):
        a, b, u, v = y
        sin, cos = math.sin(a - b), math.cos(a - b)
        mass = np.array([[3.0, cos], [cos, 1.0]])
        force = [-sin * v * v - 3 * G * math.sin(a), sin * u * u - G * math.sin(b)]
        return [u, v, *np.linalg.solve(mass, force)]

    def lift(y):
        a, b, u, v = y
        x1, z1, x2, z2 = math.sin(a), -math.cos(a), math.sin(b), -math.cos(b)
        return np.array(
            [x1, z1, x1 + x2, z1 + z2, -z1 * u, x1 * u, -z1 * u - z2 * v, x1 * u + x2 * v]
        )

    start = [math.atan2(0.6, 0.8), math.pi / 2, 0.0, 0.0]
    return problem.fun, problem.y0, problem.t_end, slopes, start, lift


def slider_crank():
    problem = raw.slider_crank()
    r, rod = raw.CRANK, raw.ROD

    def geometry(phi):
        """Middle and angle of the rod, place of the slider, and their derivatives by phi."""
        psi = -np.arcsin(r * np.sin(phi) / rod)
        turn = -r * np.cos(phi) / (rod * np.cos(psi))
        x = r * np.cos(phi) + rod / 2 * np.cos(psi)
        x1 = -r * np.sin(phi) - rod / 2 * np.sin(psi) * turn
        s = r * np.cos(phi) + rod * np.cos(psi)
        s1 = -r * np.sin(phi) - rod * np.sin(psi) * turn
        return x, r * np.sin(phi) / 2, psi, s, x1, r * np.cos(phi) / 2, turn, s1

    def inertia(phi):
        *_, x1, z1, turn, s1 = geometry(phi)
        return 0.02 + x1**2 + z1**2 + 0.02 * turn**2 + 2 * s1**2

    def slopes(t, y):
        phi, v = y
        change = inertia(phi + 1e-30j).imag / 1e-30
        moment = 0.1 - change * v * v / 2 - G * r * math.cos(phi) / 2
        return [v, moment / inertia(phi)]

    def lift(y):
        phi, v = y
        x, z, psi, s, *rates = geometry(phi)
        return np.array([phi, x, z, psi, s, v, *(rate * v for rate in rates)])

    return problem.fun, problem.y0, problem.t_end, slopes, [0.7, 1.0], lift


@pytest.mark.parametrize("mechanism", [pendulum, double_pendulum, slider_crank])
def test_error_is_that_of_an_ode_in_minimal_coordinates(mechanism):
    fun, y0, t_end, slopes, start, lift = mechanism()
    exact = solve_ivp(slopes, (0, t_end), start, method="DOP853", rtol=1e-13, atol=1e-13)
    expected = lift(exact.y[:, -1])
    for rtol in RTOLS:
        ode = solve_ivp(slopes, (0, t_end), start, method="BDF", rtol=rtol, atol=rtol)
        allowed = np.abs(lift(ode.y[:, -1]) - expected).max()
        sol = solve_dae(fun, (0, t_end), y0, rtol=rtol, atol=rtol)
        assert sol.success
        error = np.abs(sol.y[: len(expected), -1] - expected).max()
        assert error < 3 * allowed


# --- against reference values -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "digits"),
    [("caraxis-i3", (1.5, 3.2, 4.5)), ("andrews-i3", (3.0, 4.5, 6.5))],
)
def test_reference_values(name, digits):
    problem = gallery.get(name)
    for rtol, least in zip(RTOLS, digits, strict=True):
        sol = solve_dae(
            problem.fun, problem.t_span, problem.y0, rtol=rtol, atol=problem.atol(rtol)
        )
        assert sol.success
        assert np.abs(sol.drift).max() < 1e-12
        assert problem.digits(sol.y[:, -1]) > least


@pytest.mark.parametrize(("rtol", "digits"), [(1e-6, 6.0), (1e-8, 8.0)])
def test_fekete_points_come_to_rest(rtol, digits):
    """Position constraints only, to t = 1000, where the points no longer move."""
    problem, reference = raw.fekete_index_3(), gallery.get("fekete")
    sol = solve_dae(problem.fun, (0, 1000), problem.y0, rtol=rtol, atol=rtol, t_eval=[1000])
    assert sol.success
    assert np.abs(sol.drift).max() < 1e-12
    assert -math.log10(np.abs(sol.y[:60, -1] - reference.reference).max()) > digits


@pytest.mark.parametrize("links", [5, 10])
def test_chains_of_three_forms_agree(links):
    problem = raw.closed_chain(links)
    ends = [
        solve_dae(problem.fun, (0, 1), problem.y0, rtol=1e-9, atol=1e-9, form=form).y[:, -1]
        for form in ("auto", 2, "given")
    ]
    moving = 4 * (links - 1)
    for other in ends[1:]:
        np.testing.assert_allclose(other[:moving], ends[0][:moving], atol=1e-6)


def test_prescribed_motion_is_differentiated_exactly():
    for index in (3, 4, 5):
        problem = raw.prescribed(index)
        sol = solve_roughly(problem, 1e-6)
        exact = np.array([np.sin(sol.t + k * math.pi / 2) for k in range(index)])
        np.testing.assert_allclose(sol.y, exact, atol=1e-11)


# --- what the user sees ------------------------------------------------------------------------


def test_a_second_order_chain_needs_further_unknowns_and_shows_none():
    """z = x'', with x given by its second derivative alone: x' must become an unknown."""

    def fun(t, y, yp):
        x, v, z = y
        return [yp[0] ** 3 + yp[0] - v, yp[1] + x, z - yp[1] * yp[0]]

    sol = solve_dae(fun, (0, 1), [1.0, 0.0, 0.0])
    assert sol.success
    assert sol.y.shape[0] == 3
    assert sol.yp.shape[0] == 3
    assert len(sol.start.y) == 3


def test_users_constraints_invariants_events_and_callback_go_with_a_reduced_system():
    problem = gallery.get("pend-i3")
    seen = []

    def lowest(t, y, yp):
        assert len(y) == len(yp) == 5
        return y[0]

    def energy(t, y):
        return (y[2] ** 2 + y[3] ** 2) / 2 + 9.8 * y[1]

    sol = solve_dae(
        problem.fun, (0, 5), problem.y0, events=lowest, invariants=energy, dense_output=True,
        callback=lambda t, y, yp: seen.append((t, len(y))) and False,
    )
    assert sol.success
    assert sol.drift.shape[0] == 3
    assert np.abs(sol.drift).max() < 1e-12
    assert len(seen) == sol.stats.steps
    np.testing.assert_allclose(sol.y_events[0][:, 0], 0, atol=1e-9)
    np.testing.assert_allclose(sol(2.5)[0][:4], problem.exact(2.5)[:4], atol=1e-4)


def test_an_event_may_change_a_reduced_system():
    """A pendulum that is stopped and let go at its lowest point stays there."""
    problem = gallery.get("pend-i3")

    def lowest(t, y, yp):
        return y[0]

    lowest.apply = lambda t, y, yp: [y[0], y[1], 0.0, 0.0, 0.0]
    sol = solve_dae(problem.fun, (0, 3), problem.y0, events=lowest)
    assert sol.success
    late = sol.t > sol.t_events[0][0] + 1e-6
    assert np.abs(sol.y[0, late]).max() < 1e-5


def test_invariants_refer_to_the_consistent_start():
    problem = gallery.get("pend-i3")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsistencyWarning)
        sol = solve_dae(
            problem.fun, (0, 1), [1.1, 0.0, 0.3, 1.0, 0.0],
            invariants=lambda t, y: (y[2] ** 2 + y[3] ** 2) / 2 + 9.8 * y[1],
        )
    assert sol.success
    assert np.abs(sol.drift).max() < 1e-12


def test_forms():
    problem = gallery.get("pend-i3")
    hows = {
        form: solve_dae(problem.fun, (0, 1), problem.y0, form=form).how
        for form in ("auto", 2, "given")
    }
    assert "index 3 reduced to 1" in hows["auto"]
    assert "index 3 reduced to 2" in hows[2]
    assert hows["given"] == "traced, as written"
    with pytest.raises(ValueError, match="form"):
        solve_dae(problem.fun, (0, 1), problem.y0, form=3)


def test_report_and_result_tell_the_same():
    problem = gallery.get("pend-i3")
    sol = solve_dae(problem.fun, (0, 1), problem.y0)
    before = analyze(problem.fun, 0.0, problem.y0)
    assert (sol.index.index, sol.index.dof) == (before.index, before.dof) == (3, 2)
    assert [str(entry) for entry in sol.index.hidden] == [str(entry) for entry in before.hidden]
    assert "reduced to 1" in str(sol)


def test_what_cannot_be_satisfied_is_named():
    """Two lengths for one rod."""

    def impossible(t, y, yp):
        x, z, u, w, lam, mu = y
        return [
            yp[0] - u, yp[1] - w, yp[2] + (lam + mu) * x, yp[3] + (lam + mu) * z + 9.8,
            x * x + z * z - 1, x * x + z * z - 2,
        ]

    sol = solve_dae(impossible, (0, 1), [1.0, 0, 0, 0, 0, 0])
    assert not sol.success
    assert sol.status in (Status.NO_CONSISTENT_START, Status.SINGULAR_SYSTEM)
    assert "equation" in sol.message


def test_a_multiplier_that_is_zero_does_not_decide_the_step():
    """The second multiplier of the stabilised pendulum is round-off, with atol = 1e-9 or less."""
    problem = gallery.get("pend-ggl")
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0)
    assert sol.success
    assert sol.stats.steps < 2000
    assert problem.digits(sol.y[:, -1]) > 3


def test_start_as_assumed():
    problem = gallery.get("pend-i3")
    start = [1.0, 1e-7, 0.0, 0.0, 0.0]
    sol = solve_dae(problem.fun, (0, 1), start, problem.yp0, start="assume")
    assert sol.success
    assert sol.y[:, 0].tolist() == start
