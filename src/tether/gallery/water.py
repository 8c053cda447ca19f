"""Water in a network of pipes."""

import math

import numpy as np

from tether.gallery.base import GalleryProblem, Vector

# Pipes, each from one node to another; nodes are numbered as in the Test Set.
PIPES = (
    (1, 2), (2, 3), (2, 6), (3, 4), (3, 5), (4, 5), (5, 10), (6, 5), (7, 4), (7, 8), (8, 5),
    (8, 10), (9, 8), (11, 9), (11, 12), (12, 7), (12, 8), (13, 11),
)
# The first two nodes are tanks with a free surface, the others have no volume.
NODES = (5, 8, 1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 13)
VISCOSITY, DENSITY, GRAVITY = 1.31e-6, 1e3, 9.8
LENGTH, DIAMETER, ROUGHNESS, SURFACE = 1e3, 1.0, 2e-4, 200.0
AREA = math.pi * DIAMETER**2 / 4
CRITICAL = 2.3e3                   # Reynolds number above which a flow is turbulent


def _supply(node: int, t: float) -> float:
    """Water that flows into the network at a node, minus what is taken out."""
    hours = t / 3600.0
    if node in (1, 13):
        return (1.0 - math.cos(math.exp(-hours) - 1.0)) / (200.0 if node == 1 else 80.0)
    if node == 10:
        return -(hours**2) * (3.0 * hours**2 - 92.0 * hours + 720.0) / 1e6
    return 0.0


def _water_tubes(t: float, y: Vector, yp: Vector) -> list[float]:
    flows, frictions, pressures = y[:18], y[18:36], dict(zip(NODES, y[36:], strict=True))
    motion, colebrook = [], []
    surplus = {node: _supply(node, t) for node in NODES}
    for k, (here, there) in enumerate(PIPES):
        flow, root = flows[k], math.sqrt(frictions[k])
        reynolds = abs(flow) * DIAMETER / (VISCOSITY * AREA)
        if reynolds > CRITICAL:
            loss = frictions[k] * DENSITY * LENGTH * flow**2 / (AREA**2 * DIAMETER)
        else:
            loss = 32.0 * VISCOSITY * DENSITY * LENGTH * flow / (AREA * DIAMETER**2)
        motion.append(
            DENSITY * LENGTH / AREA * yp[k] - (pressures[here] - pressures[there] - loss)
        )
        colebrook.append(
            1.0 / root - 1.74 + 2.0 * math.log10(
                2.0 * ROUGHNESS / DIAMETER + 18.7 / (max(reynolds, CRITICAL) * root)
            )
        )
        surplus[here] = surplus[here] - flow
        surplus[there] = surplus[there] + flow
    capacity = SURFACE / (DENSITY * GRAVITY)
    balance = [
        (capacity * yp[36 + k] if k < 2 else 0.0) - surplus[node] for k, node in enumerate(NODES)
    ]
    return [*motion, *colebrook, *balance]


_FLOWS = (
    0.2298488296477430e-2, 0.1188984650746585e-2, 0.1109503645730845e-2, 0.1589620100314825e-3,
    0.1030022640715102e-2, 0.8710606306836165e-3, 0.3243571480903489e-2, 0.1109503645730845e-2,
    0.7120986206521341e-3, 0.6414613963833099e-3, 0.9416978549524347e-3, 0.3403428519096511e-2,
    0.2397639310739395e-2, 0.2397639310739395e-2, 0.3348581430454180e-2, 0.1353560017035444e-2,
    0.1995021413418736e-2, 0.5746220741193575e-2,
)
_LAMINAR = 0.4751940452918529e-1                   # friction at the critical Reynolds number
_FRICTIONS = (
    *(_LAMINAR,) * 6, 0.4311196778792902e-1, *(_LAMINAR,) * 4, 0.4249217433601160e-1,
    0.4732336439609648e-1, 0.4732336439609648e-1, 0.4270002118868241e-1, _LAMINAR, _LAMINAR,
    0.3651427026675656e-1,
)
_PRESSURES = (
    111126.8591478108, 111127.0045592387, 111127.1078730254, 111126.9851929858, 111126.9255355337,
    111126.9322658045, 111126.9221703983, 111127.0121140691, 111127.4419515807, 111125.5158881087,
    111127.8793439227, 111127.0995171642, 111129.8338971779,
)


def water_tubes() -> GalleryProblem:
    """Water network of 18 pipes, two of its 13 nodes with a tank: index 2.

    Examples
    --------
    >>> from tether import gallery
    >>> problem = gallery.water_tubes()
    >>> problem.n, problem.index
    (49, 2)
    """
    pipes = [f"{here}_{there}" for here, there in PIPES]
    return GalleryProblem(
        name="water-tubes",
        title="Water tube system",
        description=(
            "Water flows for 17 hours through 18 pipes of a kilometre each, laminar or turbulent "
            "(Newton's law, Colebrook's friction), starting at rest. Since nodes have no volume, "
            "pressures follow from the slopes of the flows; losses jump where a flow becomes "
            "turbulent."
        ),
        fun=_water_tubes,
        t_span=(0.0, 17 * 3600.0),
        y0=np.array([0.0] * 18 + [_LAMINAR] * 18 + [109800.0] * 13),
        names=(
            *(f"flow_{pipe}" for pipe in pipes), *(f"friction_{pipe}" for pipe in pipes),
            *(f"p_{node}" for node in NODES),
        ),
        units=("m3/s",) * 18 + ("",) * 18 + ("Pa",) * 13,
        picture=("flow_1_2", "flow_3_4", "flow_5_10", "flow_13_11"),
        reference=np.array([*_FLOWS, *_FRICTIONS, *_PRESSURES]),
        source="Test Set for IVP Solvers, water; SciPy's LSODA for an ODE agrees to 7 digits",
        reference_digits=7,
        expected_digits=3,
        atol_scale=np.array([1e-3] * 18 + [0.1] * 18 + [1e5] * 13),
        algebraic=(*range(18, 36), *range(38, 49)),
        index=2,
    )
