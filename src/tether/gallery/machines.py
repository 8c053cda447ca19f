"""Machines: cranks, ropes, chains, friction and drives, as an engineer would write them."""

import math

import numpy as np

from tether.gallery import raw_mechanisms
from tether.gallery.base import GalleryProblem, Residual, Vector

GRAVITY = 9.81


def slider_crank() -> GalleryProblem:
    """Crank, connecting rod and slider in redundant coordinates: index 3.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.slider_crank().n
    14
    """
    raw = raw_mechanisms.slider_crank()
    return GalleryProblem(
        name="slider-crank",
        title="Slider-crank mechanism",
        description=(
            "A constant torque of 0.1 N m turns a crank that moves a slider by a connecting rod: "
            "three bodies in five coordinates with four constraints, none of them differentiated."
        ),
        fun=raw.fun,
        t_span=(0.0, 2.0),
        y0=raw.y0,
        names=(
            "phi", "x", "z", "psi", "s", "v_phi", "v_x", "v_z", "v_psi", "v_s",
            "f1", "f2", "f3", "f4",
        ),
        units=(
            "rad", "m", "m", "rad", "m", "rad/s", "m/s", "m/s", "rad/s", "m/s", "N", "N", "N", "N",
        ),
        picture=("s", "v_s"),
        reference=np.array(
            [
                -0.7200323645325,
                0.3915037159958,
                -0.06594090034671,
                0.2669219070586,
                0.6326505543774,
                4.638350149736,
                0.7070660417216,
                0.3487039228976,
                -1.446023199963,
                0.8024181134494,
            ]
        ),
        compare=tuple(range(10)),
        source="SciPy's DOP853 for the angle of the crank alone (Lagrange), tolerance 1e-12",
        reference_digits=10,
        expected_digits=5,
        atol_scale=np.ones(14),
        algebraic=(10, 11, 12, 13),
        index=3,
    )  # fmt: skip


def _rope_and_pulley(t: float, y: Vector, yp: Vector) -> list[float]:
    x1, x2, angle, v1, v2, w, f1, f2 = y
    m1, m2, inertia, radius, spring = 2.0, 1.0, 0.05, 0.1, 50.0
    return [
        yp[0] - v1,
        yp[1] - v2,
        yp[2] - w,
        m1 * yp[3] - (m1 * GRAVITY - f1),
        m2 * yp[4] - (m2 * GRAVITY - f2 + spring * (1.0 - x2)),
        inertia * yp[5] - radius * (f1 - f2),
        x1 - radius * angle - 1.0,
        x2 + radius * angle - 1.0,
    ]


def rope_and_pulley() -> GalleryProblem:
    """Two weights on a rope over a pulley, one of them held by a spring: index 3.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.rope_and_pulley().index
    3
    """
    return GalleryProblem(
        name="rope-and-pulley",
        title="Rope and pulley",
        description=(
            "Two weights hang on a rope over a heavy pulley, and a spring holds the lighter one. "
            "Both sides of the rope keep their lengths, by forces that are unknowns."
        ),
        fun=_rope_and_pulley,
        t_span=(0.0, 5.0),
        y0=np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 10.0, 10.0]),
        names=("x1", "x2", "angle", "v1", "v2", "w", "f1", "f2"),
        units=("m", "m", "rad", "m/s", "m/s", "rad/s", "N", "N"),
        picture=("x1", "x2"),
        reference=np.array(
            [
                1.000431977625,
                0.9995680223748,
                0.004319776251625,
                -0.03253089065076,
                0.03253089065076,
                -0.3253089065076,
                17.17289972031,
                11.0551490211,
            ]
        ),
        source="exact: a harmonic oscillation",
        reference_digits=13,
        expected_digits=4,
        atol_scale=np.ones(8),
        algebraic=(6, 7),
        index=3,
    )


def _chain(links: int) -> Residual:
    mass, length = 0.2, 0.5

    def fun(t: float, y: Vector, yp: Vector) -> list[float]:
        x, z, u, w, f = (y[k * links : (k + 1) * links] for k in range(5))
        dx, dz, du, dw = (yp[k * links : (k + 1) * links] for k in range(4))
        # components of each link, from one mass to the next, and of its pull (f is per length)
        across = [x[k] - (x[k - 1] if k else 0.0) for k in range(links)]
        down = [z[k] - (z[k - 1] if k else 0.0) for k in range(links)]
        pull_x = [*(f[k] * across[k] for k in range(links)), 0.0]
        pull_z = [*(f[k] * down[k] for k in range(links)), 0.0]
        return [
            *(dx[k] - u[k] for k in range(links)),
            *(dz[k] - w[k] for k in range(links)),
            *(mass * du[k] - (pull_x[k + 1] - pull_x[k]) for k in range(links)),
            *(mass * dw[k] - (pull_z[k + 1] - pull_z[k]) + mass * GRAVITY for k in range(links)),
            *(across[k] ** 2 + down[k] ** 2 - length**2 for k in range(links)),
        ]

    return fun


# By number of links: x, z, u, w of the last mass, at the end.
_CHAIN_ENDS: dict[int, tuple[float, float, float, float]] = {
    2: (-0.976164772438, -0.09344773704748, -0.1311362098255, 0.8503117594809),
    6: (-1.437317637935, -2.291343535651, -7.159308152764, 4.225488618758),
    12: (2.706640829716, -4.902325240297, -11.84645147261, -9.709960435675),
}


def chain(links: int = 6) -> GalleryProblem:
    """Hanging chain of point masses on rigid links in Cartesian coordinates: index 3.

    Parameters
    ----------
    links : int
        Number of links; 2, 6 and 12 have a reference.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.chain(links=2).names[:4]
    ('x1', 'x2', 'z1', 'z2')
    """
    if links < 1:
        raise ValueError(f"links must be at least 1, got {links!r}")
    y0 = np.zeros(5 * links)
    y0[:links] = 0.5 * np.arange(1, links + 1)
    return GalleryProblem(
        name="chain",
        title="Falling chain",
        description=(
            "A chain of rigid links, fixed at one end, is released from the horizontal and falls. "
            "Positions, velocities and tensions of all masses are unknowns, and the lengths are "
            "the constraints."
        ),
        fun=_chain(links),
        t_span=(0.0, 1.0),
        y0=y0,
        names=tuple(f"{letter}{k}" for letter in "xzuwf" for k in range(1, links + 1)),
        units=("m",) * 2 * links + ("m/s",) * 2 * links + ("N/m",) * links,
        picture=(f"x{links}", f"z{links}"),
        reference=np.array(_CHAIN_ENDS.get(links, [math.nan] * 4)),
        compare=tuple(k * links - 1 for k in range(1, 5)),
        source="SciPy's DOP853 for the angles of the links (Lagrange), tolerance 1e-12",
        reference_digits=9,
        expected_digits=5,
        atol_scale=np.ones(5 * links),
        algebraic=tuple(range(4 * links, 5 * links)),
        index=3,
    )


def _stick_slip(t: float, y: Vector, yp: Vector) -> list[float]:
    x, v = y
    mass, spring, belt = 1.0, 10.0, 0.2
    sliding = belt - v
    friction = np.sign(sliding) * (2.0 + 1.0 / (1.0 + 3.0 * abs(sliding)))
    return [yp[0] - v, mass * yp[1] + spring * x - friction]


def stick_slip() -> GalleryProblem:
    """Mass on a moving belt, held by a spring, with dry friction: index 0.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.stick_slip().names
    ('x', 'v')
    """
    return GalleryProblem(
        name="stick-slip",
        title="Stick-slip oscillator",
        description=(
            "A belt carries a mass along until its spring tears it off, again and again: friction "
            "decreases with speed. While the mass sticks, the friction lies between its values on "
            "the two sides of the jump."
        ),
        fun=_stick_slip,
        t_span=(0.0, 10.0),
        y0=np.array([0.0, 0.0]),
        names=("x", "v"),
        units=("m", "m/s"),
        picture=("x", "v"),
        reference=np.array([0.1300016724515, 0.06678594261234]),
        source="SciPy's DOP853 from one change to the next, tolerance 1e-12",
        reference_digits=10,
        expected_digits=4,
        atol_scale=np.ones(2),
        index=0,
    )


def _geared_motor(t: float, y: Vector, yp: Vector) -> list[float]:
    i, motor_speed, fan_speed, motor_torque, fan_torque = y
    voltage = 24.0 if t < 1.0 else 12.0
    resistance, inductance, constant, ratio = 1.0, 2e-3, 0.05, 4.0
    motor_inertia, fan_inertia, drag = 1e-4, 5e-3, 2e-5
    return [
        inductance * yp[0] + resistance * i + constant * motor_speed - voltage,
        motor_inertia * yp[1] - (constant * i - motor_torque),
        fan_inertia * yp[2] - (fan_torque - drag * fan_speed * abs(fan_speed)),
        motor_speed - ratio * fan_speed,
        fan_torque - ratio * motor_torque,
    ]


def geared_motor() -> GalleryProblem:
    """DC motor that drives a fan through a gear: index 2.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.geared_motor().algebraic
    (3, 4)
    """
    return GalleryProblem(
        name="geared-motor",
        title="DC motor with gear",
        description=(
            "A motor starts a fan through a gear of 4 to 1, and its voltage is halved after a "
            "second. The gear is a constraint between speeds, and its torques are unknowns."
        ),
        fun=_geared_motor,
        t_span=(0.0, 2.0),
        y0=np.zeros(5),
        names=("i", "motor_speed", "fan_speed", "motor_torque", "fan_torque"),
        units=("A", "rad/s", "rad/s", "N m", "N m"),
        picture=("i", "motor_speed"),
        reference=np.array(
            [
                0.3232046797127,
                233.5315709345,
                58.38289273362,
                0.01637419200602,
                0.06549676802408,
            ]
        ),
        source="SciPy's LSODA for current and speed, restarted at 1 s, tolerance 1e-12",
        reference_digits=10,
        expected_digits=6,
        atol_scale=np.ones(5),
        algebraic=(3, 4),
        index=2,
    )
