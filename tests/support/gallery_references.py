"""End values of the gallery's problems without tether: SciPy, matrix exponentials, closed forms.

Every function returns the unknowns that the problem compares. None of them calls the residual of
the gallery, so that a slip in one of the two shows.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm, null_space
from scipy.optimize import brentq

from support.netlist_references import clamped_line, common_emitter  # noqa: F401

TIGHT = {"rtol": 1e-12, "atol": 1e-14}


def end(rate, t_span, y0, method="DOP853", **options):
    run = solve_ivp(rate, t_span, y0, method, **{**TIGHT, **options})
    assert run.success, run.message
    return run.y[:, -1]


def junction(v):
    return 1e-14 * np.expm1(v / 0.02585)


# --- circuits -----------------------------------------------------------------------------------


def diode_bridge():
    """va + vb = vc by symmetry, which leaves one equation for v = va - vb."""

    def currents(v, vc):
        u = np.array([v - vc, -v - vc]) / 2
        return junction(u) + 1e-6 * u

    def between(t, vc):
        def left(v):
            there, back = currents(v, vc)
            return v - 5.0 * math.sin(2 * math.pi * 50 * t) + there - back

        return brentq(left, -abs(vc) - 2.0, abs(vc) + 2.0, xtol=1e-15, rtol=1e-15)

    def rate(t, y):
        return [(sum(currents(between(t, y[0]), y[0])) - y[0] / 1e3) / 1e-5]

    (vc,) = end(rate, (0, 0.05), [0.0], "LSODA", rtol=1e-11, atol=1e-13, max_step=5e-5)
    v = between(0.05, vc)
    return [(vc + v) / 2, (vc - v) / 2, vc]


def buck_converter():
    """Linear between the edges; with the diode blocking the current stays zero."""
    inductance, capacity, load, supply, period = 5e-4, 2e-5, 10.0, 24.0, 1e-4
    a = np.array([[0, -1 / inductance, 0], [1 / capacity, -1 / (load * capacity), 0], [0, 0, 0]])

    def phase(y, time, drive):
        matrix = a.copy()
        matrix[0, 2] = drive / inductance
        matrix[0, 0] = -0.01 / inductance if drive else 0.0
        return (expm(matrix * time) @ [*y, 1.0])[:2]

    y = np.zeros(2)
    for _ in range(20):
        y = phase(y, period / 2, supply)
        if phase(y, period / 2, 0.0)[0] >= 0.0:
            y = phase(y, period / 2, 0.0)
        else:
            on = brentq(lambda s: phase(y, s, 0.0)[0], 0.0, period / 2, xtol=1e-18)  # noqa: B023
            v = phase(y, on, 0.0)[1]
            y = np.array([0.0, v * math.exp(-(period / 2 - on) / (load * capacity))])
    return y


def boost_converter():
    """The inductor is charged without the output, then discharged into it."""
    inductance, capacity, load, supply, half = 1e-4, 1e-5, 20.0, 12.0, 5e-6
    a = np.array([[0, -1 / inductance, supply / inductance], [1 / capacity, 0, 0], [0, 0, 0]])
    a[1, 1] = -1 / (load * capacity)
    y = np.array([0.0, 12.0])
    for _ in range(30):
        y = y + np.array([supply * half / inductance, 0.0])
        y = expm(a * half) @ [y[0], y[1] * math.exp(-half / (load * capacity)), 1.0]
        y = y[:2]
        assert y[0] > 0
    return y


def sallen_key():
    """v1' and v2' with vo = v2: a steady oscillation and what dies away."""
    r, c1, c2, load, w, t = 1e4, 2e-8, 1e-8, 1e4, 2 * math.pi * 1000, 5e-3
    second = np.array([1.0, -1.0]) / (r * c2)
    first = second + np.array([-2.0, 1.0]) / (r * c1)
    a, b = np.array([first, second]), np.array([1 / (r * c1), 0.0])
    steady = np.linalg.solve(1j * w * np.eye(2) - a, b.astype(complex))

    def oscillation(s):
        return (steady * np.exp(1j * w * s)).imag

    x = oscillation(t) + expm(a * t) @ -oscillation(0.0)
    slope = a @ x + b * math.sin(w * t)
    return np.array([x[0], x[1], x[1], x[1] / load - c1 * (slope[0] - slope[1])])


def charge_pump():
    c, w = 1e-8, 2 * math.pi * 1e5

    def rate(t, v):
        swing = 1.5 * w * math.cos(w * t)
        nodes = [3.0, *v]
        i = [junction(nodes[k] - nodes[k + 1]) for k in range(4)]
        pushed = [-swing, swing, -swing]
        return [*((i[k] - i[k + 1]) / c + pushed[k] for k in range(3)), (i[3] - v[3] / 1e5) / c]

    return end(rate, (0, 1e-4), [2.4, 1.8, 1.2, 0.6], "LSODA", rtol=1e-11, atol=1e-12)


def nand_gate():
    """Between the edges of the inputs; a transistor by its three regions."""
    edges = [0.0, 4e-9, 5e-9, 8e-9, 9e-9, 1.4e-8, 1.45e-8]

    def transistor(gain, gate, drain, source):
        if drain < source:
            return -transistor(gain, gate, source, drain)
        drive, across = gate - source - 0.7, drain - source
        if drive <= 0:
            return 0.0
        if across < drive:
            return gain * (drive - across / 2) * across
        return gain / 2 * drive**2

    def inputs(t):
        a = 5 * min(max((t - 4e-9) / 1e-9, 0), 1) - 5 * min(max((t - 1.4e-8) / 1e-9, 0), 1)
        return a, 5 * min(max((t - 8e-9) / 1e-9, 0), 1)

    def currents(t, middle, out):
        a, b = inputs(t)
        # those to the supply with all voltages turned round
        p = sum(transistor(1e-4, -gate, -out, -5.0) for gate in (a, b))
        return p, transistor(2e-4, a, out, middle), transistor(2e-4, b, middle, 0.0)

    def rate(t, y):
        p, top, bottom = currents(t, *y)
        return [(top - bottom) / 5e-15, (p - top) / 5e-14]

    y = np.array([0.0, 5.0])
    for t0, t1 in pairwise(edges):
        y = end(rate, (t0, t1), y, "Radau", rtol=1e-10, atol=1e-11, max_step=1e-11)
    return np.array([*y, currents(edges[-1], *y)[0]])


# --- machines -----------------------------------------------------------------------------------


def slider_crank():
    """Positions as functions of the crank's angle; J(phi) phi'' + J' phi'^2 / 2 = torques."""
    crank, rod, g = 0.2, 0.5, 9.81

    def place(phi):
        psi = -math.asin(crank * math.sin(phi) / rod)
        first = -crank * math.cos(phi) / (rod * math.cos(psi))
        second = (crank * math.sin(phi) + rod * math.sin(psi) * first**2) / (rod * math.cos(psi))
        cos, sin = crank * math.cos(phi), crank * math.sin(phi)
        c, s = rod * math.cos(psi), rod * math.sin(psi)
        # phi, x, z, psi, s and their first and second derivatives by phi
        bend_c, bend_s = -c * first**2 - s * second, -s * first**2 + c * second
        return np.array([
            [phi, cos + c / 2, sin + s / 2, psi, cos + c],
            [1.0, -sin - s * first / 2, cos + c * first / 2, first, -sin - s * first],
            [0.0, -cos + bend_c / 2, -sin + bend_s / 2, second, -cos + bend_c],
        ])  # fmt: skip

    masses = np.array([0.02, 1.0, 1.0, 0.02, 2.0])

    def rate(t, y):
        _, first, second = place(y[0])
        inertia, bend = masses @ first**2, masses @ (first * second)
        return [y[1], (0.1 - g * first[2] - bend * y[1] ** 2) / inertia]

    phi, speed = end(rate, (0, 2), [0.7, 1.0])
    positions, first, _ = place(phi)
    return np.concatenate([positions, first * speed])


def rope_and_pulley():
    """x1 = 1 + s, x2 = 1 - s and angle = s / radius: one oscillator."""
    m1, m2, inertia, radius, spring, g, t = 2.0, 1.0, 0.05, 0.1, 50.0, 9.81, 5.0
    total = m1 + m2 + inertia / radius**2
    w = math.sqrt(spring / total)
    rest = (m1 - m2) * g / spring
    s, v = rest * (1 - math.cos(w * t)), rest * w * math.sin(w * t)
    a = rest * w**2 * math.cos(w * t)
    forces = m1 * (g - a), m2 * (g + a) + spring * s
    return np.array([1 + s, 1 - s, s / radius, v, -v, v / radius, *forces])


def chain(links=6):
    """Angles from the vertical: sum_j (n - max(i, j)) l (cos(a_i - a_j) a_j'' + ...) = ..."""
    g, length = 9.81, 0.5
    below = links - np.maximum.outer(np.arange(links), np.arange(links))

    def rate(t, y):
        a, w = y[:links], y[links:]
        d = a[:, None] - a[None, :]
        right = -(below * np.sin(d)) @ w**2 * length - g * np.diag(below) * np.sin(a)
        return [*w, *np.linalg.solve(below * np.cos(d) * length, right)]

    y = end(rate, (0, 1), [math.pi / 2] * links + [0.0] * links)
    a, w = y[:links], y[links:]
    sin, cos = length * np.sin(a), length * np.cos(a)
    return np.array([sin.sum(), -cos.sum(), cos @ w, sin @ w])


def stick_slip():
    """Sticking until the spring exceeds the largest friction, slipping until speeds agree."""
    spring, belt, largest = 10.0, 0.2, 3.0

    def slip(sign):
        def rate(t, y):
            friction = 2.0 + 1.0 / (1.0 + 3.0 * abs(belt - y[1]))
            return [y[1], sign * friction - spring * y[0]]

        return rate

    def same_speed(t, y):
        return y[1] - belt

    same_speed.terminal = True
    t, y, sign = 0.0, np.array([0.0, 0.0]), 1.0
    while t < 10.0:
        run = solve_ivp(slip(sign), (t, 10.0), y, "DOP853", events=same_speed, **TIGHT)
        t, y = run.t[-1], run.y[:, -1]
        if t < 10.0:  # it sticks, up to the place where it is torn off backwards
            assert abs(spring * y[0]) < largest
            stay = min((largest / spring - y[0]) / belt, 10.0 - t)
            # a little beyond, so that speeds agree no more
            t, y, sign = t + stay, np.array([y[0] + belt * stay, belt]), 1.0
            if t < 10.0:
                leave = solve_ivp(slip(1.0), (t, t + 1e-3), y, "DOP853", **TIGHT)
                t, y = leave.t[-1], leave.y[:, -1]
    return y


def geared_motor():
    inertia, drag, ratio, k = 1e-4 + 5e-3 / 16, 2e-5, 4.0, 0.05

    def rates(voltage):
        def rate(t, y):
            i, w = y
            fan = w / ratio
            return [(voltage - i - k * w) / 2e-3, (k * i - drag * fan * abs(fan) / ratio) / inertia]

        return rate

    half = end(rates(24.0), (0, 1), [0.0, 0.0], "LSODA")
    i, w = end(rates(12.0), (1, 2), half, "LSODA")
    torque = k * i - 1e-4 * rates(12.0)(2.0, (i, w))[1]
    return np.array([i, w, w / ratio, torque, ratio * torque])


# --- control ------------------------------------------------------------------------------------


def aircraft():
    """h'' = v' sin(gamma) + v gamma' cos(gamma) is a quadratic equation for the lift."""
    mass, area, density, thrust, g = 5000.0, 30.0, 1.2, 12000.0, 9.81

    def wanted(t):
        return 10.0 * math.sin(0.2 * t), 2.0 * math.cos(0.2 * t)

    def state(t, v):
        climb, bend = wanted(t)
        gamma = math.asin(climb / v)
        q = 0.5 * density * v * v * area / mass
        # q (lift cos - (0.025 + 0.05 lift^2) sin) + thrust / mass sin - g = bend
        sin, cos = math.sin(gamma), math.cos(gamma)
        a, b = 0.05 * q * sin, q * cos
        c = thrust / mass * sin - g - 0.025 * q * sin - bend
        # 0 = -a L^2 + b L + c, the root that is not infinite for sin = 0
        lift = -2 * c / (b + math.sqrt(b * b + 4 * a * c))
        return gamma, lift, q

    def rate(t, y):
        gamma, lift, q = state(t, y[1])
        drag = q * (0.025 + 0.05 * lift**2)
        return [y[1] * math.cos(gamma), thrust / mass - drag - g * math.sin(gamma)]

    x, v = end(rate, (0, 60), [0.0, 90.0])
    gamma, lift, _ = state(60.0, v)
    return np.array([x, 500.0 + 100.0 * math.sin(6.0) ** 2, v, gamma, lift])


def inverted_pendulum():
    cart, bob, length, g = 1.0, 0.2, 0.5, 9.81

    def rates(force):
        def rate(t, y):
            _, angle, v, w = y
            sin, cos = math.sin(angle), math.cos(angle)
            # of the cart, with the acceleration of the angle put in
            a = (force + bob * sin * (g * cos - length * w * w)) / (cart + bob * sin**2)
            return [v, w, a, (a * cos + g * sin) / length]

        return rate

    y, force = np.array([0.0, 0.2, 0.0, 0.0]), 0.0
    for k in range(80):
        if k:
            force = np.array([1.5, -30.0, 3.0, -6.0]) @ y
        y = end(rates(force), (0, 0.05), y)
    return y


# --- plants -------------------------------------------------------------------------------------


def neutralisation():
    """Both contents approach their limits exponentially; the pH is a root."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 30

    def tank(acid, base, base_flow, time):
        flow = 0.010 + base_flow
        stays = math.exp(-flow * time)
        return (
            acid * stays + 0.001 / flow * (1 - stays),
            base * stays + 0.1 * base_flow / flow * (1 - stays),
        )

    acid, base = tank(*tank(0.1, 0.0, 0.009, 300.0), 0.011, 300.0)

    def charge(ph):
        h = mpmath.mpf(10) ** -ph
        return (
            h
            + base
            - mpmath.mpf("1e-14") / h
            - acid * mpmath.mpf("1.8e-5") / (mpmath.mpf("1.8e-5") + h)
        )

    return np.array([acid, base, float(mpmath.findroot(charge, (2, 13), solver="anderson"))])


def flash_drum():
    def pressures(temperature):
        mmhg = 101.325 / 760
        return (
            mmhg * 10 ** (6.90565 - 1211.033 / (temperature + 220.79)),
            mmhg * 10 ** (6.95464 - 1344.8 / (temperature + 219.482)),
        )

    def boiling(x):
        def excess(temperature):
            p1, p2 = pressures(temperature)
            return x * p1 + (1 - x) * p2 - 101.325

        return brentq(excess, 70.0, 120.0, xtol=1e-13, rtol=1e-14)

    vapour = 150.0 / 32.0

    def rates(feed_x):
        def rate(t, y):
            holdup, benzene = y
            x, liquid = benzene / holdup, 1.2 * math.sqrt(holdup)
            vapour_x = x * pressures(boiling(x))[0] / 101.325
            return [10 - vapour - liquid, 10 * feed_x - vapour * vapour_x - liquid * x]

        return rate

    half = end(rates(0.5), (0, 5), [20.0, 8.0], rtol=1e-11)
    holdup, benzene = end(rates(0.4), (5, 30), half, rtol=1e-11)
    x = benzene / holdup
    temperature = boiling(x)
    vapour_x = x * pressures(temperature)[0] / 101.325
    return np.array([holdup, benzene, x, vapour_x, temperature, vapour, 1.2 * math.sqrt(holdup)])


def distillation(trays=20):
    n = trays + 2
    middle = n // 2
    hold = np.full(n, 0.5)
    hold[[0, -1]] = 5.0

    def rates(feed_x):
        def rate(t, x):
            y = 2 * x / (1 + x)
            # flows into and out of every stage, by hand: 2 up, 1.5 down above, 2.5 below
            down = np.where(np.arange(n) < middle, 1.5, 2.5)
            gain = np.zeros(n)
            gain[1:] += down[:-1] * x[:-1]
            gain[1:-1] -= down[1:-1] * x[1:-1]
            gain[1:-1] += 2 * (y[2:] - y[1:-1])
            gain[middle] += feed_x
            gain[0] = 2 * y[1] - 1.5 * x[0] - 0.5 * x[0]
            gain[-1] -= 2 * y[-1] + 0.5 * x[-1]
            return gain / hold

        return rate

    half = end(rates(0.5), (0, 10), np.full(n, 0.5), "LSODA")
    return end(rates(0.45), (10, 60), half, "LSODA")


def battery(shells=10):
    edges = np.linspace(0, 1, shells + 1)
    volumes = np.diff(edges**3) / 3

    def particle(start, speed, outflow):
        exchange = speed * edges[1:-1] ** 2 * shells
        a = np.zeros((shells + 1, shells + 1))
        for k, g in enumerate(exchange):
            a[k, [k, k + 1]] += np.array([-g, g]) / volumes[k]
            a[k + 1, [k, k + 1]] += np.array([g, -g]) / volumes[k + 1]
        loaded = a.copy()
        loaded[shells - 1, shells] = -outflow / volumes[-1]
        c = expm(a * 1800) @ expm(loaded * 1800) @ [*[start] * shells, 1.0]
        return c[shells - 1]

    n, p = particle(0.8, 4e-4, 8e-5), particle(0.4, 1e-3, -7e-5)
    open_n = 0.15 + 0.6 * math.exp(-20 * n) - 0.05 * math.tanh(8 * n - 4)
    open_p = 4.2 - 0.8 * p - 0.3 * math.exp(30 * (p - 1))
    return np.array([n, p, open_p - open_n])  # at rest, so without overpotentials


def pipe_network():
    """Flows of the branches; the pressure of the node from main' = left' + right'."""

    def forces(t, left, right):
        main = left + right
        drive = 5 + 2 * math.sin(0.5 * t) - 0.5 * main * abs(main)
        return drive, 1 + 2 * left * abs(left), 0.5 + right * abs(right)

    def open_pressure(t, y):
        drive, one, two = forces(t, *y)
        # (drive - p) / 2 = (p - one) / 1 + (p - two) / 3
        return (drive / 2 + one + two / 3) / (1 / 2 + 1 + 1 / 3)

    def inlet_regulated(t, y):
        drive, one, two = forces(t, *y)
        return drive - 2 * ((2.9 - one) + (2.9 - two) / 3)

    def rates(regulated):
        def rate(t, y):
            node = 2.9 if regulated else open_pressure(t, y)
            _, one, two = forces(t, *y)
            return [node - one, (node - two) / 3]

        return rate

    def change(t, y):  # both pressures pass 2.9 bar at the same time
        return open_pressure(t, y) - 2.9

    change.terminal = True
    t, y = 0.0, np.array([1.0, 1.5])
    regulated = change(t, y) > 0
    while t < 30.0:
        run = solve_ivp(rates(regulated), (t, 30.0), y, "DOP853", events=change, **TIGHT)
        t, y = run.t[-1], run.y[:, -1]
        if t < 30.0:
            regulated = not regulated
            beyond = solve_ivp(rates(regulated), (t, t + 1e-3), y, "DOP853", **TIGHT)
            t, y = beyond.t[-1], beyond.y[:, -1]
    node = 2.9 if regulated else open_pressure(t, y)
    inlet = inlet_regulated(t, y) if regulated else node
    return np.array([y.sum(), *y, inlet, node])


# --- grids --------------------------------------------------------------------------------------


def brusselator(m=19):
    strength = 0.02 * (m + 1) ** 2

    def rate(t, y):
        u, v = np.pad(y[:m], 1, constant_values=1.0), np.pad(y[m:], 1, constant_values=3.0)
        du = 1 + u**2 * v - 4 * u
        dv = 3 * u - u**2 * v
        return [*(du[1:-1] + strength * np.diff(u, 2)), *(dv[1:-1] + strength * np.diff(v, 2))]

    x = np.arange(1, m + 1) / (m + 1)
    y = end(rate, (0, 10), [*(1 + np.sin(2 * math.pi * x)), *np.full(m, 3.0)], "LSODA")
    quarter, middle = (m + 1) // 4 - 1, (m + 1) // 2 - 1
    return y[[quarter, middle, m + quarter, m + middle]]


def brusselator2d(m=7):
    strength = 0.002 * (m - 1) ** 2

    def spread(w):
        wide = np.pad(w, 1, mode="reflect")
        return strength * (np.diff(wide[:, 1:-1], 2, axis=0) + np.diff(wide[1:-1], 2, axis=1))

    def rate(t, y):
        u, v = y.reshape(2, m, m)
        uuv = u * u * v
        return np.array([1 + uuv - 4.4 * u + spread(u), 3.4 * u - uuv + spread(v)]).ravel()

    x = np.arange(m) / (m - 1)
    bump = x * (1 - x) ** 1.5
    ones = np.ones(m)
    y0 = np.array([22 * np.outer(ones, bump), 27 * np.outer(bump, ones)])
    u, v = end(rate, (0, 7.5), y0.ravel(), "LSODA").reshape(2, m, m)
    return np.array([u[0, 0], u[m // 2, m // 2], v[0, 0], v[m // 2, m // 2]])


def driven_cavity(m=5):
    """Cell by cell with plain loops, on the null space of the divergence."""
    h, viscosity = 1 / m, 0.01
    u_at = {(i, k): (i - 1) * m + k for i in range(1, m) for k in range(m)}
    v_at = {(i, k): m * (m - 1) + i * (m - 1) + k - 1 for i in range(m) for k in range(1, m)}
    size = len(u_at) + len(v_at)
    divergence = np.zeros((m * m, size))
    for i in range(m):
        for k in range(m):
            for place, at, sign in (
                ((i + 1, k), u_at, 1), ((i, k), u_at, -1),
                ((i, k + 1), v_at, 1), ((i, k), v_at, -1),
            ):  # fmt: skip
                if place in at:
                    divergence[i * m + k, at[place]] = sign
    basis = null_space(divergence)

    def slopes(w):
        def u(i, k):
            if i in (0, m):
                return 0.0
            if k == -1:
                return -w[u_at[i, 0]]
            return 2.0 - w[u_at[i, m - 1]] if k == m else w[u_at[i, k]]

        def v(i, k):
            if k in (0, m):
                return 0.0
            if i == -1:
                return -w[v_at[0, k]]
            return -w[v_at[m - 1, k]] if i == m else w[v_at[i, k]]

        def product(i, k):  # at a corner of cells
            return (u(i, k) + u(i, k - 1)) / 2 * (v(i, k) + v(i - 1, k)) / 2

        out = np.zeros(size)
        for (i, k), j in u_at.items():
            spread = u(i + 1, k) + u(i - 1, k) + u(i, k + 1) + u(i, k - 1) - 4 * u(i, k)
            along = ((u(i + 1, k) + u(i, k)) ** 2 - (u(i - 1, k) + u(i, k)) ** 2) / 4
            out[j] = viscosity * spread / h**2 - (along + product(i, k + 1) - product(i, k)) / h
        for (i, k), j in v_at.items():
            spread = v(i + 1, k) + v(i - 1, k) + v(i, k + 1) + v(i, k - 1) - 4 * v(i, k)
            along = ((v(i, k + 1) + v(i, k)) ** 2 - (v(i, k - 1) + v(i, k)) ** 2) / 4
            out[j] = viscosity * spread / h**2 - (along + product(i + 1, k) - product(i, k)) / h
        return out

    z = end(lambda t, z: basis.T @ slopes(basis @ z), (0, 5), np.zeros(basis.shape[1]), rtol=1e-11)
    w = basis @ z
    middle = m // 2
    return w[[u_at[middle + 1, 0], u_at[middle + 1, m - 1], v_at[0, middle + 1],
              v_at[m - 1, m - 1 - middle]]]  # fmt: skip


def water_tubes():
    """An ODE for flows and tanks: pressures without volume follow from the balances' slopes."""
    pipes = np.array([
        (1, 2), (2, 3), (2, 6), (3, 4), (3, 5), (4, 5), (5, 10), (6, 5), (7, 4), (7, 8), (8, 5),
        (8, 10), (9, 8), (11, 9), (11, 12), (12, 7), (12, 8), (13, 11),
    ]) - 1
    nodes = np.array([5, 8, 1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 13]) - 1
    incidence = np.zeros((13, 18))                     # +1 where a pipe ends
    incidence[pipes[:, 0], range(18)], incidence[pipes[:, 1], range(18)] = -1.0, 1.0
    tanks, rest = nodes[:2], nodes[2:]
    area, inertia, surface = math.pi / 4, 1e6 / (math.pi / 4), 200 / 9800

    def supply(t, step=0.0):
        hours = (t + step) / 3600
        found = np.zeros(13, complex)
        found[[0, 12]] = (1 - np.cos(np.exp(-hours) - 1)) / np.array([200, 80])
        found[9] = -(hours**2) * (3 * hours**2 - 92 * hours + 720) / 1e6
        return found

    def friction(flow):
        reynolds = np.maximum(np.abs(flow) / (1.31e-6 * area), 2.3e3)
        x = np.full(18, 5.0)                           # 1 / sqrt(friction)
        for _ in range(20):
            x = 1.74 - 2 * np.log10(4e-4 + 18.7 * x / reynolds)
        return 1 / x**2

    def forces(flow):
        turbulent = np.abs(flow) / (1.31e-6 * area) > 2.3e3
        return np.where(turbulent, friction(flow) * 1e6 * flow**2 / area**2,
                        32 * 1.31e-3 * 1e3 * flow / area)

    def pressures(t, y):
        flow, p = y[:18], np.zeros(13)
        p[tanks] = y[18:]
        slope = supply(t, 1e-20j).imag / 1e-20
        known = (-(incidence.T @ p) - forces(flow)) / inertia
        matrix = incidence[rest] @ incidence[rest].T / inertia
        p[rest] = np.linalg.solve(matrix, incidence[rest] @ known + slope[rest])
        return p

    def rate(t, y):
        flow, p = y[:18], pressures(t, y)
        slopes = (-(incidence.T @ p) - forces(flow)) / inertia
        levels = (supply(t).real + incidence @ flow)[tanks] / surface
        return np.concatenate([slopes, levels])

    t_end = 17 * 3600.0
    y = end(rate, (0, t_end), np.r_[np.zeros(18), 109800.0, 109800.0], "LSODA",
            rtol=1e-9, atol=np.r_[np.full(18, 1e-12), 1e-4, 1e-4])
    return np.concatenate([y[:18], friction(y[:18]), pressures(t_end, y)[nodes]])
