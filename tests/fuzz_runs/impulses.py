"""Mechanisms that switch: pulsed forces, springs behind a gap, walls, joints that are let go."""

import math

import numpy as np

from fuzz_runs.case import Case
from fuzz_runs.circuits import edges_of
from fuzz_runs.joints import Distance, Still
from fuzz_runs.mechanisms import POSITION, VELOCITY, Forces, Mechanism, time_span
from fuzz_runs.reference import Guard, Unusable, integrate


class SwitchedForces(Forces):
    """Forces with a part that is pulsed, and a spring behind a gap."""

    def __init__(self, rng, n, vertical, pulse, gap):
        super().__init__(rng, n, vertical)
        self.pulse, self.gap = pulse, gap

    def conservative(self):
        return False

    def __call__(self, t, q, v, masses):
        f = super().__call__(t, q, v, masses)
        if self.pulse is not None:
            size, period, phase = self.pulse
            high = np.sin(2 * np.pi * (t - phase) / period) > 0
            f[0] = f[0] + (size if high else -0.5 * size)
        if self.gap is not None:
            stiffness, where = self.gap
            f[0] = f[0] - stiffness * np.maximum(q[0] - where, 0.0)
        return f


def _hanging(rng, links, forces):
    """A chain that hangs from the origin, with its positions."""
    constraints, masses, q, x, z, angle = [], [], [], 0.0, 0.0, rng.uniform(-1.2, 1.2)
    for k in range(links):
        length = float(rng.uniform(0.5, 1.2))
        angle += rng.uniform(-0.5, 0.5)
        x, z = x + length * math.sin(angle), z - length * math.cos(angle)
        q += [x, z]
        masses += [float(rng.uniform(0.3, 2))] * 2
        here, before = [2 * k, 2 * k + 1], [2 * k - 2, 2 * k - 1]
        support = None if k else [Still(0.0)] * 2
        constraints.append(Distance(here, before if k else None, length, support))
    return Mechanism(masses, forces, constraints), q


def switched(rng):
    """A pendulum or a chain under forces that jump at known times or have a kink."""
    links = int(rng.integers(1, 3))
    span = time_span(rng, 2.5)
    length = abs(span[1] - span[0])
    pulse = gap = None
    edges = []
    if rng.random() < 0.6:
        pulse = (
            float(rng.uniform(0.5, 5)),
            length / float(rng.uniform(0.8, 4)),
            float(rng.uniform(0, 1)),
        )
        edges = edges_of(span, pulse[1] / 2, pulse[2])
        if np.abs(np.diff([min(span), *edges, max(span)])).min() < length / 40:
            raise Unusable("narrow pulse")
    else:
        gap = (float(rng.uniform(5, 60)), float(rng.uniform(-0.2, 0.3)))
    forces = SwitchedForces(rng, 2 * links, range(1, 2 * links, 2), pulse, gap)
    body, q = _hanging(rng, links, forces)
    v = 0.5 * rng.normal(size=2 * links)
    case = body.case(
        f"chain of {links} under {'pulses' if pulse else 'a kink'}",
        rng,
        span,
        q,
        v,
        breaks=edges,
        side=None if gap is None else (0, gap[1]),
    )
    return case


def wall(rng):
    """A pendulum that strikes a wall and is thrown back."""
    span = time_span(rng, 3, backwards=False)
    body, q = _hanging(rng, 1, Forces(rng, 2, [1]))
    back = float(rng.uniform(0.4, 0.95))
    where = q[0] - float(rng.uniform(0.1, 0.4)) * body.constraints[0].length
    n = body.n
    q, v = body.fit(span[0], q, 0.5 * rng.normal(size=2))
    index = int(rng.choice([3, 3, 2]))

    def guards(mode):
        return [
            Guard(
                lambda t, z: z[0] - where,
                -1,
                lambda t, z, m: (np.concatenate([z[:n], -back * z[n:]]), m),
            )
        ]

    def out(t, z, mode):
        return np.concatenate([z, body.solve(t, z[:n], z[n:])[n:]])

    def struck(t, y):
        return y[0] - where

    struck.direction = -1
    struck.apply = lambda t, y: [y[0], y[1], -back * y[2], -back * y[3], y[4]]

    def perturb(z, relative, rng):
        z = z + relative * rng.choice([-1.0, 1.0], 4)
        return np.concatenate(body.fit(span[0], z[:2], z[2:]))

    return Case(
        f"pendulum and a wall, index {index}",
        body.residual(index, False, False),
        span,
        np.concatenate([q, v]),
        lambda z: integrate(body.rhs, out, span, z, 0, guards, limit=12),
        [POSITION] * 2 + [VELOCITY] * 2 + [(0, -2, 1)],
        perturb=perturb,
        guessed=(4,),
        events=(struck,),
        unwatched=(2, 3, 4),
    )


def released(rng):
    """A chain whose last joint is let go at a time, or where it passes a height."""
    links = int(rng.integers(1, 3))
    span = time_span(rng, 2, backwards=False)
    body, q = _hanging(rng, links, Forces(rng, 2 * links, range(1, 2 * links, 2)))
    n, m = body.n, body.m
    when = span[0] + float(rng.uniform(0.2, 0.8)) * (span[1] - span[0])
    q, v = body.fit(span[0], q, rng.normal(size=n))
    held = body.residual(3, False, False)
    style = int(rng.integers(3))

    def equations(t, y, yp):
        r = held(t, y, yp)
        if style == 0:
            last = r[-1] if t < when else y[2 * n + m - 1]
        elif style == 1:
            last = np.where(t > when, y[2 * n + m - 1], r[-1])
        else:
            free = t >= when
            last = free * y[2 * n + m - 1] + (1 - free) * r[-1]
        return [*r[:-1], last]

    free = Mechanism(body.masses, body.forces, body.constraints[:-1], body.units)

    def rhs(t, z, mode):
        return (free if mode else body).rhs(t, z, mode)

    def out(t, z, mode):
        if mode:
            return np.concatenate([z, free.solve(t, z[:n], z[n:])[n:], [0.0]])
        return np.concatenate([z, body.solve(t, z[:n], z[n:])[n:]])

    def perturb(z, relative, rng):
        z = z + relative * rng.choice([-1.0, 1.0], 2 * n)
        return np.concatenate(body.fit(span[0], z[:n], z[n:]))

    return Case(
        f"chain of {links} let go",
        equations,
        span,
        np.concatenate([q, v]),
        lambda z: integrate(rhs, out, span, z, 0, None, [when], at_break=lambda *_: 1),
        [POSITION] * n + [VELOCITY] * n + [(0, -2, 1)] * m,
        perturb=perturb,
        guessed=tuple(range(2 * n, 2 * n + m)),
        breaks=[when],
        unwatched=tuple(range(2 * n, 2 * n + m)),
    )


FAMILIES = [switched, wall, released]
