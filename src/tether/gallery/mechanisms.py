"""Mechanical systems with constraints as given (index 3), or differentiated (index 2 and 1)."""

import math

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem, Jacobian, Residual, Vector

GRAVITY = 9.8

# `with_index` puts a line "#define INDEX ..." before these sources.
PENDULUM_C = """\
void residual(double t, const double *y, const double *yp, double *out)
{
    const double g = 9.8;
    double x = y[0], z = y[1], u = y[2], v = y[3], lam = y[4];
    out[0] = yp[0] - u;
    out[1] = yp[1] - v;
    out[2] = yp[2] + lam * x;
    out[3] = yp[3] + lam * z + g;
#if INDEX == 3
    out[4] = x * x + z * z - 1;
#elif INDEX == 2
    out[4] = x * u + z * v;
#else
    out[4] = u * u + v * v - lam * (x * x + z * z) - g * z;
#endif
}
"""

PENDULUM_GGL_C = """\
void residual(double t, const double *y, const double *yp, double *out)
{
    const double g = 9.8;
    double x = y[0], z = y[1], u = y[2], v = y[3], lam = y[4], mu = y[5];
    out[0] = yp[0] - u + mu * x;
    out[1] = yp[1] - v + mu * z;
    out[2] = yp[2] + lam * x;
    out[3] = yp[3] + lam * z + g;
    out[4] = x * x + z * z - 1;
    out[5] = x * u + z * v;
}
"""


def check_index(index: int) -> None:
    """Refuse an index other than 1, 2 and 3."""
    if index not in (1, 2, 3):
        raise ValueError(f"index must be 1, 2 or 3, got {index!r}")


def with_index(c_text: str, index: int) -> str:
    """C source of a residual that selects its equations by the macro INDEX."""
    return f"#define INDEX {index}\n{c_text}"


def _pendulum(index: int) -> Residual:
    def fun(t: float, y: Vector, yp: Vector) -> list[float]:
        x, z, u, v, lam = y
        if index == 3:
            constraint = x * x + z * z - 1
        elif index == 2:
            constraint = x * u + z * v
        else:
            constraint = u * u + v * v - lam * (x * x + z * z) - GRAVITY * z
        return [yp[0] - u, yp[1] - v, yp[2] + lam * x, yp[3] + lam * z + GRAVITY, constraint]

    return fun


def _pendulum_jac(index: int) -> Jacobian:
    def jac(t: float, y: Vector, yp: Vector) -> tuple[FloatArray, FloatArray]:
        x, z, u, v, lam = y
        if index == 3:
            constraint = [2 * x, 2 * z, 0.0, 0.0, 0.0]
        elif index == 2:
            constraint = [u, v, x, z, 0.0]
        else:
            constraint = [-2 * lam * x, -2 * lam * z - GRAVITY, 2 * u, 2 * v, -(x * x + z * z)]
        f_y = np.array(
            [
                [0.0, 0.0, -1.0, 0.0, 0.0],
                [0.0, 0.0, 0.0, -1.0, 0.0],
                [lam, 0.0, 0.0, 0.0, x],
                [0.0, lam, 0.0, 0.0, z],
                constraint,
            ]
        )
        return f_y, np.diag([1.0, 1.0, 1.0, 1.0, 0.0])

    return jac


def _pendulum_ggl(t: float, y: Vector, yp: Vector) -> list[float]:
    x, z, u, v, lam, mu = y
    return [
        yp[0] - u + mu * x,
        yp[1] - v + mu * z,
        yp[2] + lam * x,
        yp[3] + lam * z + GRAVITY,
        x * x + z * z - 1,
        x * u + z * v,
    ]


def _pendulum_ggl_jac(t: float, y: Vector, yp: Vector) -> tuple[FloatArray, FloatArray]:
    x, z, u, v, lam, mu = y
    f_y = np.array(
        [
            [mu, 0.0, -1.0, 0.0, 0.0, x],
            [0.0, mu, 0.0, -1.0, 0.0, z],
            [lam, 0.0, 0.0, 0.0, x, 0.0],
            [0.0, lam, 0.0, 0.0, z, 0.0],
            [2 * x, 2 * z, 0.0, 0.0, 0.0, 0.0],
            [u, v, x, z, 0.0, 0.0],
        ]
    )
    return f_y, np.diag([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])


def jacobi_functions(u: float, m: float) -> tuple[float, float, float]:
    """Return sn, cn and dn, by the arithmetic-geometric mean.

    Importing SciPy's version would take longer than listing all problems.
    """
    a, b = 1.0, math.sqrt(1.0 - m)
    ratios = []
    while a - b > 1e-15 * a:
        ratios.append((a - b) / (a + b))
        a, b = (a + b) / 2, math.sqrt(a * b)
    angle = 2.0 ** len(ratios) * a * u
    for ratio in reversed(ratios):
        angle = (angle + math.asin(ratio * math.sin(angle))) / 2
    sn, cn = math.sin(angle), math.cos(angle)
    return sn, cn, math.sqrt(1.0 - m * sn * sn)


def _pendulum_exact(t: float) -> FloatArray:
    """Evaluate sin(angle/2) = k cd(w t | k^2), k = sin(pi/4), with its derivative."""
    sn, cn, dn = jacobi_functions(math.sqrt(GRAVITY) * t, 0.5)
    x, z = cn / dn**2, (cn / dn) ** 2 - 1
    rate = -math.sqrt(GRAVITY) * sn / dn
    return np.array([x, z, -z * rate, x * rate, -3 * GRAVITY * z])


def _pendulum_ggl_exact(t: float) -> FloatArray:
    return np.append(_pendulum_exact(t), 0.0)


_PENDULUM_COMPARE = (0, 1, 2, 3)
_PENDULUM_SOURCE = "exact: Jacobi elliptic functions"


def pendulum(t_end: float = 10.0, index: int = 1) -> GalleryProblem:
    """Pendulum of length and mass 1, released from rest at (1, 0): index 1, 2 or 3.

    Unknowns are the position (x, z), the velocity (u, v) and the force in the rod. At index 3
    the length is the constraint, at index 2 its first derivative and at index 1 its second; at
    index 2 and 1 the numerical solution drifts off the circle.

    Parameters
    ----------
    t_end : float
        End of the interval.
    index : {1, 2, 3}
        Index of the equations.

    Examples
    --------
    >>> from tether import gallery
    >>> x, z, *_ = gallery.pendulum().exact(3.0)
    >>> bool(abs(x**2 + z**2 - 1) < 1e-12)
    True
    >>> gallery.pendulum(index=3).name
    'pend-i3'
    """
    check_index(index)
    return GalleryProblem(
        name=f"pend-i{index}",
        title=f"Pendulum, index {index}",
        description=(
            "A point mass on a rod, released from rest, in Cartesian coordinates."
        ),
        names=("x", "z", "u", "v", "force"),
        units=("m", "m", "m/s", "m/s", "N/m"),
        picture=("x", "z"),
        reference_digits=14,
        expected_digits=3,
        fun=_pendulum(index),
        t_span=(0.0, t_end),
        y0=np.array([1.0, 0.0, 0.0, 0.0, 0.0]),
        yp0=np.array([0.0, 0.0, 0.0, -GRAVITY, 0.0]),
        reference=_pendulum_exact(t_end)[list(_PENDULUM_COMPARE)],
        source=_PENDULUM_SOURCE,
        atol_scale=np.ones(5),
        compare=_PENDULUM_COMPARE,
        algebraic=(4,),
        index=index,
        jac=_pendulum_jac(index),
        exact=_pendulum_exact,
        c_source=with_index(PENDULUM_C, index),
    )


def pendulum_ggl(t_end: float = 10.0) -> GalleryProblem:
    """Pendulum as in `pendulum`, with its constraints on length and velocity at once: index 2.

    This is the form of Gear, Gupta and Leimkuhler (1985): a second multiplier, zero along the
    exact solution, lets the position move onto the circle.

    Parameters
    ----------
    t_end : float
        End of the interval.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.pendulum_ggl().algebraic
    (4, 5)
    """
    return GalleryProblem(
        name="pend-ggl",
        title="Pendulum with a second multiplier",
        description=(
            "The same pendulum with the constraints of position and velocity at once, after "
            "Gear, Gupta and Leimkuhler."
        ),
        names=("x", "z", "u", "v", "force", "mu"),
        units=("m", "m", "m/s", "m/s", "N/m", "1/s"),
        picture=("x", "z"),
        reference_digits=14,
        expected_digits=3,
        fun=_pendulum_ggl,
        t_span=(0.0, t_end),
        y0=np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        yp0=np.array([0.0, 0.0, 0.0, -GRAVITY, 0.0, 0.0]),
        reference=_pendulum_exact(t_end)[list(_PENDULUM_COMPARE)],
        source=_PENDULUM_SOURCE,
        atol_scale=np.ones(6),
        compare=_PENDULUM_COMPARE,
        algebraic=(4, 5),
        index=2,
        jac=_pendulum_ggl_jac,
        exact=_pendulum_ggl_exact,
        c_source=PENDULUM_GGL_C,
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
    double yb = 0.1 * sin(10 * t);
    double xb = sqrt(1 - yb * yb);
    double dx = xl - xr, dy = yl - yr;
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
#if INDEX == 3
    out[8] = xl * xb + yl * yb;
    out[9] = dx * dx + dy * dy - 1;
#else
    double yb1 = cos(10 * t), xb1 = -yb * yb1 / xb;
    double du = ul - ur, dv = vl - vr;
#if INDEX == 2
    out[8] = xb1 * xl + xb * ul + yb1 * yl + yb * vl;
    out[9] = dx * du + dy * dv;
#else
    double yb2 = -100 * yb, xb2 = -(yb1 * yb1 + yb * yb2 + xb1 * xb1) / xb;
    out[8] = xb2 * xl + 2 * xb1 * ul + yb2 * yl + 2 * yb1 * vl + (xb * f1 + yb * f2) / k;
    out[9] = du * du + dv * dv + (dx * (f1 - f3) + dy * (f2 - f4)) / k;
#endif
#endif
}
"""


def _car_axis(index: int) -> Residual:
    def fun(t: float, y: Vector, yp: Vector) -> list[float]:
        xl, yl, xr, yr, ul, vl, ur, vr, la, lb = y
        k = _AXIS_MASS
        # position of the road under the right wheel
        yb = 0.1 * math.sin(10 * t)
        xb = math.sqrt(1 - yb * yb)
        dx, dy = xl - xr, yl - yr
        left = 0.5 / math.sqrt(xl * xl + yl * yl) - 1
        right = 0.5 / math.sqrt((xr - xb) * (xr - xb) + (yr - yb) * (yr - yb)) - 1
        f1 = left * xl + la * xb + 2 * lb * dx
        f2 = left * yl + la * yb + 2 * lb * dy - k
        f3 = right * (xr - xb) - 2 * lb * dx
        f4 = right * (yr - yb) - 2 * lb * dy - k
        if index == 3:
            upright = xl * xb + yl * yb
            length = dx * dx + dy * dy - 1
        else:
            yb1 = math.cos(10 * t)
            xb1 = -yb * yb1 / xb
            du, dv = ul - ur, vl - vr
            if index == 2:
                upright = xb1 * xl + xb * ul + yb1 * yl + yb * vl
                length = dx * du + dy * dv
            else:
                yb2 = -100 * yb
                xb2 = -(yb1 * yb1 + yb * yb2 + xb1 * xb1) / xb
                upright = xb2 * xl + 2 * xb1 * ul + yb2 * yl + 2 * yb1 * vl
                upright += (xb * f1 + yb * f2) / k
                length = du * du + dv * dv + (dx * (f1 - f3) + dy * (f2 - f4)) / k
        return [
            yp[0] - ul,
            yp[1] - vl,
            yp[2] - ur,
            yp[3] - vr,
            k * yp[4] - f1,
            k * yp[5] - f2,
            k * yp[6] - f3,
            k * yp[7] - f4,
            upright,
            length,
        ]

    return fun


def car_axis(index: int = 1) -> GalleryProblem:
    """Car axis on a bumpy road: two wheels on stiff springs, two constraints: index 1, 2 or 3.

    Unknowns are positions and velocities of both ends of the axis and two multipliers. At index
    2 the constraints of the original index-3 problem are differentiated once, at index 1 twice with
    the accelerations inserted.

    Parameters
    ----------
    index : {1, 2, 3}
        Index of the equations.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.car_axis().n
    10
    >>> gallery.car_axis(index=3).name
    'caraxis-i3'
    """
    check_index(index)
    fun = _car_axis(index)
    y0 = np.array([0.0, 0.5, 1.0, 0.5, -0.5, 0.0, -0.5, 0.0, 0.0, 0.0])
    forces = -np.array(fun(0.0, y0.tolist(), [0.0] * 10))[4:8]
    return GalleryProblem(
        name=f"caraxis-i{index}",
        title=f"Car axis, index {index}",
        description="An axis on two stiff springs, one of which goes over a bumpy road.",
        names=("xl", "yl", "xr", "yr", "ul", "vl", "ur", "vr", "lam1", "lam2"),
        units=("",) * 10,
        picture=("yl", "yr"),
        reference_digits=12,
        expected_digits=3,
        fun=fun,
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
        index=index,
        c_source=with_index(CAR_AXIS_C, index),
    )
