"""Matrices that are out of date for some unknown alone: junctions that turn off."""

import numpy as np
import pytest
from scipy.optimize import brentq

from tether import Bdf, gallery, solve_dae

VT, IS, PEAK, R, C, RS = 0.02585, 1e-14, 12.0, 1e3, 1e-5, 1.0


def junction(v):
    return IS * (np.exp(np.minimum(v, 10.0) / VT) - 1)  # an iteration may try more


def bridge(t, y, yp, leak):
    va, vb, i, vc = y
    i1, i2, i3, i4 = junction(va - vc), junction(vb - vc), junction(-va), junction(-vb)
    source = PEAK * np.sin(2 * np.pi * 50 * t)
    return [i + i3 - i1 - leak * va, -i + i4 - i2 - leak * vb, va - vb - source + RS * i,
            C * yp[3] - (i1 + i2 - vc / R)]


def nodes(t, y, leak):
    """Voltages and current that belong to the voltage of the load, by Newton's method."""
    x, vc = y[:3].copy(), y[3]
    for _ in range(100):
        va, vb = x[0], x[1]
        slopes = [(np.exp((a - vc) / VT) + np.exp(-a / VT)) * IS / VT + leak for a in (va, vb)]
        matrix = np.array([[-slopes[0], 0, 1], [0, -slopes[1], -1], [1, -1, RS]])
        step = np.linalg.solve(matrix, bridge(t, [*x, vc], np.zeros(4), leak)[:3])
        x -= step
        if np.abs(step[:2]).max() < 1e-12:
            break
    return x


@pytest.mark.parametrize("leak", [1e-9, 1e-12])
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
@pytest.mark.parametrize("dense", [False, True])
def test_nodes_of_a_rectifier_are_right_at_all_steps(leak, rtol, dense):
    sol = solve_dae(
        bridge, (0, 0.02), np.zeros(4), args=(leak,), rtol=rtol, atol=1e-9, dense_output=dense
    )
    assert sol.success, sol.message
    error = np.array([nodes(t, y, leak) - y[:3] for t, y in zip(sol.t, sol.y.T, strict=True)])
    size = np.abs(sol.y[:2].T)
    size[1:] = np.maximum(size[1:], size[:-1])          # the tolerance is that of before a step
    allowed = rtol * size + 1e-9
    assert np.max(np.abs(error[:, :2]) / allowed) < 10.0


# --- a bridge that floats while it blocks: nothing but its leakage holds va + vb ------------------

CASES = [
    # leakage, rtol, atol / rtol, units of voltage and current, order of the unknowns, dense output
    (1e-6, 1e-6, 1.0, (1.0, 1.0), (0, 1, 2, 3), False),
    (1e-6, 1e-6, 1.0, (1.0, 1.0), (0, 1, 2, 3), True),
    (1e-6, 1e-7, 1.0, (1.0, 1.0), (3, 2, 1, 0), True),
    (1e-3, 1e-4, 1.0, (1.0, 1.0), (0, 1, 2, 3), False),
    (1e-9, 1e-7, 1.0, (1.0, 1.0), (0, 1, 2, 3), False),
    (1e-9, 1e-5, 1.0, (1e3, 1e6), (2, 0, 3, 1), True),
    (1e-12, 3e-7, 1.0, (1.0, 1.0), (1, 3, 0, 2), False),
    (1e-12, 1e-5, 1.0, (1e3, 1e6), (2, 0, 3, 1), True),
    (1e-12, 1e-9, 1e-3, (1.0, 1.0), (3, 2, 1, 0), True),
]


def floating_bridge(leak, volt, ampere, order):
    a, b, c, d = order

    def equations(t, y, yp):
        va, vb, i, vc = y[a] / volt, y[b] / volt, y[c] / ampere, y[d] / volt
        i1, i2, i3, i4 = (junction(v) + leak * v for v in (va - vc, vb - vc, -va, -vb))
        return [
            i + i3 - i1, -i + i4 - i2, va - vb - 5 * np.sin(100 * np.pi * t) + i,
            C * yp[d] / volt - (i1 + i2 - vc / R),
        ]

    return equations


def exact_nodes(t, vc, leak):
    """va, vb and i for the voltage of the load: by symmetry va + vb = vc, and va - vb = d."""
    def current(d):
        return junction(d / 2 - vc / 2) - junction(-d / 2 - vc / 2) + leak * d

    source = 5 * np.sin(100 * np.pi * t)
    low, high = min(source, 0.0), max(source, 0.0)     # the current is that of a resistance
    d = brentq(lambda d: d + current(d) - source, low, high, xtol=1e-15) if source else 0.0
    return np.array([vc / 2 + d / 2, vc / 2 - d / 2, current(d)])


def errors_of_nodes(leak, rtol, share, units, order, **options):
    """Errors of va, vb and i at the steps of a run, in tolerances."""
    volt, ampere = units
    scale = np.array([volt, volt, ampere, volt])
    atol = np.empty(4)
    atol[list(order)] = share * rtol * scale
    sol = solve_dae(
        floating_bridge(leak, volt, ampere, order), (0, 0.05), np.zeros(4), rtol=rtol, atol=atol,
        start="quiet", **options,
    )
    assert sol.success, sol.message
    y = sol.y[list(order)] / scale[:, None]
    exact = np.array([exact_nodes(t, vc, leak) for t, vc in zip(sol.t, y[3], strict=True)]).T
    return np.abs(exact - y[:3]) / (rtol * (np.abs(y[:3]) + share))


@pytest.mark.parametrize(("leak", "rtol", "share", "units", "order", "dense"), CASES)
def test_a_leaking_bridge_floats_where_its_leakage_holds_it(
    leak, rtol, share, units, order, dense
):
    assert np.max(errors_of_nodes(leak, rtol, share, units, order, dense_output=dense)) < 10


# Where the function is called a second residual is dear, and the steps tell when to ask for it.
CALLED = [
    (1e-5, 1e-4, 1e-3, (1.0, 1.0), (3, 2, 1, 0)),
    (1e-6, 1e-6, 1.0, (1e3, 1e6), (2, 0, 3, 1)),
    (1e-8, 1e-5, 1.0, (1.0, 1.0), (0, 1, 2, 3)),
    (1e-9, 1e-4, 1.0, (1.0, 1.0), (0, 1, 2, 3)),    # an iteration goes where differences drown
    (1e-9, 1e-5, 1.0, (1e3, 1e6), (2, 0, 3, 1)),
    (1e-11, 3e-5, 1.0, (1.0, 1.0), (1, 0, 3, 2)),
    (1e-12, 1e-5, 1.0, (1e3, 1e6), (2, 0, 3, 1)),
    (1e-12, 1e-9, 1.0, (1e3, 1e6), (2, 0, 3, 1)),
]


@pytest.mark.parametrize(("leak", "rtol", "share", "units", "order"), CALLED)
def test_a_called_bridge_floats_where_its_leakage_holds_it(leak, rtol, share, units, order):
    error = errors_of_nodes(leak, rtol, share, units, order, trace="never")
    assert np.max(error[:2]) < 10       # 30 to 46,000 if nobody asks


@pytest.mark.parametrize(("name", "most"), [
    ("prothero-robinson", 170),         # 126 residuals if nobody asks, 224 if every step does
    ("akzo", 450), ("caraxis-i1", 2100), ("nand-gate", 1800),
])
def test_steps_of_called_functions_seldom_ask_in_vain(name, most):
    problem = gallery.get(name)
    sol = solve_dae(
        problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=1e-6, atol=problem.atol(1e-6),
        trace="never",
    )
    assert sol.success
    assert sol.nfev < most


@pytest.mark.parametrize(("name", "most"), [
    # 102, 208 and 36 Jacobians if increments of any size are reason for a new one
    ("andrews-i1", 92), ("water-tubes", 120), ("distillation", 24),
])
def test_smooth_runs_keep_their_matrices(name, most):
    problem = gallery.get(name)
    sol = solve_dae(
        problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=1e-6, atol=problem.atol(1e-6)
    )
    assert sol.success
    assert sol.stats.njev < most


def test_a_floating_bridge_takes_few_residuals():
    sol = solve_dae(
        floating_bridge(1e-6, 1.0, 1.0, range(4)), (0, 0.05), np.zeros(4), rtol=1e-6, atol=1e-6,
        start="quiet",
    )
    assert sol.nfev < 1930      # 1856 if its matrices are out of date


# --- entries that do not change are not judged ----------------------------------------------------


def line(t, y, yp, bend):
    u = np.concatenate([[0.0], y, [0.0]])
    return yp - 100.0 * (u[2:] - 2 * u[1:-1] + u[:-2]) + bend * y**2


@pytest.mark.parametrize("solver", ["dense", "band", "sparse"])
@pytest.mark.parametrize("bend", [0.0, 3.0])
def test_matrices_are_judged_where_entries_change(solver, bend):
    width = np.pi / 101
    run = Bdf(lambda t, y, yp: line(t, y, yp, bend), 0.0, np.sin(width * np.arange(1, 101)),
              t_bound=200.0, options={"linear_solver": solver})
    while run.t < 200.0:
        run.step()
    assert run._integration.state.njev > 2
    assert run._integration.state.matrix.changes == (bend != 0.0)


@pytest.mark.parametrize("solver", ["band", "sparse"])
def test_rows_of_sparse_matrices_are_judged_as_those_of_full_ones(solver):
    x = np.linspace(0, 1, 102)[1:-1]

    def burgers(t, y, yp):
        u = np.concatenate([[0.0], y, [0.0]])
        slope = (u[2:] - u[:-2]) * 101 / 2
        return yp + y * slope - 5e-3 * 101**2 * (u[2:] - 2 * u[1:-1] + u[:-2])

    found = [
        solve_dae(burgers, (0, 0.5), np.sin(2 * np.pi * x), rtol=1e-6, atol=1e-8,
                  options={"linear_solver": way})
        for way in ("dense", solver)
    ]
    assert abs(found[0].y[:, -1] - found[1].y[:, -1]).max() < 1e-8
    assert found[1].stats.njev == pytest.approx(found[0].stats.njev, abs=2)
    assert found[1].stats.steps == pytest.approx(found[0].stats.steps, rel=0.02)
