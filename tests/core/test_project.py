"""Projection onto constraints and invariants: drift, accuracy, order, rank, start, refusal."""

import math

import numpy as np
import pytest
from support.hanson_krogh import (
    START,
    TRUE_1000,
    L,
    Library,
    called_or_traced,
    energy,
    hk,
    pendulum,
    position_error,
    rod,
    solve_pendulum,
    with_jacobian,
)

from tether import Bdf, Options, Problem, Status, gallery, solve_dae
from tether.gallery.compiled import find_compiler


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if find_compiler() is None:
        pytest.skip("no C compiler")
    return Library(tmp_path_factory.mktemp("hk"))


# --- HK's pendulum ----------------------------------------------------------------------------


@pytest.mark.parametrize("ndig", [5, 6, 8, 10])
@pytest.mark.parametrize("index", [1, 0])
def test_no_drift_over_a_thousand_seconds(library, index, ndig):
    for with_energy in (False, True):
        sol = hk(library, index, ndig, 1000.0, with_energy=with_energy)
        assert sol.success
        assert abs(sol.drift[0, -1]) < 1e-13
        assert sol.stats.worst_drift < 1e-12
        assert sol.stats.projections >= sol.stats.steps


@pytest.mark.parametrize("ndig", [8, 10])
@pytest.mark.parametrize("index", [1, 0])
def test_energy_makes_the_error_a_hundred_times_smaller(library, index, ndig):
    without = position_error(hk(library, index, ndig, 1000.0))
    with_energy = position_error(hk(library, index, ndig, 1000.0, with_energy=True))
    assert 100 * with_energy < without
    assert with_energy < {8: 1e-4, 10: 1e-6}[ndig]
    assert without < {8: 3e-2, 10: 2e-3}[ndig]


@pytest.mark.slow
@pytest.mark.parametrize("index", [1, 0])
def test_growth_of_the_error_to_ten_thousand_seconds(library, index):
    true = {1000.0: TRUE_1000, 10000.0: np.array([1.099747546932723032363,
                                                  -0.023565504778343943906])}
    for with_energy, low, high in ((False, 80, 120), (True, 0, 20)):
        phase = {}
        for t_end, exact in true.items():
            sol = hk(library, index, 10, t_end, with_energy=with_energy)
            phase[t_end] = (np.linalg.norm(sol.y[:2, -1] - exact)
                            / np.linalg.norm(sol.y[2:4, -1]))
            assert abs(sol.drift[0, -1]) < 1e-13
        assert low < phase[10000.0] / phase[1000.0] < high


def test_without_projection_the_index_1_form_leaves_the_circle(library):
    sol = hk(library, 1, 6, 1000.0, constrained=False)
    off = abs(np.hypot(*sol.y[:2, -1]) - L) if len(sol.t) else np.inf
    assert not sol.success or off > 0.1


def test_work_of_the_projected_run(library):
    sol = hk(library, 1, 8, 1000.0)
    assert sol.stats.steps < 160_000
    assert sol.nfev < 3.0 * sol.stats.steps
    assert sol.stats.error_test_failures < 100


# --- order and accuracy -----------------------------------------------------------------------


def test_projection_keeps_the_order_of_the_tolerance():
    """The error follows rtol with projection as without; with the energy it is smaller."""
    problem = gallery.get("pend-i1")

    def constraint(t, y):
        return [y[0] ** 2 + y[1] ** 2 - 1.0, y[0] * y[2] + y[1] * y[3]]

    rtols = 10.0 ** -np.arange(4.0, 9.1)
    times = np.linspace(*problem.t_span, 51)
    exact = np.array([problem.exact(t) for t in times]).T[:4]
    errors = {}
    held = {"constraints": constraint}
    all_held = {**held, "invariants": lambda t, y: 0.5 * (y[2] ** 2 + y[3] ** 2) + 9.8 * y[1]}
    for name, options in (("free", {}), ("held", held), ("all held", all_held)):
        errors[name] = [
            np.abs(solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol,
                             atol=rtol, t_eval=times, **options).y[:4] - exact).max()
            for rtol in rtols
        ]
        slope = np.polyfit(np.log10(rtols), np.log10(errors[name]), 1)[0]
        assert 0.75 < slope < 1.2
    for name, bound in (("held", 3.0), ("all held", 0.5)):
        ratio = np.array(errors[name]) / np.array(errors["free"])
        assert np.exp(np.log(ratio).mean()) < bound


@called_or_traced
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_projection_keeps_the_order_of_the_formula(k, trace):
    """Harmonic oscillator held on its circle: order k in the phase, by step refinement."""
    def exact(t):
        return np.array([np.cos(t), np.sin(t)])

    problem = Problem(lambda t, y, yp: [yp[0] + y[1], yp[1] - y[0]],
                      constraints=lambda t, y: y[0] ** 2 + y[1] ** 2 - 1.0)
    errors = []
    for steps in (40, 80):
        h = 2.0 / steps
        before = -h * np.arange(k, 0, -1)
        bdf = Bdf(problem, 0.0, exact(0.0), None,
                  Options(rtol=1e-3, atol=10.0, first_step=h, max_step=h, max_order=k,
                          newton_tolerance=1e-13, trace=trace),
                  t_bound=2.0, history=(before, exact(before)))
        while bdf.status == Status.RUNNING:
            bdf._integration.state.h = h
            bdf.step()
        assert abs(np.hypot(*bdf.y) - 1.0) < 1e-14
        errors.append(np.abs(bdf.y - exact(2.0)).max())
    # Odd orders err across the circle, which the projection removes: one order more is welcome.
    assert k - 0.25 < math.log2(errors[0] / errors[1]) < k + 1.4


def test_slope_belongs_to_the_difference_formula():
    """y' of a projected step is that of the polynomial: consistent with y, not with F alone."""
    problem = Problem(pendulum, constraints=rod)
    bdf = Bdf(problem, 0.0, START, None, Options(rtol=1e-6, atol=1e-6), t_bound=2.0,
              dense_output=False)              # a look between the steps would need its arrays
    for _ in range(200):
        bdf.step()
    state = bdf._integration.state
    correction = state.array("phi")[:5] - state.array("y_predicted")
    np.testing.assert_allclose(
        bdf.yp, state.array("yp_predicted") + state.cj * correction, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("placement", ["before", "after"])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 0.7])
def test_power_and_placement(placement, power):
    sol = solve_pendulum(constraints=rod, invariants=energy,
                         options={"projection_power": power, "projection_placement": placement})
    assert np.abs(sol.drift).max() < 1e-13
    assert abs(energy(0, sol.y[:, -1])) < 1e-13


@pytest.mark.parametrize("solver", ["orthogonal", "cholesky", "sparse"])
def test_three_solvers_give_the_same(solver):
    reference = solve_pendulum(t_end=1.0, constraints=rod)
    sol = solve_pendulum(t_end=1.0, constraints=rod, options={"projection_solver": solver})
    assert np.abs(sol.drift).max() < 1e-13
    np.testing.assert_allclose(sol.y[:, -1], reference.y[:, -1], rtol=1e-7)


# --- start, outputs, events -------------------------------------------------------------------


@called_or_traced
def test_a_start_off_the_constraints_is_refused(trace):
    refusal = r"constraints\[0\], value 0 is -0\.105.*y0\[0\] \(x\) by 0\.1"
    with pytest.raises(ValueError, match=refusal):
        solve_dae(pendulum, (0, 1), [1.0, 0, 0, 0, 0], constraints=rod, trace=trace)


def test_a_start_off_the_constraints_can_be_accepted():
    sol = solve_dae(pendulum, (0, 1), [1.0, 0, 0, 0, 0], constraints=rod,
                    options={"accept_projected_start": True})
    assert sol.success
    assert sol.y[0, 0] == pytest.approx(L, abs=1e-14)
    assert sol.start.moved[0] == pytest.approx(0.1, abs=1e-12)
    assert "constraints" in sol.start.message


def test_a_start_within_the_tolerance_is_moved_quietly():
    sol = solve_dae(pendulum, (0, 1), [L + 1e-8, 0, 0, 0, 0], constraints=rod)
    assert abs(sol.y[0, 0] - L) < 1e-15
    assert np.abs(sol.drift).max() < 1e-13


def test_constraints_that_contradict_each_other():
    with pytest.raises(ValueError, match="cannot be brought to zero"):
        solve_dae(lambda t, y, yp: [yp[0]], (0, 1), [1.0],
                  constraints=lambda t, y: [y[0] - 1.0, y[0] - 2.0])


@pytest.mark.parametrize("t_end", [5.0, 1000.0])
@pytest.mark.parametrize("placement", ["before", "after"])
def test_an_invariant_of_a_decay_stops_the_run(placement, t_end):
    sol = solve_dae(lambda t, y, yp: [yp[0] + 0.1 * y[0]], (0, t_end), [1.0],
                    invariants=lambda t, y: y[0], options={"projection_placement": placement})
    assert sol.status == Status.CONTRADICTION


def test_worst_drift_is_that_of_the_accepted_steps():
    def bottom(t, y, yp):
        return y[0]

    bottom.apply = lambda t, y, yp: y
    sol = solve_pendulum(constraints=rod, invariants=energy, events=bottom)
    assert sol.stats.worst_drift <= np.abs(sol.drift).max()
    sol = solve_pendulum(constraints=rod)
    assert sol.stats.worst_drift == np.abs(sol.drift).max()


@pytest.mark.parametrize("placement", ["before", "after"])
def test_a_constraint_that_contradicts_the_dynamics_stops_the_run(placement):
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0, yp[1] + y[1]], (0, 10), [0.0, 1.0],
                    constraints=lambda t, y: y[0],
                    options={"projection_placement": placement}, max_steps=100_000)
    assert sol.status == Status.CONTRADICTION
    assert "contradict" in sol.message
    assert len(sol.t) > 1


def test_an_invariant_that_is_none_stops_the_run():
    """A damped pendulum does not keep its energy."""
    def damped(t, y, yp):
        return [yp[0] - y[1], yp[1] + math.sin(y[0]) + 0.2 * y[1]]

    sol = solve_dae(damped, (0, 50), [1.0, 0.0], max_steps=100_000,
                    invariants=lambda t, y: 0.5 * y[1] ** 2 - math.cos(y[0]))
    assert sol.status == Status.CONTRADICTION


def test_dependent_constraints_and_the_solvers_that_cannot():
    for solver in ("cholesky", "sparse"):
        with pytest.raises(ValueError, match="depend"):
            solve_pendulum(constraints=[rod, rod], options={"projection_solver": solver})


def test_outputs_between_the_steps_are_on_the_constraints():
    sol = solve_pendulum(constraints=rod, t_eval=np.linspace(0.1, 4.9, 23))
    assert sol.drift.shape == (2, 23)
    assert np.abs(sol.drift).max() < 1e-14
    x, z = sol.y[:2]
    assert np.abs(x * x + z * z - L * L).max() < 1e-14


def test_drift_is_shown_in_print_and_plot():
    pytest.importorskip("matplotlib").use("Agg")
    sol = solve_pendulum(t_end=1.0, constraints=rod, invariants=energy)
    assert "drift" in str(sol)
    assert sol.drift.shape == (3, len(sol.t))
    figure = sol.plot()
    labels = [axis.get_ylabel() for axis in figure.axes]
    assert labels[-3:] == ["step size", "order", "drift"]


@called_or_traced
def test_event_point_and_restart_are_on_the_constraints(trace):
    def bottom(t, y, yp):
        return y[0]

    def slow_down(t, y, yp):
        return [y[0], y[1], 0.9 * y[2], 0.9 * y[3], y[4]]

    bottom.apply = slow_down
    sol = solve_pendulum(constraints=rod, invariants=energy, events=bottom, trace=trace)
    assert len(sol.t_events[0]) >= 4
    assert np.abs(sol.drift[0]).max() < 1e-13
    # the energy is another one after each change, and kept in between
    energies = np.array([energy(0, y) for y in sol.y.T])
    jumps = np.flatnonzero(np.diff(sol.t) == 0)
    for piece in np.split(energies, jumps + 1):
        assert np.ptp(piece) < 1e-8
    assert energies[-1] < energies[0] - 1.0


@called_or_traced
def test_a_failing_constraint_function(trace):
    def raising(t, y):
        if t > 0.5:
            raise RuntimeError("mine")
        return rod(t, y)

    with pytest.raises(RuntimeError, match="mine"):
        solve_pendulum(constraints=raising, trace=trace)
    sol = solve_dae(pendulum, (0, 1), START, trace=trace,
                    constraints=lambda t, y: rod(t, y) if t < 0.5 else [math.nan] * 2)
    assert sol.status == Status.NON_FINITE
    assert sol.t[-1] == pytest.approx(0.5, abs=1e-3)


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "value"), [
    ("projection_power", "1"), ("projection_power", math.nan), ("projection_solver", "qr"),
    ("projection_placement", "during"), ("accept_projected_start", 1),
])
def test_bad_options(option, value):
    with pytest.raises((TypeError, ValueError), match=option):
        Options(**{option: value})


def test_many_sparse_constraints():
    """Forty oscillators, each on its circle: the sparse solver agrees with the orthogonal one."""
    from scipy import sparse

    count = 40
    speed = np.linspace(1.0, 2.0, count)

    def oscillators(t, y, yp):
        x, z = y[:count], y[count:]
        return np.concatenate([yp[:count] + speed * z, yp[count:] - speed * x])

    circles = with_jacobian(
        lambda t, y: y[:count] ** 2 + y[count:] ** 2 - 1.0,
        lambda t, y: sparse.hstack([sparse.diags(2 * y[:count]), sparse.diags(2 * y[count:])]),
    )
    y0 = np.concatenate([np.ones(count), np.zeros(count)])
    ends = []
    for solver in ("orthogonal", "sparse", "cholesky"):
        sol = solve_dae(oscillators, (0, 5), y0, rtol=1e-5, atol=1e-5, constraints=circles,
                        options={"projection_solver": solver})
        assert np.abs(sol.drift).max() < 1e-13
        ends.append(sol.y[:, -1])
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)
    np.testing.assert_allclose(ends[2], ends[0], atol=1e-9)
