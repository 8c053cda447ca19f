"""A wheelset on rails, from the Test Set for IVP Solvers: 17 unknowns, index 2 or 3 as written.

Unknowns are the position of the axle (x, y, z and two angles), the velocities and the deviation of
the speed of rotation, four parameters of the two points of contact, and two multipliers. The creep
forces are so steep that small errors of the velocities become considerable forces.
"""

import functools
from math import atan, cos, sin, sqrt, tan, tanh

import numpy as np

from tether.gallery.base import GalleryProblem, Vector

MASS, GRAVITY, SPEED, RADIUS, FRICTION = 16.08, 9.81, 30.0, 0.1, 0.12
INERTIA_1, INERTIA_2 = 0.0605, 0.366
SPRING_AT, SPRING = 0.19, 6400.0
SPIN = SPEED / RADIUS
CONE, TRACK, RAIL_RADIUS = 0.0262, 0.1506, 0.06
SHEAR, POISSON = 7.92e10, 0.28
HERTZ_E, HERTZ_G, PI = 1.3537956, 0.7115218, 3.1415926
KALKER_11, KALKER_22, KALKER_23 = 4.72772197, 4.27526987, 1.97203505

START = [
    0.0014940994436110897, 4.009101609840453e-07, 1.1241e-06, -0.00028572999999952506,
    0.000264593360256929, *[0.0] * 6, -7.412237075621531e-06, -0.15213642959330928,
    7.563441599624269e-06, 0.14906357149219765, -0.008359184021274281, -0.007414552832163699,
]  # fmt: skip


def residual(t: float, y: Vector, yp: Vector, index: int = 3) -> list[float]:
    """Residual; the constraints are on positions or, at index 2, on velocities."""
    x, height, z, theta, phi = y[:5]
    dtheta, dphi, spin = y[8:11]
    psi_right, xi_right, psi_left, xi_left = y[11:15]
    left_force, right_force = 1e4 * y[15], 1e4 * y[16]
    st, ct, sp, cp = sin(theta), cos(theta), sin(phi), cos(phi)
    left = Contact(1.0, y, xi_left, psi_left)
    right = Contact(-1.0, y, xi_right, psi_right)
    det = -sin(left.angle) * cos(right.angle) - sin(right.angle) * cos(left.angle)
    across = left.column[0] * left_force + right.column[0] * right_force
    upwards = left.column[1] * left_force + right.column[1] * right_force
    left_creep = left.creep(y, (cos(right.angle) * across - sin(right.angle) * upwards) / det)
    right_creep = right.creep(y, (-cos(left.angle) * across - sin(left.angle) * upwards) / det)
    creep = [a + b for a, b in zip(left_creep, right_creep, strict=True)]
    turning = [a + b for a, b in zip(left.moments(left_creep), right.moments(right_creep),
                                     strict=True)]
    reaction = [a * left_force + b * right_force
                for a, b in zip(left.column, right.column, strict=True)]
    yaw = -2 * SPRING_AT**2 * SPRING * theta
    rotation, difference = SPIN + spin, INERTIA_1 - INERTIA_2
    forces = [
        creep[0] + reaction[0] - 2 * SPRING * x,
        creep[1] + reaction[1] - MASS * GRAVITY,
        creep[2] - 2 * SPRING * z,
        INERTIA_2 * dtheta * dphi * sp - INERTIA_1 * rotation * dphi
        - difference * dtheta * sp * dphi + turning[0] + cp * yaw + reaction[3],
        INERTIA_1 * rotation * dtheta * cp + difference * dtheta * sp * dtheta * cp
        + turning[1] + reaction[4],
        -INERTIA_1 * dtheta * dphi * cp + turning[2] + sp * yaw,
    ]
    r = [yp[i] - y[5 + i] for i in range(5)]
    r += [MASS * yp[5 + i] - forces[i] for i in range(3)]
    r += [
        INERTIA_2 * cp * yp[8] - forces[3], INERTIA_2 * yp[9] - forces[4],
        INERTIA_1 * sp * yp[8] + INERTIA_1 * yp[10] - forces[5],
    ]
    for side in (left, right):
        if index == 2:
            r.append(sum(a * b for a, b in zip(side.column, y[5:10], strict=True)))
        else:
            r.append(side.rail - height - side.xi * sp + side.radius * cp * side.cpsi)
    for side in (left, right):
        slope = side.slope
        r.append(side.rail_slope * (slope * sp + cp * side.cpsi) + slope * ct * cp
                 - ct * sp * side.cpsi + st * side.spsi)
        r.append(slope * st * cp - st * sp * side.cpsi - ct * side.spsi)
    return r


class Contact:
    """One wheel on its rail; `side` is 1 on the left and -1 on the right."""

    def __init__(self, side: float, y: Vector, xi: float, psi: float) -> None:
        st, ct, sp, cp = sin(y[3]), cos(y[3]), sin(y[4]), cos(y[4])
        self.side, self.xi, self.turned = side, xi, (st, ct, sp, cp)
        self.spsi, self.cpsi = spsi, cpsi = sin(psi), cos(psi)
        self.radius = radius = RADIUS + tan(CONE) * (TRACK - side * xi)
        self.slope = slope = -side * tan(CONE)
        at = y[0] + xi * ct * cp + radius * (ct * sp * cpsi - st * spsi)
        across = side * at - TRACK - sin(CONE) * RAIL_RADIUS
        rise = sqrt(RAIL_RADIUS**2 - across**2)
        self.rail = rise - RADIUS - cos(CONE) * RAIL_RADIUS
        self.rail_slope = g = -side * across / rise
        self.rail_bend = -(RAIL_RADIUS**2) / rise**3
        self.column = [
            g, -1.0, 0.0,
            g * (radius * (-ct * spsi - cpsi * sp * st) - cp * st * xi),
            -cpsi * radius * sp - cp * xi + g * (cp * cpsi * ct * radius - ct * sp * xi),
        ]
        self.angle = atan(((slope * cp - sp * cpsi) * ct + spsi * st)
                          / (side * (-slope * sp - cpsi * cp)))

    def creep(self, y: Vector, normal: float) -> list[float]:
        """Friction force at the point of contact (Kalker's theory, with Coulomb's limit)."""
        u, v, w, dtheta, dphi, spin = y[5:11]
        _, _, sp, cp = self.turned
        sd, cd = sin(self.angle), cos(self.angle)
        st, ct = sin(y[3] / cd), cos(y[3] / cd)
        radius, xi, spsi, cpsi, rate = self.radius, self.xi, self.spsi, self.cpsi, SPIN + spin
        curved = 0.5 / (radius * sqrt(1 + self.slope**2))
        curved -= 0.5 * self.rail_bend / (1 + self.rail_slope**2) ** 1.5
        size = ((abs(normal) * 3 * (1 - POISSON) * HERTZ_E)
                / (2 * PI * curved * SHEAR * sqrt(HERTZ_G))) ** (1 / 3)
        a = (-rate * radius * (st * cpsi + ct * sp * spsi) + u
             - dtheta * (radius * (st * sp * cpsi + ct * spsi) + xi * st * cp)
             - dphi * ct * (xi * sp - radius * cp * cpsi))
        b = rate * radius * cp * spsi + v + dphi * (xi * cp + radius * sp * cpsi)
        c = (-rate * radius * (ct * cpsi - st * sp * spsi) + SPEED + w
             - dtheta * (xi * ct * cp + radius * (ct * sp * cpsi - st * spsi))
             + dphi * st * (xi * sp - radius * cp * cpsi))
        rolling = 0.5 * sqrt((a - 2 * u) ** 2 + (b - 2 * v) ** 2 + (c - 2 * w - 2 * SPEED) ** 2)
        along = (st * a + ct * c) / rolling
        sideways = (ct * cd * a + self.side * sd * b - st * cd * c) / rolling
        turning = (-self.side * sd * rate + cd * dtheta) / rolling
        most = FRICTION * normal
        tx = -most * tanh(SHEAR * size**2 * KALKER_11 * along / most)
        ty = -most * tanh(SHEAR * size**2 * KALKER_22 * sideways / most
                          + SHEAR * size**3 * KALKER_23 * turning / most)
        total = sqrt(tx * tx + ty * ty)
        if total > abs(most):
            tx, ty = tx * abs(most) / total, ty * abs(most) / total
        return [st * tx + ct * cd * ty, self.side * sd * ty, ct * tx - st * cd * ty]

    def moments(self, force: Vector) -> list[float]:
        """Moments of a friction force."""
        st, ct, sp, cp = self.turned
        xi, r, s, c = self.xi, self.radius, self.spsi, self.cpsi
        a, b, d = force
        return [
            -(xi * st + r * s * ct * cp) * a - r * s * sp * b + (-xi * ct + r * s * st * cp) * d,
            -(xi * ct * sp - r * c * ct * cp) * a + (xi * cp + r * c * sp) * b
            + (xi * st * sp - r * c * st * cp) * d,
            -r * (c * st + s * ct * sp) * a + r * s * cp * b - r * (c * ct - s * st * sp) * d,
        ]


def wheelset(index: int = 3) -> GalleryProblem:
    """Wheelset of a railway, rolling on both rails: index 2 or 3.

    Parameters
    ----------
    index : {2, 3}
        Whether the constraints are on velocities (2) or on positions (3).

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.wheelset(index=2).n
    17
    """
    if index not in (2, 3):
        raise ValueError(f"index must be 2 or 3, got {index!r}")
    return GalleryProblem(
        name="wheelset",
        title="Wheelset",
        description=(
            "Two coned wheels on an axle roll along a straight track at 30 m/s and begin to hunt "
            "from side to side. The creep forces at the contacts are so steep that small errors "
            "of velocities become considerable forces."
        ),
        fun=functools.partial(residual, index=index),
        t_span=(0.0, 10.0),
        # the start of the Test Set, with more digits than it prints
        y0=np.array(START),
        names=(
            "x", "y", "z", "theta", "phi", "v_x", "v_y", "v_z", "v_theta", "v_phi", "spin",
            "psi_right", "xi_right", "psi_left", "xi_left", "force_left", "force_right",
        ),
        units=(
            "m", "m", "m", "rad", "rad", "m/s", "m/s", "m/s", "rad/s", "rad/s", "rad/s",
            "rad", "m", "rad", "m", "1e4 N", "1e4 N",
        ),
        picture=("x", "theta"),
        reference=np.array(
            [
                0.86355386965811e-2,
                0.13038281022727e-4,
                -0.93635784016818e-4,
                -0.13642299804033e-1,
                0.15292895005422e-2,
                -0.76985374142666e-1,
                -0.25151106429207e-3,
                0.20541188079539e-2,
                -0.23904837703692,
                -0.13633468454173e-1,
                -0.24421377661131,
            ]
        ),
        compare=tuple(range(11)),
        source="Test Set for IVP Solvers, wheel (PSIDE), whose start has five digits",
        reference_digits=5,
        expected_digits=4,
        atol_scale=np.array([1e-3] * 17),
        algebraic=(11, 12, 13, 14, 15, 16),
        index=index,
    )  # fmt: skip
