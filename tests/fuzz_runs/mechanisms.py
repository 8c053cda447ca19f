"""Mechanisms as written: bodies, forces, constraints, at index 3, 2 or 1."""

import math

import numpy as np

from fuzz_runs.case import Case
from fuzz_runs.joints import (
    Curve,
    Distance,
    Ellipsoid,
    Knife,
    Linear,
    Motion,
    RollingCoin,
    Still,
    Turning,
)
from fuzz_runs.reference import Guard, Unusable, integrate

POSITION, VELOCITY = (1, 0, 0), (1, -1, 0)


class Forces:
    """Gravity, springs, dampers and a drive."""

    def __init__(self, rng, n, vertical):
        self.n, self.vertical = n, set(vertical)
        self.gravity = float(rng.choice([9.81, 1.62, 0.0], p=[0.7, 0.15, 0.15]))
        some = rng.random(4) < 0.4
        self.stiffness = float(rng.uniform(0.5, 20)) if some[0] else 0.0
        self.damping = float(rng.uniform(0.05, 1)) if some[1] else 0.0
        self.drive = float(rng.uniform(0.5, 4)) if some[2] else 0.0
        self.drag = float(rng.uniform(0.05, 0.5)) if some[3] else 0.0
        self.w = float(rng.uniform(1, 8))
        self.rest = [float(x) for x in rng.uniform(-0.5, 0.5, n)]
        self.target = int(rng.integers(n))

    def conservative(self):
        return not (self.damping or self.drive or self.drag)

    def __call__(self, t, q, v, masses):
        f = []
        for i in range(self.n):
            x = -masses[i] * self.gravity if i in self.vertical else 0.0
            if self.stiffness:
                x = x - self.stiffness * (q[i] - self.rest[i])
            if self.damping:
                x = x - self.damping * v[i]
            if self.drag:
                x = x - self.drag * v[i] * np.sqrt(v[i] * v[i] + 0.01)
            if self.drive and i == self.target:
                x = x + self.drive * np.sin(self.w * t)
            f.append(x)
        return f

    def potential(self, q, masses):
        total = 0.0
        for i in range(self.n):
            if i in self.vertical:
                total = total + masses[i] * self.gravity * q[i]
            total = total + 0.5 * self.stiffness * (q[i] - self.rest[i]) ** 2
        return total


class Mechanism:
    """Bodies with masses, forces and constraints; references by a linear solve."""

    def __init__(self, masses, forces, constraints, units=None):
        self.masses = [float(m) for m in masses]
        self.forces, self.constraints = forces, constraints
        self.n, self.m = len(masses), len(constraints)
        self.units = units or [POSITION] * self.n
        self.holonomic = all(getattr(c, "holonomic", True) for c in constraints)

    def solve(self, t, q, v):
        n, m = self.n, self.m
        matrix, right = np.zeros((n + m, n + m)), np.zeros(n + m)
        matrix[:n, :n] = np.diag(self.masses)
        right[:n] = self.forces(t, q, v, self.masses)
        for k, c in enumerate(self.constraints):
            row = np.array(c.row(t, q), float)
            matrix[n + k, :n], matrix[:n, n + k] = row, -row
            right[n + k] = -c.gamma(t, q, v)
        try:
            return np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            raise Unusable("singular") from None

    def rhs(self, t, z, mode):
        n = self.n
        return np.concatenate([z[n:], self.solve(t, z[:n], z[n:])[:n]])

    def fit(self, t, q, v):
        """Project positions and velocities onto the constraints."""
        q, v = np.array(q, float), np.array(v, float)
        rows = [c for c in self.constraints if getattr(c, "holonomic", True)]
        for _ in range(30):
            if not rows:
                break
            g = np.array([c.value(t, q) for c in rows])
            jac = np.array([c.row(t, q) for c in rows], float)
            q -= np.linalg.lstsq(jac, g, rcond=None)[0]
            if np.abs(g).max() < 1e-15:
                break
        else:
            if np.abs(g).max() > 1e-12:
                raise Unusable("no fitting position")
        jac = np.array([c.row(t, q) for c in self.constraints], float)
        if np.linalg.svd(jac, compute_uv=False)[-1] < 0.05:
            raise Unusable("near a singular position")
        off = jac @ v + np.array([c.drift(t, q) for c in self.constraints])
        return q, v - np.linalg.lstsq(jac, off, rcond=None)[0]

    def residual(self, index, accelerations, stabilised):
        """The equations at this index.

        Accelerations may be unknowns too; stabilised is the form of Gear, Gupta and Leimkuhler.
        """
        n, m, masses, forces, constraints = (
            self.n,
            self.m,
            self.masses,
            self.forces,
            self.constraints,
        )

        def equations(t, y, yp):
            q, v = y[:n], y[n : 2 * n]
            multipliers = y[len(y) - m :] if not stabilised else y[2 * n : 2 * n + m]
            f = forces(t, q, v, masses)
            rows = [c.row(t, q) for c in constraints]
            push = [sum(multipliers[k] * rows[k][i] for k in range(m)) for i in range(n)]
            if stabilised:
                extra = y[2 * n + m :]
                r = [yp[i] - v[i] - sum(extra[k] * rows[k][i] for k in range(m)) for i in range(n)]
            else:
                r = [yp[i] - v[i] for i in range(n)]
            if accelerations:
                a = y[2 * n : 3 * n]
                r = r + [yp[n + i] - a[i] for i in range(n)]
                r = r + [masses[i] * a[i] - f[i] - push[i] for i in range(n)]
            else:
                r = r + [masses[i] * yp[n + i] - f[i] - push[i] for i in range(n)]
            for k, c in enumerate(constraints):
                if index == 3 or stabilised:
                    r.append(c.value(t, q))
                if index == 2 or stabilised:
                    r.append(sum(rows[k][i] * v[i] for i in range(n)) + c.drift(t, q))
                if index == 1:
                    r.append(sum(rows[k][i] * yp[n + i] for i in range(n)) + c.gamma(t, q, v))
            return r

        return equations

    def energy(self, t, y):
        kinetic = sum(0.5 * self.masses[i] * y[self.n + i] ** 2 for i in range(self.n))
        return kinetic + self.forces.potential(y[: self.n], self.masses)

    def case(self, name, rng, span, q, v, breaks=(), side=None):
        n, m = self.n, self.m
        q, v = self.fit(span[0], q, v)
        start = np.concatenate([q, v])
        index = 3 if rng.random() < 0.6 else int(rng.choice([1, 2]))
        if not self.holonomic:
            index = int(rng.choice([1, 2]))
        stabilised = self.holonomic and index == 2 and rng.random() < 0.4
        accelerations = not stabilised and index > 1 and rng.random() < 0.2

        def out(t, z, mode):
            both = self.solve(t, z[:n], z[n:])
            tail = [np.zeros(m)] if stabilised else []
            return np.concatenate([z, *([both[:n]] if accelerations else []), both[n:], *tail])

        def reference(z0):
            mode = 1 if side is None or z0[side[0]] > side[1] else -1
            return integrate(self.rhs, out, span, z0, mode, guards, breaks)

        def guards(mode):
            # begin anew where a force has a kink
            if side is None:
                return []
            return [Guard(lambda t, z: z[side[0]] - side[1], -mode, lambda t, z, m: (z, -m))]

        def perturb(z0, relative, rng):
            size = np.concatenate(
                [np.full(n, np.abs(z0[:n]).max()), np.full(n, np.abs(z0[n:]).max() + 0.1)]
            )
            z = z0 + relative * size * rng.choice([-1.0, 1.0], 2 * n)
            return np.concatenate(self.fit(span[0], z[:n], z[n:]))

        def approximate(y):
            q, v = self.fit(span[0], y[:n], y[n : 2 * n])
            return np.concatenate([q, v])

        units = list(self.units) + [(u[0], u[1] - 1, u[2]) for u in self.units]
        if accelerations:
            units += [(u[0], u[1] - 2, u[2]) for u in self.units]
        units += [c.unit for c in self.constraints]
        if stabilised:
            units += [(0, -1, 0)] * m
        tail = list(range(2 * n, len(units)))
        invariants = []
        fixed = all(getattr(c, "motion", None) is None or not c.motion.c for c in self.constraints)
        fixed = fixed and not any(
            motion.c for c in self.constraints for motion in getattr(c, "support", None) or ()
        )
        fixed = fixed and not any(isinstance(c, Turning) for c in self.constraints)
        if self.forces.conservative() and fixed and self.holonomic:
            invariants = [self.energy]
        constraints = []
        if index < 3 and self.holonomic:
            constraints = [lambda t, y: [c.value(t, y[:n]) for c in self.constraints]]
        return Case(
            f"{name}, index {index}"
            + (", stabilised" if stabilised else "")
            + (", with accelerations" if accelerations else ""),
            self.residual(index, accelerations, stabilised),
            span,
            start,
            reference,
            units,
            perturb=perturb,
            guessed=tail,
            approximate=approximate if index == 3 else None,
            forms=("auto", "auto", "auto", "given", 2) if index == 3 else ("auto", "auto", "given"),
            called=not accelerations or index < 3,
            invariants=invariants,
            constraints=constraints,
            breaks=breaks,
            unwatched=tail if breaks else (),
            late=index > 1,
            least={len(units) - 1 - k: 1.0 for k in range(m)} if stabilised else {},
        )


def time_span(rng, longest=4.0, backwards=True):
    length = float(rng.uniform(0.3, 1.0)) * longest
    begin = float(rng.choice([0.0, rng.uniform(-2, 2)]))
    if backwards and rng.random() < 0.15:
        return begin, begin - 0.5 * length
    return begin, begin + length


def pendulum(rng):
    length = float(rng.uniform(0.3, 2))
    dims = int(rng.choice([2, 2, 3]))
    moving = rng.random() < 0.4
    support = [Motion(rng, 0.5 * length) if moving else Still(0.0) for _ in range(dims)]
    c = Distance(list(range(dims)), None, length, support)
    forces = Forces(rng, dims, [dims - 1])
    body = Mechanism([rng.uniform(0.2, 3)] * dims, forces, [c])
    direction = rng.normal(size=dims)
    span = time_span(rng, 5)
    q = length * direction / np.linalg.norm(direction) + np.array(
        [s.value(span[0]) for s in c.support]
    )
    return body.case(
        "pendulum" + (" on a moving support" if moving else ""), rng, span, q, rng.normal(size=dims)
    )


def chain(rng):
    links = int(rng.integers(2, 4))
    constraints, masses, q, x, z, angle = [], [], [], 0.0, 0.0, rng.uniform(-1.5, 1.5)
    for k in range(links):
        length = float(rng.uniform(0.4, 1.2))
        angle += rng.uniform(-0.7, 0.7)
        x, z = x + length * math.sin(angle), z - length * math.cos(angle)
        q += [x, z]
        masses += [float(rng.uniform(0.3, 2))] * 2
        here, before = [2 * k, 2 * k + 1], [2 * k - 2, 2 * k - 1]
        constraints.append(
            Distance(here, before, length) if k else Distance(here, None, length, [Still(0)] * 2)
        )
    forces = Forces(rng, 2 * links, range(1, 2 * links, 2))
    return Mechanism(masses, forces, constraints).case(
        f"chain of {links}", rng, time_span(rng, 1.5), q, 0.3 * rng.normal(size=2 * links)
    )


def slider_crank(rng):
    r, rod = float(rng.uniform(0.2, 0.6)), float(rng.uniform(1.0, 2))
    angle = rng.uniform(0, 6.28)
    a = [r * math.cos(angle), r * math.sin(angle)]
    b = [a[0] + math.sqrt(rod**2 - a[1] ** 2), 0.0]
    span = time_span(rng, 2)
    constraints = [
        Distance([0, 1], None, r, [Still(0)] * 2),
        Distance([2, 3], [0, 1], rod),
        Linear({3: 1.0}, Still(0.0)),
    ]
    name = "slider-crank"
    if rng.random() < 0.4:
        speed = float(rng.uniform(-6, 6))
        constraints.append(Turning([0, 1], speed, angle - speed * span[0]))
        name = "driven slider-crank"
    forces = Forces(rng, 4, [1, 3])
    m1, m2 = rng.uniform(0.3, 2, 2)
    return Mechanism([m1, m1, m2, m2], forces, constraints).case(
        name, rng, span, a + b, rng.normal(size=4)
    )


def four_bar(rng):
    angle = rng.uniform(0, 6.28)
    crank, coupler, rocker, ground = (
        0.5,
        float(rng.uniform(1.2, 1.5)),
        float(rng.uniform(1.0, 1.3)),
        1.5,
    )
    a = np.array([crank * math.cos(angle), crank * math.sin(angle)])
    c = np.array([ground, 0.0])
    d = c - a
    dist = np.linalg.norm(d)
    cosine = (coupler**2 + dist**2 - rocker**2) / (2 * coupler * dist)
    if abs(cosine) > 0.95:
        raise Unusable("does not close")
    turn = math.atan2(d[1], d[0]) + math.acos(cosine)
    b = a + coupler * np.array([math.cos(turn), math.sin(turn)])
    constraints = [
        Distance([0, 1], None, crank, [Still(0)] * 2),
        Distance([2, 3], [0, 1], coupler),
        Distance([2, 3], None, rocker, [Still(ground), Still(0)]),
    ]
    span, name = time_span(rng, 2), "four-bar"
    if rng.random() < 0.4:
        speed = float(rng.uniform(-5, 5))
        constraints.append(Turning([0, 1], speed, angle - speed * span[0]))
        name = "driven four-bar"
    m1, m2 = rng.uniform(0.3, 2, 2)
    return Mechanism([m1, m1, m2, m2], Forces(rng, 4, [1, 3]), constraints).case(
        name, rng, span, [*a, *b], rng.normal(size=4)
    )


def bead(rng):
    motion = Motion(rng, 0.3) if rng.random() < 0.4 else Still(0.0)
    curve = Curve(
        [0, 1],
        float(rng.uniform(0.2, 1.5)),
        float(rng.uniform(0, 0.5)),
        float(rng.uniform(1, 3)),
        motion,
    )
    m = rng.uniform(0.3, 2)
    span = time_span(rng, 3)
    return Mechanism([m, m], Forces(rng, 2, [1]), [curve]).case(
        "bead on a curve", rng, span, rng.uniform(-1, 1, 2), rng.normal(size=2)
    )


def ellipsoid(rng):
    axes = [float(a) for a in rng.uniform(0.6, 1.6, 3)]
    direction = rng.normal(size=3)
    q = np.array(axes) * direction / np.linalg.norm(direction)
    m = rng.uniform(0.3, 2)
    return Mechanism([m] * 3, Forces(rng, 3, [2]), [Ellipsoid([0, 1, 2], axes)]).case(
        "particle on an ellipsoid", rng, time_span(rng, 2), q, rng.normal(size=3)
    )


def train(rng):
    """Masses in a row, some of them tied together or led."""
    n = int(rng.integers(2, 6))
    count = int(rng.integers(1, n))
    constraints = []
    for k in range(count):
        if k == 0 and rng.random() < 0.6:
            constraints.append(Linear({0: 1.0}, Motion(rng)))
        else:
            constraints.append(
                Linear(
                    {k: 1.0, k + 1: -float(rng.uniform(0.5, 2))},
                    Still(0.0) if rng.random() < 0.5 else Motion(rng),
                )
            )
    forces = Forces(rng, n, [])
    return Mechanism(rng.uniform(0.3, 3, n), forces, constraints).case(
        "train of masses", rng, time_span(rng, 5), rng.uniform(-1, 1, n), rng.normal(size=n)
    )


def rolling_disc(rng):
    """A disc that rolls down a slope, x = R a, pulled by a spring."""
    radius = float(rng.uniform(0.2, 1.5))
    m = rng.uniform(0.3, 2)
    c = Linear({0: 1.0, 1: -radius}, Still(0.0))
    forces = Forces(rng, 2, [0])
    return Mechanism([m, 0.5 * m * radius**2], forces, [c]).case(
        "rolling disc", rng, time_span(rng, 3), rng.uniform(-1, 1, 2), rng.normal(size=2)
    )


def knife_edge(rng):
    forces = Forces(rng, 3, [0])
    m, inertia = rng.uniform(0.3, 2, 2)
    return Mechanism([m, m, inertia], forces, [Knife()], [POSITION, POSITION, POSITION]).case(
        "knife edge", rng, time_span(rng, 3), rng.uniform(-1, 1, 3), rng.normal(size=3)
    )


def coin(rng):
    radius = float(rng.uniform(0.2, 1))
    forces = Forces(rng, 4, [0])
    m = rng.uniform(0.3, 2)
    return Mechanism(
        [m, m, 0.25 * m * radius**2, 0.5 * m * radius**2],
        forces,
        [RollingCoin(radius, 0), RollingCoin(radius, 1)],
    ).case("rolling coin", rng, time_span(rng, 2), rng.uniform(-1, 1, 4), rng.normal(size=4))


FAMILIES = [
    pendulum,
    chain,
    slider_crank,
    four_bar,
    bead,
    ellipsoid,
    train,
    rolling_disc,
    knife_edge,
    coin,
]
