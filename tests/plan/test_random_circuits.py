"""Random circuits in a random order: every way to factor their matrices gives the same."""

import numpy as np
import pytest

from tether import solve_dae

SOLVERS = ("sparse", "band", "krylov")


def random_circuit(seed):
    """Resistors, capacitors, inductors, sources and diodes; index 1 or 2."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(20, 90))

    def pairs(most):
        found = draw.integers(0, n, (int(draw.integers(0, most)), 2))
        return [(int(a), int(b)) for a, b in found if a != b]

    resistors = [(int(draw.integers(0, k)), k, 10 ** draw.uniform(1, 4)) for k in range(1, n)]
    resistors += [(a, b, 10 ** draw.uniform(1, 4)) for a, b in pairs(n // 6)]
    capacitors = [(k, n, 10 ** draw.uniform(-7, -5)) for k in range(n) if draw.random() < 0.5]
    capacitors += [(a, b, 1e-6) for a, b in pairs(6)]
    inductors = [(a, b, 10 ** draw.uniform(-4, -2)) for a, b in pairs(5)]
    nodes = draw.choice(n, int(draw.integers(1, 4)), replace=False)
    sources = [(int(a), draw.uniform(1, 5), draw.uniform(50, 300)) for a in nodes]
    diodes = [k for k in range(n) if draw.random() < 0.15]
    size = n + len(inductors) + len(sources)
    unknowns, equations = draw.permutation(size), draw.permutation(size)

    def circuit(t, y, yp):
        v, dv = ([*(x[k] for k in unknowns[:n]), 0.0] for x in (y, yp))
        branch = [y[k] for k in unknowns[n:]]
        slope = [yp[k] for k in unknowns[n:]]
        current = [*(1e-9 * v[k] for k in range(n)), 0.0]
        rest = []

        def flow(a, b, value):
            current[a] = current[a] + value
            current[b] = current[b] - value

        for a, b, r in resistors:
            flow(a, b, (v[a] - v[b]) / r)
        for a, b, c in capacitors:
            flow(a, b, c * (dv[a] - dv[b]))
        for k in diodes:
            flow(k, n, 1e-9 * (np.exp(v[k] / 0.1) - 1))
        for m, (a, b, inductance) in enumerate(inductors):
            flow(a, b, branch[m])
            rest.append(inductance * slope[m] - (v[a] - v[b]))
        for m, (a, size, frequency) in enumerate(sources, len(inductors)):
            flow(a, n, branch[m])
            rest.append(v[a] - size * np.sin(frequency * t))
        out = current[:n] + rest
        return [out[k] for k in equations]

    return circuit, size


@pytest.mark.parametrize("seed", range(6))
def test_random_circuits_are_the_same_by_every_solver(seed):
    circuit, size = random_circuit(seed)
    given = {"rtol": 1e-7, "atol": 1e-9, "start": "quiet"}
    full = solve_dae(
        circuit, (0, 0.01), np.zeros(size), options={"linear_solver": "dense"}, **given
    )
    assert full.success
    tolerance = 1e-7 * np.abs(full.y).max(axis=1) + 1e-9
    for solver in SOLVERS:
        sol = solve_dae(
            circuit, (0, 0.01), np.zeros(size), options={"linear_solver": solver}, **given
        )
        assert sol.success
        assert np.max(np.abs(sol.y[:, -1] - full.y[:, -1]) / tolerance) < 300
        assert sol.stats.steps < 1.3 * full.stats.steps + 20
