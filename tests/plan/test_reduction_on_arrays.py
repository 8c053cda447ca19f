"""Whole arrays of index 2: reduced as arrays, with the values that single numbers give."""

import numpy as np
import pytest

import tether.plan.choose as choose
import tether.structure.row_reduction as row_reduction
from tether import solve_dae
from tether.plan.shelf import shelf

AS_ARRAYS = "traced as arrays; index 2 reduced to 1"
M, K = 60, 20                      # unknowns that evolve, and constraints on them


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch):
    """Let small systems be traced as arrays too: single numbers take long for large ones."""
    monkeypatch.setattr(choose, "ARRAYS_FROM", 10)
    shelf.empty()


def by_numbers(monkeypatch, *args, **options):
    """Solve with every number on its own."""
    with monkeypatch.context() as changed:
        changed.setattr(row_reduction, "reduce_rows", lambda *args: None)
        shelf.empty()
        sol = solve_dae(*args, **options)
        shelf.empty()
    assert sol.how.startswith("traced; index 2 reduced to 1")
    return sol


def system(seed, nonlinear):
    """A random system M(t) x' = f(x) - G^T z, g(t, x) = 0; some unknowns are out of order."""
    rng = np.random.default_rng(seed)
    masses = rng.uniform(0.5, 3.0, M)
    first, second = rng.permutation(M)[: 2 * K].reshape(2, K)
    factor = rng.uniform(0.5, 2.0, K)
    order = rng.permutation(M + K)
    places = np.argsort(order)
    bend = 0.3 if nonlinear else 0.0

    def equations(t, y, yp, wind):
        x, z = y[places[:M]], y[places[M:]]
        slopes = yp[places[:M]]
        forces = -0.5 * x + wind * np.sin(x + t) - 0.1 * np.roll(x, 1)
        pulls = np.zeros(M)
        pulls[first] += z * (1.0 + 2.0 * bend * x[first])
        pulls[second] -= factor * z
        constraint = x[first] + bend * x[first] ** 2 - factor * x[second] - 0.2 * np.cos(t)
        return np.concatenate([masses * slopes - forces + pulls, constraint])[order]

    start = rng.uniform(0.2, 0.8, M + K)
    return equations, start, (masses, first, second, factor, places, bend)


@pytest.mark.parametrize("nonlinear", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_values_and_start_are_those_of_single_numbers(monkeypatch, seed, nonlinear):
    equations, start, _ = system(seed, nonlinear)
    call = equations, (0, 1), start
    options = {
        "args": (0.7,), "rtol": 1e-7, "atol": 1e-9, "start": "quiet", "t_eval": [0.0, 0.5, 1.0],
    }
    found = solve_dae(*call, **options)
    assert found.success, found.message
    assert found.how.startswith(f"{AS_ARRAYS}, kept on {K} constraints of the equations")
    known = by_numbers(monkeypatch, *call, **options)
    np.testing.assert_allclose(found.y[:, 0], known.y[:, 0], atol=1e-9)
    np.testing.assert_allclose(found.y, known.y, atol=2e-6)
    assert found.stats.worst_drift < 1e-12
    mine, theirs = found.jumps[0], known.jumps[0]
    assert mine.by_law
    assert mine.impulses.keys() == theirs.impulses.keys()
    for j, impulse in theirs.impulses.items():
        assert mine.impulses[j] == pytest.approx(impulse, abs=1e-8)


def test_momentum_is_kept_where_the_state_jumps():
    """With the masses of the equations, not with the units of the unknowns."""
    equations, start, (masses, first, second, factor, places, _) = system(5, False)
    sol = solve_dae(equations, (0, 0.1), start, args=(0.0,), start="quiet")
    x, before = sol.y[places[:M], 0], start[places[:M]]
    assert np.abs(x[first] - factor * x[second] - 0.2).max() < 1e-12
    # what the second gains is what the first has lost, times the factor of the constraint
    gained = masses * (x - before)
    np.testing.assert_allclose(gained[second], -factor * gained[first], atol=1e-12)
    others = np.setdiff1d(np.arange(M), np.concatenate([first, second]))
    np.testing.assert_array_equal(x[others], before[others])


def test_other_arguments_take_the_same_plan():
    equations, start, _ = system(7, True)
    ends = [
        solve_dae(equations, (0, 1), start, args=(wind,), start="quiet").y[:, -1]
        for wind in (0.0, 0.7)
    ]
    assert np.abs(ends[0] - ends[1]).max() > 0.01
    called = solve_dae(
        equations, (0, 1), solve_dae(equations, (0, 1), start, args=(0.0,), start="quiet").y[:, 0],
        args=(0.0,), trace="never",
    )
    evolves = system(7, True)[2][4][:M]
    np.testing.assert_allclose(ends[0][evolves], called.y[evolves, -1], atol=2e-4)


def test_an_event_that_kicks_an_unknown_obeys_the_law():
    equations, start, (masses, first, second, factor, places, _) = system(9, False)
    kicked = places[first[0]]

    def kick(t, y, wind):
        y = y.copy()
        y[kicked] += 1.0
        return y

    def event(t, y, yp, wind):
        return t - 0.5

    event.apply = kick
    sol = solve_dae(
        equations, (0, 1), start, args=(0.0,), events=[event], start="quiet", rtol=1e-8, atol=1e-10
    )
    assert sol.success, sol.message
    assert sol.how.startswith(AS_ARRAYS)
    jump = next(jump for jump in sol.jumps if jump.t == 0.5)
    assert jump.by_law
    i, j = first[0], second[0]
    # masses a, b and the constraint dx_i = f dx_j, after a kick of 1
    a, b, f = masses[i], masses[j], factor[0]
    assert jump.changes[int(places[j])] == pytest.approx(a * f / (b + a * f**2), rel=1e-6)


HALF, FEW = 30, 10
WEIGHTS = np.linspace(0.5, 2.0, HALF)
KINEMATICS = {
    "multiple": lambda slope, v, x: 3.0 * slope - v,
    "matrix": lambda slope, v, x: WEIGHTS * slope - v,
    "from the right": lambda slope, v, x: v - slope * WEIGHTS,
    "quotient": lambda slope, v, x: slope / WEIGHTS - v,
    "sum": lambda slope, v, x: -slope + 0.5 * v,
    "other way round": lambda slope, v, x: slope + v,
    "expression": lambda slope, v, x: slope - v * (1.0 + 0.2 * np.cos(x)),
    "neighbours": lambda slope, v, x: 2.0 * slope - (v + 0.1 * np.roll(v, 1)),
}


@pytest.mark.parametrize("name", KINEMATICS)
def test_kinematics_of_other_forms_are_those_of_single_numbers(monkeypatch, name):
    """Masses on springs, some of them held on surfaces; slopes of positions in many forms."""
    kinematic = KINEMATICS[name]

    def mechanism(t, y, yp):
        x, v, z = y[:HALF], y[HALF : 2 * HALF], y[2 * HALF :]
        pulls = np.concatenate([2.0 * z * x[:FEW], np.zeros(HALF - FEW)])
        pulls[FEW : 2 * FEW] += z
        return np.concatenate([
            kinematic(yp[:HALF], v, x), yp[HALF : 2 * HALF] + x + pulls,
            x[:FEW] ** 2 + x[FEW : 2 * FEW] - 2.0,
        ])

    rng = np.random.default_rng(6)
    y0 = np.concatenate([np.ones(HALF) + 0.02 * rng.normal(size=HALF), np.zeros(HALF + FEW)])
    options = {"rtol": 1e-8, "atol": 1e-10, "start": "quiet", "t_eval": [0.0, 0.5, 1.0]}
    found = solve_dae(mechanism, (0, 1), y0, **options)
    assert found.success, found.message
    assert found.how.startswith("traced as arrays; index 3 reduced to 1")
    with monkeypatch.context() as changed:
        changed.setattr(row_reduction, "reduce_rows", lambda *args: None)
        shelf.empty()
        known = solve_dae(mechanism, (0, 1), y0, **options)
        shelf.empty()
    assert known.how.startswith("traced; index 3 reduced to 1")
    np.testing.assert_allclose(found.y[:, 0], known.y[:, 0], atol=1e-7)
    np.testing.assert_allclose(found.y, known.y, rtol=1e-5, atol=1e-5)
    assert found.stats.worst_drift < 1e-12


def test_a_slope_with_a_factor_that_is_an_input_is_left_to_single_numbers():
    """The factor may be zero in the next run."""
    def mechanism(t, y, yp, factor):
        x, v, z = y[:HALF], y[HALF : 2 * HALF], y[2 * HALF :]
        pulls = np.concatenate([z * x[:FEW], np.zeros(HALF - FEW)])
        return np.concatenate(
            [factor * yp[:HALF] - v, yp[HALF : 2 * HALF] + x + pulls, x[:FEW] ** 2 - 1]
        )

    y0 = np.concatenate([np.ones(HALF), np.zeros(HALF), -np.ones(FEW)])
    sol = solve_dae(mechanism, (0, 0.1), y0, args=(3.0,))
    assert sol.success, sol.message
    assert sol.how.startswith("traced; index 3 reduced to 1")


def test_constraints_that_repeat_each_other_are_left_to_single_numbers():
    n, few = 50, 5

    def equations(t, y, yp):
        x, z = y[:n], y[n:]
        pulls = np.zeros(n)
        pulls[:few] = z
        rows = x[:few] - 1.0
        rows[-1] = x[0] - 1.0                  # once more
        return np.concatenate([yp[:n] + x + pulls, rows])

    sol = solve_dae(equations, (0, 0.1), np.concatenate([np.ones(n), np.zeros(few)]))
    assert not sol.how.startswith(AS_ARRAYS)


def test_equations_that_are_not_traced_rightly_are_called():
    """The templates of the user's own equations are what is compared with the function."""
    equations, start, _ = system(3, True)
    sol = solve_dae(equations, (0, 5), start, args=(0.7,), start="quiet")
    assert sol.stats.checks > 0


# --- index 3 ------------------------------------------------------------------------------------

LINKS = 30


def chain(t, y, yp, damping):
    """A chain of rods between masses that differ, hung up at one end."""
    x, z, u, w = y[: 4 * LINKS].reshape(4, LINKS)
    pulls = y[4 * LINKS :]
    slopes = yp[: 4 * LINKS].reshape(4, LINKS)
    masses = np.linspace(1.0, 3.0, LINKS)
    dx, dz = (np.diff(np.concatenate([[0.0], part])) for part in (x, z))
    fx, fz = pulls * dx, pulls * dz
    return np.concatenate([
        slopes[0] - u,
        slopes[1] - w,
        masses * slopes[2] + fx - np.append(fx[1:], 0.0) + damping * u,
        masses * slopes[3] + fz - np.append(fz[1:], 0.0) + masses * 9.81 + damping * w,
        dx**2 + dz**2 - 1.0,
    ])


def hung_aside():
    angle = np.linspace(0.3, 0.6, LINKS)
    x, z = np.cumsum(np.sin(angle)), -np.cumsum(np.cos(angle))
    return np.concatenate([x, z, np.zeros(3 * LINKS)])


def off_its_rods():
    rng = np.random.default_rng(4)
    start = hung_aside()
    start[: 4 * LINKS] += 0.02 * rng.standard_normal(4 * LINKS)
    return start


@pytest.mark.parametrize("start", [hung_aside, off_its_rods])
def test_a_chain_of_index_3_is_that_of_single_numbers(monkeypatch, start):
    call = chain, (0, 1), start()
    options = {
        "args": (0.1,), "rtol": 1e-8, "atol": 1e-10, "start": "quiet", "t_eval": [0.0, 0.5, 1.0],
    }
    found = solve_dae(*call, **options)
    assert found.success, found.message
    assert found.how.startswith(
        f"traced as arrays; index 3 reduced to 1, kept on {2 * LINKS} constraints of the equations"
    )
    with monkeypatch.context() as changed:
        changed.setattr(row_reduction, "reduce_rows", lambda *args: None)
        shelf.empty()
        known = solve_dae(*call, **options)
    assert known.how.startswith("traced; index 3 reduced to 1")
    np.testing.assert_allclose(found.y[:, 0], known.y[:, 0], atol=1e-7)
    evolves = slice(4 * LINKS)
    np.testing.assert_allclose(found.y[evolves], known.y[evolves], atol=3e-6)
    np.testing.assert_allclose(found.y, known.y, rtol=1e-4, atol=1e-4)
    assert found.stats.worst_drift < 1e-12
    assert bool(found.jumps) == bool(known.jumps)
    if found.jumps:
        mine, theirs = found.jumps[0].impulses, known.jumps[0].impulses
        assert mine.keys() == theirs.keys()
        for j, impulse in theirs.items():
            assert mine[j] == pytest.approx(impulse, abs=1e-7)
