"""Reaction kinetics."""

import math

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem, Vector

ROBERTSON_C = """\
void residual(double t, const double *y, const double *yp, double *out)
{
    double slow = 0.04 * y[0], back = 1e4 * y[1] * y[2], fast = 3e7 * y[1] * y[1];
    out[0] = yp[0] + slow - back;
    out[1] = yp[1] - slow + back + fast;
    out[2] = y[0] + y[1] + y[2] - 1.0;
}
"""

# End time: end value and where it comes from.
_ROBERTSON_ENDS = {
    4e10: (
        (5.20834517683e-08, 2.08333817794e-13, 0.9999999479163399),
        "SciPy's Radau and SUNDIALS' CVODE at tight tolerances, which agree to 11 digits",
    ),
    1e11: (
        (0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050),
        "Test Set for IVP Solvers, rober",
    ),
}


def _robertson(t: float, y: Vector, yp: Vector) -> list[float]:
    slow = 0.04 * y[0]
    back = 1e4 * y[1] * y[2]
    fast = 3e7 * y[1] * y[1]
    return [yp[0] + slow - back, yp[1] - slow + back + fast, y[0] + y[1] + y[2] - 1.0]


def _robertson_jac(t: float, y: Vector, yp: Vector) -> tuple[FloatArray, FloatArray]:
    back_1, back_2 = 1e4 * y[2], 1e4 * y[1]
    f_y = [[0.04, -back_1, -back_2], [-0.04, back_1 + 6e7 * y[1], back_2], [1.0, 1.0, 1.0]]
    return np.array(f_y), np.diag([1.0, 1.0, 0.0])


def robertson(t_end: float = 4e10) -> GalleryProblem:
    """Robertson's autocatalytic reaction, with conservation of mass as an equation: index 1.

    Rates from 0.04 to 3e7 and eleven decades of time make it the usual test of stiffness.

    Parameters
    ----------
    t_end : {4e10, 1e11}
        End of the interval; only these two have a reference.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.robertson().t_span
    (0.0, 40000000000.0)
    """
    if t_end not in _ROBERTSON_ENDS:
        raise ValueError(f"t_end must be one of {sorted(_ROBERTSON_ENDS)}, got {t_end!r}")
    reference, source = _ROBERTSON_ENDS[t_end]
    return GalleryProblem(
        name="robertson",
        title="Robertson's reaction",
        description=(
            "An autocatalytic reaction with rates from 0.04 to 3e7 over eleven decades of time: "
            "the usual test of stiffness. Conservation of mass is one of the equations."
        ),
        names=("y1", "y2", "y3"),
        units=("", "", ""),
        picture=("y1", "y3"),
        reference_digits=11,
        expected_digits=5,
        fun=_robertson,
        t_span=(0.0, t_end),
        y0=np.array([1.0, 0.0, 0.0]),
        yp0=np.array([-0.04, 0.04, 0.0]),
        reference=np.array(reference),
        source=source,
        atol_scale=np.array([1e-4, 1e-10, 1e-2]),
        algebraic=(2,),
        jac=_robertson_jac,
        c_source=ROBERTSON_C,
    )


AKZO_C = """\
#include <math.h>
void residual(double t, const double *y, const double *yp, double *out)
{
    double root = sqrt(y[1]), square = y[0] * y[0];
    double r1 = 18.7 * square * square * root;
    double r2 = 0.58 * y[2] * y[3];
    double r3 = 0.58 / 34.4 * y[0] * y[4];
    double r4 = 0.09 * y[0] * y[3] * y[3];
    double r5 = 0.42 * y[5] * y[5] * root;
    double inflow = 3.3 * (0.9 / 737.0 - y[1]);
    out[0] = yp[0] + 2 * r1 - r2 + r3 + r4;
    out[1] = yp[1] + 0.5 * r1 + r4 + 0.5 * r5 - inflow;
    out[2] = yp[2] - r1 + r2 - r3;
    out[3] = yp[3] + r2 - r3 + 2 * r4;
    out[4] = yp[4] - r2 + r3 - r5;
    out[5] = 115.83 * y[0] * y[3] - y[5];
}
"""

_AKZO_EQUILIBRIUM = 115.83


def _akzo(t: float, y: Vector, yp: Vector) -> list[float]:
    root = math.sqrt(y[1])
    r1 = 18.7 * y[0] ** 4 * root
    r2 = 0.58 * y[2] * y[3]
    r3 = 0.58 / 34.4 * y[0] * y[4]
    r4 = 0.09 * y[0] * y[3] ** 2
    r5 = 0.42 * y[5] ** 2 * root
    inflow = 3.3 * (0.9 / 737.0 - y[1])
    return [
        yp[0] + 2 * r1 - r2 + r3 + r4,
        yp[1] + 0.5 * r1 + r4 + 0.5 * r5 - inflow,
        yp[2] - r1 + r2 - r3,
        yp[3] + r2 - r3 + 2 * r4,
        yp[4] - r2 + r3 - r5,
        _AKZO_EQUILIBRIUM * y[0] * y[3] - y[5],
    ]


def akzo() -> GalleryProblem:
    """Chemical Akzo Nobel: five reactions, one of them always in equilibrium: index 1.

    Because of a square root, one concentration must not become negative.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.akzo().algebraic
    (5,)
    """
    y0 = np.array([0.444, 0.00123, 0.0, 0.007, 0.0, _AKZO_EQUILIBRIUM * 0.444 * 0.007])
    yp0 = -np.array(_akzo(0.0, y0.tolist(), [0.0] * 6))
    yp0[5] = _AKZO_EQUILIBRIUM * (yp0[0] * y0[3] + y0[0] * yp0[3])
    return GalleryProblem(
        name="akzo",
        title="Chemical Akzo Nobel",
        description=(
            "Two species are mixed in a tank while carbon dioxide is added: five reactions, "
            "one of which is always in equilibrium."
        ),
        names=("FLB", "CO2", "FLBT", "ZHU", "ZLA", "FLB_ZHU"),
        units=("mol/l",) * 6,
        picture=("FLB", "FLBT", "ZLA"),
        reference_digits=12,
        expected_digits=6,
        fun=_akzo,
        t_span=(0.0, 180.0),
        y0=y0,
        yp0=yp0,
        reference=np.array(
            [
                0.1150794920661702,
                0.1203831471567715e-2,
                0.1611562887407974,
                0.3656156421249283e-3,
                0.1708010885264404e-1,
                0.4873531310307455e-2,
            ]
        ),
        source="Test Set for IVP Solvers, chemakzo (PSIDE, tolerance 1e-19)",
        atol_scale=np.full(6, 1e-3),
        algebraic=(5,),
        c_source=AKZO_C,
    )
