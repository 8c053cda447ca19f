"""Relaxation oscillations."""

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem, Vector

EPSILON = 1e-6


def _van_der_pol(t: float, y: Vector, yp: Vector) -> list[float]:
    return [yp[0] - y[1], EPSILON * yp[1] - (1 - y[0] * y[0]) * y[1] + y[0]]


def _van_der_pol_jac(t: float, y: Vector, yp: Vector) -> tuple[FloatArray, FloatArray]:
    f_y = [[0.0, -1.0], [2 * y[0] * y[1] + 1, y[0] * y[0] - 1]]
    return np.array(f_y), np.diag([1.0, EPSILON])


def van_der_pol() -> GalleryProblem:
    """Van der Pol's oscillator with mu = 1e6 in scaled time: index 0, nearly 1.

    It moves slowly along two branches with jumps between them, after a transient at the start whose
    slope is -2e6.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.van_der_pol().yp0.tolist()
    [0.0, -2000000.0]
    """
    return GalleryProblem(
        name="vdpol",
        title="Van der Pol's oscillator",
        description=(
            "A relaxation oscillation: slow motion along one branch of a curve, then a fast jump "
            "to the other."
        ),
        names=("y", "z"),
        units=("", ""),
        picture=("y",),
        reference_digits=10,
        expected_digits=5,
        fun=_van_der_pol,
        t_span=(0.0, 2.0),
        y0=np.array([2.0, 0.0]),
        yp0=np.array([0.0, -2.0 / EPSILON]),
        reference=np.array([0.1706167732170483e1, -0.8928097010247975e0]),
        source="Test Set for IVP Solvers, vdpol",
        atol_scale=np.ones(2),
        index=0,
        jac=_van_der_pol_jac,
    )
