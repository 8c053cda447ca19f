"""Flows against exact solutions of their differences, of the equations, and tables."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from tether import analyze, solve_dae
from tether.models import Cavity, PeriodicFlow, Tube

FORMS = ["index_2", "index_1"]


def vortices(nx, ny, viscosity=0.1):
    flow = PeriodicFlow(nx, ny, viscosity, 2 * np.pi, 2 * np.pi)
    y0 = flow.start(lambda x, y: np.sin(x) * np.cos(y), lambda x, y: -np.cos(x) * np.sin(y))
    return flow, y0


@pytest.mark.parametrize("form", FORMS)
def test_taylor_and_green(form):
    """On the grid, too, the vortices keep their shape; friction takes the grid's eigenvalue."""
    flow, y0 = vortices(6, 6)
    sol = solve_dae(getattr(flow, form)().fun, (0.0, 2.0), y0, start="quiet", rtol=1e-7, atol=1e-9)
    assert sol.success
    rate = 2 * (2 / flow.dx * np.sin(flow.dx / 2)) ** 2
    u0, v0, _ = flow.split(y0)
    u, v, _ = flow.split(sol.y[:, -1])
    np.testing.assert_allclose(u, u0 * np.exp(-0.1 * rate * 2.0), atol=1e-6)
    np.testing.assert_allclose(v, v0 * np.exp(-0.1 * rate * 2.0), atol=1e-6)
    assert abs(flow.divergence(u, v)).max() < 1e-10


def test_convergence_to_the_partial_differential_equation():
    errors = []
    for n in (4, 8):
        flow, y0 = vortices(n, n)
        sol = solve_dae(flow.index_1().fun, (0.0, 1.0), y0, start="quiet", rtol=1e-7, atol=1e-9)
        u0, _, _ = flow.split(y0)
        u, _, p = flow.split(sol.y[:, -1])
        exact = u0 * np.exp(-0.2)
        errors.append(abs(u - exact).max() / abs(exact).max())
        x, y = (np.arange(n) + 0.5) * flow.dx, (np.arange(n) + 0.5) * flow.dy
        pressure = 0.25 * (np.cos(2 * x)[:, None] + np.cos(2 * y)) * np.exp(-0.4)
        assert abs((p - p.mean()) - pressure).max() < 3.0 * flow.dx**2
    assert 3.0 < errors[0] / errors[1] < 5.0


@pytest.mark.parametrize("flow", [
    PeriodicFlow(3, 4, 0.1), Cavity(3, 4, 0.1), Cavity(4, 3, 0.0),
    Cavity(3, 3, 0.1, 2.0, 1.0, lid=lambda t: 1.0 - np.exp(-t)),
])
def test_index(flow):
    random = np.random.default_rng(2)
    y0 = random.standard_normal(len(flow.index_1().names))
    assert analyze(flow.index_2().fun, 0.0, y0).index == 2
    assert analyze(flow.index_1().fun, 0.0, y0).index == 1


@pytest.mark.parametrize("flow", [PeriodicFlow(4, 5, 0.1, 1.0, 2.0), Cavity(4, 5, 0.1, 1.0, 2.0)])
def test_gradient_and_divergence_belong_together(flow):
    """C and C^T of LP1 (3.7) and (3.8): sums of u times grad p and p times div u are opposite."""
    random = np.random.default_rng(4)
    u, v, p = (random.standard_normal(shape) for shape in flow.shapes)
    px, py = flow.gradient(p)
    assert np.sum(u * px) + np.sum(v * py) == pytest.approx(-np.sum(p * flow.divergence(u, v)))


@pytest.mark.parametrize("flow", [PeriodicFlow(5, 4, 0.0), Cavity(5, 4, 0.0, lid=0.0)])
def test_convection_changes_no_energy(flow):
    """For velocities without divergence, up to round-off; so does the pressure."""
    random = np.random.default_rng(5)
    corners = random.standard_normal((flow.nx + 1, flow.ny + 1))
    if isinstance(flow, PeriodicFlow):
        corners[-1], corners[:, -1] = corners[0], corners[:, 0]
        corners[-1, -1] = corners[0, 0]
        u, v = np.diff(corners, axis=1)[:-1] / flow.dy, -np.diff(corners, axis=0)[:, :-1] / flow.dx
    else:
        corners[[0, -1]] = corners[:, [0, -1]] = 0.0
        u, v = np.diff(corners, axis=1)[1:-1] / flow.dy, np.diff(corners, axis=0)[:, 1:-1]
        v = -v / flow.dx
    assert abs(flow.divergence(u, v)).max() < 1e-12 * abs(u).max() * flow.nx
    fu, fv = flow.forces(0.0, u, v)
    assert abs(np.sum(u * fu) + np.sum(v * fv)) < 1e-12 * np.sum(abs(u * fu))


def test_both_forms_of_a_cavity_agree():
    cavity, ends = Cavity(6, 6, viscosity=0.01), []
    for form in FORMS:
        equations = getattr(cavity, form)()
        sol = solve_dae(equations.fun, (0.0, 2.0), equations.y0, start="quiet")
        u, v, _ = cavity.split(sol.y[:, -1])
        assert abs(cavity.divergence(u, v)).max() < 1e-10
        ends.append(np.concatenate([u.ravel(), v.ravel()]))
    np.testing.assert_allclose(*ends, atol=1e-5)


def extremes(n):
    cavity = Cavity(n, n, viscosity=0.01)
    equations = cavity.index_1()
    sol = solve_dae(equations.fun, (0.0, 20.0), equations.y0, start="quiet", rtol=1e-4, atol=1e-6)
    u, v, _ = cavity.split(sol.y[:, -1])
    u, v = u[n // 2 - 1], v[:, n // 2 - 1]     # on the lines through the middle
    return np.array([u.min(), v.max(), v.min()])


def test_driven_cavity():
    """Botella and Peyret have -0.2140, 0.1796 and -0.2538 at a Reynolds number of 100."""
    expected = np.array([-0.21404, 0.17957, -0.25380])
    coarse, fine = extremes(8), extremes(16)
    np.testing.assert_allclose(fine, expected, rtol=0.1)
    # differences of second order: what is left is a third of what has been gained
    np.testing.assert_allclose(fine + (fine - coarse) / 3.0, expected, rtol=0.06)


@pytest.mark.slow
def test_driven_cavity_on_a_finer_grid():
    np.testing.assert_allclose(extremes(32), [-0.21404, 0.17957, -0.25380], rtol=0.03)


def test_sound():
    """A wave of small size travels with the speed of sound, as it is on the grid."""
    tube, size, k = Tube(40, pressure=lambda density: density**1.4 / 1.4), 1e-6, 2 * np.pi
    y0 = tube.start(lambda x: 1.0 + size * np.cos(k * x), lambda x: size * np.cos(k * x))
    sol = solve_dae(tube.smooth().fun, (0.0, 2.0), y0, rtol=1e-10, atol=1e-13)
    density, velocity, pressure = tube.split(sol.y[:, -1])
    exact = size * np.cos(k * tube.x - 2.0 * np.sin(k * tube.dx) / tube.dx)
    np.testing.assert_allclose(density - 1.0, exact, atol=1e-4 * size)
    np.testing.assert_allclose(velocity, exact, atol=1e-4 * size)
    np.testing.assert_allclose(pressure, density**1.4 / 1.4, rtol=1e-9)


def test_shock_tube():
    """A gas at one temperature between closed ends: exact states behind shock and rarefaction."""
    tube = Tube(150, pressure=lambda density: 1.0 * density)
    y0 = tube.start(lambda x: np.where(x < 0.5, 1.0, 0.125), lambda x: 0.0 * x, momentum=True)
    sol = solve_dae(tube.conservative(speed=2.2).fun, (0.0, 0.2), y0, rtol=1e-5, atol=1e-7)
    assert sol.success
    density, momentum, _ = tube.split(sol.y[:, -1])

    def mismatch(d):                           # of the velocities on both sides of the contact
        return np.log(1.0 / d) - (d - 0.125) / np.sqrt(d * 0.125)

    between = brentq(mismatch, 0.13, 0.99)
    k = np.argmin(abs(tube.x - 0.62))
    assert density[k] == pytest.approx(between, rel=0.01)
    assert momentum[k] / density[k] == pytest.approx(np.log(1.0 / between), rel=0.02)
    shock = 0.5 + 0.2 * np.sqrt(between / 0.125)           # it passes into gas at rest
    front = tube.x[np.argmin(np.diff(density))]
    assert front == pytest.approx(shock, abs=3 * tube.dx)
    assert density.sum() * tube.dx == pytest.approx(0.5625, rel=1e-9)      # nothing is lost


def test_index_of_a_tube():
    tube = Tube(5, pressure=lambda density: density**1.4)
    for equations, momentum in ((tube.smooth(), False), (tube.conservative(2.0), True)):
        y0 = tube.start(lambda x: 1.0 + 0.1 * x, lambda x: 0.1 + 0.0 * x, momentum)
        assert analyze(equations.fun, 0.0, y0).index == 1


def test_names_and_units():
    equations = Cavity(3, 4, viscosity=0.1).index_2()
    assert equations.names[0] == "u[0,0]"
    assert equations.names[-1] == "p[2,3]"
    assert len(equations.names) == 2 * 4 + 3 * 3 + 3 * 4 == len(equations.units)


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least 3"):
        Cavity(2, 8, viscosity=0.1)
    with pytest.raises(ValueError, match="viscosity not negative"):
        PeriodicFlow(4, 4, viscosity=-1.0)
    with pytest.raises(ValueError, match="at least 3 cells"):
        Tube(2, pressure=abs)


# Ghia, Ghia and Shin (1982), table I and II for Re = 100: velocities on the centre lines.
GHIA_U = [
    (0.9766, 0.84123), (0.9688, 0.78871), (0.9531, 0.68717), (0.8516, 0.23151), (0.7344, 0.00332),
    (0.6172, -0.13641), (0.5, -0.20581), (0.4531, -0.21090), (0.2813, -0.15662), (0.1719, -0.10150),
    (0.1016, -0.06434), (0.0547, -0.03717),
]  # fmt: skip
GHIA_V = [
    (0.9688, -0.05906), (0.9453, -0.10313), (0.9063, -0.16914), (0.8594, -0.22445),
    (0.8047, -0.24533), (0.5, 0.05454), (0.2344, 0.17527), (0.1563, 0.16077), (0.0938, 0.12317),
    (0.0625, 0.09233),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "off"), [(16, 0.04), pytest.param(64, 0.01, marks=pytest.mark.slow)]
)
def test_driven_cavity_as_physics_gives_it_comes_to_rest_at_known_velocities(cells, off):
    cavity = Cavity(cells, cells, viscosity=0.01)
    equations = cavity.index_2()
    sol = solve_dae(equations.fun, (0, 30), equations.y0, rtol=1e-5, atol=1e-6, start="quiet")
    assert sol.success
    assert "index 2 reduced to 1" in sol.how
    for k in range(len(sol.t)):
        u, v, _ = cavity.split(sol.y[:, k])
        assert abs(cavity.divergence(u, v)).max() < 1e-10
    middle = (np.arange(cells) + 0.5) / cells
    half = cells // 2 - 1
    along_y = CubicSpline([0.0, *middle, 1.0], [0.0, *u[half], 1.0])
    along_x = CubicSpline([0.0, *middle, 1.0], [0.0, *v[:, half], 0.0])
    for line, known in ((along_y, GHIA_U), (along_x, GHIA_V)):
        places, speeds = np.transpose(known)
        np.testing.assert_allclose(line(places), speeds, atol=off)
