"""Prescribed motions, and constraints with their derivatives."""

import numpy as np


class Motion:
    """A prescribed motion a + b t + c sin(w t + p), with derivatives."""

    def __init__(self, rng, size=1.0):
        self.a = 0.0
        self.b = float(rng.choice([0.0, rng.uniform(-0.3, 0.3)])) * size
        self.c = float(rng.uniform(0.05, 0.4)) * size
        self.w, self.p = float(rng.uniform(0.5, 6)), float(rng.uniform(0, 6))

    def value(self, t):
        return self.a + self.b * t + self.c * np.sin(self.w * t + self.p)

    def rate(self, t):
        return self.b + self.c * self.w * np.cos(self.w * t + self.p)

    def second(self, t):
        return -self.c * self.w**2 * np.sin(self.w * t + self.p)


class Still:
    """A point that does not move."""

    def __init__(self, a):
        self.a = float(a)
        self.c = 0.0

    def value(self, t):
        return self.a

    def rate(self, t):
        return 0.0

    def second(self, t):
        return 0.0


class Distance:
    """Half of |p - r|^2 - L^2, where r is another body or a support that moves."""

    unit = (0, -2, 1)

    def __init__(self, first, second, length, support=None):
        self.first, self.second, self.length, self.support = first, second, length, support

    def _apart(self, t, q):
        d = [q[i] for i in self.first]
        if self.second is not None:
            return [a - q[j] for a, j in zip(d, self.second, strict=True)]
        return [a - m.value(t) for a, m in zip(d, self.support, strict=True)]

    def value(self, t, q):
        return 0.5 * (sum(d * d for d in self._apart(t, q)) - self.length**2)

    def row(self, t, q):
        row = [0.0] * len(q)
        for i, d in zip(self.first, self._apart(t, q), strict=True):
            row[i] = d
        if self.second is not None:
            for i, d in zip(self.second, self._apart(t, q), strict=True):
                row[i] = -d
        return row

    def drift(self, t, q):
        if self.second is not None:
            return 0.0
        d = self._apart(t, q)
        return -sum(x * m.rate(t) for x, m in zip(d, self.support, strict=True))

    def gamma(self, t, q, v):
        if self.second is not None:
            return sum((v[i] - v[j]) ** 2 for i, j in zip(self.first, self.second, strict=True))
        d = self._apart(t, q)
        speed = sum((v[i] - m.rate(t)) ** 2 for i, m in zip(self.first, self.support, strict=True))
        return speed - sum(x * m.second(t) for x, m in zip(d, self.support, strict=True))


class Linear:
    """A combination of coordinates that follows a motion."""

    unit = (1, -2, 1)

    def __init__(self, weights, motion):
        self.weights, self.motion = weights, motion

    def value(self, t, q):
        return sum(c * q[i] for i, c in self.weights.items()) - self.motion.value(t)

    def row(self, t, q):
        return [self.weights.get(i, 0.0) for i in range(len(q))]

    def drift(self, t, q):
        return -self.motion.rate(t)

    def gamma(self, t, q, v):
        return -self.motion.second(t)


class Turning:
    """A crank at a prescribed angle: x sin(a) - z cos(a) = 0."""

    unit = (1, -2, 1)

    def __init__(self, first, speed, phase):
        self.first, self.speed, self.phase = first, speed, phase

    def value(self, t, q):
        a = self.speed * t + self.phase
        return q[self.first[0]] * np.sin(a) - q[self.first[1]] * np.cos(a)

    def row(self, t, q):
        a = self.speed * t + self.phase
        row = [0.0] * len(q)
        row[self.first[0]], row[self.first[1]] = np.sin(a), -np.cos(a)
        return row

    def drift(self, t, q):
        a = self.speed * t + self.phase
        return self.speed * (q[self.first[0]] * np.cos(a) + q[self.first[1]] * np.sin(a))

    def gamma(self, t, q, v):
        a = self.speed * t + self.phase
        i, j = self.first
        s, c = np.sin(a), np.cos(a)
        return 2 * self.speed * (v[i] * c + v[j] * s) + self.speed**2 * (-q[i] * s + q[j] * c)


class Curve:
    """A bead on z = a x^2 + b sin(w x), which may move up and down."""

    unit = (1, -2, 1)

    def __init__(self, place, a, b, w, motion):
        self.place, self.a, self.b, self.w, self.motion = place, a, b, w, motion

    def value(self, t, q):
        x, z = q[self.place[0]], q[self.place[1]]
        return z - self.a * x * x - self.b * np.sin(self.w * x) - self.motion.value(t)

    def row(self, t, q):
        x = q[self.place[0]]
        row = [0.0] * len(q)
        row[self.place[0]] = -2 * self.a * x - self.b * self.w * np.cos(self.w * x)
        row[self.place[1]] = 1.0
        return row

    def drift(self, t, q):
        return -self.motion.rate(t)

    def gamma(self, t, q, v):
        x, u = q[self.place[0]], v[self.place[0]]
        return (-2 * self.a + self.b * self.w**2 * np.sin(self.w * x)) * u * u - self.motion.second(
            t
        )


class Ellipsoid:
    """A particle on sum (q / a)^2 = 1."""

    unit = (1, -2, 1)

    def __init__(self, place, axes):
        self.place, self.axes = place, axes

    def value(self, t, q):
        return 0.5 * (sum((q[i] / a) ** 2 for i, a in zip(self.place, self.axes, strict=True)) - 1)

    def row(self, t, q):
        row = [0.0] * len(q)
        for i, a in zip(self.place, self.axes, strict=True):
            row[i] = q[i] / a**2
        return row

    def drift(self, t, q):
        return 0.0

    def gamma(self, t, q, v):
        return sum((v[i] / a) ** 2 for i, a in zip(self.place, self.axes, strict=True))


class Knife:
    """No velocity across a blade at the angle q[2]: non-holonomic."""

    unit = (1, -2, 1)
    holonomic = False

    def row(self, t, q):
        row = [0.0] * len(q)
        row[0], row[1] = -np.sin(q[2]), np.cos(q[2])
        return row

    def drift(self, t, q):
        return 0.0

    def gamma(self, t, q, v):
        return -(np.cos(q[2]) * v[0] + np.sin(q[2]) * v[1]) * v[2]


class RollingCoin:
    """A coin that rolls upright: x' = R s' cos(a), z' = R s' sin(a); q = x, z, a, s."""

    holonomic = False
    unit = (1, -2, 1)

    def __init__(self, radius, which):
        self.radius, self.which = radius, which

    def _direction(self, q):
        return np.cos(q[2]) if self.which == 0 else np.sin(q[2])

    def row(self, t, q):
        row = [0.0] * len(q)
        row[self.which], row[3] = 1.0, -self.radius * self._direction(q)
        return row

    def drift(self, t, q):
        return 0.0

    def gamma(self, t, q, v):
        turn = -np.sin(q[2]) if self.which == 0 else np.cos(q[2])
        return -self.radius * turn * v[2] * v[3]
