"""Mechanisms as they are first written down: equations of motion and position constraints.

Nearly all have index 3, and no constraint is differentiated. They test the analysis and reduction
of the index: each comes with the results expected of these, with a consistent start, and with a
rough one such as a user might guess.
"""

import math
from dataclasses import dataclass

import numpy as np

from tether.gallery.base import FloatArray, Residual, Vector
from tether.gallery.fekete import POINTS, fekete

__all__ = [
    "RawMechanism",
    "closed_chain",
    "double_pendulum",
    "duplicated_pendulum",
    "fekete_index_3",
    "parallel_cranks",
    "prescribed",
    "slider_crank",
]

GRAVITY = 9.81


@dataclass(frozen=True, eq=False, kw_only=True)
class RawMechanism:
    """A system of high index, as written.

    Attributes
    ----------
    name : str
        Name of the mechanism.
    fun : callable
        Residual ``fun(t, y, yp)``.
    y0 : ndarray
        Consistent start, apart from the multipliers, which are zero.
    rough : ndarray
        Start that satisfies the constraints only roughly.
    index : int
        Differentiation index.
    dof : int
        Number of free initial values.
    constraints : int
        Number of independent constraints on positions and velocities, given and hidden.
    t_end : float
        End of a reasonable time interval from 0.
    """

    name: str
    fun: Residual
    y0: FloatArray
    rough: FloatArray
    index: int
    dof: int
    constraints: int
    t_end: float = 1.0

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.y0.size


def _double_pendulum(t: float, y: Vector, yp: Vector) -> list[float]:
    x1, z1, x2, z2, u1, w1, u2, w2, lam1, lam2 = y
    dx, dz = x2 - x1, z2 - z1
    return [
        yp[0] - u1,
        yp[1] - w1,
        yp[2] - u2,
        yp[3] - w2,
        2 * yp[4] + lam1 * x1 - lam2 * dx,
        2 * yp[5] + lam1 * z1 - lam2 * dz + 2 * GRAVITY,
        yp[6] + lam2 * dx,
        yp[7] + lam2 * dz + GRAVITY,
        x1**2 + z1**2 - 1,
        dx**2 + dz**2 - 1,
    ]


def double_pendulum() -> RawMechanism:
    """Two point masses on rods of length 1, in Cartesian coordinates.

    Examples
    --------
    >>> from tether.gallery.raw_mechanisms import double_pendulum
    >>> problem = double_pendulum()
    >>> problem.fun(0.0, problem.y0, [0.0] * 10)[8:]
    [np.float64(0.0), np.float64(0.0)]
    """
    y0 = np.array([0.6, -0.8, 1.6, -0.8, 0, 0, 0, 0, 0, 0])
    rough = np.array([0.65, -0.8, 1.7, -0.75, 0.1, 0, 0, 0, 0, 0])
    return RawMechanism(
        name="double pendulum", fun=_double_pendulum, y0=y0, rough=rough, index=3, dof=4,
        constraints=4, t_end=2.0,
    )


CRANK, ROD = 0.2, 0.5


def _slider_crank(t: float, y: Vector, yp: Vector) -> list[float]:
    # angle of the crank, centre and angle of the rod, position of the slider
    phi, x, z, psi, s, v_phi, v_x, v_z, v_psi, v_s, l1, l2, l3, l4 = y
    inertia, mass, rod_inertia, slider = 0.02, 1.0, 0.02, 2.0
    half = ROD / 2
    sin_phi, cos_phi, sin_psi, cos_psi = (
        math.sin(phi), math.cos(phi), math.sin(psi), math.cos(psi)
    )
    return [
        yp[0] - v_phi,
        yp[1] - v_x,
        yp[2] - v_z,
        yp[3] - v_psi,
        yp[4] - v_s,
        inertia * yp[5] - CRANK * sin_phi * l1 + CRANK * cos_phi * l2 - 0.1,
        mass * yp[6] - l1 + l3,
        mass * yp[7] - l2 + l4 + mass * GRAVITY,
        rod_inertia * yp[8] - half * (sin_psi * (l1 + l3) - cos_psi * (l2 + l4)),
        slider * yp[9] - l3,
        CRANK * cos_phi - (x - half * cos_psi),
        CRANK * sin_phi - (z - half * sin_psi),
        x + half * cos_psi - s,
        z + half * sin_psi,
    ]


def slider_crank() -> RawMechanism:
    """Crank, connecting rod and slider, driven by a constant torque.

    Examples
    --------
    >>> from tether.gallery.raw_mechanisms import slider_crank
    >>> problem = slider_crank()
    >>> problem.n, problem.dof
    (14, 2)
    """
    phi = 0.7
    psi = -math.asin(CRANK * math.sin(phi) / ROD)
    slider = CRANK * math.cos(phi) + ROD * math.cos(psi)
    x, z = CRANK * math.cos(phi) + ROD / 2 * math.cos(psi), CRANK * math.sin(phi) / 2
    y0 = np.array([phi, x, z, psi, slider, *[0.0] * 9])
    # turning at 1 rad/s
    v_psi = -CRANK * math.cos(phi) / (ROD * math.cos(psi))
    y0[5:10] = [
        1.0,
        -CRANK * math.sin(phi) - ROD / 2 * math.sin(psi) * v_psi,
        CRANK * math.cos(phi) / 2,
        v_psi,
        -CRANK * math.sin(phi) - ROD * math.sin(psi) * v_psi,
    ]
    rough = np.array([0.7, 0.4, 0.06, -0.25, 0.6, 1.0, 0, 0, 0, 0, 0, 0, 0, 0])
    return RawMechanism(
        name="slider-crank", fun=_slider_crank, y0=y0, rough=rough, index=3, dof=2, constraints=8,
        t_end=3.0,
    )


def closed_chain(links: int = 5) -> RawMechanism:
    """Chain of rods of length 1 between two fixed points, with masses at the joints.

    Parameters
    ----------
    links : int
        Number of rods, at least 3.

    Examples
    --------
    >>> from tether.gallery.raw_mechanisms import closed_chain
    >>> [(closed_chain(links).n, closed_chain(links).dof) for links in (5, 10)]
    [(21, 6), (46, 16)]
    """
    joints = links - 1
    step = 2.0 / links  # angle per rod: the chain starts as an arc
    radius = 0.5 / math.sin(step / 2)
    angles = step * (np.arange(links + 1) - links / 2)
    arc = radius * np.column_stack([np.sin(angles), -np.cos(angles)])
    first, last = arc[0], arc[-1]

    def fun(t: float, y: FloatArray, yp: FloatArray) -> FloatArray:
        position = y[: 2 * joints].reshape(joints, 2)
        velocity = y[2 * joints : 4 * joints]
        tension = y[4 * joints :]
        rods = np.diff(np.vstack([first, position, last]), axis=0)
        pull = tension[:, None] * rods
        acceleration = yp[2 * joints : 4 * joints].reshape(joints, 2)
        balance = acceleration - np.diff(pull, axis=0) + np.array([0.0, GRAVITY])
        return np.concatenate(
            [yp[: 2 * joints] - velocity, balance.ravel(), np.sum(rods**2, axis=1) - 1.0]
        )

    y0 = np.zeros(4 * joints + links)
    y0[: 2 * joints] = arc[1:-1].ravel()
    rough = y0.copy()
    rough[: 2 * joints] = np.round(rough[: 2 * joints], 1)
    rough[2 * joints : 4 * joints] = 0.1
    return RawMechanism(
        name=f"closed chain of {links} links", fun=fun, y0=y0, rough=rough, index=3,
        dof=2 * (links - 2), constraints=2 * links,
    )


def _fekete_index_3(t: float, y: FloatArray, yp: FloatArray) -> FloatArray:
    p, v = y[:60].reshape(POINTS, 3), y[60:120].reshape(POINTS, 3)
    lam = y[120:, None]
    apart = p[:, None, :] - p[None, :, :]
    square = np.sum(apart * apart, axis=2)
    np.fill_diagonal(square, 1.0)  # a point does not act on itself
    force = np.sum(apart / square[:, :, None], axis=1)
    return np.concatenate(
        [
            yp[:60] - v.ravel(),
            yp[60:120] - (force - 0.5 * v + 2 * lam * p).ravel(),
            np.sum(p * p, axis=1) - 1,
        ]
    )


def fekete_index_3() -> RawMechanism:
    """Twenty points that repel each other on a sphere, with the position constraints only.

    Examples
    --------
    >>> from tether.gallery.raw_mechanisms import fekete_index_3
    >>> fekete_index_3().n
    140
    """
    y0 = fekete().y0[:140].copy()
    y0[120:] = 0.0
    rough = np.concatenate([np.round(y0[:60], 2), np.full(60, 0.01), np.zeros(20)])
    return RawMechanism(
        name="fekete, index 3", fun=_fekete_index_3, y0=y0, rough=rough, index=3, dof=80,
        constraints=40, t_end=10.0,
    )


def _duplicated_pendulum(t: float, y: Vector, yp: Vector) -> list[float]:
    x, z, u, w, lam, mu = y
    force = lam + 2 * mu
    return [
        yp[0] - u,
        yp[1] - w,
        yp[2] + force * x,
        yp[3] + force * z + GRAVITY,
        x * x + z * z - 1,
        2 * (x * x + z * z - 1),
    ]


def duplicated_pendulum() -> RawMechanism:
    """Pendulum whose length is prescribed twice: the two multipliers are not unique.

    Examples
    --------
    >>> from tether.gallery.raw_mechanisms import duplicated_pendulum
    >>> duplicated_pendulum().constraints
    2
    """
    return RawMechanism(
        name="duplicated constraint", fun=_duplicated_pendulum,
        y0=np.array([0.6, -0.8, 0, 0, 0, 0]), rough=np.array([0.6, -0.7, 1.0, 0, 0, 0]),
        index=3, dof=2, constraints=2,
    )


def _parallel_cranks(t: float, y: Vector, yp: Vector) -> list[float]:
    x, z, turn, u, w, spin, *tensions = y
    balance = [yp[3], yp[4] + GRAVITY, 0.1 * yp[5]]
    lengths = []
    for place, tension in zip((-1.0, 0.25, 1.0), tensions, strict=True):
        arm_x, arm_z = place * math.cos(turn), place * math.sin(turn)
        dx, dz = x + arm_x - place, z + arm_z
        lengths.append(dx * dx + dz * dz - 1)
        balance[0] += tension * dx
        balance[1] += tension * dz
        balance[2] += tension * (dz * arm_x - dx * arm_z)
    return [yp[0] - u, yp[1] - w, yp[2] - spin, *balance, *lengths]


def parallel_cranks() -> RawMechanism:
    """Platform on three parallel cranks of length 1: one of the three constraints is redundant.

    Only on solutions are the constraints dependent: neither their structure nor their Jacobian at a
    general point shows it.

    Examples
    --------
    >>> from tether.gallery.raw_mechanisms import parallel_cranks
    >>> parallel_cranks().dof
    2
    """
    return RawMechanism(
        name="parallel cranks", fun=_parallel_cranks,
        y0=np.array([0.6, -0.8, 0, 0, 0, 0, 0, 0, 0]),
        rough=np.array([0.6, -0.79, 0, 0.1, 0, 0, 0, 0, 0]),
        index=3, dof=2, constraints=4,
    )


def prescribed(index: int = 3) -> RawMechanism:
    """Motion x_1 = sin t whose derivatives are unknowns: x_k' = x_(k+1).

    Parameters
    ----------
    index : int
        The index, at least 2; the last unknown is the derivative of sin t of order index - 1.

    Examples
    --------
    >>> from tether.gallery.raw_mechanisms import prescribed
    >>> prescribed(4).y0
    array([ 0.,  1.,  0., -1.])
    """

    def fun(t: float, y: FloatArray, yp: FloatArray) -> list[float]:
        return [*(yp[k] - y[k + 1] for k in range(index - 1)), y[0] - math.sin(t)]

    y0 = np.array([(0.0, 1.0, 0.0, -1.0)[k % 4] for k in range(index)])
    return RawMechanism(
        name=f"prescribed motion, index {index}", fun=fun, y0=y0, rough=np.full(index, 0.1),
        index=index, dof=0, constraints=index - 1,
    )
