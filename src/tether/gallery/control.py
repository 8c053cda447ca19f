"""Control: prescribed paths and sampled controllers."""

import math
from typing import Any

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem, Vector

GRAVITY = 9.81


def _aircraft(t: float, y: Vector, yp: Vector) -> list[float]:
    _, h, v, gamma, lift = y
    mass, area, density, thrust = 5000.0, 30.0, 1.2, 12000.0
    pressure = 0.5 * density * v * v * area
    drag = pressure * (0.025 + 0.05 * lift * lift)
    wanted = 500.0 + 100.0 * math.sin(0.1 * t) ** 2
    return [
        yp[0] - v * math.cos(gamma),
        yp[1] - v * math.sin(gamma),
        mass * yp[2] - (thrust - drag - mass * GRAVITY * math.sin(gamma)),
        mass * v * yp[3] - (pressure * lift - mass * GRAVITY * math.cos(gamma)),
        h - wanted,
    ]


def aircraft() -> GalleryProblem:
    """Aircraft at a prescribed height, with the lift as an unknown: index 3.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.aircraft().index
    3
    """
    return GalleryProblem(
        name="aircraft",
        title="Aircraft on a prescribed path",
        description=(
            "An aircraft, as a point mass, follows a wave. Its height is given, and the lift "
            "coefficient that achieves it is found: an inverse problem."
        ),
        fun=_aircraft,
        t_span=(0.0, 60.0),
        y0=np.array([0.0, 500.0, 90.0, 0.0, 0.3]),
        names=("x", "h", "v", "gamma", "lift"),
        units=("m", "m", "m/s", "rad", ""),
        picture=("h", "lift"),
        reference=np.array(
            [
                7154.744541484,
                507.8073020634,
                146.5221324044,
                -0.03662879537859,
                0.1490464881009,
            ]
        ),
        source="lift from the second derivative of the height, then SciPy's DOP853, 1e-12",
        reference_digits=10,
        expected_digits=5,
        atol_scale=np.ones(5),
        algebraic=(4,),
        index=3,
    )


SAMPLING = 0.05


def _cart_pole(t: float, y: Vector, yp: Vector) -> list[float]:
    _, angle, v, w, force = y
    cart, bob, length = 1.0, 0.2, 0.5
    return [
        yp[0] - v,
        yp[1] - w,
        (cart + bob) * yp[2] - bob * length * (yp[3] * math.cos(angle) - w * w * math.sin(angle))
        - force,
        length * yp[3] - yp[2] * math.cos(angle) - GRAVITY * math.sin(angle),
        yp[4],
    ]  # fmt: skip


def _clock(t: float, y: FloatArray) -> float:
    return math.sin(math.pi * t / SAMPLING)


def _control(t: float, y: FloatArray) -> list[float]:
    x, angle, v, w, _ = y
    return [x, angle, v, w, 1.5 * x - 30.0 * angle + 3.0 * v - 6.0 * w]


def inverted_pendulum() -> GalleryProblem:
    """Inverted pendulum on a cart, balanced by a sampled controller: index 0.

    Examples
    --------
    >>> from tether import gallery
    >>> len(gallery.inverted_pendulum().events)
    1
    """
    clock: Any = _clock
    clock.apply = _control
    return GalleryProblem(
        name="inverted-pendulum",
        title="Inverted pendulum with sampled control",
        description=(
            "A cart balances a pendulum. Every 50 ms a controller reads the state and sets the "
            "force, which is held until the next sample: an event with an `apply`."
        ),
        fun=_cart_pole,
        t_span=(0.0, 4.0),
        y0=np.array([0.0, 0.2, 0.0, 0.0, 0.0]),
        names=("x", "angle", "v", "w", "force"),
        units=("m", "rad", "m/s", "rad/s", "N"),
        picture=("x", "angle"),
        reference=np.array(
            [
                -0.04786286744734,
                0.003489937511448,
                0.04020348729221,
                -0.00275218142049,
            ]
        ),
        compare=(0, 1, 2, 3),
        source="SciPy's DOP853 from sample to sample, tolerance 1e-12",
        reference_digits=10,
        expected_digits=6,
        atol_scale=np.ones(5),
        index=0,
        events=(clock,),
    )
