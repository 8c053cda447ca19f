"""What a case is, and how it is dressed in units, in an order and with options."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Case:
    """A problem in its own units and order, with a way to its reference.

    `start` is what the reference begins with; `unknowns(start)` gives y at the beginning.
    """

    name: str
    fun: Callable
    span: tuple[float, float]
    start: np.ndarray
    reference: Callable  # start -> Trajectory of all unknowns
    units: Sequence[tuple]  # of every unknown: exponents of (length, time, mass) or others
    y0: np.ndarray | None = None  # found from the reference when left out
    perturb: Callable | None = None  # (start, relative, rng) -> start, consistent again
    guessed: Sequence[int] = ()  # unknowns whose starting values may be anything
    approximate: Callable | None = (
        None  # y at the start -> start, where all of y0 may be approximate
    )
    forms: Sequence = ("auto",)
    called: bool = False  # may be run with trace="never"
    events: Sequence = ()  # the case's own, with `apply`
    breaks: Sequence[float] = ()  # where a forcing is not smooth
    breaks_needed: bool = False
    invariants: Sequence = ()
    constraints: Sequence = ()
    unwatched: Sequence[int] = ()  # unknowns that get no event: they may jump
    late: bool = False  # as written, `guessed` are less accurate than the rest
    least: dict = field(default_factory=dict)  # sizes of unknowns that are zero


@dataclass
class Dressed:
    """A case as the solver sees it."""

    fun: Callable
    args: tuple
    y0: np.ndarray
    span: tuple[float, float]
    options: dict[str, Any]
    order: np.ndarray  # unknown k of the solver is unknown order[k] of the case
    scale: np.ndarray  # in the case's order
    time: float
    atol: np.ndarray  # in the case's units and order

    def to_case(self, y):
        base = np.empty_like(np.asarray(y, float))
        base[self.order] = y
        return base / (self.scale if base.ndim == 1 else self.scale[:, None])


SYSTEMS = [
    (1.0, 1.0, 1.0),
    (1.0, 1.0, 1.0),
    (1e3, 1e3, 1e3),
    (1e6, 1e6, 1e15),
    (1e-3, 1.0, 1e-3),
    (1e2, 1e3, 1.0),
]


def dress_function(fun, order, scale, rows, row_scale, time, as_array):
    """The residual in other units, with unknowns and equations in another order."""
    place = [int(k) for k in np.argsort(order)]
    scale = [float(s) for s in scale]
    rows = [int(r) for r in rows]
    row_scale = [float(r) for r in row_scale]
    n = len(place)
    plain = place == list(range(n)) and all(s == 1 for s in scale) and time == 1
    plain = plain and rows == list(range(n)) and all(r == 1 for r in row_scale)
    if plain:

        def residual(t, y, yp, unit):
            return fun(t, y, yp)
    else:

        def residual(t, y, yp, unit):
            base = [y[place[i]] / scale[i] for i in range(n)]
            slope = [yp[place[i]] * unit / scale[i] for i in range(n)]
            if as_array:
                base, slope = np.array(base), np.array(slope)
            r = fun(t / unit, base, slope)
            return [r[rows[i]] * row_scale[i] for i in range(n)]

    return residual


def dress_function_of_y(fun, place, scale, n, with_slope):
    if with_slope:

        def event(t, y, yp, unit):
            base = [y[place[i]] / scale[i] for i in range(n)]
            slope = [yp[place[i]] * unit / scale[i] for i in range(n)]
            return fun(t / unit, base, slope)
    else:

        def event(t, y, unit):
            return fun(t / unit, [y[place[i]] / scale[i] for i in range(n)])

    return event


def dress_apply(apply, place, order, scale, n):
    def changed(t, y, yp, unit):
        base = [y[place[i]] / scale[i] for i in range(n)]
        new = apply(t / unit, base)
        return [new[order[k]] * scale[order[k]] for k in range(n)]

    return changed


def dress(case: Case, y0, rng, rtol, atol) -> Dressed:
    """Units, orders and arguments for a case; options that concern output come later."""
    n = len(case.units)
    plain = rng.random() < 0.25
    order = np.arange(n) if plain or rng.random() < 0.2 else rng.permutation(n)
    rows = np.arange(n) if plain or rng.random() < 0.2 else rng.permutation(n)
    system = (1.0, 1.0, 1.0) if plain else SYSTEMS[rng.integers(len(SYSTEMS))]
    scale = np.array([np.prod([s**e for s, e in zip(system, u, strict=False)]) for u in case.units])
    time = system[1]
    row_scale = np.ones(n) if plain or rng.random() < 0.5 else 10.0 ** rng.integers(-3, 4, n)
    as_array = bool(rng.random() < 0.3)
    fun = dress_function(case.fun, order, scale, rows, row_scale, time, as_array)
    place = [int(k) for k in np.argsort(order)]
    listed = [float(s) for s in scale]
    options: dict[str, Any] = {"rtol": rtol, "atol": (atol * scale)[order]}
    events = []
    for own in case.events:
        event = dress_function_of_y(lambda t, y, yp, own=own: own(t, y), place, listed, n, True)
        event.direction = own.direction
        if hasattr(own, "apply"):
            event.apply = dress_apply(own.apply, place, [int(k) for k in order], listed, n)
        events.append(event)
    if events:
        options["events"] = events
    for name in ("invariants", "constraints"):
        given = getattr(case, name)
        if given and rng.random() < 0.4:
            options[name] = [dress_function_of_y(g, place, listed, n, False) for g in given]
    if case.breaks and (case.breaks_needed or rng.random() < 0.4):
        options["t_breaks"] = [b * time for b in case.breaks]
    return Dressed(
        fun,
        (float(time),),
        (y0 * scale)[order],
        (case.span[0] * time, case.span[1] * time),
        options,
        order,
        scale,
        time,
        atol,
    )
