"""Systems whose leading derivatives cancel: index, freedom and solutions are known."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tether import ConsistencyWarning, Status, analyze, gallery, solve_dae
from tether.gallery import raw_mechanisms as raw
from tether.structure import implicit
from tether.structure.array import DerivativeArray
from tether.structure.equations import Equations, general_points, is_regular
from tether.structure.implicit import reduce_by_array
from tether.structure.ranks import find_ranks
from tether.structure.reduced_start import Search, reduced_start
from tether.trace import trace

G = 9.81


@dataclass(frozen=True)
class Known:
    """A system with its index, its number of free initial values and, where known, a solution."""

    fun: Any
    y0: Any
    index: int
    dof: int
    repair: str
    exact: Any = None        # a function of t
    hidden: int | None = None
    t_end: float = 1.0

    @property
    def start(self):
        return np.asarray(self.y0 if self.exact is None else self.exact(0.0), float)


def ranks_of(fun, y0, yp0=None, t=0.0):
    y0 = np.asarray(y0, float)
    points = general_points(t, y0, np.zeros_like(y0) if yp0 is None else np.asarray(yp0, float))
    return find_ranks(DerivativeArray(Equations.of_trace(trace(fun, len(y0)))), points)


# --- systems ------------------------------------------------------------------------------------


def sum_in_exponential(t, y, yp):
    """exp(s) = y0 + 1 and s = y1 for s = y0' + y1': y0 + 1 = exp(y1)."""
    s = yp[0] + yp[1]
    return [math.exp(s) - y[0] - 1, s - y[1]]


def robotic_arm(t, y, yp):
    """Path control of an arm with flexible joints, Campbell and Griepentrog 1995."""
    x1, x2, x3, v1, v2, v3, u1, u2 = y
    nenner = 2 - math.cos(x3) ** 2
    a, b = 2 / nenner, math.cos(x3) / nenner
    c, d = math.sin(x3) / nenner, math.sin(x3) * math.cos(x3) / nenner
    p1 = math.cos(1 - math.exp(t)) + math.cos(1 - t)
    p2 = math.sin(1 - math.exp(t)) + math.sin(1 - t)
    spin = 2 * c * (v1 + v3) ** 2 + v1**2 * d
    stretch = 2 * x3 - x2
    return [
        yp[0] - v1, yp[1] - v2, yp[2] - v3,
        yp[3] - (spin + stretch * (a + 2 * b) + a * (u1 - u2)),
        yp[4] - (-spin + stretch * (1 - 3 * a - 2 * b) - a * u1 + (a + 1) * u2),
        yp[5] - (-spin + stretch * (a - 9 * b) - 2 * v1**2 * c - d * (v1 + v3) ** 2
                 - (a + b) * (u1 - u2)),
        math.cos(x1) + math.cos(x1 + x3) - p1,
        math.sin(x1) + math.sin(x1 + x3) - p2,
    ]


def two_sums(t, y, yp):
    """Linear, with constant coefficients; Scholz and Steinbrecher 2016."""
    x1, x2, x3, x4 = y
    return [-yp[0] + x3 + math.sin(t), -yp[1] + x4 + math.cos(t), x2 + x3 + x4 + t * t,
            -x1 + x3 + x4 + math.exp(-t)]


def two_sums_exact(t):
    x1 = -(math.sin(t) + math.cos(t) + 2 * t)  # x3 + x4 from x1 + x2 = exp(-t) - t^2
    x1_rate = -(math.cos(t) - math.sin(t) + 2)
    x2 = math.exp(-t) - t * t - x1
    x2_rate = -math.exp(-t) - 2 * t - x1_rate
    return [x1, x2, x1_rate - math.sin(t), x2_rate - math.cos(t)]


def product_in_exponential(t, y, yp):
    """x + exp(-x' - z z'') + h = 0 and x + z z' + z^2 + k = 0; Tan, Nedialkov and Pryce 2017."""
    x, z, w = y
    h = -math.sin(t) - math.exp(-math.cos(t) + (2 + math.cos(t)) * math.cos(t))
    k = -math.sin(t) + (2 + math.cos(t)) * math.sin(t) - (2 + math.cos(t)) ** 2
    return [yp[1] - w, x + math.exp(-yp[0] - z * yp[2]) + h, x + z * w + z * z + k]


def varying_line(t, y, yp):
    """x + t z is given, x' + t z' too: the linearised system is singular everywhere."""
    return [yp[0] + t * yp[1] - math.cos(t) + math.sin(t), y[0] + t * y[1] - math.sin(t)]


def moving_frame(t, y, yp):
    """A speed along the direction c, of which nothing but its square is left."""
    a, b, c = y
    along = math.cos(c) * yp[0] + math.sin(c) * yp[1]
    return [along - 1, along * along + a - 2, yp[2] - b]


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G, x * x + z * z - 1]


def turned_pendulum(t, y, yp):
    """Force balance and constraint of a pendulum, turned into each other."""
    f = pendulum(t, y, yp)
    c, s = math.cos(t + y[0]), math.sin(t + y[0])
    return [f[0], f[1], c * f[2] - s * f[4], f[3] + y[1] * f[4], s * f[2] + c * f[4]]


def bent_pendulum(t, y, yp):
    """The same by functions that are not linear."""
    f = pendulum(t, y, yp)
    x, z = y[0], y[1]
    return [f[0] + math.sinh(f[4]), f[1], f[2] + math.sinh(f[3]) + x * f[4],
            f[3] + math.sin(f[2]) * z, f[4] * math.exp(x) + f[2] ** 2 + (1 + x * x) * f[3]]


def ring_modulator(t, y, yp):
    """Without its stray capacitances; Horneber 1976, Hairer, Lubich and Roche 1989."""
    leak = 40.67286402e-9
    factor = 17.7493332
    uin1, uin2 = 0.5 * math.sin(2000 * math.pi * t), 2 * math.sin(20000 * math.pi * t)

    def diode(u):
        return leak * (math.exp(factor * u) - 1)

    q1 = diode(y[2] - y[4] - y[6] - uin2)
    q2 = diode(-y[3] + y[5] - y[6] - uin2)
    q3 = diode(y[3] + y[4] + y[6] + uin2)
    q4 = diode(-y[2] - y[5] + y[6] + uin2)
    lh, ls1, ls2, ls3 = 4.45, 0.002, 5e-4, 5e-4
    rg1, rg2, rg3, ri, rc = 36.3, 17.3, 17.3, 50.0, 600.0
    return [
        1.6e-8 * yp[0] - (y[7] - 0.5 * y[9] + 0.5 * y[10] + y[13] - y[0] / 25000),
        1.6e-8 * yp[1] - (y[8] - 0.5 * y[11] + 0.5 * y[12] + y[14] - y[1] / 25000),
        y[9] - q1 + q4, -y[10] + q2 - q3, y[11] + q1 - q3, -y[12] - q2 + q4,
        1e-8 * yp[6] - (-y[6] / 50 + q1 + q2 - q3 - q4),
        lh * yp[7] + y[0], lh * yp[8] + y[1],
        ls2 * yp[9] - (0.5 * y[0] - y[2] - rg2 * y[9]),
        ls3 * yp[10] - (-0.5 * y[0] + y[3] - rg3 * y[10]),
        ls2 * yp[11] - (0.5 * y[1] - y[4] - rg2 * y[11]),
        ls3 * yp[12] - (-0.5 * y[1] + y[5] - rg3 * y[12]),
        ls1 * yp[13] - (-y[0] + uin1 - (ri + rg1) * y[13]),
        ls1 * yp[14] - (-y[1] - (rc + rg1) * y[14]),
    ]


def chain_behind_a_function(t, y, yp):
    """a' = b, b' = c, c' = e behind sums and products, a = sin t."""
    a, b, c, e = y
    f = [yp[0] - b, yp[1] - c, yp[2] - e, a - math.sin(t)]
    return [f[0] + f[1] * f[3] + math.sin(f[2]), f[1] + f[0] * (2 + f[2]), f[2] + b * f[3] + f[1],
            (1 + a * a) * f[3] + math.tanh(f[0] + f[2])]


def bent_index_2(t, y, yp):
    """x' = -x + l, z' = -z + l^2, x + z = 1, each hidden in the others; l + l^2 = 1 follows."""
    x, z, lam = y
    f = [yp[0] + x - lam, yp[1] + z - lam**2, x + z - 1]
    return [math.exp(f[0]) * (1 + f[2]) - 1, f[1] + f[0] ** 2 + x * f[2] + math.sin(f[0]),
            4 * f[2] * math.cosh(lam) + (1 + z * z) * f[0] + f[1] * f[0]]


def bent_index_2_exact(t):
    golden = (math.sqrt(5) - 1) / 2
    x = golden + 0.5 * math.exp(-t)
    return [x, 1 - x, golden]


ARRAY, VARYING, CONSTANT = "derivative array", "varying combinations", "combinations"
SYSTEMS = {
    "sum in an exponential": Known(sum_in_exponential, [math.e - 1, 1.0], 1, 1, ARRAY, hidden=1),
    "robotic arm": Known(
        robotic_arm, [0, 0.95, 1, -1, -2.5, 0, -4.3, -0.7], 5, 0, VARYING),
    "two sums": Known(two_sums, None, 3, 0, CONSTANT, two_sums_exact),
    "product in an exponential": Known(
        product_in_exponential, None, 2, 1, ARRAY,
        lambda t: [math.sin(t), 2 + math.cos(t), -math.sin(t)], hidden=1),
    "varying line": Known(varying_line, None, 2, 0, CONSTANT,
                          lambda t: [math.sin(t) - t * math.sin(t), math.sin(t)], hidden=1),
    "moving frame": Known(moving_frame, [1.0, 0.3, 0.7], 1, 2, ARRAY, hidden=1),
    "turned pendulum": Known(turned_pendulum, [0.6, -0.8, 0.8, 0.6, 8.848], 3, 2, VARYING),
    "bent pendulum": Known(bent_pendulum, [0.6, -0.8, 0.8, 0.6, 8.848], 3, 2, ARRAY, hidden=3),
    "ring modulator": Known(ring_modulator, np.zeros(15), 2, 10, CONSTANT),
    "chain behind a function": Known(
        chain_behind_a_function, None, 4, 0, ARRAY,
        lambda t: [math.sin(t), math.cos(t), -math.sin(t), -math.cos(t)], hidden=4),
    "bent index 2": Known(bent_index_2, None, 2, 1, ARRAY, bent_index_2_exact, hidden=2),
}
CASES = pytest.mark.parametrize("case", SYSTEMS.values(), ids=SYSTEMS)


@CASES
def test_index_and_freedom_are_those_known(case):
    report = analyze(case.fun, 0.0, case.start)
    assert not report.singular
    assert (report.index, report.dof, report.repair) == (case.index, case.dof, case.repair)
    if case.hidden is not None:
        assert report.n_hidden == case.hidden
    if case.repair == ARRAY:
        assert any("derivative array" in note for note in report.notes)


@CASES
def test_ranks_of_the_array_alone_say_the_same(case):
    found = ranks_of(case.fun, case.start)
    assert (found.kind, found.index, found.dof) == ("regular", case.index, case.dof)
    assert found.constraints == len(case.start) - case.dof
    assert found.consistent


@pytest.mark.parametrize(
    "name", ["robertson", "akzo", "transamp", "pend-i1", "pend-i2", "pend-i3", "pend-ggl",
             "caraxis-i2", "caraxis-i3", "andrews-i2", "andrews-i3", "vdpol"],
)
def test_ranks_agree_with_structure_where_that_is_right(name):
    problem = gallery.get(name)
    report = analyze(problem.fun, 0.0, problem.y0, problem.yp0)
    found = ranks_of(problem.fun, problem.y0, problem.yp0)
    assert (found.index, found.dof) == (report.index, report.dof)
    assert found.hidden == report.n_hidden


# --- runs ---------------------------------------------------------------------------------------


def run(fun, y0, t_end, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsistencyWarning)
        return solve_dae(fun, (0.0, t_end), y0, **({"rtol": 1e-7, "atol": 1e-9} | options))


@pytest.mark.parametrize("name", [name for name, case in SYSTEMS.items() if case.exact])
def test_exact_solutions_are_found(name):
    case = SYSTEMS[name]
    sol = run(case.fun, case.start, case.t_end)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx(case.exact(case.t_end), abs=1e-5)


@pytest.mark.parametrize("fun", [turned_pendulum, bent_pendulum])
def test_disguised_pendulums_swing_as_the_plain_one(fun):
    y0 = [0.6, -0.8, 0.8, 0.6, 8.848]
    plain = run(pendulum, y0, 12.0, rtol=1e-10, atol=1e-12)
    sol = run(fun, y0, 12.0)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx(plain.y[:, -1], abs=5e-4)
    x, z = sol.y[:2]
    assert np.abs(x * x + z * z - 1).max() < 1e-9


def test_a_sum_in_an_exponential_follows_its_ode():
    sol = run(sum_in_exponential, [math.e - 1, 1.0], 1.0)
    ode = run(lambda t, y, yp: [(math.exp(y[0]) + 1) * yp[0] - y[0]], [1.0], 1.0)
    assert sol.y[1, -1] == pytest.approx(ode.y[0, -1], abs=1e-6)
    assert sol.y[0, -1] == pytest.approx(math.exp(sol.y[1, -1]) - 1, abs=1e-6)


def test_the_robotic_arm_follows_its_path():
    sol = run(robotic_arm, SYSTEMS["robotic arm"].start, 1.5)
    assert sol.success, sol.message
    x1, _, x3, *_ = sol.y[:, -1]
    t = 1.5
    assert (x1, x3) == pytest.approx((1 - math.exp(t), math.exp(t) - t), abs=1e-8)


def test_the_ring_modulator_keeps_its_hidden_constraint():
    sol = run(ring_modulator, np.zeros(15), 1e-4)
    assert sol.success, sol.message
    assert np.abs(sol.y[9:13].sum(axis=0)).max() < 1e-9
    assert np.abs(ring_modulator(sol.t[-1], sol.y[:, -1], sol.yp[:, -1])[2:6]).max() < 1e-9


def test_a_wrong_multiplier_is_replaced_and_nothing_else():
    sol = run(bent_pendulum, [0.6, -0.8, 0.8, 0.6, 8.0], 0.1)
    assert sol.start.y[:4] == pytest.approx([0.6, -0.8, 0.8, 0.6], abs=1e-9)
    assert sol.start.y[4] == pytest.approx(8.848)


def test_the_report_says_how_the_array_is_used():
    report = analyze(bent_pendulum, 0.0, [0.6, -0.8, 0.8, 0.6, 8.848])
    assert report.how == (
        "reduced to index 1 with 9 further unknowns, projected onto the 12 equations of the "
        "derivative array in every step"
    )
    assert report.hidden == []
    assert len(report.free) == 2
    assert any("3 constraints on y, 3 hidden" in note for note in report.notes)


def test_the_choice_is_regular_next_to_the_start():
    y0 = np.array([0.6, -0.8, 0.8, 0.6, 8.848])
    reduced = reduce_by_array(ranks_of(bent_pendulum, y0), 0.0, y0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        start = reduced_start(reduced, 0.0, y0 + 0.01 * rng.normal(size=5))
        assert start.success
        search = Search(reduced, 0.0)
        assert is_regular(search.leading_matrix(start.y, start.yp)[None])[0]
        assert np.linalg.matrix_rank(search.constraint_jacobian(start.y)) == len(reduced.levels)


# --- disguise -----------------------------------------------------------------------------------


def index_1(t, y, yp):
    a, b, c = y
    return [yp[0] + a - c, yp[1] + b * c, c + 0.2 * math.sin(c) - a * b]


def index_2(t, y, yp):
    x, z, lam = y
    return [yp[0] - z + x * lam, yp[1] + x + 0.5 * z * lam, x * x + z * z - 1 - 0.1 * math.sin(t)]


def index_4(t, y, yp):
    return [yp[0] - y[1], yp[1] - y[2], yp[2] - y[3], y[0] - math.sin(t)]


PLAIN = {
    1: (index_1, [0.5, 0.7, 0.295], 2),
    2: (index_2, [0.6, 0.8, 0.1], 1),
    3: (pendulum, [0.6, -0.8, 0.8, 0.6, 8.848], 2),
    4: (index_4, [0.0, 1.0, 0.0, -1.0], 0),
}


def disguised(fun, n, rng, mixed):
    """P(t, y) F(t, Q z, Q z') for regular P; Q is orthogonal, the identity unless mixed."""
    size, phase = rng.uniform(-1, 1, (n, n)), rng.uniform(0, 6, (n, n))
    which = rng.integers(0, n, (n, n))
    turn, Q = (np.linalg.qr(rng.normal(size=(n, n)))[0] if mixed else np.eye(n) for _ in range(2))

    def times(matrix, x):
        return [sum(matrix[i, j] * x[j] for j in range(n) if matrix[i, j]) for i in range(n)]

    def wrapped(t, z, zp):
        y = times(Q, z)
        f = fun(t, y, times(Q, zp))
        f = [f[i] + sum(size[i, j] * math.sin(y[which[i, j]] + t + phase[i, j]) * f[j]
                        for j in range(i + 1, n)) for i in range(n)]
        f = times(turn, f)
        return [f[i] + sum(size[i, j] * math.cos(0.7 * y[which[i, j]] + phase[i, j]) * f[j]
                           for j in range(i)) for i in range(n)]

    return wrapped, Q


@pytest.mark.parametrize("mixed", [False, True], ids=["equations", "both"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("index", PLAIN)
def test_index_and_freedom_do_not_change_in_disguise(index, seed, mixed):
    fun, y0, dof = PLAIN[index]
    wrapped, Q = disguised(fun, len(y0), np.random.default_rng(seed), mixed)
    report = analyze(wrapped, 0.0, Q.T @ y0)
    assert not report.singular
    assert (report.index, report.dof) == (index, dof)


@pytest.mark.parametrize("mixed", [False, True], ids=["equations", "both"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("index", PLAIN)
def test_solutions_do_not_change_in_disguise(index, seed, mixed):
    fun, y0, _ = PLAIN[index]
    plain = run(fun, y0, 0.7, rtol=1e-9, atol=1e-11)
    wrapped, Q = disguised(fun, len(y0), np.random.default_rng(seed), mixed)
    sol = run(wrapped, Q.T @ plain.y[:, 0], 0.7)
    assert sol.success, sol.message
    assert Q @ sol.y[:, -1] == pytest.approx(plain.y[:, -1], abs=1e-4)


def test_other_derivatives_are_chosen_where_those_of_the_start_have_worn_out():
    fun, y0, _ = PLAIN[3]
    plain = run(fun, y0, 0.7, rtol=1e-9, atol=1e-11)
    wrapped, Q = disguised(fun, len(y0), np.random.default_rng(39), mixed=True)
    sol = run(wrapped, Q.T @ plain.y[:, 0], 0.7, rtol=1e-6, atol=1e-8)
    assert sol.success, sol.message
    assert sol.stats.steps < 300           # with the same derivatives steps fall to 1e-5
    assert Q @ sol.y[:, -1] == pytest.approx(plain.y[:, -1], abs=1e-3)


@pytest.mark.parametrize("index", [3, 4])
def test_an_index_that_linearised_equations_conceal_is_not_integrated_as_written(
    index, monkeypatch, nothing_is_known
):
    monkeypatch.setattr(implicit, "reduce_by_array", lambda *_: None)
    fun, y0, _ = PLAIN[index]
    wrapped, Q = disguised(fun, len(y0), np.random.default_rng(99), mixed=True)
    sol = run(wrapped, Q.T @ y0, 0.7)
    assert sol.status == Status.INDEX_TOO_HIGH
    assert f"it is {index}, which only derivatives of the equations show" in sol.message


def test_points_where_the_array_does_not_hold_to_round_off_do_not_judge_ranks(monkeypatch):
    fun, y0, dof = PLAIN[3]
    wrapped, Q = disguised(fun, len(y0), np.random.default_rng(0), mixed=True)
    consistent = DerivativeArray.consistent
    points = general_points(0.0, Q.T @ y0, np.zeros(5))

    def roughly(array, t, x, free=None):
        found = consistent(array, t, x, free)
        return found + 1e-7 if found is not None and t == points.t[0] else found

    monkeypatch.setattr(DerivativeArray, "consistent", roughly)
    found = find_ranks(DerivativeArray(Equations.of_trace(trace(wrapped, 5))), points)
    assert (found.kind, found.index, found.dof) == ("regular", 3, dof)
    assert points.t[0] not in [t for t, _ in found.jets]


# --- singular systems ---------------------------------------------------------------------------


def repeated_in_a_function(t, y, yp):
    s = yp[0] + yp[1] - y[0] - y[1]
    return [s, math.sin(s)]


def three_of_two(t, y, yp):
    a, b, c = y
    first, second = yp[0] - b * c, yp[1] + a
    return [first + second * c, second - a * first, first * b + math.exp(c) * second]


def only_a_sum(t, y, yp):
    a, b, c = y
    first, second = yp[0] - b - c, yp[1] + yp[2] - math.sin(b + c) * a
    return [first, second, math.exp(first) * second + a * first]


@pytest.mark.parametrize(
    ("fun", "n", "open_ones"),
    [(repeated_in_a_function, 2, {"y[0]", "y[1]"}), (three_of_two, 3, {"c"}),
     (only_a_sum, 3, {"b", "c"})],
)
def test_singular_systems_are_still_called_singular(fun, n, open_ones):
    report = analyze(fun, 0.0, np.ones(n))
    assert report.singular
    assert report.index is None
    assert report.dof is None
    assert open_ones <= set(report.undetermined)
    assert report.how.startswith("not possible")
    assert ranks_of(fun, np.ones(n)).kind == "singular"


@pytest.mark.parametrize("problem", [raw.duplicated_pendulum(), raw.parallel_cranks()],
                         ids=lambda problem: problem.name)
def test_ranks_notice_redundant_constraints(problem):
    assert ranks_of(problem.fun, problem.y0).kind == "singular"


def test_an_array_that_would_be_too_large_is_not_made():
    n = 61

    def fun(t, y, yp):
        # an index of 61: beyond 300 rows after five differentiations of the last equations
        head = [math.exp(yp[i] - y[i + 1]) + yp[i] - y[i + 1] - 1 for i in range(n - 1)]
        return [*head, y[0] - math.sin(t)]

    assert ranks_of(fun, np.zeros(n)).kind == "unknown"
