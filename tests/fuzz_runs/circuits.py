"""Circuits: linear networks of any index, diodes, amplifiers, converters."""

import math

import numpy as np
from scipy.special import lambertw

from fuzz_runs.case import Case
from fuzz_runs.reference import Guard, LinearPencil, Unusable, integrate, of_function

VOLT, AMPERE = (1, 0, 0), (0, 0, 1)


class Tones:
    """A constant and two tones, as the outputs of w' = S w, w(t0) = w0."""

    def __init__(self, rng):
        self.w1, self.w2 = float(rng.uniform(0.5, 5)), float(rng.uniform(5, 25))

    def system(self):
        s = np.zeros((5, 5))
        s[1, 2], s[2, 1] = self.w1, -self.w1
        s[3, 4], s[4, 3] = self.w2, -self.w2
        return s

    def at(self, t):
        return [
            1.0,
            np.sin(self.w1 * t),
            np.cos(self.w1 * t),
            np.sin(self.w2 * t),
            np.cos(self.w2 * t),
        ]


def _network(rng):
    """Random elements between random nodes: (kind, from, to, value)."""
    nodes = int(rng.integers(2, 6))
    elements = [
        (str(rng.choice(list("RRCL"))), k, int(rng.integers(k)), float(rng.uniform(0.3, 3)))
        for k in range(1, nodes + 1)
    ]
    for _ in range(int(rng.integers(2, 6))):
        a, b = rng.choice(nodes + 1, 2, replace=False)
        elements.append(
            (str(rng.choice(list("RRCCLLVI"))), int(a), int(b), float(rng.uniform(0.3, 3)))
        )
    elements.append(("V", 1, 0, 1.0))
    return nodes, elements


def network(rng):
    """Modified nodal analysis of a random network: loops of capacitors, cutsets of inductors."""
    nodes, elements = _network(rng)
    n = nodes
    branch = {}
    for k, (kind, *_) in enumerate(elements):
        if kind in "LV":
            branch[k] = n
            n += 1
    e, a, f = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, 5))
    for k, (kind, i, j, value) in enumerate(elements):
        sides = [(i - 1, 1.0)] * (i > 0) + [(j - 1, -1.0)] * (j > 0)
        tone = rng.uniform(-1, 1, 5) * np.array([1, 1, 1, 0.3, 0.3])
        if kind in "RC":
            matrix, weight = (a, 1 / value) if kind == "R" else (e, value)
            for p, sp in sides:
                for q, sq in sides:
                    matrix[p, q] += weight * sp * sq
        elif kind == "I":
            for p, sp in sides:
                f[p] += sp * tone
        else:
            b = branch[k]
            for p, sp in sides:
                a[p, b] += sp
                a[b, p] -= sp
            if kind == "L":
                e[b, b] = value
            else:
                f[b] -= tone
    tones = Tones(rng)
    pencil = LinearPencil(e, a, f, tones.system())
    span = _span(rng)
    offset, directions = pencil.free(np.array(tones.at(span[0])))
    start = offset + directions @ rng.normal(size=directions.shape[1])

    def reference(c):
        return of_function(pencil.solution(c, span[0]), span)

    def perturb(c, relative, rng):
        return c + directions @ (
            relative * np.abs(c).max() * rng.choice([-1.0, 1.0], directions.shape[1])
        )

    rows = [[(j, float(e[i, j])) for j in range(n) if e[i, j]] for i in range(n)]
    others = [[(j, float(a[i, j])) for j in range(n) if a[i, j]] for i in range(n)]
    sources = [[(j, float(f[i, j])) for j in range(5) if f[i, j]] for i in range(n)]

    def equations(t, y, yp):
        w = tones.at(t)
        return [
            sum(c * yp[j] for j, c in rows[i])
            + sum(c * y[j] for j, c in others[i])
            - sum(c * w[j] for j, c in sources[i])
            for i in range(n)
        ]

    units = [VOLT] * nodes + [AMPERE] * (n - nodes)
    return Case(
        f"network of {n}",
        equations,
        span,
        start,
        reference,
        units,
        perturb=perturb,
        y0=pencil.start(start),
        forms=("auto", "auto", "given"),
        called=True,
    )


def _span(rng, longest=4.0, backwards=True):
    length, begin = (
        float(rng.uniform(0.3, 1)) * longest,
        float(rng.choice([0.0, rng.uniform(-3, 3)])),
    )
    if backwards and rng.random() < 0.1:
        return begin, begin - 0.2 * length
    return begin, begin + length


def edges_of(span, period, phase, duty=None):
    """Times within the span at which a periodic switch turns over."""
    low, high = sorted(span)
    marks = [0.0] if duty is None else [0.0, duty * period]
    found = []
    for k in range(math.floor((low - phase) / period) - 1, math.ceil((high - phase) / period) + 2):
        found += [phase + k * period + m for m in marks]
    return sorted(x for x in found if low < x < high)


def rectifier(rng):
    """Exponential diode between a source with resistance and a loaded capacitor."""
    r, c, load = float(rng.uniform(0.05, 1)), float(rng.uniform(0.1, 1)), float(rng.uniform(1, 10))
    sat, vt = 10.0 ** rng.uniform(-12, -6), 0.026 * float(rng.uniform(1, 2))
    amplitude, w = float(rng.uniform(1, 8)), float(rng.uniform(1, 8))
    span = _span(rng, backwards=False)

    def current(v):
        # sat (exp((v - r i) / vt) - 1) = i: with x = r (i + sat) / vt, x exp(x) = b exp(...)
        b = math.log(sat * r / vt) + (v + r * sat) / vt
        if b < 300:
            x = float(lambertw(math.exp(b)).real)
        else:
            x = b - math.log(b)
            for _ in range(50):
                x -= (x + math.log(x) - b) / (1 + 1 / x)
        return x * vt / r - sat

    def rhs(t, z, mode):
        return [(current(amplitude * math.sin(w * t) - z[0]) - z[0] / load) / c]

    def out(t, z, mode):
        i = current(amplitude * math.sin(w * t) - z[0])
        return [z[0], i, amplitude * math.sin(w * t) - r * i]

    def equations(t, y, yp):
        v, i, u = y
        return [
            c * yp[0] - i + v / load,
            i - sat * (np.exp((u - v) / vt) - 1),
            u - amplitude * np.sin(w * t) + r * i,
        ]

    start = np.array([float(rng.uniform(0, 0.5 * amplitude))])
    return Case(
        "rectifier with an exponential diode",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, method="Radau"),
        [VOLT, AMPERE, VOLT],
        guessed=(),
        forms=("auto", "given"),
        called=True,
    )


def ideal_rectifier(rng):
    """Ideal diode min(i, -v) with a series resistance and a loaded capacitor."""
    r, c, load = float(rng.uniform(0.1, 1)), float(rng.uniform(0.1, 1)), float(rng.uniform(1, 10))
    amplitude, w = float(rng.uniform(1, 8)), float(rng.uniform(1, 8))
    span = _span(rng, backwards=False)
    style = int(rng.integers(3))

    def source(t):
        return amplitude * np.sin(w * t)

    def drive(t, z):
        return (source(t) - z[0]) / r

    def rhs(t, z, mode):
        return [((drive(t, z) if mode else 0.0) - z[0] / load) / c]

    def out(t, z, mode):
        i = drive(t, z) if mode else 0.0
        return [z[0], i, source(t) - z[0] - r * i]

    def guards(mode):
        return [Guard(drive, -1 if mode else 1, lambda t, z, m: (z, 1 - m))]

    def equations(t, y, yp):
        v, i, u = y  # u: voltage over the diode
        if style == 0:
            law = min(i, -u)
        elif style == 1:
            law = i - max(0.0, i + u)
        else:
            law = np.minimum(-u, i)
        return [c * yp[0] - i + v / load, law, u + v + r * i - source(t)]

    start = np.array([float(rng.uniform(-0.5, 0.5) * amplitude)])
    mode = int(drive(span[0], start) > 0)
    return Case(
        "rectifier with an ideal diode",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, mode, guards),
        [VOLT, AMPERE, VOLT],
        guessed=(),
        forms=("auto", "auto", "given"),
        called=True,
    )


def peak_rectifier(rng):
    """An ideal diode without resistance: while it conducts, source and capacitor form a loop."""
    c, load = float(rng.uniform(0.1, 1)), float(rng.uniform(1, 10))
    amplitude, w = float(rng.uniform(1, 8)), float(rng.uniform(1, 8))
    span = _span(rng, backwards=False)
    bridge = bool(rng.random() < 0.5)
    style = int(rng.integers(2))

    def source(t):
        v = amplitude * np.sin(w * t)
        return abs(v) if bridge else v

    def slope(t):
        rate = amplitude * w * np.cos(w * t)
        return rate * np.sign(np.sin(w * t)) if bridge else rate

    def current(t):
        return c * slope(t) + source(t) / load

    def rhs(t, z, mode):
        return [slope(t) if mode else -z[0] / load / c]

    def out(t, z, mode):
        return [source(t), current(t)] if mode else [z[0], 0.0]

    def guards(mode):
        if mode:
            return [Guard(lambda t, z: current(t), -1, lambda t, z, m: (z, 0))]
        return [Guard(lambda t, z: z[0] - source(t), -1, lambda t, z, m: (z, 1))]

    def equations(t, y, yp):
        v, i = y
        over = v - source(t)
        law = min(i, over) if style == 0 else np.where(i < over, i, over)
        return [c * yp[0] - i + v / load, law]

    start = np.array([source(span[0]) + float(rng.uniform(0.1, 1)) * amplitude])
    return Case(
        "rectifier with a loop" + (", bridge" if bridge else ""),
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, 0, guards),
        [VOLT, AMPERE],
        unwatched=(1,),
    )


def buck(rng):
    """A switched source, an ideal freewheeling diode, an inductor and a loaded capacitor."""
    ind, c, load = (
        float(rng.uniform(0.2, 2)),
        float(rng.uniform(0.2, 2)),
        float(rng.uniform(0.5, 5)),
    )
    supply, rl = float(rng.uniform(2, 12)), float(rng.uniform(0.01, 0.5))
    span = _span(rng, backwards=False)
    length = abs(span[1] - span[0])
    period, duty = length / float(rng.uniform(1.5, 6)), float(rng.uniform(0.25, 0.75))
    phase = span[0] - float(rng.uniform(0.05, 0.2)) * period
    edges = edges_of(span, period, phase, duty)
    times = np.array([span[0], *edges])
    if np.diff([*times, span[1]]).min() < length / 40:
        raise Unusable("narrow pulse")

    def on(t):
        return (t - phase) / period - math.floor((t - phase) / period) < duty

    # mode 0: the current flows; 1: it is zero with the switch open
    def rhs(t, z, mode):
        i, v = z
        if mode and not on(t):
            return [0.0, -v / load / c]
        return [((supply if on(t) else 0.0) - v - rl * i) / ind, (i - v / load) / c]

    def out(t, z, mode):
        i, v = z
        if mode and not on(t):
            return [0.0, v, v]
        return [i, v, supply if on(t) else 0.0]

    def guards(mode):
        if mode:
            return []
        return [
            Guard(
                lambda t, z: z[0] if not on(t) else 1.0,
                -1,
                lambda t, z, m: (np.array([0.0, z[1]]), 1),
            )
        ]

    def at_break(t, z, mode):
        # a current that flows back through the switch has no way to go on when that opens
        if z[0] < 0 and not on(t + 1e-6 * length):
            raise Unusable("the switch opens on a current that flows back")
        return 0

    def reference(z):
        return integrate(rhs, out, span, z, 0, guards, edges, at_break=at_break)

    def equations(t, y, yp):
        i, v, x = y
        k = (t - phase) / period
        closed = k - np.floor(k) < duty
        return [
            ind * yp[0] - x + v + rl * i,
            c * yp[1] - i + v / load,
            x - supply if closed else min(i, x),
        ]

    start = np.array([float(rng.uniform(0.2, 1)) * supply, float(rng.uniform(0, 0.8)) * supply])
    return Case(
        "buck converter",
        equations,
        span,
        start,
        reference,
        [AMPERE, VOLT, VOLT],
        breaks=edges,
        unwatched=(2,),
        called=False,
    )


def amplifier(rng):
    """An integrator with an ideal amplifier, and a stage that saturates."""
    r, c = float(rng.uniform(0.3, 2)), float(rng.uniform(0.1, 1))
    gain, limit = float(rng.uniform(1.5, 6)), float(rng.uniform(0.5, 2))
    lag = float(rng.uniform(0.05, 0.5))
    a, w = float(rng.uniform(0.5, 3)), float(rng.uniform(2, 10))
    span = _span(rng)
    style = int(rng.integers(3))

    def source(t):
        return a * np.cos(w * t)

    # unknowns: minus input, output of the integrator, current through its capacitor, stage, filter
    def rhs(t, z, mode):
        u = gain * z[0] if mode == 0 else mode * limit
        return [-source(t) / (r * c), (u - z[1]) / lag]

    def out(t, z, mode):
        return [0.0, z[0], source(t) / r, gain * z[0] if mode == 0 else mode * limit, z[1]]

    def guards(mode):
        if mode == 0:
            return [
                Guard(lambda t, z: gain * z[0] - limit, 1, lambda t, z, m: (z, 1)),
                Guard(lambda t, z: gain * z[0] + limit, -1, lambda t, z, m: (z, -1)),
            ]
        return [Guard(lambda t, z: gain * z[0] - mode * limit, -mode, lambda t, z, m: (z, 0))]

    def equations(t, y, yp):
        minus, o, i, s, x = y
        if style == 0:
            stage = np.clip(gain * o, -limit, limit)
        elif style == 1:
            stage = max(-limit, min(limit, gain * o))
        else:
            stage = gain * o if abs(gain * o) < limit else limit * np.sign(o)
        return [
            minus,
            (source(t) - minus) / r - i,
            c * (yp[0] - yp[1]) - i,
            s - stage,
            lag * yp[4] - s + x,
        ]

    start = rng.uniform(-1, 1, 2) * limit / gain
    mode = 0 if abs(gain * start[0]) < limit else int(np.sign(start[0]))
    return Case(
        "amplifier that saturates",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, mode, guards),
        [VOLT, VOLT, AMPERE, VOLT, VOLT],
        guessed=(),
        forms=("auto", "auto", "given"),
        called=True,
    )


FAMILIES = [network, network, rectifier, ideal_rectifier, peak_rectifier, buck, amplifier]
