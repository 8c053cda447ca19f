"""The pendulum of HK: residuals, constraints, energy, exact solution.

Hanson and Krogh (2008) write y1, y2 for the position, y3, y4 for the velocity and y5 for the
tension in the rod over its length. Their parameters, not printed, follow from their figures.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ellipj

from tether import Constraint
from tether.gallery.compiled import find_compiler
from tether.studies.loader import c_function, load_library

LENGTH = 1.1
GRAVITY = 9.80665
START = (LENGTH, 0.0, 0.0, 0.0, 0.0)

# From Jacobi's elliptic functions with 40 digits, for L and g as the decimal numbers above. Their
# nearest doubles move y2 by 2e-13 at t = 1000 and 5e-13 at t = 10000.
TRUE = {
    1000.0: (
        -1.054143946983521761325,
        -0.314293714601488749072,
        0.709391849332250867338,
        -2.379306646209006067475,
        7.641739974289313159722,
    ),
    10000.0: (
        1.099747546932723032363,
        -0.023565504778343943906,
        -0.014564573474643058692,
        -0.679694922791538144082,
        0.572971877936892489682,
    ),
}

# The period 4 K(1/2) / (g/L)^(1/2) in two parts; the first has 32 bits, so that a multiple of it
# is exact up to two million swings.
PERIOD_HIGH = 2.4838377218693495
PERIOD_LOW = 7.620504049296689e-10
PERIOD = PERIOD_HIGH + PERIOD_LOW
# Speed at the lowest point, from the energy.
LARGEST_SPEED = math.sqrt(2.0 * GRAVITY * LENGTH)

C_TEXT = """\
static const double g = 9.80665, L = 1.1;

static void motion(const double *y, const double *yp, double *out)
{
    out[0] = yp[0] - y[2];
    out[1] = yp[1] - y[3];
    out[2] = yp[2] + y[0] * y[4];
    out[3] = yp[3] + y[1] * y[4] + g;
}

static double tension(const double *y)
{
    return -y[4] * L * L + y[2] * y[2] + y[3] * y[3] - g * y[1];
}

/* HK eq. 9 and 11 */
void index1(double t, double *y, double *yp, double *out)
{
    motion(y, yp, out);
    out[4] = tension(y);
}

void index0(double t, double *y, double *yp, double *out)
{
    motion(y, yp, out);
    out[4] = -yp[4] * L * L - 3 * y[3] * g;
}

/* HK eq. 10 and 12, with their Jacobians row by row */
void constraints1(double t, double *y, double *values)
{
    values[0] = 0.5 * (y[0] * y[0] + y[1] * y[1] - L * L);
    values[1] = y[0] * y[2] + y[1] * y[3];
}

void constraints1_jac(double t, double *y, double *rows)
{
    rows[0] = y[0], rows[1] = y[1], rows[2] = 0, rows[3] = 0, rows[4] = 0;
    rows[5] = y[2], rows[6] = y[3], rows[7] = y[0], rows[8] = y[1], rows[9] = 0;
}

void constraints0(double t, double *y, double *values)
{
    constraints1(t, y, values);
    values[2] = tension(y);
}

void constraints0_jac(double t, double *y, double *rows)
{
    constraints1_jac(t, y, rows);
    rows[10] = 0, rows[11] = -g, rows[12] = 2 * y[2], rows[13] = 2 * y[3], rows[14] = -L * L;
}

/* HK eq. 5 */
void energy(double t, double *y, double *values)
{
    values[0] = 0.5 * (y[2] * y[2] + y[3] * y[3]) + y[1] * g;
}

void energy_jac(double t, double *y, double *row)
{
    row[0] = 0, row[1] = g, row[2] = y[2], row[3] = y[3], row[4] = 0;
}
"""


@dataclass(frozen=True)
class Model:
    """The pendulum in the form of one index: arguments of `solve_dae`."""

    residual: Any
    constraints: Constraint
    energy: Constraint


def has_compiler() -> bool:
    """Whether the C text can be compiled here."""
    return find_compiler() is not None


@cache
def model(index: int, compiled: bool) -> Model:
    """Return the form of index 1 or 0, in C or in Python."""
    size = 3 - index
    if not compiled:
        return Model(
            residual=(index0, index1)[index],
            constraints=Constraint((constraints0, constraints1)[index],
                                   jac=(constraints0_jac, constraints1_jac)[index], size=size),
            energy=Constraint(energy, jac=energy_jac, size=1),
        )
    library = _library()
    return Model(
        residual=c_function(library, f"index{index}", 3),
        constraints=Constraint(c_function(library, f"constraints{index}", 2),
                               jac=c_function(library, f"constraints{index}_jac", 2), size=size),
        energy=Constraint(c_function(library, "energy", 2),
                          jac=c_function(library, "energy_jac", 2), size=1),
    )


@cache
def _library() -> ctypes.CDLL:
    return load_library("pendulum", C_TEXT)


def exact(t: ArrayLike) -> np.ndarray:
    """Return the five unknowns at a time, or in columns at several.

    The angle a from the lowest point follows sin(a/2) = k cd(w t | k^2), k = sin(pi/4). Whole
    periods are subtracted from t first, which keeps the phase right to round-off at any time.

    Examples
    --------
    >>> from tether.studies import pendulum
    >>> print(*pendulum.exact(1000.0)[:2].round(12))
    -1.054143946984 -0.314293714601
    """
    times = np.asarray(t, float)
    swings = np.round(times / PERIOD)
    phase = (times - swings * PERIOD_HIGH) - swings * PERIOD_LOW
    frequency = math.sqrt(GRAVITY / LENGTH)
    sn, cn, dn, _ = ellipj(frequency * phase, 0.5)
    x, z = LENGTH * cn / dn**2, LENGTH * ((cn / dn) ** 2 - 1)
    rate = -frequency * sn / dn
    return np.array([x, z, -z * rate, x * rate, -3 * GRAVITY / LENGTH**2 * z])


def lowest_points(t_end: float, count: int) -> np.ndarray:
    """Return about `count` of the times at the lowest point, evenly spread over log t."""
    last = math.floor(2 * t_end / PERIOD - 0.5)
    swings = np.unique(np.round(np.geomspace(1, last + 1, count)).astype(int)) - 1
    return (swings + 0.5) * PERIOD / 2


# --- the same in Python, for machines without a compiler -------------------------------------


def index1(t: float, y: np.ndarray, yp: np.ndarray) -> list[float]:
    """HK eq. 9."""
    return [*_motion(y, yp), _tension(y)]


def index0(t: float, y: np.ndarray, yp: np.ndarray) -> list[float]:
    """HK eq. 11."""
    return [*_motion(y, yp), -yp[4] * LENGTH**2 - 3 * y[3] * GRAVITY]


def constraints1(t: float, y: np.ndarray) -> list[float]:
    """HK eq. 10: the length of the rod and its derivative."""
    return [0.5 * (y[0] ** 2 + y[1] ** 2 - LENGTH**2), y[0] * y[2] + y[1] * y[3]]


def constraints1_jac(t: float, y: np.ndarray) -> list[list[float]]:
    """Return the derivatives of `constraints1`."""
    return [[y[0], y[1], 0.0, 0.0, 0.0], [y[2], y[3], y[0], y[1], 0.0]]


def constraints0(t: float, y: np.ndarray) -> list[float]:
    """HK eq. 12: the constraints of eq. 10 and the tension."""
    return [*constraints1(t, y), _tension(y)]


def constraints0_jac(t: float, y: np.ndarray) -> list[list[float]]:
    """Return the derivatives of `constraints0`."""
    return [*constraints1_jac(t, y), [0.0, -GRAVITY, 2 * y[2], 2 * y[3], -(LENGTH**2)]]


def energy(t: float, y: np.ndarray) -> float:
    """HK eq. 5: zero at the start."""
    return 0.5 * (y[2] ** 2 + y[3] ** 2) + y[1] * GRAVITY


def energy_jac(t: float, y: np.ndarray) -> list[float]:
    """Return the derivatives of `energy`."""
    return [0.0, GRAVITY, y[2], y[3], 0.0]


def _motion(y: np.ndarray, yp: np.ndarray) -> list[float]:
    return [yp[0] - y[2], yp[1] - y[3], yp[2] + y[0] * y[4], yp[3] + y[1] * y[4] + GRAVITY]


def _tension(y: np.ndarray) -> float:
    return -y[4] * LENGTH**2 + y[2] ** 2 + y[3] ** 2 - GRAVITY * y[1]
