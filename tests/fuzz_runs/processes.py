"""Stiff kinetics with equilibria, and plants under control."""

import numpy as np
from scipy.optimize import brentq

from fuzz_runs.case import Case
from fuzz_runs.reference import Guard, Unusable, integrate

MOLES, RATE = (0, 0, 1), (0, -1, 1)


def robertson(rng):
    k1, k2, k3 = (
        0.04 * rng.uniform(0.5, 2),
        3e7 * 10.0 ** rng.uniform(-3, 0),
        1e4 * rng.uniform(0.1, 2),
    )
    k1, k2, k3 = float(k1), float(k2), float(k3)
    span = (0.0, float(10.0 ** rng.uniform(-1, 2)))

    def rhs(t, z, mode):
        a, b = z
        c = 1 - a - b
        return [-k1 * a + k3 * b * c, k1 * a - k3 * b * c - k2 * b * b]

    def out(t, z, mode):
        return [*z, 1 - z[0] - z[1]]

    def equations(t, y, yp):
        a, b, c = y
        return [
            yp[0] + k1 * a - k3 * b * c,
            yp[1] - k1 * a + k3 * b * c + k2 * b * b,
            a + b + c - 1,
        ]

    def perturb(z, relative, rng):
        return z + relative * np.array([rng.choice([-1.0, 1.0]), 1e-6])

    return Case(
        "robertson",
        equations,
        span,
        np.array([1.0, 0.0]),
        lambda z: integrate(rhs, out, span, z, method="Radau", atol=1e-15),
        [(0, 0, 1), (1, 0, 1), (0, 0, 1)],
        perturb=perturb,
        guessed=(2,),
        forms=("auto", "given"),
        called=True,
    )


def equilibrium(rng):
    """A <-> B at once, B + C -> D, with rates as unknowns."""
    ratio, k = float(10.0 ** rng.uniform(-1.5, 1.5)), float(10.0 ** rng.uniform(-1, 2))
    feed = float(rng.uniform(0, 1))
    span = (0.0, float(rng.uniform(0.5, 5)))

    def rhs(t, z, mode):
        s, c = z
        r = k * s * ratio / (1 + ratio) * c
        return [feed - r, -r]

    def out(t, z, mode):
        s, c = z
        b = s * ratio / (1 + ratio)
        r = k * b * c
        db = (feed - r) * ratio / (1 + ratio)
        return [s / (1 + ratio), b, c, r, db + r]  # the last one: what the equilibrium turns over

    def equations(t, y, yp):
        a, b, c, r, x = y
        return [yp[0] - feed + x, yp[1] - x + r, yp[2] + r, r - k * b * c, b - ratio * a]

    return Case(
        "fast equilibrium",
        equations,
        span,
        rng.uniform(0.3, 2, 2),
        lambda z: integrate(rhs, out, span, z),
        [MOLES] * 3 + [RATE] * 2,
        guessed=(3, 4),
        forms=("auto", "auto", "given"),
        called=True,
    )


def titration(rng):
    """A base runs into an acid: the acidity from a balance of charges."""
    ka, kw = float(10.0 ** rng.uniform(-5, -2)), float(10.0 ** rng.uniform(-8, -5))
    flow, strength, acid = (
        float(rng.uniform(0.1, 0.6)),
        float(rng.uniform(0.5, 2)),
        float(rng.uniform(0.3, 1)),
    )
    span = (0.0, float(rng.uniform(0.5, 3)))

    def charge(h, na, ac):
        return h + na - kw / h - ac * ka / (ka + h)

    def rhs(t, z, mode):
        return [flow, flow * strength, 0.0]

    def out(t, z, mode):
        volume, base, total = z
        na, ac = base / volume, total / volume
        h = np.exp(
            brentq(
                lambda p: charge(np.exp(p), na, ac),
                np.log(1e-14),
                np.log(10.0),
                xtol=1e-14,
                rtol=1e-14,
            )
        )
        return [volume, base, total, h, -np.log10(h)]

    def equations(t, y, yp):
        volume, base, total, h, ph = y
        return [
            yp[0] - flow,
            yp[1] - flow * strength,
            yp[2],
            h + base / volume - kw / h - total / volume * ka / (ka + h),
            ph + np.log10(h),
        ]

    start = np.array([1.0, float(rng.uniform(0.01, 0.1)), acid])
    return Case(
        "titration",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z),
        [(3, 0, 0), MOLES, MOLES, (-3, 0, 1), (0, 0, 0)],
        forms=("auto", "given"),
        called=True,
    )


def reactor(rng):
    """A stirred tank with a hot reaction; cooling by a PI controller with limits."""
    heat, k0, e = (
        float(rng.uniform(1, 4)),
        float(10.0 ** rng.uniform(-0.3, 0.5)),
        float(rng.uniform(2, 6)),
    )
    kp, ki = float(rng.uniform(0.5, 4)), float(rng.uniform(0.2, 2))
    goal, top = float(rng.uniform(0.9, 1.4)), float(rng.uniform(0.5, 2))
    span = (0.0, float(rng.uniform(1, 8)))

    def rate(c, temp):
        return k0 * c * np.exp(e * (1 - 1 / temp))

    def wish(t, z):
        return kp * (z[1] - goal) + ki * z[2]

    def rhs(t, z, mode):
        c, temp, _ = z
        q = wish(t, z) if mode == 0 else (top if mode > 0 else 0.0)
        r = rate(c, temp)
        return [1 - c - r, 1 - temp + heat * r - q, temp - goal]

    def out(t, z, mode):
        return [*z, rate(z[0], z[1]), wish(t, z) if mode == 0 else (top if mode > 0 else 0.0)]

    def guards(mode):
        if mode == 0:
            return [
                Guard(lambda t, z: wish(t, z) - top, 1, lambda t, z, m: (z, 1)),
                Guard(wish, -1, lambda t, z, m: (z, -1)),
            ]
        if mode > 0:
            return [Guard(lambda t, z: wish(t, z) - top, -1, lambda t, z, m: (z, 0))]
        return [Guard(wish, 1, lambda t, z, m: (z, 0))]

    def equations(t, y, yp):
        c, temp, i, r, q = y
        return [
            yp[0] - 1 + c + r,
            yp[1] - 1 + temp - heat * r + q,
            yp[2] - temp + goal,
            r - rate(c, temp),
            q - np.clip(kp * (temp - goal) + ki * i, 0.0, top),
        ]

    start = np.array(
        [float(rng.uniform(0.2, 1)), float(rng.uniform(0.8, 1.2)), float(rng.uniform(-0.3, 0.3))]
    )
    first = wish(0, start)
    mode = 1 if first > top else -1 if first < 0 else 0
    return Case(
        "reactor under control",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, mode, guards),
        [MOLES, (1, 0, 0), (1, 1, 0), RATE, (1, -1, 0)],
        guessed=(3, 4),
        forms=("auto", "given"),
        called=True,
    )


def enzyme(rng):
    """Michaelis and Menten with the complex in a quasi-steady state, inhibited beyond a level."""
    km, v, turn = (
        float(rng.uniform(0.1, 2)),
        float(rng.uniform(0.5, 4)),
        float(rng.uniform(0.3, 0.8)),
    )
    strength = float(rng.uniform(0.2, 3))
    span = (0.0, float(rng.uniform(1, 5)))

    def flow(s, p, mode):
        return v * s / (km + s) / (1 + (strength * (p - turn) if mode else 0.0))

    def rhs(t, z, mode):
        r = flow(z[0], z[1], mode)
        return [-r, r - 0.1 * z[1]]

    def out(t, z, mode):
        return [*z, flow(z[0], z[1], mode)]

    def guards(mode):
        return [Guard(lambda t, z: z[1] - turn, -1 if mode else 1, lambda t, z, m: (z, 1 - m))]

    def equations(t, y, yp):
        s, p, r = y
        return [
            yp[0] + r,
            yp[1] - r + 0.1 * p,
            r * (km + s) * (1 + strength * np.maximum(p - turn, 0.0)) - v * s,
        ]

    start = np.array([float(rng.uniform(0.5, 2)), float(rng.uniform(0, 0.2))])
    if start[1] > turn:
        raise Unusable("inhibited at the start")
    return Case(
        "enzyme",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, 0, guards),
        [MOLES, MOLES, RATE],
        guessed=(2,),
        forms=("auto", "given"),
        called=True,
    )


FAMILIES = [robertson, equilibrium, titration, reactor, enzyme]
