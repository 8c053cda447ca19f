"""Where a run cannot begin or go on: leaks beside ideal diodes that leave a part floating."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.run.sides import ROUND_OFF
from tether.run.watch import EPS
from tether.structure.blocking import Floating, find_floating, find_pairs
from tether.structure.modes import MOST_TOGETHER
from tether.structure.start import changed_values

if TYPE_CHECKING:
    from tether.run.integration import Integration
    from tether.structure.leaks import Leak
    from tether.structure.modes import Sides

__all__ = [
    "determine_floating", "holds_sides", "jump_less", "jumps_of_evolving", "leaks_of_many",
]

# In tolerances: what jumps by more than this does not make up for an error.
LARGEST_ERROR = 100.0
# Larger systems are not examined: their matrices are treated as dense.
MOST_UNKNOWNS = 200
# Relative to the time: how far ahead is looked at least, though the end is closer.
LEAST_AHEAD = 1e-6
# Number of times sides are chosen anew after a jump.
MOST_JUMPS = 3


def leaks_of_many(
    run: Integration, t: float, y: np.ndarray, t_bound: float
) -> tuple[Leak, ...]:
    """Leaks for what may float between many ideal diodes, before a run begins.

    Modes of many pairs are not known beforehand, and a run without them may take a wrong way.
    """
    plan = run.model.plan
    if run.beside or plan is None or plan.frozen is None:
        return ()
    if not plan.floats or run.n > MOST_UNKNOWNS or not math.isfinite(t_bound - t):
        return ()
    plan.floats = False
    if run.options.form not in ("auto", 1) or len(find_pairs(plan.original)) <= MOST_TOGETHER:
        return ()
    tolerance = run.options.tolerances(run.n)
    allowed = tolerance[0] * np.abs(y) + tolerance[1]
    found = find_floating(plan.original, run.model.inputs, t, y, t_bound, run.units.y, allowed)
    plan.floats = found is None or bool(found.leaks)
    return () if found is None else found.leaks


def determine_floating(
    run: Integration, t: float, y: np.ndarray, replan: Callable[..., Any], always: bool = True,
    most: float = math.inf,
) -> bool:
    """Let leaks determine what floats, and restart on the sides of pairs that then hold.

    Tell whether the run goes on. If nothing floats, other sides are tried if this is to be done
    `always`, or if there are so many pairs that what they do to the structure is not known yet: on
    which sides a capacitor is held by its source, for instance. All that evolves may not jump by
    more than `most` tolerances together.
    """
    model, s = run.model, run.state
    if model.plan is None or model.plan.arrays is not None or model.shares or run.n > MOST_UNKNOWNS:
        return False
    if run.options.form not in ("auto", 1) or not math.isfinite(s.t_end - t):
        return False
    found = _find_floating(run, t, y)
    unseen = not run.by_pairs and len(find_pairs(model.plan.original)) > MOST_TOGETHER
    if found is None or not (found.leaks or always or unseen):
        return False
    kept, beside, by_pairs = run.kept(), run.beside, run.by_pairs
    run.beside, run.by_pairs = run.beside + found.leaks, True
    for way in found.ways:
        replan(run, (t, found.y, None))
        # in a new state, by which the driver notices that there are other surfaces
        replan(run, (t, found.y, None), _sides(run, way), anew=True)
        run.restart(t, found.y, None)
        for _ in range(MOST_JUMPS):
            if not run.start.success or holds_sides(run):
                break
            _choose_again(run, replan)
        if run.start.success and holds_sides(run) and jumps_of_evolving(run, y).sum() <= most:
            if run.beside and math.isnan(run.t_beside):
                run.t_beside = t
            moved = changed_values(run.start.y[: run.n], y, run.state.tolerances[: run.n])
            run.start = replace(run.start, moved=moved)
            return True
    run.beside, run.by_pairs = beside, by_pairs
    run.go_back_to(kept)
    replan(run, (t, y, None), model.sides or None)
    run.go_back_to(kept)
    return False


def jump_less(run: Integration, t: float, y: np.ndarray, replan: Callable[..., Any]) -> None:
    """If what evolves has jumped at the last start, take another one where it jumps less.

    It may have gone backwards through a diode. If the other start leads back to the same event, and
    the jump is small, the first one is right: it makes up for the error of locating the event.
    """
    jump = float(jumps_of_evolving(run, y).sum())
    is_back = abs(t - run.lessened_at) <= ROUND_OFF * EPS * abs(t)
    if jump > (LARGEST_ERROR if is_back else 1.0) and determine_floating(
        run, t, y, replan, most=jump - 1.0
    ):
        run.lessened_at = t


def _find_floating(run: Integration, t: float, y: np.ndarray) -> Floating | None:
    plan, s = run.model.plan, run.state
    assert plan is not None
    ahead = s.direction * max(abs(s.t_end - t), LEAST_AHEAD * abs(t))
    return find_floating(
        plan.original, run.model.inputs, t, y, t + ahead, run.units.y,
        s.tolerances[: run.n].copy(), run.beside,
    )


def _choose_again(run: Integration, replan: Callable[..., Any]) -> None:
    """Restart on the sides that hold after a jump, which may be others than those of the jump.

    A diode through which a capacitor is charged at once blocks if the source then falls.
    """
    t, y, earlier = run.t, run.start.y[: run.n].copy(), run.start
    found = _find_floating(run, t, y)
    if found is None:
        return
    run.beside += found.leaks
    replan(run, (t, y, None))
    replan(run, (t, y, None), _sides(run, found.ways[0]), anew=True)
    run.restart(t, y, None)
    run.start = run.start.after(earlier)


def holds_sides(run: Integration) -> bool:
    """Whether the start lies on the sides for which it was found, up to the tolerances."""
    model, modes, n = run.model, run.model.modes, run.n
    if modes is None:
        return True
    point = run.t, run.start.y[:n], run.start.yp[:n]
    tolerance = run.state.tolerances[:n]
    heights = modes.heights(*point, model.inputs)
    wrong = np.flatnonzero((heights < 0.0) != np.array(model.sides))
    return all(
        model.band(int(k), point, (tolerance, tolerance / run.stride)) > 0.0 for k in wrong
    )


def jumps_of_evolving(run: Integration, y: np.ndarray) -> np.ndarray:
    """Jumps of unknowns with derivatives at the last start, in tolerances."""
    modes, start = run.model.modes, run.start
    if modes is None or not start.success:
        return np.zeros(1)
    change = np.abs(start.y[: run.n] - y) * run.state.weights[: run.n]
    return np.append(change[list(modes.evolving)], 0.0)


def _sides(run: Integration, way: dict[tuple[int, int], bool]) -> Sides:
    """Return the sides of the current model, changed to those of some pairs of nodes."""
    modes, sides = run.model.modes, list(run.model.sides)
    if modes is None:
        return run.model.sides
    for k, surface in enumerate(modes.surfaces):
        _, a, b, _ = modes.traced.graph.nodes[surface.conditions[0][0]]
        sides[k] = way.get((min(a, b), max(a, b)), sides[k])
    return tuple(sides)
