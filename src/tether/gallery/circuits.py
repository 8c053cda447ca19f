"""Electric circuits."""

import math

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem, Vector

UB, UF, ALPHA, BETA = 6.0, 0.026, 0.99, 1e-6
R0, R = 1000.0, 9000.0
C1, C2, C3, C4, C5 = 1e-6, 2e-6, 3e-6, 4e-6, 5e-6
OMEGA = 200 * math.pi

# First rows of the pairs joined by a floating capacitor: the sum of a pair has no derivative.
_PAIRS = (0, 3, 6)


def _transamp(t: float, y: Vector, yp: Vector) -> list[float]:
    signal = 0.1 * math.sin(OMEGA * t)
    g1 = BETA * (math.exp((y[1] - y[2]) / UF) - 1)
    g2 = BETA * (math.exp((y[4] - y[5]) / UF) - 1)
    i1 = C1 * (yp[1] - yp[0])
    i3 = C3 * (yp[4] - yp[3])
    i5 = C5 * (yp[7] - yp[6])
    return [
        i1 - (y[0] - signal) / R0,
        -i1 - (2 * y[1] - UB) / R - (1 - ALPHA) * g1,
        -C2 * yp[2] - y[2] / R + g1,
        i3 - (y[3] - UB) / R - ALPHA * g1,
        -i3 - (2 * y[4] - UB) / R - (1 - ALPHA) * g2,
        -C4 * yp[5] - y[5] / R + g2,
        i5 - (y[6] - UB) / R - ALPHA * g2,
        -i5 - y[7] / R,
    ]


def _transamp_jac(t: float, y: Vector, yp: Vector) -> tuple[FloatArray, FloatArray]:
    f_y = np.diag([-1 / R0, -2 / R, -1 / R, -1 / R, -2 / R, -1 / R, -1 / R, -1 / R])
    for base in (1, 4):
        slope = BETA / UF * math.exp((y[base] - y[base + 1]) / UF)
        for row, share in ((base, ALPHA - 1), (base + 1, 1.0), (base + 2, -ALPHA)):
            f_y[row, base] += share * slope
            f_y[row, base + 1] -= share * slope
    f_yp = np.zeros((8, 8))
    for row, capacity in zip(_PAIRS, (C1, C3, C5), strict=True):
        f_yp[row : row + 2, row : row + 2] = [[-capacity, capacity], [capacity, -capacity]]
    f_yp[2, 2], f_yp[5, 5] = -C2, -C4
    return f_y, f_yp


def _transamp_slopes(y0: FloatArray) -> FloatArray:
    """Slopes that satisfy the equations and the derivatives of the three hidden ones."""
    f_y, matrix = _transamp_jac(0.0, y0.tolist(), [0.0] * 8)
    right = -np.array(_transamp(0.0, y0.tolist(), [0.0] * 8))
    f_t = np.zeros(8)
    f_t[0] = 0.1 * OMEGA / R0
    for row in _PAIRS:
        matrix[row] = f_y[row] + f_y[row + 1]
        right[row] = -(f_t[row] + f_t[row + 1])
    return np.linalg.solve(matrix, right)


def transamp() -> GalleryProblem:
    """Transistor amplifier: singular leading matrix without a single algebraic unknown: index 1.

    Both transistors are exponential in a voltage difference over 26 mV, so the equations are
    strongly nonlinear, and a Newton iterate astray overflows. The starting slopes are solved for:
    those printed in the test set keep only four digits with its own parameters.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.transamp().yp0.round(4)[:3].tolist()
    [51.3393, 51.3393, -166.6667]
    """
    y0 = np.array([0.0, 3.0, 3.0, 6.0, 3.0, 3.0, 6.0, 0.0])
    return GalleryProblem(
        name="transamp",
        fun=_transamp,
        t_span=(0.0, 0.2),
        y0=y0,
        yp0=_transamp_slopes(y0),
        reference=np.array(
            [
                -0.5562145012262709e-2,
                0.3006522471903042e1,
                0.2849958788608128e1,
                0.2926422536206241e1,
                0.2704617865010554e1,
                0.2761837778393145e1,
                0.4770927631616772e1,
                0.1236995868091548e1,
            ]
        ),
        source="Test Set for IVP Solvers, transamp (PSIDE, tolerance 1e-14)",
        atol_scale=np.ones(8),
        jac=_transamp_jac,
    )
