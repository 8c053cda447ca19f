"""Projection onto constraints and invariants: drift, accuracy, order, rank, start, refusal."""

import ctypes
import math
import subprocess

import numpy as np
import pytest

from tether import Bdf, Constraint, Options, Problem, Status, gallery, solve_dae
from tether.gallery.compiled import find_compiler

G, L = 9.80665, 1.1
START = [L, 0.0, 0.0, 0.0, 0.0]
# Position at t = 1000 by Jacobi elliptic functions (HK's pendulum)
TRUE_1000 = np.array([-1.054143946983521761325, -0.314293714601488749072])

HK_C = """
#define G 9.80665
#define L 1.1
void index1(double t, double *y, double *p, double *o) {
    o[0] = p[0] - y[2]; o[1] = p[1] - y[3]; o[2] = p[2] + y[4]*y[0]; o[3] = p[3] + y[4]*y[1] + G;
    o[4] = -y[4]*L*L + y[2]*y[2] + y[3]*y[3] - G*y[1]; }
void index0(double t, double *y, double *p, double *o) {
    o[0] = p[0] - y[2]; o[1] = p[1] - y[3]; o[2] = p[2] + y[4]*y[0]; o[3] = p[3] + y[4]*y[1] + G;
    o[4] = -p[4]*L*L - 3*G*y[3]; }
void rod(double t, double *y, double *g) {
    g[0] = 0.5*(y[0]*y[0] + y[1]*y[1] - L*L); g[1] = y[0]*y[2] + y[1]*y[3]; }
void rod_jac(double t, double *y, double *j) {
    j[0] = y[0]; j[1] = y[1]; j[2] = j[3] = j[4] = 0;
    j[5] = y[2]; j[6] = y[3]; j[7] = y[0]; j[8] = y[1]; j[9] = 0; }
void tension(double t, double *y, double *g) {
    g[0] = -y[4]*L*L + y[2]*y[2] + y[3]*y[3] - G*y[1]; }
void tension_jac(double t, double *y, double *j) {
    j[0] = 0; j[1] = -G; j[2] = 2*y[2]; j[3] = 2*y[3]; j[4] = -L*L; }
void energy(double t, double *y, double *g) { g[0] = 0.5*(y[2]*y[2] + y[3]*y[3]) + G*y[1]; }
void energy_jac(double t, double *y, double *j) {
    j[0] = 0; j[1] = G; j[2] = y[2]; j[3] = y[3]; j[4] = 0; }
int counted(double t, double *y, double *g) { g[0] = y[0]; return 0; }
void scaled_jac(double t, double *y, double *j) { j[0] = 2*y[0]; }
void scaled(double t, double *y, double *g, void *factor) {
    g[0] = *(double *)factor * (y[0]*y[0] + y[1]*y[1] - L*L); }
"""


class Library:
    """C functions of HK's pendulum."""

    def __init__(self, folder):
        source, library = folder / "hk.c", folder / "libhk.so"
        source.write_text(HK_C)
        subprocess.run([find_compiler(), "-O2", "-shared", "-fPIC", "-o", str(library),
                        str(source)], check=True)
        self.functions = ctypes.CDLL(str(library))

    def function(self, name, pointers, *more):
        function = getattr(self.functions, name)
        function.restype = None
        function.argtypes = [ctypes.c_double, *[ctypes.POINTER(ctypes.c_double)] * pointers, *more]
        return function

    def constraint(self, name, size, jac=True):
        return Constraint(self.function(name, 2), size=size,
                          jac=self.function(f"{name}_jac", 2) if jac else None)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if find_compiler() is None:
        pytest.skip("no C compiler")
    return Library(tmp_path_factory.mktemp("hk"))


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G,
            -lam * L * L + u * u + w * w - G * z]


def rod(t, y):
    return [0.5 * (y[0] ** 2 + y[1] ** 2 - L * L), y[0] * y[2] + y[1] * y[3]]


def energy(t, y):
    return 0.5 * (y[2] ** 2 + y[3] ** 2) + G * y[1]


def with_jacobian(fun, jac):
    def constraint(t, y):
        return fun(t, y)

    constraint.jac = jac
    return constraint


called_or_traced = pytest.mark.parametrize("trace", ["never", "auto"])


def solve_pendulum(t_end=5.0, tol=1e-7, **options):
    sol = solve_dae(pendulum, (0.0, t_end), START, rtol=tol, atol=tol, **options)
    assert sol.success, sol.message
    return sol


def hk(library, index, ndig, t_end, constrained=True, with_energy=False, **options):
    """HK's pendulum with compiled functions."""
    constraints = [library.constraint("rod", 2)]
    if index == 0:
        constraints.append(library.constraint("tension", 1))
    tol = 10.0 ** -ndig
    return solve_dae(
        library.function(f"index{index}", 3), (0.0, t_end), START, rtol=tol, atol=tol,
        t_eval=[t_end], constraints=constraints if constrained else None,
        invariants=library.constraint("energy", 1) if with_energy else None, **options,
    )


def position_error(sol):
    assert sol.success, sol.message
    return np.abs(sol.y[:2, -1] - TRUE_1000).max()


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
    assert sol.stats.steps < 250_000
    assert sol.nfev < 2.6 * sol.stats.steps
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
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
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


# --- every kind of constraint -----------------------------------------------------------------


def test_python_constraints_alike():
    """List of callables, one callable, with Jacobian or without."""
    jac = with_jacobian(rod, lambda t, y: [[y[0], y[1], 0, 0, 0], [y[2], y[3], y[0], y[1], 0]])
    forms = [
        rod,
        [rod],
        (lambda t, y: rod(t, y)[0], lambda t, y: np.array([rod(t, y)[1]])),
        jac,
        Constraint(rod, jac=jac.jac),
    ]
    ends = [
        solve_pendulum(t_end=2.0, constraints=form, trace=trace).y[:, -1]
        for form in forms
        for trace in ("never", "auto")
    ]
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], atol=1e-5)


def test_c_constraints_alike(library):
    factor = ctypes.c_double(3.0)
    from scipy import LowLevelCallable

    with_data = LowLevelCallable(
        library.function("scaled", 2, ctypes.c_void_p), ctypes.cast(ctypes.byref(factor),
                                                                    ctypes.c_void_p))
    python = solve_pendulum(t_end=2.0, constraints=rod)
    for constraint in (library.constraint("rod", 2), library.constraint("rod", 2, jac=False),
                       [lambda t, y: rod(t, y)[1], Constraint(with_data, size=1)]):
        sol = solve_pendulum(t_end=2.0, constraints=constraint)
        assert np.abs(sol.drift).max() < 1e-13
        np.testing.assert_allclose(sol.y[:, -1], python.y[:, -1], atol=1e-5)


@called_or_traced
def test_args_reach_the_constraints(trace):
    sol = solve_dae(lambda t, y, yp, r: [yp[0] + y[1], yp[1] - y[0]], (0, 10), [2.0, 0.0],
                    args=(2.0,), constraints=lambda t, y, r: y[0] ** 2 + y[1] ** 2 - r * r,
                    trace=trace)
    assert np.abs(np.hypot(*sol.y) - 2.0).max() < 1e-14


@called_or_traced
def test_twenty_copies_of_one_constraint(trace):
    one = solve_pendulum(t_end=2.0, constraints=rod, trace=trace)
    many = solve_pendulum(t_end=2.0, constraints=[rod] * 20, trace=trace)
    assert many.drift.shape[0] == 40
    assert np.abs(many.drift).max() < 1e-13
    np.testing.assert_allclose(many.y[:, -1], one.y[:, -1], atol=1e-6)


@called_or_traced
def test_more_constraints_than_unknowns(trace):
    def circle(t, y):
        r = y[0] ** 2 + y[1] ** 2 - 1.0
        return [r, 2 * r, r * (1 + y[0] ** 2)]

    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], yp[1] - y[0]], (0, 50), [1.0, 0.0],
                    constraints=circle, trace=trace)
    assert np.abs(sol.drift).max() < 1e-14


@called_or_traced
def test_time_dependent_constraint(trace):
    """x' = x cos t with x = exp(sin t) as a constraint."""
    sol = solve_dae(lambda t, y, yp: [yp[0] - y[0] * math.cos(t)], (0, 30), [1.0], rtol=1e-4,
                    constraints=lambda t, y: y[0] - math.exp(math.sin(t)), trace=trace)
    np.testing.assert_allclose(sol.y[0], np.exp(np.sin(sol.t)), rtol=1e-14)


@called_or_traced
def test_a_constraint_whose_jacobian_loses_rank_on_the_way(trace):
    """G = y0^2 + y1^2 - 2 t^2... is flat at t = 0, which the solution y = (t, t) passes."""
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0, yp[1] - 1.0], (-1, 1), [-1.0, -1.0],
                    constraints=lambda t, y: y[0] ** 2 + y[1] ** 2 - 2 * t * t, trace=trace)
    assert sol.success
    np.testing.assert_allclose(sol.y, np.array([sol.t, sol.t]), atol=1e-7)


def test_kepler_orbit_over_a_thousand_revolutions():
    """Energy and angular momentum keep the orbit's shape; without them it spirals."""
    def orbit(t, y, yp):
        x, z, u, w = y
        r3 = (x * x + z * z) ** 1.5
        return [yp[0] - u, yp[1] - w, yp[2] + x / r3, yp[3] + z / r3]

    def shape(t, y):
        x, z, u, w = y
        return [0.5 * (u * u + w * w) - (x * x + z * z) ** -0.5, x * w - z * u]

    e = 0.3
    y0 = [1 - e, 0.0, 0.0, math.sqrt((1 + e) / (1 - e))]
    span = (0.0, 2 * math.pi * 1000)
    kept, free = (
        solve_dae(orbit, span, y0, rtol=1e-7, atol=1e-7, t_eval=[span[1]], **options)
        for options in ({"invariants": shape}, {})
    )
    reference = shape(0, y0)
    assert np.abs(np.subtract(shape(0, kept.y[:, -1]), reference)).max() < 1e-13
    assert np.abs(np.subtract(shape(0, free.y[:, -1]), reference)).max() > 1e-4
    assert kept.stats.worst_drift < 1e-12


def test_rigid_body_with_its_two_invariants():
    inertia = np.array([1.0, 2.0, 3.0])

    def body(t, y, yp):
        a, b, c = y
        return [yp[0] - (2 - 3) / 1 * b * c, yp[1] - (3 - 1) / 2 * c * a,
                yp[2] - (1 - 2) / 3 * a * b]

    def momentum_and_energy(t, y):
        return [np.sum((inertia * y) ** 2), np.sum(inertia * y * y)]

    y0 = np.array([0.1, 1.0, 0.1])
    sol = solve_dae(body, (0, 200), y0, rtol=1e-6, atol=1e-9, invariants=momentum_and_energy)
    assert np.abs(sol.drift).max() < 1e-14
    start, end = (momentum_and_energy(0, y) for y in (y0, sol.y[:, -1]))
    np.testing.assert_allclose(end, start, rtol=1e-14)


def test_double_pendulum_keeps_its_energy():
    """Equal masses and lengths, in angles; chaotic, so only the invariant is compared."""
    def double(t, y, yp):
        a, b, u, w = y
        d = a - b
        return [yp[0] - u, yp[1] - w,
                2 * yp[2] + yp[3] * math.cos(d) + w * w * math.sin(d) + 2 * G * math.sin(a),
                yp[3] + yp[2] * math.cos(d) - u * u * math.sin(d) + G * math.sin(b)]

    def double_energy(t, y):
        a, b, u, w = y
        return (u * u + 0.5 * w * w + u * w * math.cos(a - b)
                - 2 * G * math.cos(a) - G * math.cos(b))

    kept, free = (
        solve_dae(double, (0, 50), [2.0, 2.5, 0.0, 0.0], rtol=1e-6, atol=1e-8, **options)
        for options in ({"invariants": double_energy}, {})
    )
    reference = double_energy(0, [2.0, 2.5, 0.0, 0.0])
    assert np.abs(kept.drift).max() < 1e-12
    assert abs(double_energy(0, free.y[:, -1]) - reference) > 1e-4


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
    import matplotlib

    matplotlib.use("Agg")
    sol = solve_pendulum(t_end=1.0, constraints=rod, invariants=energy)
    assert "drift" in str(sol)
    assert sol.drift.shape == (3, len(sol.t))
    figure = sol.plot()
    assert [axis.get_ylabel() for axis in figure.axes] == ["y", "step size", "order", "drift"]


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


@pytest.mark.parametrize("name", ["constraints", "invariants"])
@pytest.mark.parametrize("value", [3.0, "rod", [rod, None], [3]])
def test_not_callable(name, value):
    with pytest.raises(TypeError, match=name):
        solve_dae(pendulum, (0, 1), START, **{name: value})


@pytest.mark.parametrize("values", [None, "a", [], [[0.0]], 1j])
def test_constraint_that_returns_nonsense(values):
    with pytest.raises((ValueError, TypeError), match=r"constraints\[0\]"):
        solve_dae(pendulum, (0, 1), START, constraints=lambda t, y: values)


@called_or_traced
def test_constraint_of_changing_length(trace):
    with pytest.raises(ValueError, match="constraint"):
        solve_dae(pendulum, (0, 1), START, trace=trace,
                  constraints=lambda t, y: rod(t, y) if t < 0.5 else rod(t, y)[:1])


def test_jacobian_of_wrong_shape():
    with pytest.raises(ValueError, match=r"\(2, 5\)"):
        solve_dae(pendulum, (0, 1), START,
                  constraints=with_jacobian(rod, lambda t, y: np.zeros((2, 4))))


def test_c_constraints_need_a_size(library):
    with pytest.raises(ValueError, match="size"):
        Constraint(library.function("rod", 2))
    with pytest.raises(ValueError, match="signature"):
        solve_dae(pendulum, (0, 1), START, constraints=Constraint(library.function("index1", 3),
                                                                  size=2))
    with pytest.raises(TypeError, match="C function"):
        Constraint(library.function("rod", 2), size=2, jac=lambda t, y: None)


def test_c_constraints_of_another_kind_are_refused(library):
    """A status that nobody reads, and a Jacobian that does not take its function's user data."""
    counted = library.function("counted", 2)
    counted.restype = ctypes.c_int
    with pytest.raises(ValueError, match=r"constraints\[0\] returns an int"):
        solve_dae(pendulum, (0, 1), START, constraints=Constraint(counted, size=1))
    pair = Constraint(library.function("scaled", 2, ctypes.c_void_p), size=1,
                      jac=library.function("scaled_jac", 2))
    with pytest.raises(ValueError, match=r"constraints\[0\]\.jac must take the same user data"):
        solve_dae(pendulum, (0, 1), START, constraints=pair)


@pytest.mark.parametrize(("option", "value"), [
    ("projection_power", "1"), ("projection_power", math.nan), ("projection_solver", "qr"),
    ("projection_placement", "during"), ("accept_projected_start", 1),
])
def test_bad_options(option, value):
    with pytest.raises((TypeError, ValueError), match=option):
        Options(**{option: value})


def test_constraints_belong_to_the_problem():
    with pytest.raises(ValueError, match="constraints"):
        solve_dae(Problem(pendulum), (0, 1), START, constraints=rod)


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
