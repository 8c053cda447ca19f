"""Points that repel each other on a sphere."""

import math

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem

POINTS = 20

# Rings of points at the start: number of points, longitude, latitude, number of the first point.
_RINGS = (
    (3, math.pi / 13, 3 * math.pi / 8, 1),
    (7, math.pi / 29, math.pi / 8, 1),
    (6, math.pi / 7, -2 * math.pi / 15, 1),
    (4, math.pi / 17, -3 * math.pi / 10, 0),
)

FEKETE_C = f"""\
enum {{ N = {POINTS} }};
void residual(double t, const double *y, const double *yp, double *out)
{{
    const double *p = y, *v = y + 3 * N, *lam = y + 6 * N, *mu = y + 7 * N;
    for (int i = 0; i < N; i++) {{
        double force[3] = {{0, 0, 0}}, radius = 0, radial = 0;
        for (int j = 0; j < N; j++) {{
            if (j == i)
                continue;
            double d[3], square = 0;
            for (int k = 0; k < 3; k++) {{
                d[k] = p[3 * i + k] - p[3 * j + k];
                square += d[k] * d[k];
            }}
            for (int k = 0; k < 3; k++)
                force[k] += d[k] / square;
        }}
        for (int k = 0; k < 3; k++) {{
            int a = 3 * i + k, b = 3 * N + a;
            out[a] = yp[a] - v[a] - 2 * mu[i] * p[a];
            out[b] = yp[b] + 0.5 * v[a] - force[k] - 2 * lam[i] * p[a];
            radius += p[a] * p[a];
            radial += p[a] * v[a];
        }}
        out[6 * N + i] = radius - 1;
        out[7 * N + i] = 2 * radial;
    }}
}}
"""

_REFERENCE = """
-0.4070263380333202 0.3463758772791802 0.8451942450030429
0.7752934752521549e-1 -0.2628662719972299 0.9617122871829146
0.7100577833343567 0.1212948055586120 0.6936177005172217
0.2348267744557627 0.7449277976923311 0.6244509285956391
-0.4341114738782885 0.8785430442262876 0.1992720444237660
-0.9515059600312596 0.2203508762787005 0.2146669498274008
-0.6385191643609878 -0.4310833259390688 0.6375425027722121
-0.1464175087914336 -0.9380871635228862 0.3139337298744690
0.5666974065069942 -0.6739221885076542 0.4740073135462156
0.9843259538440293 -0.1696995357819996 -0.4800504290609090e-1
0.1464175087914331 0.9380871635228875 -0.3139337298744656
-0.7092757549979014 0.5264062637139616 -0.4688542938854929
-0.8665731819284478 -0.4813878059756024 -0.1315929352982178
-0.2347897778700538 -0.8594340408013130 -0.4541441287957579
0.5530976940074118 -0.7674370265615124 -0.3242273140037833
0.7711050969896927 0.6357041816577034 0.3573685519777001e-1
0.7103951209379591 0.2403570431280519 -0.6614886725910596
-0.3038208738735660e-1 0.4501923293640461 -0.8924145871442046
-0.5772996158107093 -0.1766763414971813 -0.7971892020969544
0.2414481766969039 -0.3416456818373135 -0.9082846503446250
"""


def _fekete(t: float, y: FloatArray, yp: FloatArray) -> FloatArray:
    # one row per point
    p, v = y[:60].reshape(POINTS, 3), y[60:120].reshape(POINTS, 3)
    lam, mu = y[120:140, None], y[140:, None]
    apart = p[:, None, :] - p[None, :, :]
    square = np.sum(apart * apart, axis=2)
    np.fill_diagonal(square, 1.0)  # a point does not act on itself
    force = np.sum(apart / square[:, :, None], axis=1)
    return np.concatenate(
        [
            yp[:60] - (v + 2 * mu * p).ravel(),
            yp[60:120] - (force - 0.5 * v + 2 * lam * p).ravel(),
            np.sum(p * p, axis=1) - 1,
            2 * np.sum(p * v, axis=1),
        ]
    )


def _start() -> tuple[FloatArray, FloatArray]:
    """Points at rest, multipliers that keep their accelerations tangential, and slopes."""
    y, zero = np.zeros(8 * POINTS), np.zeros(8 * POINTS)
    y[:60] = [
        coordinate
        for count, longitude, latitude, first in _RINGS
        for turn in (2 * math.pi * (first + i) / count + longitude for i in range(count))
        for coordinate in (
            math.cos(turn) * math.cos(latitude),
            math.sin(turn) * math.cos(latitude),
            math.sin(latitude),
        )
    ]
    p = y[:60].reshape(POINTS, 3)
    force = -_fekete(0.0, y, zero)[60:120].reshape(POINTS, 3)
    y[120:140] = -0.5 * np.sum(p * force, axis=1)
    yp = zero.copy()
    yp[:120] = -_fekete(0.0, y, zero)[:120]
    return y, yp


def fekete() -> GalleryProblem:
    """Twenty points on a sphere that repel each other and come to rest far apart: index 2.

    Unknowns are positions and velocities of all points and two multipliers for each, in the form of
    Gear, Gupta and Leimkuhler (1985): every point stays on the sphere, and its velocity stays
    tangential. The motion is damped; at rest the product of all distances is large.

    Examples
    --------
    >>> from tether import gallery
    >>> problem = gallery.fekete()
    >>> problem.n, len(problem.algebraic)
    (160, 40)
    """
    y0, yp0 = _start()
    return GalleryProblem(
        name="fekete",
        title="Fekete points",
        description="Twenty points repel each other on the unit sphere until they rest.",
        names=(
            *(f"{kind}{k}{axis}" for kind in "pv" for k in range(1, POINTS + 1) for axis in "xyz"),
            *(f"{kind}{k}" for kind in ("lam", "mu") for k in range(1, POINTS + 1)),
        ),
        units=("",) * (8 * POINTS),
        picture=("p1x", "p1y", "p1z"),
        reference_digits=12,
        expected_digits=6,
        fun=_fekete,
        t_span=(0.0, 1000.0),
        y0=y0,
        yp0=yp0,
        reference=np.array(_REFERENCE.split(), dtype=float),
        source="Test Set for IVP Solvers, fekete (RADAU5, tolerance 1e-12), positions",
        atol_scale=np.ones(8 * POINTS),
        compare=tuple(range(3 * POINTS)),
        algebraic=tuple(range(6 * POINTS, 8 * POINTS)),
        index=2,
        c_source=FEKETE_C,
        vectorised=True,
    )
