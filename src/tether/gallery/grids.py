"""Partial differential equations by the method of lines, small by default."""

import math

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem
from tether.models import Cavity


def heat2d(m: int = 12) -> GalleryProblem:
    """Heat in a square plate by lines, its rim held at zero by algebraic equations: index 1.

    Parameters
    ----------
    m : int
        Grid points along each side, rim included, at least 5: m * m unknowns.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.heat2d(m=6).n
    36
    """
    if m < 5:
        raise ValueError(f"m must be at least 5, got {m!r}")
    dx = 1.0 / (m - 1)
    place = np.arange(m) * dx
    modes = {(1, 1): 1.0, (2, 1): 0.5, (3, 2): 0.3}
    shapes = {
        (j, k): np.outer(np.sin(j * math.pi * place), np.sin(k * math.pi * place)) for j, k in modes
    }
    rates = {
        (j, k): sum((2 - 2 * math.cos(i * math.pi * dx)) / dx**2 for i in (j, k)) for j, k in modes
    }
    rim = np.ones((m, m), dtype=bool)
    rim[1:-1, 1:-1] = False

    def fun(t: float, y: FloatArray, yp: FloatArray) -> FloatArray:
        u, up = y.reshape(m, m), yp.reshape(m, m)
        out = 1.0 * u
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        out[1:-1, 1:-1] = up[1:-1, 1:-1] - (around - 4 * u[1:-1, 1:-1]) / dx**2
        return out.ravel()

    def exact(t: float) -> FloatArray:
        found = sum(a * math.exp(-rates[k] * t) * shapes[k] for k, a in modes.items())
        return np.where(rim, 0.0, found).ravel()

    slopes = -sum(a * rates[k] * shapes[k] for k, a in modes.items())
    return GalleryProblem(
        name="heat2d",
        title="Heat in a plate",
        description=(
            "A square plate cools at its rim. Every point of the grid is an unknown; those on the "
            "rim have algebraic equations."
        ),
        fun=fun,
        t_span=(0.0, 0.05),
        y0=exact(0.0),
        yp0=np.where(rim, 0.0, slopes).ravel(),
        names=tuple(f"u{i}_{k}" for i in range(m) for k in range(m)),
        units=("K",) * m * m,
        picture=tuple(f"u{m // 2}_{k}" for k in range(1, m // 2 + 1)),
        reference=exact(0.05),
        source="exact: sines decaying on the grid",
        reference_digits=15,
        expected_digits=6,
        atol_scale=np.ones(m * m),
        algebraic=tuple(np.flatnonzero(rim.ravel()).tolist()),
        exact=exact,
        vectorised=True,
        bandwidth=m,
    )


# By number of inner points: u and v at a quarter and in the middle of the interval, at the end.
_BRUSSELATOR_ENDS: dict[int, tuple[float, ...]] = {
    19: (0.5268368998397, 0.4300111541336, 3.587201016088, 3.690719354528),
    39: (0.5272487456137, 0.4298935610169, 3.585132388103, 3.688777365526),
}


def brusselator(m: int = 19) -> GalleryProblem:
    """Brusselator with diffusion on an interval by lines, with fixed ends: index 1.

    Parameters
    ----------
    m : int
        Inner grid points; 19 and 39 have a reference.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.brusselator().n
    42
    """
    if m < 3:
        raise ValueError(f"m must be at least 3, got {m!r}")
    points = m + 2
    strength = 0.02 * (m + 1) ** 2
    x = np.linspace(0.0, 1.0, points)

    def fun(t: float, y: FloatArray, yp: FloatArray) -> FloatArray:
        u, v = y[:points], y[points:]
        inner = slice(1, -1)
        reaction = u[inner] ** 2 * v[inner]
        flow_u, flow_v = (
            strength * (w[:-2] - 2 * w[inner] + w[2:]) for w in (u, v)
        )
        return np.concatenate(
            [
                [u[0] - 1.0],
                yp[1 : points - 1] - (1.0 + reaction - 4.0 * u[inner] + flow_u),
                [u[-1] - 1.0, v[0] - 3.0],
                yp[points + 1 : -1] - (3.0 * u[inner] - reaction + flow_v),
                [v[-1] - 3.0],
            ]
        )

    quarter, middle = (m + 1) // 4, (m + 1) // 2
    y0 = np.concatenate([1.0 + np.sin(2 * math.pi * x), np.full(points, 3.0)])
    y0[points - 1] = 1.0
    return GalleryProblem(
        name="brusselator",
        title="Brusselator with diffusion",
        description=(
            "Two substances react in a cycle and diffuse along an interval with fixed values at "
            "its ends. The middle keeps oscillating."
        ),
        fun=fun,
        t_span=(0.0, 10.0),
        y0=y0,
        names=(*(f"u{k}" for k in range(points)), *(f"v{k}" for k in range(points))),
        units=("",) * 2 * points,
        picture=(f"u{middle}", f"v{middle}"),
        reference=np.array(_BRUSSELATOR_ENDS.get(m, [math.nan] * 4)),
        compare=(quarter, middle, points + quarter, points + middle),
        source="SciPy's LSODA for the inner points, tolerance 1e-12",
        reference_digits=10,
        expected_digits=5,
        atol_scale=np.ones(2 * points),
        algebraic=(0, points - 1, points, 2 * points - 1),
        vectorised=True,
    )


# By points along a side: u and v in the corner at the origin and in the middle, at the end.
_BRUSSELATOR_2D_ENDS: dict[int, tuple[float, ...]] = {
    7: (3.064366344455, 0.7075386476318, 3.082870454208, 5.61978440228),
}


def brusselator2d(m: int = 7) -> GalleryProblem:
    """Brusselator with diffusion in an insulated square by lines: index 0.

    Parameters
    ----------
    m : int
        Grid points along each side: 2 * m * m unknowns; 7 has a reference.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.brusselator2d().n
    98
    """
    if m < 3:
        raise ValueError(f"m must be at least 3, got {m!r}")
    strength = 0.002 * (m - 1) ** 2
    # neighbours, mirrored at the rim
    before = np.abs(np.arange(m) - 1)
    after = m - 1 - np.abs(m - 2 - np.arange(m))

    def spread(w: FloatArray) -> FloatArray:
        return strength * (w[before] + w[after] + w[:, before] + w[:, after] - 4 * w)

    def fun(t: float, y: FloatArray, yp: FloatArray) -> FloatArray:
        u, v = y.reshape(2, m, m)
        du, dv = yp.reshape(2, m, m)
        reaction = u * u * v
        rows_u = du - (1.0 + reaction - 4.4 * u + spread(u))
        rows_v = dv - (3.4 * u - reaction + spread(v))
        return np.concatenate([rows_u.ravel(), rows_v.ravel()])

    x = np.linspace(0.0, 1.0, m)
    start = 22 * x * (1 - x) ** 1.5, 27 * x * (1 - x) ** 1.5
    u0, v0 = np.tile(start[0], (m, 1)), np.tile(start[1][:, None], (1, m))
    middle = m // 2 * m + m // 2
    return GalleryProblem(
        name="brusselator2d",
        title="Brusselator in a square",
        description=(
            "The same reaction in an insulated square, starting with u that varies along one side "
            "and v along the other."
        ),
        fun=fun,
        t_span=(0.0, 7.5),
        y0=np.concatenate([u0.ravel(), v0.ravel()]),
        names=tuple(f"{w}{i}_{k}" for w in "uv" for i in range(m) for k in range(m)),
        units=("",) * 2 * m * m,
        picture=("u0_0", f"u{m // 2}_{m // 2}", f"v{m // 2}_{m // 2}"),
        reference=np.array(_BRUSSELATOR_2D_ENDS.get(m, [math.nan] * 4)),
        compare=(0, middle, m * m, m * m + middle),
        source="SciPy's LSODA, tolerance 1e-12",
        reference_digits=10,
        expected_digits=4,
        atol_scale=np.ones(2 * m * m),
        index=0,
        vectorised=True,
    )


# By cells along a side: values at the end in the components that `compare` names.
_CAVITY_ENDS: dict[int, tuple[float, ...]] = {
    5: (-0.06826536250106, 0.3839871694602, 0.1108893677498, -0.1467107258282),
}


def driven_cavity(m: int = 5) -> GalleryProblem:
    """Flow in a box whose lid moves, incompressible, on a staggered grid: index 2.

    Parameters
    ----------
    m : int
        Cells along each side: m (3 m - 2) unknowns; 5 has a reference.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.driven_cavity().n
    65
    """
    if m < 3:
        raise ValueError(f"m must be at least 3, got {m!r}")
    faces = m * (m - 1)
    n = 2 * faces + m * m
    return GalleryProblem(
        name="driven-cavity",
        title="Lid-driven cavity",
        description=(
            "The lid of a box starts to move and drags an incompressible fluid along (Navier and "
            "Stokes, Reynolds number 100). Pressure has no equation of its own: it is whatever "
            "makes the flow into every cell equal to the flow out of it."
        ),
        fun=Cavity(m, m, viscosity=0.01).index_2().fun,
        t_span=(0.0, 5.0),
        y0=np.zeros(n),
        names=(
            *(f"u{i}_{k}" for i in range(1, m) for k in range(m)),
            *(f"v{i}_{k}" for i in range(m) for k in range(1, m)),
            *(f"p{i}_{k}" for i in range(m) for k in range(m)),
        ),
        units=("m/s",) * 2 * faces + ("Pa",) * m * m,
        picture=tuple(f"u{m // 2}_{k}" for k in range(m)),
        reference=np.array(_CAVITY_ENDS.get(m, [math.nan] * 4)),
        compare=(m // 2 * m, m // 2 * m + m - 1, faces + m // 2, 2 * faces - 1 - m // 2),
        source="SciPy's DOP853 on velocities without divergence (null space), tolerance 1e-12",
        reference_digits=10,
        expected_digits=6,
        atol_scale=np.ones(n),
        algebraic=tuple(range(2 * faces, n)),
        index=2,
        vectorised=True,
    )
