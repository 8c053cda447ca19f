"""Mechanical systems with constraints, reduced to index 1."""

import math

import numpy as np
from scipy.special import ellipj

from tether.gallery.base import FloatArray, GalleryProblem, Vector

GRAVITY = 9.8

PENDULUM_C = """\
void residual(double t, const double *y, const double *yp, double *out)
{
    const double g = 9.8;
    double x = y[0], z = y[1], u = y[2], v = y[3], lam = y[4];
    out[0] = yp[0] - u;
    out[1] = yp[1] - v;
    out[2] = yp[2] + lam * x;
    out[3] = yp[3] + lam * z + g;
    out[4] = u * u + v * v - lam * (x * x + z * z) - g * z;
}
"""


def _pendulum(t: float, y: Vector, yp: Vector) -> list[float]:
    x, z, u, v, lam = y
    return [
        yp[0] - u,
        yp[1] - v,
        yp[2] + lam * x,
        yp[3] + lam * z + GRAVITY,
        u * u + v * v - lam * (x * x + z * z) - GRAVITY * z,
    ]


def _pendulum_jac(t: float, y: Vector, yp: Vector) -> tuple[FloatArray, FloatArray]:
    x, z, u, v, lam = y
    f_y = np.array(
        [
            [0.0, 0.0, -1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, -1.0, 0.0],
            [lam, 0.0, 0.0, 0.0, x],
            [0.0, lam, 0.0, 0.0, z],
            [-2 * lam * x, -2 * lam * z - GRAVITY, 2 * u, 2 * v, -(x * x + z * z)],
        ]
    )
    return f_y, np.diag([1.0, 1.0, 1.0, 1.0, 0.0])


def _pendulum_exact(t: float) -> FloatArray:
    """Evaluate sin(angle/2) = k cd(w t | k^2), k = sin(pi/4), with its derivative."""
    sn, cn, dn, _ = ellipj(math.sqrt(GRAVITY) * t, 0.5)
    x, z = cn / dn**2, (cn / dn) ** 2 - 1
    rate = -math.sqrt(GRAVITY) * sn / dn
    return np.array([x, z, -z * rate, x * rate, -3 * GRAVITY * z])


def pendulum(t_end: float = 10.0) -> GalleryProblem:
    """Pendulum of length and mass 1, released from rest at (1, 0): index 1.

    Unknowns are the position (x, z), the velocity (u, v) and the force in the rod. The length
    condition is differentiated twice, so the numerical solution drifts off the circle.

    Parameters
    ----------
    t_end : float
        End of the interval.

    Examples
    --------
    >>> from tether import gallery
    >>> x, z, *_ = gallery.pendulum().exact(3.0)
    >>> bool(abs(x**2 + z**2 - 1) < 1e-12)
    True
    """
    compare = (0, 1, 2, 3)
    return GalleryProblem(
        name="pend-i1",
        fun=_pendulum,
        t_span=(0.0, t_end),
        y0=np.array([1.0, 0.0, 0.0, 0.0, 0.0]),
        yp0=np.array([0.0, 0.0, 0.0, -GRAVITY, 0.0]),
        reference=_pendulum_exact(t_end)[list(compare)],
        source="exact: Jacobi elliptic functions",
        atol_scale=np.ones(5),
        compare=compare,
        algebraic=(4,),
        jac=_pendulum_jac,
        exact=_pendulum_exact,
        c_source=PENDULUM_C,
    )


# Half mass of the chassis times the square of the small parameter, M eps^2 / 2.
_AXIS_MASS = 10.0 * 1e-2**2 / 2

CAR_AXIS_C = """\
#include <math.h>
void residual(double t, const double *y, const double *yp, double *out)
{
    const double k = 10.0 * 1e-2 * 1e-2 / 2;
    double xl = y[0], yl = y[1], xr = y[2], yr = y[3];
    double ul = y[4], vl = y[5], ur = y[6], vr = y[7], la = y[8], lb = y[9];
    double yb = 0.1 * sin(10 * t), yb1 = cos(10 * t), yb2 = -100 * yb;
    double xb = sqrt(1 - yb * yb);
    double xb1 = -yb * yb1 / xb;
    double xb2 = -(yb1 * yb1 + yb * yb2 + xb1 * xb1) / xb;
    double dx = xl - xr, dy = yl - yr, du = ul - ur, dv = vl - vr;
    double left = 0.5 / sqrt(xl * xl + yl * yl) - 1;
    double right = 0.5 / sqrt((xr - xb) * (xr - xb) + (yr - yb) * (yr - yb)) - 1;
    double f1 = left * xl + la * xb + 2 * lb * dx;
    double f2 = left * yl + la * yb + 2 * lb * dy - k;
    double f3 = right * (xr - xb) - 2 * lb * dx;
    double f4 = right * (yr - yb) - 2 * lb * dy - k;
    out[0] = yp[0] - ul;
    out[1] = yp[1] - vl;
    out[2] = yp[2] - ur;
    out[3] = yp[3] - vr;
    out[4] = k * yp[4] - f1;
    out[5] = k * yp[5] - f2;
    out[6] = k * yp[6] - f3;
    out[7] = k * yp[7] - f4;
    out[8] = xb2 * xl + 2 * xb1 * ul + yb2 * yl + 2 * yb1 * vl + (xb * f1 + yb * f2) / k;
    out[9] = du * du + dv * dv + (dx * (f1 - f3) + dy * (f2 - f4)) / k;
}
"""


def _car_axis(t: float, y: Vector, yp: Vector) -> list[float]:
    xl, yl, xr, yr, ul, vl, ur, vr, la, lb = y
    k = _AXIS_MASS
    # the road under the right wheel, with its first and second derivatives
    yb, yb1 = 0.1 * math.sin(10 * t), math.cos(10 * t)
    yb2 = -100 * yb
    xb = math.sqrt(1 - yb * yb)
    xb1 = -yb * yb1 / xb
    xb2 = -(yb1 * yb1 + yb * yb2 + xb1 * xb1) / xb
    dx, dy, du, dv = xl - xr, yl - yr, ul - ur, vl - vr
    left = 0.5 / math.sqrt(xl * xl + yl * yl) - 1
    right = 0.5 / math.sqrt((xr - xb) * (xr - xb) + (yr - yb) * (yr - yb)) - 1
    f1 = left * xl + la * xb + 2 * lb * dx
    f2 = left * yl + la * yb + 2 * lb * dy - k
    f3 = right * (xr - xb) - 2 * lb * dx
    f4 = right * (yr - yb) - 2 * lb * dy - k
    return [
        yp[0] - ul,
        yp[1] - vl,
        yp[2] - ur,
        yp[3] - vr,
        k * yp[4] - f1,
        k * yp[5] - f2,
        k * yp[6] - f3,
        k * yp[7] - f4,
        xb2 * xl + 2 * xb1 * ul + yb2 * yl + 2 * yb1 * vl + (xb * f1 + yb * f2) / k,
        du * du + dv * dv + (dx * (f1 - f3) + dy * (f2 - f4)) / k,
    ]


def car_axis() -> GalleryProblem:
    """Car axis on a bumpy road: two wheels on stiff springs, two constraints: index 1.

    Unknowns are positions and velocities of both ends of the axis and two multipliers. The
    constraints of the original index-3 problem are differentiated twice and the accelerations
    put in.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.car_axis().n
    10
    """
    y0 = np.array([0.0, 0.5, 1.0, 0.5, -0.5, 0.0, -0.5, 0.0, 0.0, 0.0])
    forces = -np.array(_car_axis(0.0, y0.tolist(), [0.0] * 10))[4:8]
    return GalleryProblem(
        name="caraxis-i1",
        fun=_car_axis,
        t_span=(0.0, 3.0),
        y0=y0,
        yp0=np.concatenate([y0[4:8], forces / _AXIS_MASS, [0.0, 0.0]]),
        reference=np.array(
            [
                0.4934557842755629e-1,
                0.4969894602303324,
                0.1041742524885400e1,
                0.3739110272652214,
                -0.7705836840321485e-1,
                0.7446866596327776e-2,
                0.1755681574942899e-1,
                0.7703410437794031,
            ]
        ),
        source="Test Set for IVP Solvers, caraxis",
        atol_scale=np.ones(10),
        compare=tuple(range(8)),
        algebraic=(8, 9),
        c_source=CAR_AXIS_C,
    )
