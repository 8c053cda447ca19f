"""Flows on grids as DAEs: LP1, section 3.2.

Incompressible flow has no equation for the pressure, which is whatever keeps the divergence zero:
an algebraic unknown in a system of index 2, LP1 (3.7) and (3.8). Differentiating the constraint
once turns it into a Poisson equation, with index 1: (3.9) and (3.10). On a staggered grid,
pressures are at the centres of the cells and velocities on their sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tether.models.equations import Equations

__all__ = ["Cavity", "PeriodicFlow", "Tube"]


Shapes = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
Places = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class _Grid(Protocol):
    """What a flow has to provide: the points of its velocities, and differences there."""

    @property
    def shapes(self) -> Shapes:
        """Shapes of the arrays of u, v and p."""
        ...

    @property
    def places(self) -> Places:
        """Coordinates (x, y) of the points of u, and of those of v."""
        ...

    def forces(self, t: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Return the acceleration without the pressure's: -(K + N(U)) U + f of LP1 (3.7)."""
        ...

    def gradient(self, p: Any) -> tuple[Any, Any]:
        """Return C P at the points of u and v."""
        ...

    def divergence(self, u: Any, v: Any) -> Any:
        """Return the divergence in every cell."""
        ...

    def split(self, y: Any) -> tuple[Any, Any, Any]:
        """Return u, v and p as arrays."""
        ...

    def _equations(self, constraint: Callable[..., Any]) -> Equations: ...


@dataclass(frozen=True, eq=False)
class _Flow:
    """Incompressible flow in a rectangle of nx by ny cells."""

    nx: int
    ny: int
    viscosity: float
    width: float = 1.0
    height: float = 1.0

    def __post_init__(self) -> None:
        """Refuse grids that are too small or have no size."""
        if min(self.nx, self.ny) < 3:
            raise ValueError(f"nx and ny must be at least 3, got {self.nx} and {self.ny}")
        if not (self.viscosity >= 0.0 and self.width > 0.0 and self.height > 0.0):
            raise ValueError("width and height must be positive, and viscosity not negative")

    @property
    def dx(self) -> float:
        """Width of a cell."""
        return self.width / self.nx

    @property
    def dy(self) -> float:
        """Height of a cell."""
        return self.height / self.ny

    def split(self: _Grid, y: Any) -> tuple[Any, Any, Any]:
        """Return u, v and p as arrays over the grid, first axis along x."""
        (a, b, c) = (int(np.prod(shape)) for shape in self.shapes)
        parts = y[:a], y[a : a + b], y[a + b : a + b + c]
        u, v, p = (part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True))
        return u, v, p

    def index_2(self: _Grid) -> Equations:
        """Return LP1 (3.7) and (3.8): momentum, and a divergence of zero.

        Only differences of the pressure matter, and the divergence is zero in one cell if it is in
        all others. That equation is replaced by a pressure of zero in the cell.
        """
        def divergence(u: Any, v: Any, *accelerations: Any) -> Any:
            return self.divergence(u, v)

        return self._equations(divergence)

    def index_1(self: _Grid) -> Equations:
        """Return LP1 (3.9) and (3.10): momentum, and a Poisson equation for the pressure.

        The divergence keeps its value at the start.
        """
        def divergence_rate(u: Any, v: Any, up: Any, vp: Any) -> Any:
            return self.divergence(up, vp)

        return self._equations(divergence_rate)

    def _equations(self: _Grid, constraint: Callable[..., Any]) -> Equations:
        """Combine the momentum equations with a constraint on velocities and accelerations."""
        def fun(t: float, y: Any, yp: Any) -> Any:
            u, v, p = self.split(y)
            up, vp, _ = self.split(yp)
            (fu, fv), (px, py) = self.forces(t, u, v), self.gradient(p)
            zero = constraint(u, v, fu - px, fv - py).reshape(-1)
            return np.concatenate([
                (up - fu + px).reshape(-1), (vp - fv + py).reshape(-1), p.reshape(-1)[:1], zero[1:]
            ])

        names = tuple(
            f"{letter}[{i},{j}]" for letter, shape in zip("uvp", self.shapes, strict=True)
            for i, j in np.ndindex(shape)
        )
        units = tuple("m^2/s^2" if name[0] == "p" else "m/s" for name in names)
        return Equations(fun, names, units, np.zeros(len(names)))

    def start(self: _Grid, u: Any, v: Any) -> np.ndarray:
        """Return starting values from velocities as functions of x and y; the pressure is found.

        Parameters
        ----------
        u, v : callable
            Velocities ``u(x, y)`` and ``v(x, y)``, for whole arrays.
        """
        (xu, yu), (xv, yv) = self.places
        p = np.zeros(self.shapes[2])
        parts = np.broadcast_to(u(xu, yu), xu.shape), np.broadcast_to(v(xv, yv), xv.shape), p
        return np.concatenate([np.asarray(part, float).reshape(-1) for part in parts])


class PeriodicFlow(_Flow):
    """Incompressible flow that is periodic in both directions.

    Parameters
    ----------
    nx, ny : int
        Cells in each direction, at least 3.
    viscosity : float
        Kinematic viscosity.
    width, height : float
        Periods.

    Examples
    --------
    Taylor-Green vortices, which decay without changing their shape:

    >>> import numpy as np
    >>> from tether import solve_dae
    >>> from tether.models import PeriodicFlow
    >>> flow = PeriodicFlow(6, 6, viscosity=0.1, width=2 * np.pi, height=2 * np.pi)
    >>> y0 = flow.start(lambda x, y: np.sin(x) * np.cos(y), lambda x, y: -np.cos(x) * np.sin(y))
    >>> sol = solve_dae(flow.index_2().fun, (0, 1), y0, start="quiet")
    >>> u, v, p = flow.split(sol.y[:, -1])
    >>> bool(abs(flow.divergence(u, v)).max() < 1e-8)
    True
    """

    @property
    def shapes(self) -> Shapes:
        """Shapes of the arrays of u, v and p: all the same."""
        return ((self.nx, self.ny),) * 3

    @property
    def places(self) -> Places:
        """Middles of the left sides of the cells for u, and of the lower sides for v."""
        i, j = np.meshgrid(np.arange(self.nx), np.arange(self.ny), indexing="ij")
        return (
            (i * self.dx, (j + 0.5) * self.dy), ((i + 0.5) * self.dx, j * self.dy)
        )

    def forces(self, t: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Convection in divergence form, and friction; by central differences."""
        dx, dy = self.dx, self.dy
        u_middle, v_middle = 0.5 * (u + _next(u, 0)), 0.5 * (v + _next(v, 1))
        u_corner, v_corner = 0.5 * (u + _last(u, 1)), 0.5 * (v + _last(v, 0))
        product = u_corner * v_corner
        fu = -(u_middle**2 - _last(u_middle**2, 0)) / dx - (_next(product, 1) - product) / dy
        fv = -(v_middle**2 - _last(v_middle**2, 1)) / dy - (_next(product, 0) - product) / dx
        return fu + self.viscosity * self._laplace(u), fv + self.viscosity * self._laplace(v)

    def _laplace(self, f: Any) -> Any:
        return (
            (_next(f, 0) - 2 * f + _last(f, 0)) / self.dx**2
            + (_next(f, 1) - 2 * f + _last(f, 1)) / self.dy**2
        )

    def gradient(self, p: Any) -> tuple[Any, Any]:
        """Differences between neighbouring cells."""
        return (p - _last(p, 0)) / self.dx, (p - _last(p, 1)) / self.dy

    def divergence(self, u: Any, v: Any) -> Any:
        """Differences between opposite sides."""
        return (_next(u, 0) - u) / self.dx + (_next(v, 1) - v) / self.dy


@dataclass(frozen=True, eq=False)
class Cavity(_Flow):
    """A box of fluid with a sliding lid; the other walls are at rest.

    Parameters
    ----------
    nx, ny : int
        Cells in each direction, at least 3.
    viscosity : float
        Kinematic viscosity; one over the Reynolds number for a lid of speed 1 and width 1.
    width, height : float
        Size of the box.
    lid : float or callable
        Speed of the lid, or a function of time.

    Examples
    --------
    >>> from tether.models import Cavity
    >>> cavity = Cavity(8, 8, viscosity=0.01)
    >>> cavity.shapes
    ((7, 8), (8, 7), (8, 8))
    """

    lid: float | Callable[[Any], Any] = 1.0

    @property
    def shapes(self) -> Shapes:
        """Shapes of u, v and p; velocities through walls are not unknowns."""
        return (self.nx - 1, self.ny), (self.nx, self.ny - 1), (self.nx, self.ny)

    @property
    def places(self) -> Places:
        """Points between neighbouring cells, along x for u and along y for v."""
        iu, ju = np.meshgrid(np.arange(1, self.nx), np.arange(self.ny), indexing="ij")
        iv, jv = np.meshgrid(np.arange(self.nx), np.arange(1, self.ny), indexing="ij")
        return (iu * self.dx, (ju + 0.5) * self.dy), ((iv + 0.5) * self.dx, jv * self.dy)

    def forces(self, t: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Convection in divergence form, and friction; walls by values beyond them."""
        dx, dy = self.dx, self.dy
        lid = self.lid(t) if callable(self.lid) else self.lid
        u_wide = _between_walls(u, 0)                          # (nx + 1, ny)
        v_wide = _between_walls(v, 1)                          # (nx, ny + 1)
        u_tall = np.concatenate([-u[:, :1], u, 2 * lid - u[:, -1:]], axis=1)
        v_long = np.concatenate([-v[:1], v, -v[-1:]], axis=0)
        u_middle = 0.5 * (u_wide[1:] + u_wide[:-1])            # in the cells
        v_middle = 0.5 * (v_wide[:, 1:] + v_wide[:, :-1])
        u_corner = 0.5 * (u_tall[:, 1:] + u_tall[:, :-1])      # (nx - 1, ny + 1)
        v_corner = 0.5 * (v_long[1:] + v_long[:-1])            # (nx + 1, ny - 1)
        of_u = u_corner * _inner(v_wide)
        of_v = v_corner * _inner_rows(u_wide)
        fu = -(u_middle[1:] ** 2 - u_middle[:-1] ** 2) / dx - (of_u[:, 1:] - of_u[:, :-1]) / dy
        fv = -(v_middle[:, 1:] ** 2 - v_middle[:, :-1] ** 2) / dy - (of_v[1:] - of_v[:-1]) / dx
        fu = fu + self.viscosity * (_bend(u_wide, 0) / dx**2 + _bend(u_tall, 1) / dy**2)
        fv = fv + self.viscosity * (_bend(v_long, 0) / dx**2 + _bend(v_wide, 1) / dy**2)
        return fu, fv

    def gradient(self, p: Any) -> tuple[Any, Any]:
        """Differences between neighbouring cells."""
        return (p[1:] - p[:-1]) / self.dx, (p[:, 1:] - p[:, :-1]) / self.dy

    def divergence(self, u: Any, v: Any) -> Any:
        """Differences between opposite sides; nothing flows through sides that are walls."""
        u_wide, v_wide = _between_walls(u, 0), _between_walls(v, 1)
        return (u_wide[1:] - u_wide[:-1]) / self.dx + (v_wide[:, 1:] - v_wide[:, :-1]) / self.dy


@dataclass(frozen=True, eq=False)
class Tube:
    """A compressible fluid without friction in a tube, with an equation of state: LP1 (3.12).

    Unknowns are the density, the velocity or the momentum, and the pressure, which follows from
    the density by an algebraic equation: index 1.

    Parameters
    ----------
    cells : int
        Number of cells, at least 3.
    pressure : callable
        The equation of state ``p(density)``, for whole arrays.
    length : float
        Length of the tube.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.models import Tube
    >>> tube = Tube(4, pressure=lambda density: density**1.4)
    >>> tube.start(lambda x: 1.0 + 0.1 * np.sin(2 * np.pi * x), lambda x: 0.0 * x).shape
    (12,)
    """

    cells: int
    pressure: Callable[[Any], Any]
    length: float = 1.0

    def __post_init__(self) -> None:
        """Refuse grids that are too small or have no size."""
        if self.cells < 3 or not self.length > 0.0:
            raise ValueError("a tube has at least 3 cells and a positive length")

    @property
    def dx(self) -> float:
        """Length of a cell."""
        return self.length / self.cells

    @property
    def x(self) -> np.ndarray:
        """Centres of the cells."""
        return (np.arange(self.cells) + 0.5) * self.dx

    def split(self, y: Any) -> tuple[Any, Any, Any]:
        """Return density, velocity or momentum, and pressure."""
        m = self.cells
        return y[:m], y[m : 2 * m], y[2 * m :]

    def start(self, density: Any, velocity: Any, momentum: bool = False) -> np.ndarray:
        """Return starting values from functions of x.

        Parameters
        ----------
        density, velocity : callable
            Functions of whole arrays of x.
        momentum : bool
            Set it for `conservative`, which has the momentum as an unknown instead of the velocity.
        """
        d, u = (np.broadcast_to(f(self.x), self.cells) for f in (density, velocity))
        return np.concatenate([d, d * u if momentum else u, self.pressure(d)])

    def smooth(self) -> Equations:
        """Return LP1 (3.12) as printed, on a ring, by central differences.

        For smooth flows; use `conservative` where a wave breaks.
        """
        def slope(f: Any) -> Any:
            return (_next(f, 0) - _last(f, 0)) / (2 * self.dx)

        def fun(t: float, y: Any, yp: Any) -> Any:
            (d, u, p), (dp, up, _) = self.split(y), self.split(yp)
            return np.concatenate([
                dp + u * slope(d) + d * slope(u), up + u * slope(u) + slope(p) / d,
                p - self.pressure(d),
            ])

        return self._equations(fun, "u", "m/s")

    def conservative(self, speed: float) -> Equations:
        """Return conservation of mass and momentum between closed ends, with shocks.

        The flux between two cells is the mean of their fluxes, minus half the difference of their
        values times the `speed` of the fastest wave (Rusanov): of first order, without overshoots.

        Parameters
        ----------
        speed : float
            A speed that is at least that of the fastest wave.
        """
        def fun(t: float, y: Any, yp: Any) -> Any:
            (d, m, p), (dp, mp, _) = self.split(y), self.split(yp)
            force = m * m / d + p
            mass = 0.5 * (m[1:] + m[:-1]) - 0.5 * speed * (d[1:] - d[:-1])
            push = 0.5 * (force[1:] + force[:-1]) - 0.5 * speed * (m[1:] - m[:-1])
            # nothing flows through the ends, where the pressure is that of a mirror image
            mass = np.concatenate([0.0 * d[:1], mass, 0.0 * d[:1]])
            push = np.concatenate([
                force[:1] - speed * m[:1], push, force[-1:] + speed * m[-1:]
            ])
            return np.concatenate([
                dp + (mass[1:] - mass[:-1]) / self.dx, mp + (push[1:] - push[:-1]) / self.dx,
                p - self.pressure(d),
            ])

        return self._equations(fun, "m", "kg/(m^2 s)")

    def _equations(
        self, fun: Callable[[float, Any, Any], Any], second: str, unit: str
    ) -> Equations:
        m = self.cells
        names = tuple(f"{letter}[{i}]" for letter in ("d", second, "p") for i in range(m))
        units = ("kg/m^3",) * m + (unit,) * m + ("Pa",) * m
        return Equations(fun, names, units, np.zeros(3 * m))


# --- differences ------------------------------------------------------------------------------


def _next(f: Any, axis: int) -> Any:
    return np.roll(f, -1, axis)


def _last(f: Any, axis: int) -> Any:
    return np.roll(f, 1, axis)


def _bend(f: Any, axis: int) -> Any:
    """Second differences."""
    if axis == 0:
        return f[2:] - 2 * f[1:-1] + f[:-2]
    return f[:, 2:] - 2 * f[:, 1:-1] + f[:, :-2]


def _between_walls(f: Any, axis: int) -> Any:
    """Add zeros at both ends: nothing flows through a wall."""
    wall = 0.0 * (f[:1] if axis == 0 else f[:, :1])
    return np.concatenate([wall, f, wall], axis=axis)


def _inner(v_wide: Any) -> Any:
    """Return v at the corners between neighbouring cells along x."""
    return 0.5 * (v_wide[1:] + v_wide[:-1])


def _inner_rows(u_wide: Any) -> Any:
    """Return u at the corners between neighbouring cells along y."""
    return 0.5 * (u_wide[:, 1:] + u_wide[:, :-1])
