"""Go on with another plan where the equations have another structure than before.

A plan is made for one structure: unknowns, equations and constraints of the reduced system. It is
looked at again where an event has changed the state, at a break, where somebody's code has changed
what the equations read, where the solution passes a surface on which the structure depends
(`tether.structure.modes`), and where a run cannot go on. A plan with other unknowns or constraints
runs in a memory of its own; what a run counts goes along.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from tether._core import begin, codes, probe
from tether._core.adapters import raise_users
from tether._core.constraints import constraints_at
from tether.events import Switch, locate
from tether.model import Point, ReducedProblem, Tolerance, TracedProblem, find_model
from tether.result import LocalInterpolant
from tether.status import Status
from tether.steps import COMPONENT
from tether.structure.modes import Sides

if TYPE_CHECKING:
    from tether._core.state import State
    from tether.bdf import Bdf
    from tether.problem import Problem

__all__ = [
    "begin_anew",
    "choose_again",
    "choose_by_slopes",
    "keep_history",
    "look_at_rank",
    "next_turn",
    "pass_surfaces",
    "replan",
    "rescue",
    "switches",
    "try_another_plan",
]

# What a run counts and remembers, whatever memory it runs in.
CARRIED = (
    "t_end", "direction", "h", "max_step", "steps", "nfev", "njev", "nlu", "iterations",
    "error_test_failures", "convergence_failures", "untested", "t_untested", "t_last_untested",
    "largest_reaction", "reaction_error", "t_reaction_error",
    "projections", "worst_drift", "attempts",
    "look_after",
)
# Of the time: so far behind the last point a run begins anew that has failed there. Steps have
# become a few units of round-off until then.
BEHIND = 64 * float(np.finfo(float).eps)
# Of what is left: so far a run must have come since it was last rescued so.
PROGRESS = 1e-6
# So often values that were made consistent may come to lie in another mode.
MOST_MODES = 4
# So many modes are tried where the one at hand would make the solution jump.
MOST_OTHERS = 12
# Of the tolerance: what a solution changes at most that passes smoothly from plan to plan.
SMOOTH = 1.0


def begin_anew(
    bdf: Bdf,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    turned: Sequence[int] = (),
    on_purpose: bool = False,
) -> None:
    """Begin anew at a point where the equations may have another structure.

    `turned` are the surfaces that the solution passes here. Invariants keep their values, unless
    the state was changed `on_purpose`, or what the functions read was.
    """
    if on_purpose or not bdf.is_current:
        bdf.references.forget()
    _begin_anew(bdf, t, y, yp, turned)
    bdf.settle_references()


def _begin_anew(
    bdf: Bdf, t: float, y: np.ndarray, yp: np.ndarray, turned: Sequence[int]
) -> None:
    before, model = bdf._state, bdf.model
    bdf.stride = abs(before.last_h)
    current = bdf.is_current
    if turned or not current or model.sides_at(t, y, yp) != model.sides:
        replan(bdf, (t, y, yp), _sides_beyond(model, (t, y, yp), turned) if current else None)
        if bdf.status == Status.EQUATIONS_CHANGED:
            return
    smooth = bdf.model is not model and _holds(bdf, t, y, yp)
    bdf.restart(t, y, yp, mode="assume" if smooth else "auto")
    if bdf.start.success:
        _settle(bdf)
        _avoid_jump(bdf, (t, y, yp), turned)
    elif bdf._state is not before or bdf.model is not model or not _go_through(bdf, t, y, yp):
        try_another_plan(bdf, t, y, yp)


def replan(bdf: Bdf, point: Point, sides: Sides | None = None) -> None:
    """Find out what kind of system it is at a point, and go on with that."""
    model = _find_another(bdf, point, sides)
    if model is None:
        bdf.status = Status.EQUATIONS_CHANGED
        return
    n_constraints = bdf._state.n_constraints
    if model.has_structure_of(bdf.model, bdf.n):
        _stay(bdf, model, *point[:2])
        if bdf._state.n_constraints == n_constraints:
            return
    _move(bdf, model, *point[:2])


def _find_another(
    bdf: Bdf,
    point: tuple[float, np.ndarray, np.ndarray | None],
    sides: Sides | None,
    anew: bool = False,
) -> Problem | None:
    """Model of the equations as they are now; None if it is not what was asked for."""
    options = bdf.options
    if options.trace == "never":
        return bdf.problem
    model, note = find_model(
        bdf.problem, *point, options.form, options.backend, bdf.units, sides, anew
    )
    if note and options.trace == "always":
        return None
    bdf.note = note
    return model


def _stay(bdf: Bdf, model: Problem, t: float, y: np.ndarray) -> None:
    """Go on with other equations for the same unknowns."""
    s = bdf._state
    bdf.adopt(model)
    s.fyp_known = s.fyp_exists = s.fyp_constant = s.jacobian_exists = False
    s.cj_factored = 0.0
    model.attach(s)
    model.constraints.attach(s, t, y, bdf.problem.args, bdf.options)


def _move(bdf: Bdf, model: Problem, t: float, y: np.ndarray) -> None:
    """Go on with a model that has other unknowns or constraints, in a memory of its own."""
    from tether.bdf import new_state

    old, owner = bdf._state, bdf.model.owner(bdf.n)
    bdf.adopt(model)
    bdf._state = new_state(model, bdf.n, bdf.options)
    model.constraints.attach(bdf._state, t, y, bdf.problem.args, bdf.options)
    _carry_over(old, owner, bdf._state)
    bdf.plans += 1


def _carry_over(old: State, owner: np.ndarray, new: State) -> None:
    """Let a run go on in another memory; `owner` says whose the old unknowns were."""
    for name in CARRIED:
        setattr(new, name, getattr(old, name))
    rows, kept = (s.array("ring").reshape(codes.RING_ROWS, -1) for s in (new, old))
    shared = codes.RING_COLUMNS + min(new.n, old.n)       # y' begins with the user's unknowns
    rows[:, :shared] = kept[:, :shared]
    component = rows[:, COMPONENT]
    known = component >= 0
    component[known] = owner[component[known].astype(int)]


# --- where a run cannot go on -----------------------------------------------------------------


def rescue(bdf: Bdf) -> bool:
    """Find a way to go on for a run that has failed; tell whether there is one."""
    return choose_again(bdf, failed=True) or _go_on_behind(bdf)


def choose_again(bdf: Bdf, failed: bool = False) -> bool:
    """Reduce the same system anew where that was done with the values at the start.

    Combinations with factors that vary, and the rows chosen of a derivative array, may cease to
    do on the way though the structure does not change.
    """
    model, s, before = bdf.model, bdf._state, bdf.reduced_at
    if not isinstance(model, ReducedProblem) or not model.plan.only_here or before == s.t:
        return False
    if failed and before is not None and abs(s.t - before) < PROGRESS * abs(s.t_end - s.t):
        return False
    point, bdf.reduced_at = (s.t, bdf.y, bdf.yp), s.t
    other = _find_another(bdf, point, model.sides or None)
    if other is None or not other.has_structure_of(model, bdf.n):
        return False
    _stay(bdf, other, *point[:2])
    bdf.restart(*point)
    bdf.settle_references()
    return bdf.status == Status.RUNNING


def _go_on_behind(bdf: Bdf) -> bool:
    """Begin anew with another plan just behind a time that no step has passed, if there is one."""
    s, before = bdf._state, bdf.tried_at
    t = s.t + s.direction * BEHIND * abs(s.t)
    left = (s.t_end - t) * s.direction
    if left <= 0.0 or (before is not None and abs(t - before) < PROGRESS * left):
        return False
    return try_another_plan(bdf, t, bdf.y, bdf.yp)


def look_at_rank(bdf: Bdf) -> None:
    """Judge an attempt at which the constraints had another rank than the plan was made for.

    At a singular configuration of the same equations the run may pass. Where the equations are
    others no step will, and the run begins anew behind the change (`rescue`).
    """
    s, note, n = bdf._state, bdf.note, bdf.n
    s.rank_changed = False
    point = s.t_new, s.array("y")[:n].copy(), s.array("yp")[:n].copy()
    there = _find_another(bdf, point, bdf.model.sides or None, anew=True)
    bdf.note = note
    plans = [model.plan for model in (bdf.model, there) if isinstance(model, ReducedProblem)]
    redundant = {plan.analysis is not None and plan.analysis.redundant for plan in plans}
    same = there is not None and there.has_structure_of(bdf.model, n) and len(redundant) == 1
    if same:
        s.rank_floor, s.rank_ceiling = 0, 2**30
    else:
        s.rank_understood = True


def try_another_plan(bdf: Bdf, t: float, y: np.ndarray, yp: np.ndarray | None) -> bool:
    """Judge the ranks at a point where the run cannot go on; begin anew if they are others."""
    before, note = bdf.model, bdf.note
    as_given = bdf.options.form == "given" or bdf.problem.var_index is not None
    if not isinstance(before, TracedProblem) or as_given or bdf.tried_at == t:
        return False
    bdf.tried_at = t
    sides = before.sides
    if yp is not None:
        sides = before.sides_after(bdf.given, (t, y, yp), _tolerance(bdf))
    model = _find_another(bdf, (t, y, yp), sides or None, anew=True)
    if model is None or (model.has_structure_of(before, bdf.n) and not before.plan.only_here):
        bdf.note = note
        return False
    kept = bdf._state, bdf.start, bdf.status, bdf.given, bdf.plans
    _move(bdf, model, t, y)
    bdf.restart(t, y, yp)
    if bdf.start.success:
        bdf.settle_references()
        return True
    bdf._state, bdf.start, bdf.status, bdf.given, bdf.plans = kept
    bdf.adopt(before)
    bdf.note = note
    return False


def _go_through(bdf: Bdf, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Begin with the values as they are where the same equations have led to them.

    In a singular configuration, such as a linkage folded flat, they do not determine multipliers
    and slopes; a step later they do.
    """
    s = bdf._state
    if not isinstance(bdf.model, ReducedProblem) or s.n != bdf.n or not s.n_constraints:
        return False
    bdf.project(t, y)                          # for the derivative of the constraints
    status, g = constraints_at(s, t, y)
    raise_users(s)
    allowed = np.abs(s.array("gy").reshape(-1, s.n)) @ s.array("tolerance")
    if status != 0 or not np.all(np.abs(g) <= allowed):
        return False
    bdf.restart(t, y, yp, mode="assume")
    return True


# --- surfaces -----------------------------------------------------------------------------------


def next_turn(bdf: Bdf, t_end: float) -> float | None:
    """When the structure of the equations changes next by time alone; None if it does not."""
    model = bdf.model
    if not isinstance(model, TracedProblem) or model.modes is None:
        return None
    return model.modes.next_time(bdf.t, t_end, model.sides, model.values)


def switches(bdf: Bdf, timed: bool) -> list[Switch]:
    """Where the structure may change, by time alone if that is wanted, for who looks out for it."""
    model = bdf.model
    if not isinstance(model, TracedProblem) or model.modes is None:
        return []
    point, tolerance = (bdf.t, bdf.y, bdf.yp), _tolerance(bdf)
    return [
        Switch.of(model.modes, k, model.values, model.sides[k], model.band(k, point, tolerance))
        for k in model.modes.moving if timed or k not in model.modes.timed
    ]


def pass_surfaces(bdf: Bdf) -> None:
    """End the last step where it passes a surface, and begin anew there in the next mode."""
    whole = bdf.polynomial()
    polynomial = whole.restricted(bdf.n)
    found = []
    for switch in bdf.watched or ():
        new = switch.fun(bdf.t, bdf.y, bdf.yp)
        if new * switch.side < 0.0:
            t = locate(switch, polynomial, (), switch.side, new)
            found.append((bdf._state.direction * t, t, switch.surface))
    if not found:
        return
    t = min(found)[1]
    begin_anew(bdf, t, *polynomial(t), [surface for _, time, surface in found if time == t])
    keep_history(bdf, whole, t)


def _sides_beyond(model: Problem, point: Point, turned: Sequence[int]) -> Sides:
    """Sides of all surfaces behind a point that lies on some of them."""
    here = model.sides_at(*point)
    return tuple(
        not old if k in turned else here[k] for k, old in enumerate(model.sides)
    )


def _holds(bdf: Bdf, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Whether equations as written hold at a point, up to changes of y within the tolerance.

    Where they have only begun to contain an unknown they do not determine it well.
    """
    s = bdf._state
    if isinstance(bdf.model, ReducedProblem) or s.n_constraints or probe.move_to(s, t, y, yp) != 0:
        return False
    status, r = probe.residual_at(s, t, y, yp)
    raise_users(s)
    if status == 0:
        status, fy, fyp = probe.jacobian_at(s, t, y, yp, r)
        raise_users(s)
    if status != 0:
        return False
    slopes = s.array("tolerance") / abs(s.h)
    allowed = np.abs(fy) @ s.array("tolerance") + np.abs(fyp) @ slopes
    return bool(np.all(np.abs(r) <= allowed))


def choose_by_slopes(bdf: Bdf, t: float, y: np.ndarray) -> None:
    """At a start without y': take the mode that the slopes found belong to, if there is one."""
    first, options = bdf.model, bdf.options
    for _ in range(MOST_MODES):
        model, yp = bdf.model, bdf.yp
        if not isinstance(model, TracedProblem) or model.sides_at(t, y, yp) == model.sides:
            return
        replan(bdf, (t, y, yp), model.sides_at(t, y, yp))
        bdf.restart(t, y, None, options.first_step, options.start)
        if not bdf.start.success:
            break
    _move(bdf, first, t, y)
    bdf.restart(t, y, None, options.first_step, options.start)


def _settle(bdf: Bdf) -> None:
    """Look again where values that were made consistent have come to lie on another side.

    The stop that a mass has run into may have thrown it back.
    """
    for _ in range(MOST_MODES):
        point, model = (bdf.t, bdf.y, bdf.yp), bdf.model
        if not isinstance(model, TracedProblem) or not model.sides or not bdf.start.moved:
            return
        sides = model.sides_after(bdf.given, point, _tolerance(bdf))
        if sides == model.sides:
            return
        replan(bdf, point, sides)
        bdf.restart(*point)
        if not bdf.start.success:
            return


def _avoid_jump(bdf: Bdf, point: Point, turned: Sequence[int] = ()) -> None:
    """Take another mode where that lets unknowns that evolve go on from their values.

    Sides were told from algebraic unknowns too, which may jump here: when a switch opens, the
    voltage over a diode is still what it was, and only with another one does the current go on.
    `turned` are the surfaces that the solution passes: what they ask for stays.
    """
    model, start, plans = bdf.model, bdf.start, bdf.plans
    if not isinstance(model, TracedProblem) or model.modes is None or not _jumps(bdf, point[1]):
        return
    free = [k for k in model.modes.moving if k not in turned and k not in model.modes.timed]
    others = [flipped for count in (1, 2) for flipped in combinations(free, count)][:MOST_OTHERS]
    for flipped in others:
        sides = tuple(side != (k in flipped) for k, side in enumerate(model.sides))
        if _begin_in(bdf, sides, *point) and _goes_on(bdf, point):
            break
    else:
        if others:
            _begin_in(bdf, model.sides, point[0], start.y[: bdf.n], start.yp[: bdf.n])
    bdf.plans = plans


def _begin_in(bdf: Bdf, sides: Sides, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Begin anew in one mode; tell whether there is a consistent start in it."""
    replan(bdf, (t, y, yp), sides)
    bdf.restart(t, y, yp)
    return bdf.start.success


def _goes_on(bdf: Bdf, point: Point) -> bool:
    """Whether the start lies in its mode and has the values at a point, as far as they evolve."""
    if not isinstance(bdf.model, TracedProblem) or _jumps(bdf, point[1]):
        return False
    there = bdf.t, bdf.y, bdf.yp
    return bdf.model.sides_after(point, there, _tolerance(bdf)) == bdf.model.sides


def _jumps(bdf: Bdf, y: np.ndarray) -> bool:
    """Whether the start has changed an unknown whose derivative stands in the equations."""
    assert isinstance(bdf.model, TracedProblem)
    assert bdf.model.modes is not None
    change = np.abs(bdf.start.y[: bdf.n] - y) * bdf._state.array("weight")[: bdf.n]
    return bool(np.any(change[list(bdf.model.modes.evolving)] > SMOOTH))


def keep_history(bdf: Bdf, polynomial: LocalInterpolant, t: float) -> bool:
    """After a new begin at a time within the last step: go on at the order of before.

    Tell whether that was done.

    That is right where the solution goes on smoothly, and for most equations only a saving. Where
    an equation begins to contain an unknown with a factor that was zero it is needed: at order 1
    the iteration matrix may be singular however small the step is.
    """
    s, start, h = bdf._state, bdf.start, polynomial.t - polynomial.t_old
    y, yp = polynomial(t)
    if not start.success or len(y) != s.n or t == polynomial.t_old:
        return False
    change = np.maximum(np.abs(start.y - y), np.abs(h * (start.yp - yp)))
    if np.max(change * s.array("weight")) > SMOOTH:
        return False
    times = t - h * np.arange(polynomial.k, 0, -1)
    begin.begin(s, t, start.y, start.yp, abs(h))
    begin.add_history(s, times, polynomial(times)[0].T)
    return True


def _tolerance(bdf: Bdf) -> Tolerance:
    """Of the user's variables at the present point, and of slopes over the last stride."""
    tolerance = bdf._state.array("tolerance")[: bdf.n]
    return tolerance, tolerance / bdf.stride
