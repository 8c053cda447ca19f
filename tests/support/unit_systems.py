"""Systems of index 0 to 3, and the same in other units and another order."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import cos, sin

import numpy as np


@dataclass(frozen=True, eq=False)
class System:
    """Equations with a consistent start."""

    name: str
    fun: Callable
    y0: np.ndarray
    t_end: float
    index: int
    dof: int

    def __repr__(self):
        return self.name


def decay():
    def fun(t, y, yp):
        return [yp[0] + y[0] - y[1], 2 * yp[1] + 3 * y[1] + y[0] * y[1]]

    return System("decay", fun, np.array([1.0, 0.5]), 2.0, 0, 2)


def circuit(index):
    """Nodes, a source and its current; the source charges a capacitor directly at index 2."""
    r1, r2, c1, c2, omega = 1e3, 4.7e3, 10e-9, 22e-9, 2e4
    c0 = 0.0 if index == 1 else c1

    def index_1(t, y, yp):
        e1, e2, e3, i = y
        return [i + (e1 - e2) / r1, (e2 - e1) / r1 + c1 * yp[1] + (e2 - e3) / r2,
                (e3 - e2) / r2 + c2 * yp[2], e1 - 5 * sin(omega * t)]

    def index_2(t, y, yp):
        first, *others = index_1(t, y, yp)
        return [first + c0 * yp[0], *others]

    current = -5 * omega * c0
    fun = index_1 if index == 1 else index_2
    return System(f"circuit{index}", fun, np.array([0.0, 0.0, 0.0, current]), 3e-4, index, 2)


def capacitor_loop():
    c1, c2, c3, r, omega = 1e-9, 2e-9, 3e-9, 2e3, 1e4

    def fun(t, y, yp):
        e1, e2, i = y
        return [c1 * yp[0] + c2 * (yp[0] - yp[1]) + i, c2 * (yp[1] - yp[0]) + c3 * yp[1] + e2 / r,
                e1 - 1 - sin(omega * t)]

    slope = (c2 * omega - 0.3 / r) / (c2 + c3)
    current = -(c1 * omega + c2 * (omega - slope))
    return System("capacitor loop", fun, np.array([1.0, 0.3, current]), 3e-4, 2, 1)


def robertson():
    def fun(t, y, yp):
        a, b, c = y
        return [yp[0] + 0.04 * a - 1e4 * b * c, yp[1] - 0.04 * a + 1e4 * b * c + 3e7 * b * b,
                a + b + c - 1]

    return System("robertson", fun, np.array([1.0, 0.0, 0.0]), 40.0, 1, 2)


def reactor():
    """A cooled reactor whose temperature is prescribed."""
    def fun(t, y, yp):
        c, T, rate, cooling = y
        return [yp[0] - 1 + c + rate, yp[1] - 300 + T - 5 * rate + cooling,
                rate - 1e5 * math.exp(-3000 / T) * c, T - 300 - 10 * sin(t)]

    rate = 0.5e5 * math.exp(-10)
    return System("reactor", fun, np.array([0.5, 300.0, rate, 5 * rate - 10]), 2.0, 2, 1)


# --- mechanisms, in units of length, time and mass ------------------------------------------------


def pendulum(index, length=1.0, time=1.0, mass=1.0):
    """Return a pendulum and the units of its unknowns."""
    square, g, m = length**2, 9.81 * length / time**2, mass

    def fun(t, y, yp):
        x, z, u, w, S = y
        last = (x * x + z * z - square if index == 3 else x * u + z * w if index == 2
                else m * (u * u + w * w) - S * (x * x + z * z) - m * g * z)
        return [yp[0] - u, yp[1] - w, m * yp[2] + S * x, m * yp[3] + S * z + m * g, last]

    v = length / time
    units = np.array([length, length, v, v, mass / time**2])
    start = np.array([0.6, -0.8, 0.8, 0.6, 1 + 0.8 * 9.81])
    return System(f"pendulum{index}", fun, units * start, time, index, 5 - index), units


def _double_pendulum(index, length=1.0, time=1.0, mass=1.0):
    l1, l2, g, m1, m2 = length, 0.7 * length, 9.81 * length / time**2, mass, 0.5 * mass

    def fun(t, y, yp):
        x1, z1, x2, z2, u1, w1, u2, w2, S1, S2 = y
        dx, dz, du, dw = x2 - x1, z2 - z1, u2 - u1, w2 - w1
        motion = [yp[0] - u1, yp[1] - w1, yp[2] - u2, yp[3] - w2,
                  m1 * yp[4] + S1 * x1 - S2 * dx, m1 * (yp[5] + g) + S1 * z1 - S2 * dz,
                  m2 * yp[6] + S2 * dx, m2 * (yp[7] + g) + S2 * dz]
        if index == 3:
            return [*motion, x1 * x1 + z1 * z1 - l1 * l1, dx * dx + dz * dz - l2 * l2]
        if index == 2:
            return [*motion, x1 * u1 + z1 * w1, dx * du + dz * dw]
        a1, b1 = (S2 * dx - S1 * x1) / m1, (S2 * dz - S1 * z1) / m1 - g
        a2, b2 = -S2 * dx / m2, -S2 * dz / m2 - g
        return [*motion, u1 * u1 + w1 * w1 + x1 * a1 + z1 * b1,
                du * du + dw * dw + dx * (a2 - a1) + dz * (b2 - b1)]

    return fun


def double_pendulum(index, length=1.0, time=1.0, mass=1.0):
    """Return a double pendulum and the units of its unknowns."""
    v, force = length / time, mass / time**2
    units = np.array([length] * 4 + [v] * 4 + [force] * 2)
    start = np.array([0.6, -0.8, 1.02, -1.36, 0.8, 0.6, 1.36, 1.02, 0.0, 0.0])
    start[8:] = _multipliers(_double_pendulum(1), start, 2)
    fun, dof = _double_pendulum(index, length, time, mass), {3: 4, 2: 6, 1: 8}[index]
    return System(f"double pendulum{index}", fun, units * start, 0.5 * time, index, dof), units


def _slider_crank(index, length=1.0, time=1.0, mass=1.0):
    r, rod = 0.3 * length, length
    j1, j2, m3 = 0.1 * mass * length**2, 0.2 * mass * length**2, 0.7 * mass

    def fun(t, y, yp):
        a, b, x, da, db, dx, p, q = y
        motion = [yp[0] - da, yp[1] - db, yp[2] - dx,
                  j1 * yp[3] + p * r * sin(a) - q * r * cos(a),
                  j2 * yp[4] + p * rod * sin(b) - q * rod * cos(b), m3 * yp[5] + p]
        if index == 3:
            return [*motion, r * cos(a) + rod * cos(b) - x, r * sin(a) + rod * sin(b)]
        if index == 2:
            return [*motion, -r * sin(a) * da - rod * sin(b) * db - dx,
                    r * cos(a) * da + rod * cos(b) * db]
        dda = (q * r * cos(a) - p * r * sin(a)) / j1
        ddb = (q * rod * cos(b) - p * rod * sin(b)) / j2
        return [*motion,
                -r * cos(a) * da**2 - r * sin(a) * dda - rod * cos(b) * db**2
                - rod * sin(b) * ddb + p / m3,
                -r * sin(a) * da**2 + r * cos(a) * dda - rod * sin(b) * db**2
                + rod * cos(b) * ddb]

    return fun


def slider_crank(index, length=1.0, time=1.0, mass=1.0):
    """Return a slider-crank of two angles and a distance, and the units of its unknowns."""
    v, force = length / time, mass * length / time**2
    units = np.array([1, 1, length, 1 / time, 1 / time, v, force, force])
    a, da = 0.5, 2.0
    b = -math.asin(0.3 * sin(a))
    db = -0.3 * cos(a) * da / cos(b)
    start = np.array([a, b, 0.3 * cos(a) + cos(b), da, db, -0.3 * sin(a) * da - sin(b) * db, 0, 0])
    start[6:] = _multipliers(_slider_crank(1), start, 2)
    fun, dof = _slider_crank(index, length, time, mass), {3: 2, 2: 4, 1: 6}[index]
    return System(f"slider-crank{index}", fun, units * start, time, index, dof), units


def _multipliers(fun, start, count):
    """Find the multipliers, which come last, by the equations of index 1 in plain units."""
    def accelerations(multipliers):
        y = np.append(start[:-count], multipliers)
        return np.array(fun(0.0, y, np.zeros(len(y)))[-count:])

    rest = accelerations(np.zeros(count))
    slopes = [accelerations(unit) - rest for unit in np.eye(count)]
    return np.linalg.solve(np.array(slopes).T, -rest)


def mechanisms(*units):
    """All mechanisms with the units of their unknowns."""
    return [make(index, *units) for make in (pendulum, double_pendulum, slider_crank)
            for index in (1, 2, 3)]


def systems():
    """One of each kind."""
    plain = [decay(), circuit(1), circuit(2), capacitor_loop(), robertson(), reactor()]
    return [*plain, *(system for system, _ in mechanisms())]


# --- other units and another order ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Disguised:
    """A system with all unknowns and equations in other units and another order."""

    fun: Callable
    y0: np.ndarray
    t_end: float
    units: np.ndarray            # of the unknowns in their new order
    time: float
    place: np.ndarray            # of the plain unknowns among the new ones

    def plain(self, y):
        """Values of the plain system."""
        return (np.asarray(y) / self.units)[self.place]


def disguised(system, rng, decades=12.0, time=False):
    """Choose units within some decades, and an order."""
    n = len(system.y0)
    unit, factor = (10.0 ** rng.uniform(-decades, decades, n) for _ in range(2))
    period = float(10.0 ** rng.uniform(-decades, decades)) if time else 1.0
    order, rows = rng.permutation(n), rng.permutation(n).tolist()
    place = np.argsort(order)
    places, divisors, factors, fun = place.tolist(), unit.tolist(), factor.tolist(), system.fun

    def wrapped(t, y, yp):
        values = [y[places[j]] / divisors[j] for j in range(n)]
        slopes = [yp[places[j]] * (period / divisors[j]) for j in range(n)]
        plain = fun(t / period, values, slopes)
        return [factors[i] * plain[i] for i in rows]

    return Disguised(wrapped, (unit * system.y0)[order], period * system.t_end, unit[order],
                     period, place)
