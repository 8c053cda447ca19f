"""Partial differential equations by the method of lines."""

import functools
import math

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem

# Amplitudes of the sines in the starting profile, by wave number.
_MODES = {1: 1.0, 3: 0.5, 10: 0.2}


def _heat_c(m: int) -> str:
    return f"""\
void residual(double t, const double *u, const double *up, double *out)
{{
    const int m = {m};
    const double scale = (m - 1.0) * (m - 1.0);
    out[0] = u[0];
    for (int i = 1; i < m - 1; i++)
        out[i] = up[i] - scale * (u[i - 1] - 2 * u[i] + u[i + 1]);
    out[m - 1] = u[m - 1];
}}
"""


def heat1d(m: int = 100, t_end: float = 0.1) -> GalleryProblem:
    """Heat in a rod by the method of lines, its ends held at zero by algebraic equations: index 1.

    The reference solves the equations on the grid, not the partial differential equation: each
    sine of the starting profile decays with its own eigenvalue of the difference operator.

    Parameters
    ----------
    m : int
        Grid points, boundary included; more than 10 to resolve the starting profile.
    t_end : float
        End of the interval.

    Examples
    --------
    >>> from tether import gallery
    >>> problem = gallery.heat1d(m=50)
    >>> problem.n, problem.algebraic
    (50, (0, 49))
    """
    highest = max(_MODES)
    if m <= highest + 1:
        raise ValueError(f"m must be at least {highest + 2} to resolve the profile, got {m}")
    dx = 1.0 / (m - 1)
    shapes = np.sin(np.outer(list(_MODES), np.pi * np.linspace(0.0, 1.0, m)))
    shapes[:, [0, -1]] = 0.0  # sin(k pi) is not quite zero in floating point
    amplitudes = np.array(list(_MODES.values()))
    rates = np.array([(2 / dx * math.sin(k * math.pi * dx / 2)) ** 2 for k in _MODES])

    def fun(t: float, u: FloatArray, up: FloatArray) -> FloatArray:
        out = np.zeros(m)
        out[0] = u[0]
        out[1:-1] = up[1:-1] - (u[:-2] - 2 * u[1:-1] + u[2:]) / dx**2
        out[-1] = u[-1]
        return out

    @functools.cache
    def matrices() -> tuple[FloatArray, FloatArray]:
        inner = np.ones(m)
        inner[[0, -1]] = 0.0
        f_y = np.diag(np.where(inner == 1.0, 2 / dx**2, 1.0))
        rows = np.arange(1, m - 1)
        f_y[rows, rows - 1] = f_y[rows, rows + 1] = -1 / dx**2
        f_yp = np.diag(inner)
        f_y.flags.writeable = f_yp.flags.writeable = False
        return f_y, f_yp

    def jac(t: float, u: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        return matrices()

    def exact(t: float) -> FloatArray:
        return amplitudes * np.exp(-rates * t) @ shapes

    return GalleryProblem(
        name="heat1d",
        title="Heat in a rod",
        description=(
            "A rod cools at its ends. Every point of the grid is an unknown; those at the ends "
            "have algebraic equations."
        ),
        names=tuple(f"u{k}" for k in range(m)),
        units=("K",) * m,
        picture=(f"u{m // 20}", f"u{m // 4}", f"u{m // 2}"),
        reference_digits=15,
        expected_digits=6,
        fun=fun,
        t_span=(0.0, t_end),
        y0=exact(0.0),
        yp0=-(amplitudes * rates) @ shapes,
        reference=exact(t_end),
        source="exact: sines decaying on the grid",
        atol_scale=np.ones(m),
        algebraic=(0, m - 1),
        jac=jac,
        exact=exact,
        c_source=_heat_c(m),
        vectorised=True,
        bandwidth=1,
    )
