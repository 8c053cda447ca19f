"""Animations of planar mechanisms; needs matplotlib, and Pillow for a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.base.optional import load_optional, load_pyplot
from tether.result.access import number_of

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation

    from tether.result.solution import DaeResult

__all__ = ["animate_solution"]

MARGIN = 0.08                          # free space around the motion, as a share of its size


def animate_solution(
    result: DaeResult,
    points: Sequence[tuple[Any, Any]] | Callable[..., Any],
    *,
    links: Sequence[tuple[int, int]] | None = None,
    path: str | os.PathLike[str] | None = None,
    frames: int = 100,
    fps: float = 25.0,
    trail: bool = True,
) -> FuncAnimation:
    """Show points and the links between them over the time of a run.

    The frames are equally spaced in time if the run has dense output. Otherwise they are the stored
    times closest to that.

    Parameters
    ----------
    result : DaeResult
        What `solve_dae` returned.
    points : list of pairs, or callable
        The coordinates of each point: the name of an unknown, or a number for a coordinate that is
        fixed, as in ``[(0, 0), ("x1", "z1"), ("x2", "z2")]``. Or a function ``points(t, y)`` that
        returns a list of pairs of numbers, for mechanisms written in angles.
    links : list of pairs of int, optional
        Pairs of points, by number, that are joined by a line; by default each point and the next.
    path : str or path, optional
        Write a GIF there.
    frames : int
        Number of pictures.
    fps : float
        Pictures per second.
    trail : bool
        Whether to draw the path of the last point.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        In a notebook, ``IPython.display.HTML(animation.to_jshtml())`` shows it.
    """
    pyplot = load_pyplot()
    animation = load_optional("matplotlib.animation", "animate()")
    if isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or frames < 1:
        raise ValueError(f"frames must be a positive integer, got {frames!r}")
    if not (isinstance(fps, Real) and 0 < fps < np.inf):
        raise ValueError(f"fps must be a positive number, got {fps!r}")
    if not len(result.t):
        raise ValueError("there is nothing to show: the run did not begin")
    if path is not None and os.path.splitext(path)[1].lower() != ".gif":
        raise ValueError(f"path must end in .gif, got {os.fspath(path)!r}")
    if not callable(points):
        points = _check_points(points)
    times, y = _states(result, np.linspace(result.t[0], result.t[-1], int(frames)))
    places = _places(result, points, times, y)
    way = _places(result, points, result.t, result.y)[:, -1] if trail else np.empty((0, 2))
    before = np.sign(result.t[-1] - result.t[0]) * (result.t - times[:, None]) <= 0
    joined = _check_links(links, places.shape[1])

    figure, axis = pyplot.subplots(layout="constrained")
    _set_limits(axis, np.concatenate([places.reshape(-1, 2), way]))
    bars = [axis.plot([], [], color="#0072B2", linewidth=2.0)[0] for _ in joined]
    (joints,) = axis.plot([], [], "o", color="black", markersize=6)
    (past,) = axis.plot([], [], color="0.6", linewidth=0.8, zorder=0)
    clock = axis.set_title("", family="monospace", loc="left")

    def show(frame: int) -> list[Any]:
        x, z = places[frame].T
        for bar, (first, second) in zip(bars, joined, strict=True):
            bar.set_data(x[[first, second]], z[[first, second]])
        joints.set_data(x, z)
        if trail:
            past.set_data(*np.vstack([way[before[frame]], places[frame, -1]]).T)
        clock.set_text(f"t = {times[frame]:.4g}")
        return [*bars, joints, past, clock]

    show(0)
    film = animation.FuncAnimation(figure, show, frames=len(times), interval=1000.0 / fps)
    if path is not None:
        load_optional("PIL", "animate(path=...)")
        film.save(os.fspath(path), writer=animation.PillowWriter(fps=fps))
    return film


def _check_points(points: Any) -> list[tuple[Any, Any]]:
    pairs = [tuple(pair) for pair in points if not isinstance(pair, str)]
    if not pairs or len(pairs) < len(points) or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"points must be a list of pairs, got {points!r}")
    return pairs


def _places(result: DaeResult, points: Any, times: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return where the points are at some times, shape (times, points, 2)."""
    if callable(points):
        places = np.array([points(t, column) for t, column in zip(times, y.T, strict=True)], float)
        if places.ndim != 3 or places.shape[2] != 2:
            raise ValueError("points(t, y) must return a list of pairs (x, z)")
        return places
    coordinates = [_coordinate(result, y, entry) for pair in points for entry in pair]
    return np.array(coordinates).T.reshape(len(times), len(points), 2)


def _states(result: DaeResult, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return y at the times, or at the stored times closest to them."""
    if result.sol is not None:
        return times, result.y_at(times)
    rows = np.unique([int(np.argmin(np.abs(result.t - time))) for time in times])
    return result.t[rows], result.y[:, rows]


def _coordinate(result: DaeResult, y: np.ndarray, entry: Any) -> np.ndarray:
    if isinstance(entry, str):
        return y[number_of(result.names, entry)]
    if isinstance(entry, Real) and not isinstance(entry, bool):
        return np.full(y.shape[1], float(entry))
    raise TypeError(
        f"points must be made of names of unknowns and of fixed coordinates, got {entry!r}"
    )


def _check_links(links: Any, count: int) -> list[tuple[int, int]]:
    if links is None:
        return [(i, i + 1) for i in range(count - 1)]
    pairs = [tuple(link) for link in links]
    for pair in pairs:
        if len(pair) != 2 or not all(
            isinstance(i, (int, np.integer)) and 0 <= i < count for i in pair
        ):
            raise ValueError(f"links must be pairs of points from 0 to {count - 1}, got {pair!r}")
    return pairs


def _set_limits(axis: Any, places: np.ndarray) -> None:
    """Leave room for the whole motion, with equal units on both axes."""
    seen = places[np.isfinite(places).all(axis=1)]
    low, high = (seen.min(axis=0), seen.max(axis=0)) if len(seen) else (np.zeros(2), np.ones(2))
    room = MARGIN * (float(np.max(high - low)) or 1.0)
    axis.set_xlim(low[0] - room, high[0] + room)
    axis.set_ylim(low[1] - room, high[1] + room)
    axis.set_aspect("equal")
