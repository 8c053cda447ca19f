"""Systems that switch: on time, on the state, by events that change it."""

import math

import numpy as np

from fuzz_runs.case import Case
from fuzz_runs.circuits import edges_of
from fuzz_runs.reference import Guard, Unusable, integrate

PLAIN = (0, 0, 0)


def _span(rng, longest=4.0, backwards=False):
    length, begin = (
        float(rng.uniform(0.3, 1)) * longest,
        float(rng.choice([0.0, rng.uniform(-3, 3)])),
    )
    if backwards and rng.random() < 0.15:
        return begin, begin - 0.4 * length
    return begin, begin + length


def pulses(rng):
    """A linear system fed by a source that switches at known times, written in several ways."""
    n = int(rng.integers(1, 4))
    matrix = rng.normal(size=(n, n)) - 1.5 * np.eye(n)
    matrix *= 10.0 ** rng.uniform(-2.5, 0.5)  # what is slow may step over a pulse
    feed = rng.normal(size=n)
    seen, direct = rng.normal(size=n), float(rng.uniform(-1, 1))
    high, low = float(rng.uniform(0.5, 3)), float(rng.uniform(-2, 0.3))
    span = _span(rng, backwards=True)
    length = abs(span[1] - span[0])
    style = int(rng.integers(6))
    period = length / float(rng.uniform(0.8, 8))
    phase, duty = float(rng.uniform(0, 1)) * period, float(rng.uniform(0.25, 0.75))
    if style in (1, 2, 5):
        duty = 0.5
    edges = edges_of(span, period, phase, duty)
    if style == 3:
        edges = edges[:3]
        levels = [float(x) for x in rng.uniform(-2, 2, len(edges) + 1)]
    if np.abs(np.diff([min(span), *edges, max(span)])).min() < length / 40:
        raise Unusable("narrow pulse")

    def source(t):
        if style == 0:
            k = (t - phase) / period
            return high if k - np.floor(k) < duty else low
        if style == 1:
            return np.where(np.sin(2 * np.pi * (t - phase) / period) > 0, high, low)
        if style == 2:
            return 0.5 * (high + low) + 0.5 * (high - low) * np.sign(
                np.sin(2 * np.pi * (t - phase) / period)
            )
        if style == 3:
            for edge, level in zip(edges, levels, strict=False):
                if t < edge:
                    return level
            return levels[-1]
        if style == 4:
            return high if (t - phase) % period < duty * period else low
        return low + (high - low) * abs(np.sin(np.pi * (t - phase) / period))  # kinks

    rows = matrix.tolist()
    weights, feeds = seen.tolist(), feed.tolist()

    def rhs(t, z, mode):
        return matrix @ z + feed * float(source(t))

    def out(t, z, mode):
        return [*z, seen @ z + direct * float(source(t))]

    def equations(t, y, yp):
        s = source(t)
        r = [yp[i] - sum(rows[i][j] * y[j] for j in range(n)) - feeds[i] * s for i in range(n)]
        return [*r, y[n] - sum(weights[j] * y[j] for j in range(n)) - direct * s]

    # a zero of the sine in style 5 is where the source has its kink
    return Case(
        f"pulses, way {style}",
        equations,
        span,
        rng.normal(size=n),
        lambda z: integrate(rhs, out, span, z, breaks=edges),
        [PLAIN] * (n + 1),
        breaks=edges,
        guessed=(n,),
        forms=("auto", "auto", "given"),
        called=True,
        unwatched=(n,),
    )


def thermostat(rng):
    """A heater with hysteresis, its switch an unknown that events turn over."""
    low, high = sorted(rng.uniform(15, 25, 2))
    if high - low < 1:
        raise Unusable("narrow band")
    low, high = float(low), float(high)
    outside, power, rate = (
        float(rng.uniform(-5, 12)),
        float(rng.uniform(20, 60)),
        float(rng.uniform(0.3, 2)),
    )
    swing, w = float(rng.uniform(0, 3)), float(rng.uniform(0.5, 3))
    second = float(rng.uniform(0.05, 0.5))
    span = _span(rng, 6)

    def rhs(t, z, mode):
        room, wall = z
        return [
            rate * (outside + swing * np.sin(w * t) + mode * power - room) + second * (wall - room),
            second * (room - wall),
        ]

    def out(t, z, mode):
        return [*z, mode, mode * power * rate]

    def guards(mode):
        if mode:
            return [Guard(lambda t, z: z[0] - high, 1, lambda t, z, m: (z, 0))]
        return [Guard(lambda t, z: z[0] - low, -1, lambda t, z, m: (z, 1))]

    def equations(t, y, yp):
        room, wall, switch, heat = y
        return [
            yp[0] - rate * (outside + swing * np.sin(w * t) - room) - heat - second * (wall - room),
            yp[1] - second * (room - wall),
            yp[2],
            heat - switch * power * rate,
        ]

    def too_warm(t, y):
        return y[0] - high

    def too_cold(t, y):
        return y[0] - low

    too_warm.direction, too_cold.direction = 1, -1
    too_warm.apply = lambda t, y: [y[0], y[1], 0.0, 0.0]
    too_cold.apply = lambda t, y: [y[0], y[1], 1.0, power * rate]
    mode = int(rng.integers(2))
    start = np.array([float(rng.uniform(low + 0.2, high - 0.2)), float(rng.uniform(10, 25))])
    return Case(
        "thermostat",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, mode, guards, limit=40),
        [(1, 0, 0), (1, 0, 0), PLAIN, (1, -1, 0)],
        events=(too_warm, too_cold),
        unwatched=(2, 3),
        forms=("auto", "auto", "given"),
        called=True,
    )


def bounce(rng):
    """A ball that bounces, with drag, on a floor that may move."""
    e, drag = float(rng.uniform(0.5, 0.95)), float(rng.choice([0.0, rng.uniform(0, 0.5)]))
    a, w = float(rng.choice([0.0, rng.uniform(0.02, 0.2)])), float(rng.uniform(1, 5))
    span = _span(rng, 2)

    def floor(t):
        return a * np.sin(w * t)

    def speed(t):
        return a * w * np.cos(w * t)

    def rhs(t, z, mode):
        return [z[1], -9.81 - drag * z[1] * abs(z[1])]

    def out(t, z, mode):
        return [z[0], z[1], -drag * z[1] * abs(z[1])]

    def guards(mode):
        return [
            Guard(
                lambda t, z: z[0] - floor(t),
                -1,
                lambda t, z, m: (np.array([floor(t), speed(t) - e * (z[1] - speed(t))]), m),
            )
        ]

    def equations(t, y, yp):
        _, v, f = y
        return [yp[0] - v, yp[1] + 9.81 - f, f + drag * v * abs(v)]

    def ground(t, y):
        return y[0] - floor(t)

    ground.direction = -1
    ground.apply = lambda t, y: _bounced(floor(t), speed(t) - e * (y[1] - speed(t)), drag)
    start = np.array([float(rng.uniform(0.8, 3)), float(rng.uniform(-3, 3))])
    return Case(
        "bouncing ball",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, 0, guards, limit=12),
        [(1, 0, 0), (1, -1, 0), (1, -2, 0)],
        events=(ground,),
        unwatched=(1, 2),
        forms=("auto", "given"),
        called=True,
    )


def _bounced(x, v, drag):
    return [x, v, -drag * v * abs(v)]


def string(rng):
    """A bob on a string that may be slack: min(S, L^2 - r^2)."""
    length = float(rng.uniform(0.5, 2))
    drag = float(rng.choice([0.0, rng.uniform(0.02, 0.3)]))
    span = _span(rng, 2)
    g = 9.81
    style = int(rng.integers(2))

    def tension(t, z):
        x, y, u, w = z
        return (u * u + w * w - g * y - drag * (u * x + w * y)) / length**2

    def rhs(t, z, mode):
        x, y, u, w = z
        s = tension(t, z) if mode else 0.0
        return [u, w, -s * x - drag * u, -s * y - g - drag * w]

    def out(t, z, mode):
        return [*z, tension(t, z) if mode else 0.0]

    def caught(t, z, mode):
        x, y, u, w = z
        radial = (x * u + y * w) / length**2
        z = np.array([x, y, u - radial * x, w - radial * y])
        return z, 1 if tension(t, z) > 0 else 0

    def guards(mode):
        if mode:
            return [Guard(tension, -1, lambda t, z, m: (z, 0))]
        return [Guard(lambda t, z: z[0] ** 2 + z[1] ** 2 - length**2, 1, caught)]

    def equations(t, y, yp):
        x, z, u, w, s = y
        left = length**2 - x * x - z * z
        law = min(s, left) if style == 0 else np.where(s < left, s, left)
        return [yp[0] - u, yp[1] - w, yp[2] + s * x + drag * u, yp[3] + s * z + g + drag * w, law]

    if rng.random() < 0.5:
        angle = rng.uniform(-1.2, 1.2)
        speed = float(rng.uniform(1.0, 2.6)) * math.sqrt(g * length) * rng.choice([-1, 1])
        start = np.array(
            [
                length * math.sin(angle),
                -length * math.cos(angle),
                speed * math.cos(angle),
                speed * math.sin(angle),
            ]
        )
        mode = 1
        if tension(0, start) <= 0:
            raise Unusable("slack at the start")
    else:
        direction, r = rng.uniform(0, 6.28), length * float(rng.uniform(0.1, 0.8))
        start = np.array(
            [r * math.sin(direction), r * math.cos(direction), *rng.uniform(-1.5, 1.5, 2)]
        )
        mode = 0

    def perturb(z0, relative, rng):
        z = z0 * (1 + relative * rng.choice([-1.0, 1.0], 4))
        if mode:
            z[:2] *= length / np.hypot(z[0], z[1])
            z[2:] -= (z[:2] @ z[2:]) / length**2 * z[:2]
        return z

    return Case(
        "slack string",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, mode, guards, limit=12),
        [(1, 0, 0)] * 2 + [(1, -1, 0)] * 2 + [(0, -2, 0)],
        perturb=perturb,
        unwatched=(2, 3, 4),
    )


def contact(rng):
    """A mass on a floor, min(x, F), thrown up by a force; it lands without bouncing."""
    m, g = float(rng.uniform(0.5, 2)), 9.81
    a, w, p = float(rng.uniform(3, 30)), float(rng.uniform(1.5, 6)), float(rng.uniform(0, 6))
    drag = float(rng.choice([0.0, rng.uniform(0.1, 1)]))
    span = _span(rng, 3)
    style = int(rng.integers(3))

    def push(t):
        return m * g + a * np.sin(w * t + p)  # downwards

    def rhs(t, z, mode):
        return [0.0, 0.0] if mode else [z[1], (-push(t) - drag * z[1]) / m]

    def out(t, z, mode):
        return [z[0], z[1], push(t) if mode else 0.0]

    def guards(mode):
        if mode:
            return [Guard(lambda t, z: push(t), -1, lambda t, z, m: (np.zeros(2), 0))]
        return [
            Guard(lambda t, z: z[0], -1, lambda t, z, m: (np.zeros(2), 1 if push(t) > 0 else 0))
        ]

    def equations(t, y, yp):
        x, v, f = y
        if style == 0:
            law = min(x, f)
        elif style == 1:
            law = np.minimum(f, x)
        else:
            law = x if x < f else f
        return [yp[0] - v, m * yp[1] + push(t) + drag * v - f, law]

    mode = int(rng.random() < 0.5)
    if mode and push(span[0]) <= 0.5:
        raise Unusable("lifts off at the start")
    start = (
        np.zeros(2) if mode else np.array([float(rng.uniform(0.2, 2)), float(rng.uniform(-2, 2))])
    )

    def perturb(z0, relative, rng):
        return z0 + (0 if mode else relative * rng.choice([-1.0, 1.0], 2))

    return Case(
        "contact",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, mode, guards, limit=12),
        [(1, 0, 0), (1, -1, 0), (1, -2, 1)],
        perturb=perturb,
        unwatched=(1, 2),
    )


def cage(rng):
    """A mass between two walls that it strikes without bouncing; the lower one may move."""
    a, w, p = float(rng.uniform(5, 30)), float(rng.uniform(1.5, 6)), float(rng.uniform(0, 6))
    swing, rate = float(rng.choice([0.0, rng.uniform(0.05, 0.2)])), float(rng.uniform(1, 4))
    top, drag = float(rng.uniform(0.6, 1.5)), float(rng.choice([0.0, rng.uniform(0.1, 1)]))
    span = _span(rng, 3)

    def floor(t):
        return swing * np.sin(rate * t)

    def floor_speed(t):
        return swing * rate * np.cos(rate * t)

    def push(t):
        return a * np.sin(w * t + p)

    # modes: 0 free, 1 on the floor, 2 at the ceiling
    def below(t):
        v = floor_speed(t)
        return -swing * rate**2 * np.sin(rate * t) - push(t) + drag * v

    def above(t):
        return push(t)

    def rhs(t, z, mode):
        if mode == 1:
            return [floor_speed(t), -swing * rate**2 * np.sin(rate * t)]
        return [z[1], push(t) - drag * z[1]] if mode == 0 else [0.0, 0.0]

    def out(t, z, mode):
        if mode == 1:
            return [floor(t), floor_speed(t), below(t), 0.0]
        return [z[0], z[1], 0.0, 0.0] if mode == 0 else [top, 0.0, 0.0, above(t)]

    def landed(t, z, mode):
        return np.array([floor(t), floor_speed(t)]), 1 if below(t) > 0 else 0

    def stopped(t, z, mode):
        return np.array([top, 0.0]), 2 if above(t) > 0 else 0

    def guards(mode):
        if mode == 1:
            return [
                Guard(
                    lambda t, z: below(t),
                    -1,
                    lambda t, z, m: (np.array([floor(t), floor_speed(t)]), 0),
                )
            ]
        if mode == 2:
            return [Guard(lambda t, z: above(t), -1, lambda t, z, m: (np.array([top, 0.0]), 0))]
        return [
            Guard(lambda t, z: z[0] - floor(t), -1, landed),
            Guard(lambda t, z: top - z[0], -1, stopped),
        ]

    def equations(t, y, yp):
        x, v, f, g = y
        return [
            yp[0] - v,
            yp[1] - push(t) + drag * v - f + g,
            min(x - floor(t), f),
            min(top - x, g),
        ]

    start = np.array([float(rng.uniform(0.3, 0.5)), float(rng.uniform(-1, 1))])
    return Case(
        "mass in a cage",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, 0, guards, limit=16),
        [(1, 0, 0), (1, -1, 0), (1, -2, 0), (1, -2, 0)],
        unwatched=(1, 2, 3),
    )


def saturation(rng):
    """A plant under a PI controller whose output is limited."""
    kp, ki = float(rng.uniform(0.5, 6)), float(rng.uniform(0.5, 6))
    lag, delay = float(rng.uniform(0.1, 1)), float(rng.uniform(0.05, 0.5))
    high, low = float(rng.uniform(0.3, 1.5)), -float(rng.uniform(0.3, 1.5))
    goal, swing, w = (
        float(rng.uniform(-1, 1)),
        float(rng.uniform(0.2, 1.5)),
        float(rng.uniform(0.5, 4)),
    )
    span = _span(rng, 6, backwards=False)
    style = int(rng.integers(4))

    def error(t, x):
        return goal + swing * np.sin(w * t) - x

    def wish(t, z):
        return kp * error(t, z[0]) + ki * z[1]

    def rhs(t, z, mode):
        u = wish(t, z) if mode == 0 else high if mode > 0 else low
        return [(z[2] - z[0]) / lag, error(t, z[0]), (u - z[2]) / delay]

    def out(t, z, mode):
        return [*z, error(t, z[0]), wish(t, z) if mode == 0 else high if mode > 0 else low]

    def guards(mode):
        if mode == 0:
            return [
                Guard(lambda t, z: wish(t, z) - high, 1, lambda t, z, m: (z, 1)),
                Guard(lambda t, z: wish(t, z) - low, -1, lambda t, z, m: (z, -1)),
            ]
        if mode > 0:
            return [Guard(lambda t, z: wish(t, z) - high, -1, lambda t, z, m: (z, 0))]
        return [Guard(lambda t, z: wish(t, z) - low, 1, lambda t, z, m: (z, 0))]

    def equations(t, y, yp):
        x, i, a, e, u = y
        raw = kp * e + ki * i
        if style == 0:
            limited = np.clip(raw, low, high)
        elif style == 1:
            limited = max(low, min(high, raw))
        elif style == 2:
            limited = np.where(raw > high, high, np.where(raw < low, low, raw))
        else:
            limited = high if raw > high else low if raw < low else raw
        return [
            lag * yp[0] - a + x,
            yp[1] - e,
            delay * yp[2] - u + a,
            e - goal - swing * np.sin(w * t) + x,
            u - limited,
        ]

    start = rng.uniform(-1, 1, 3)
    first = wish(span[0], start)
    mode = 1 if first > high else -1 if first < low else 0
    return Case(
        "controller that saturates",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, mode, guards),
        [PLAIN] * 5,
        guessed=(3, 4),
        forms=("auto", "auto", "given"),
        called=True,
    )


def gap(rng):
    """An oscillator with a stop behind a gap, or another spring on either side."""
    style = int(rng.integers(5))
    k1, k2 = float(rng.uniform(1, 8)), float(rng.uniform(10, 120))
    c, where = float(rng.uniform(0, 0.6)), float(rng.uniform(-0.3, 0.8))
    a, w = float(rng.uniform(0, 4)), float(rng.uniform(1, 6))
    span = _span(rng, 5, backwards=True)
    if style == 4:
        k1 = 0.0

    def force(x):
        if style == 0:
            return k1 * x + k2 * max(x - where, 0)
        if style == 1:
            return k1 * x + (k2 * (x - where) if x > where else 0.0)
        if style == 2:
            return k1 * (x - where) + 0.4 * k1 * abs(x - where)
        if style == 3:
            return np.where(x > where, k2 * (x - where), k1 * (x - where))
        return 2.0 * np.sign(x - where)

    def side(x, mode):
        d = x - where
        if style < 2:
            return k1 * x + (k2 * d if mode > 0 else 0.0)
        if style == 2:
            return k1 * d + 0.4 * k1 * mode * d
        if style == 3:
            return (k2 if mode > 0 else k1) * d
        return 2.0 * mode

    def rhs(t, z, mode):
        return [z[1], -side(z[0], mode) - c * z[1] + a * np.sin(w * t) * (style != 4)]

    def out(t, z, mode):
        return [*z, side(z[0], mode)]

    def guards(mode):
        return [Guard(lambda t, z: z[0] - where, -mode, lambda t, z, m: (z, -m))]

    def equations(t, y, yp):
        x, v, f = y
        return [yp[0] - v, yp[1] + f + c * v - a * np.sin(w * t) * (style != 4), f - force(x)]

    start = np.array(
        [where + float(rng.choice([-1, 1])) * float(rng.uniform(0.3, 1)), float(rng.uniform(-1, 1))]
    )
    mode = 1 if start[0] > where else -1
    return Case(
        f"stop behind a gap, way {style}",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, mode, guards, limit=30),
        [(1, 0, 0), (1, -1, 0), (1, -2, 0)],
        guessed=(2,),
        unwatched=(2,) if style == 4 else (),
        forms=("auto", "auto", "given"),
        called=True,
    )


def tank(rng):
    """Two tanks with an overflow and a valve that an event closes."""
    area, hole = rng.uniform(0.5, 2, 2)
    area, hole = float(area), float(hole)
    edge, weir = float(rng.uniform(0.6, 1.2)), float(rng.uniform(1, 10))
    feed, w = float(rng.uniform(0.5, 3)), float(rng.uniform(0.5, 3))
    span = _span(rng, 5)

    def inflow(t):
        return feed * (1 + 0.7 * np.sin(w * t))

    def over(h, mode):
        return weir * (h - edge) if mode else 0.0

    def rhs(t, z, mode):
        q = hole * math.sqrt(max(z[0], 0))
        o = over(z[0], mode)
        return [(inflow(t) - q - o) / area, q - hole * math.sqrt(max(z[1], 0))]

    def out(t, z, mode):
        return [*z, hole * math.sqrt(max(z[0], 0)), over(z[0], mode)]

    def guards(mode):
        return [
            Guard(lambda t, z: z[0] - edge, -1 if mode else 1, lambda t, z, m: (z, 1 - m)),
            Guard(lambda t, z: min(z) - 0.02, -1, _empty),
        ]

    def equations(t, y, yp):
        h1, h2, q, o = y
        return [
            area * yp[0] - inflow(t) + q + o,
            yp[1] - q + hole * np.sqrt(h2),
            q - hole * np.sqrt(h1),
            o - weir * max(h1 - edge, 0.0),
        ]

    start = rng.uniform(0.3, 1.5, 2)
    return Case(
        "tanks with an overflow",
        equations,
        span,
        start,
        lambda z: integrate(rhs, out, span, z, int(start[0] > edge), guards),
        [(1, 0, 0)] * 2 + [(3, -1, 0)] * 2,
        guessed=(2, 3),
        forms=("auto", "given"),
        called=True,
    )


def _empty(t, z, mode):
    raise Unusable("runs empty")


FAMILIES = [pulses, pulses, thermostat, bounce, string, contact, cage, saturation, gap, gap, tank]
