"""Discretised models as users write them in NumPy, in any size: for `benchmarks/arrays.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MODELS", "Model", "brusselator"]


@dataclass
class Model:
    """A residual, where it begins, how long it runs, and which unknowns have a slope."""

    name: str
    fun: Callable[..., Any]
    t_end: float
    y0: np.ndarray
    band: int = 0                     # where a peer can use one
    algebraic: tuple[int, ...] = ()


def brusselator(m: int) -> Model:
    """Two reacting species on a square of m by m cells, no flux at the edges."""
    a, b, diffusion = 1.0, 3.4, 0.002 * m**2

    def fun(t: float, y: Any, yp: Any) -> Any:
        u, v = y.reshape(2, m, m)

        def laplacian(w: Any) -> Any:
            p = np.pad(w, 1, mode="edge")
            return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * w

        reaction = u * u * v
        du = a + reaction - (b + 1.0) * u + diffusion * laplacian(u)
        dv = b * u - reaction + diffusion * laplacian(v)
        return yp - np.concatenate([du.ravel(), dv.ravel()])

    x = np.linspace(0.0, 1.0, m)
    u = np.broadcast_to(22.0 * (x * (1.0 - x)) ** 1.5, (m, m))
    v = np.broadcast_to((27.0 * (x * (1.0 - x)) ** 1.5)[:, None], (m, m))
    return Model(f"Brusselator, {m} x {m}", fun, 1.0, np.concatenate([u.ravel(), v.ravel()]))


def heat(m: int) -> Model:
    """Heat on a square, edges at zero."""
    width = 1.0 / (m + 1)

    def fun(t: float, y: Any, yp: Any) -> Any:
        u = np.pad(y.reshape(m, m), 1)
        flux = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
        return yp - flux.ravel() / width**2

    x = np.sin(np.pi * width * np.arange(1, m + 1))
    return Model(f"heat, {m} x {m}", fun, 0.1, np.outer(x, x).ravel())


def burgers(n: int) -> Model:
    """Burgers' equation on a line: a wave that steepens."""
    width, viscosity = 1.0 / (n + 1), 5e-3

    def fun(t: float, y: Any, yp: Any) -> Any:
        u = np.concatenate(([0.0], y, [0.0]))
        convection = u[1:-1] * (u[2:] - u[:-2]) / (2.0 * width)
        return yp + convection - viscosity * (u[2:] - 2.0 * u[1:-1] + u[:-2]) / width**2

    x = width * np.arange(1, n + 1)
    return Model(f"Burgers, {n}", fun, 0.5, np.sin(2 * np.pi * x) + 0.5 * np.sin(np.pi * x), 1)


def gas_network(cells: int) -> Model:
    """Gas in a main that feeds two branches: pressures and flows, joined without storage."""
    n, friction = cells, 0.2
    size = 6 * n + 1

    def fun(t: float, y: Any, yp: Any) -> Any:
        pressures, flows = y[: 3 * n].reshape(3, n), y[3 * n : 6 * n].reshape(3, n)
        joint = y[-1]
        p_rate, q_rate = yp[: 3 * n].reshape(3, n), yp[3 * n : 6 * n].reshape(3, n)
        r_p, r_q = np.empty((3, n)), np.empty((3, n))
        # flows leave cells to the right; the main ends, and both branches begin, at the joint
        r_p[:, 1:] = p_rate[:, 1:] + n * (flows[:, 1:] - flows[:, :-1])
        r_p[0, 0] = pressures[0, 0] - (1.0 + 0.05 * np.sin(5.0 * t))
        r_p[1:, 0] = pressures[1:, 0] - joint
        drag = friction * flows * np.sqrt(flows**2 + 1e-6) / pressures
        r_q[:, :-1] = q_rate[:, :-1] + n * np.diff(pressures, axis=1) + drag[:, :-1]
        r_q[0, -1] = q_rate[0, -1] + n * (joint - pressures[0, -1]) + drag[0, -1]
        r_q[1, -1] = flows[1, -1] - 0.1 * (1.0 + 0.5 * np.sin(3.0 * t))
        r_q[2, -1] = flows[2, -1] - 0.15
        balance = flows[0, -1] - flows[1, 0] - flows[2, 0]
        return np.concatenate([r_p.ravel(), r_q.ravel(), [1e-3 * yp[-1] - balance]])

    y0 = np.ones(size)
    y0[3 * n : 4 * n], y0[4 * n : 5 * n], y0[5 * n : 6 * n] = 0.25, 0.1, 0.15
    fixed = (0, n, 2 * n, 5 * n - 1, 6 * n - 1)
    return Model(f"gas network, {size}", fun, 1.0, y0, algebraic=fixed)


def single_particle(n: int) -> Model:
    """Battery of two particles: diffusion in spheres, and the voltage between them."""
    width = 1.0 / n
    centre, edge = (np.arange(n) + 0.5) * width, np.arange(1, n) * width

    def diffusion(c: Any, rate: Any, flux: Any) -> Any:
        inner = -rate * edge**2 * np.diff(c) / width
        return -np.diff(np.concatenate([[0.0], inner, [flux]])) / (centre**2 * width)

    def fun(t: float, y: Any, yp: Any) -> Any:
        first, second, (voltage, current) = y[:n], y[n : 2 * n], y[2 * n :]
        open_circuit = 4.2 - 0.5 * second[-1] ** 2 - 0.1 - 0.05 * np.exp(-8.0 * first[-1])
        return np.concatenate([
            yp[:n] - diffusion(first, 0.01, 0.05 * current),
            yp[n : 2 * n] - diffusion(second, 0.02, -0.05 * current),
            [voltage - open_circuit + 0.02 * current, current - 1.0 - 0.2 * np.sin(t)],
        ])  # fmt: skip

    y0 = np.concatenate([np.full(n, 0.8), np.full(n, 0.3), [3.9, 1.0]])
    return Model(f"single particles, {2 * n + 2}", fun, 2.0, y0, algebraic=(2 * n, 2 * n + 1))


def porous_cell(n: int, shells: int) -> Model:
    """Cell of the Doyle-Fuller-Newman kind, without dimensions.

    Two electrodes and a separator of n cells each; salt and potential in the electrolyte, potential
    in the solid, and in every cell of an electrode a particle of some shells.
    """
    width, shell = 1.0 / n, 1.0 / shells
    centre, edge = (np.arange(shells) + 0.5) * shell, np.arange(1, shells) * shell
    in_solid = np.r_[np.zeros(n), np.full(n, 1.0)]         # which electrode a cell is of
    ends = np.cumsum([3 * n, 3 * n, 2 * n, 2 * n * shells])

    def fun(t: float, y: Any, yp: Any) -> Any:
        salt, potential, solid, particles = np.split(y, ends[:3])
        grains = particles.reshape(2 * n, shells)
        surface = grains[:, -1]
        salt_in = np.concatenate([salt[:n], salt[2 * n :]])
        potential_in = np.concatenate([potential[:n], potential[2 * n :]])
        rest = np.where(in_solid > 0, 4.0 - 0.8 * surface, 0.1 + 0.3 * np.exp(-5.0 * surface))
        exchange = np.sqrt(salt_in * surface * (1.0 - surface))
        reaction = 0.4 * exchange * np.sinh(2.0 * (solid - potential_in - rest))
        current = 0.1 * (1.0 + 0.3 * np.sin(t))
        source = np.concatenate([reaction[:n], np.zeros(n), reaction[n:]])
        # electrolyte: closed at both ends
        mean = 0.5 * (salt[1:] + salt[:-1])
        salt_flux = np.concatenate([[0.0], -0.3 * np.diff(salt) / width, [0.0]])
        charge = -mean * np.diff(potential) / width + 0.2 * np.diff(salt) / width
        charge_flux = np.concatenate([[0.0], charge, [0.0]])
        r_salt = yp[: 3 * n] + np.diff(salt_flux) / width - 0.5 * source
        r_potential = np.diff(charge_flux) / width - source
        # solid: grounded at the left, the current leaves at the right
        first = np.concatenate([[-20.0 * solid[0] / width], -10.0 * np.diff(solid[:n]) / width,
                                [0.0]])  # fmt: skip
        second = np.concatenate([[0.0], -10.0 * np.diff(solid[n:]) / width, [current]])
        r_solid = np.concatenate([np.diff(first), np.diff(second)]) / width + reaction
        # particles
        inner = -0.5 * edge**2 * np.diff(grains, axis=1) / shell
        flux = np.concatenate([np.zeros((2 * n, 1)), inner, 0.1 * reaction[:, None]], axis=1)
        rates = yp[ends[2] :].reshape(2 * n, shells)
        r_grains = rates + np.diff(flux, axis=1) / (centre**2 * shell)
        return np.concatenate([r_salt, r_potential, r_solid, r_grains.ravel()])

    y0 = np.concatenate([
        np.ones(3 * n), np.full(3 * n, -0.2), np.zeros(n), np.full(n, 3.5),
        np.full(n * shells, 0.8), np.full(n * shells, 0.4),
    ])  # fmt: skip
    algebraic = tuple(range(3 * n, 8 * n))
    return Model(f"porous cell, {len(y0)}", fun, 1.0, y0, algebraic=algebraic)


MODELS: tuple[Callable[[], Model], ...] = (
    lambda: heat(100), lambda: burgers(500), lambda: burgers(5000), lambda: gas_network(100),
    lambda: gas_network(800), lambda: single_particle(500), lambda: porous_cell(20, 15),
    lambda: porous_cell(60, 30), lambda: brusselator(40),
)  # fmt: skip
