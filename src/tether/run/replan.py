"""Continue with another plan where the structure of the equations has changed.

A plan is made for one structure: unknowns, equations and constraints of the reduced system. It is
reconsidered where an event has changed the state, at a break, where the user's code has changed
what the equations read, where the solution passes a surface on which the structure depends
(`tether.structure.modes`), and where a run cannot continue. A plan with other unknowns or
constraints gets its own state; the counters of the run are carried over.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import raise_user_error
from tether._core.constraints import constraints_at, jacobian_of_constraints_at
from tether.base.status import Status
from tether.plan.choose import find_model
from tether.plan.memory import new_state
from tether.plan.model import AsWritten, Given, Model, Point, Tolerance
from tether.run.attempts import COMPONENT
from tether.run.floating import determine_floating, jump_less, jumps_of_evolving
from tether.run.method import Polynomial
from tether.run.watch import Switch, locate
from tether.run.ways import find_way
from tether.structure.modes import Sides

if TYPE_CHECKING:
    from tether._core.state import State
    from tether.run.integration import Integration, Way

__all__ = [
    "choose_by_slopes",
    "follow_surfaces",
    "judge_rank",
    "keep_history",
    "pass_surfaces",
    "reduce_again",
    "replan",
    "rescue",
    "restart_at",
    "switches",
    "try_another_plan",
]

# A run that cannot get past a time restarts this share of the time after it. By then its steps were
# a few units of round-off.
RESTART_DISTANCE = 64 * float(np.finfo(float).eps)
# Before the next such rescue a run must have covered this share of what was left.
PROGRESS = 1e-6
# Limit on how many times values that were made consistent may lie in another mode.
MOST_MODES = 4
# Number of modes to try if the current one would make the solution jump.
MOST_OTHERS = 12
# A solution passes smoothly from plan to plan if it changes by less than this many tolerances.
SMOOTH = 1.0
# ... and if h^2 times its second derivative changes by less than this.
KINK = 0.25
# Second derivatives that differ by less than this, relatively, are equal as far as differences
# tell.
SAME_CURVATURE = 0.1
# The share of a step over which the second derivative is taken.
CURVATURE_SHARE = 1e-3


def restart_at(
    run: Integration,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    turned: Sequence[int] = (),
    before: np.ndarray | None = None,
    passing: Sequence[int] = (),
) -> None:
    """Restart at a point where the structure of the equations may have changed.

    `turned` are the surfaces that the solution passes here; `passing` those on which only frozen
    conditions depend. Invariants keep their values, unless the state was deliberately changed from
    what it was `before`, or what the functions read has changed.
    """
    current = run.is_current
    if before is not None or not current:
        run.references.forget()
    if before is not None or turned or not current:
        run.switching.leave_surfaces()
    elif passing:
        run.switching.turn(t, passing, y)
    run.slopes_are_old = True
    _restart_at(run, t, y, yp, turned, current)
    follow_surfaces(run)
    if not run.start.success:
        determine_floating(run, t, y, replan, always=run.by_pairs)
    run.slopes_are_old = False
    changed = before is not None and not np.array_equal(before, y)
    run.record_jumps(y if before is None else before, changed)


def _restart_at(
    run: Integration, t: float, y: np.ndarray, yp: np.ndarray, turned: Sequence[int], current: bool
) -> None:
    before, model = run.state, run.model
    run.stride = abs(before.last_h)
    way = model.sides, model.sides, tuple(turned)
    if turned or not current or model.sides_at(t, y, yp) != model.sides:
        sides = None
        if current:
            sides = _sides_beyond(model, (t, y, yp), turned)
            way = model.sides, sides, tuple(turned)
            if _avoids_jump_again(run, (t, y, yp), way):
                return
        replan(run, (t, y, yp), sides)
        if run.status == Status.EQUATIONS_CHANGED:
            return
    elif not run.switching.fits(model):
        replan(run, (t, y, yp), model.sides or None)
    smooth = run.model is not model and _holds(run, t, y, yp)
    run.restart(t, y, yp, mode="assume" if smooth else "auto")
    if run.start.success:
        entered = run.model.sides
        _follow_start(run)
        if _avoid_jump(run, (t, y, yp), turned, entered):
            run.ways_without_jump[way] = run.model.sides
        elif run.by_pairs:
            jump_less(run, t, y, replan)
    elif determine_floating(run, t, y, replan, always=False):
        return
    elif _take_mode_with_start(run, (t, y, yp), turned):
        run.ways_without_jump[way] = run.model.sides
    elif run.state is not before or run.model is not model or not _restart_as_is(run, t, y, yp):
        try_another_plan(run, t, y, yp)


def follow_surfaces(run: Integration) -> None:
    """Stay on surfaces that both sides point at, and leave those that no longer hold the start."""
    if run.model.frozen is not None:
        before, plans = run.model, run.plans
        find_way(run, partial(_restart_on_surfaces, run))
        same = run.model.has_structure_of(before) and run.switching.fits(before)
        run.plans = min(run.plans, plans if same else plans + 1)
        run.switching.shorten_step()


def _restart_on_surfaces(run: Integration) -> None:
    """Restart on the surfaces on which the solution is to stay."""
    point = run.given
    if not run.switching.fits(run.model):
        replan(run, point, run.model.sides or None)
    run.restart(*point, run.options.first_step if run.state.steps == 0 else None)


def replan(run: Integration, point: Given, sides: Sides | None = None, anew: bool = False) -> None:
    """Determine the structure at a point, and continue with a model for it.

    The state is a new one if the structure differs, or if that is wanted (`anew`).
    """
    model = _find_another(run, point, sides)
    if model is None:
        run.status = Status.EQUATIONS_CHANGED
        return
    n_constraints = run.state.n_constraints
    if model.has_structure_of(run.model) and not anew:
        _replace_equations(run, model, *point[:2])
        if run.state.n_constraints == n_constraints:
            return
    _replace_model(run, model, *point[:2])


def _find_another(
    run: Integration,
    point: Given,
    sides: Sides | None,
    anew: bool = False,
) -> Model | None:
    """Find the model of the equations as they are now; None if it is not what was asked for."""
    options = run.options
    if options.trace == "never":
        return AsWritten(run.problem, run.n, point)
    model, note = find_model(
        run.problem, *point, options.form, options.backend, run.units, sides, anew,
        run.switching.slides, run.leaks, run.beside, run.by_pairs, run.switching.pins,
        run.tape is not None,
    )
    if note and options.trace == "always":
        return None
    run.note = note
    return model


def _replace_equations(run: Integration, model: Model, t: float, y: np.ndarray) -> None:
    """Continue with other equations for the same unknowns."""
    s = run.state
    run.adopt(model)
    s.fyp_known = s.fyp_exists = s.fyp_constant = s.jacobian_exists = False
    s.cj_factored = 0.0
    model.attach(s)
    model.constraints.attach(s, t, y, run.problem.args, run.options)


def _replace_model(run: Integration, model: Model, t: float, y: np.ndarray) -> None:
    """Continue with a model that has other unknowns or constraints, in a new state."""
    old, owner = run.state, run.model.owner
    run.adopt(model)
    run.state = new_state(model, run.options)
    model.constraints.attach(run.state, t, y, run.problem.args, run.options)
    _carry_over(old, np.where(owner < run.n, owner, -1), run.state)
    run.plans += 1


def _carry_over(old: State, owner: np.ndarray, new: State) -> None:
    """Carry a run over to another state; `owner` has the owners of old unknowns or -1."""
    new.take_over_from(old)
    rows, kept = (s.ring_rows for s in (new, old))
    shared = codes.RING_COLUMNS + min(new.n, old.n)       # y' begins with the user's unknowns
    last = np.arange(max(0, new.attempts - min(len(rows), len(kept))), new.attempts)
    rows[last % len(rows), :shared] = kept[last % len(kept), :shared]
    component = rows[:, COMPONENT]
    known = component >= 0
    component[known] = owner[component[known].astype(int)]


# --- where a run cannot go on -----------------------------------------------------------------


def rescue(run: Integration) -> bool:
    """Find a way for a failed run to continue; tell whether there is one."""
    return reduce_again(run, failed=True) or _restart_beyond(run)


def reduce_again(run: Integration, failed: bool = False) -> bool:
    """Reduce the same system again if the reduction was made with the values at the start.

    Combinations with varying factors, and the rows chosen from a derivative array, may stop being
    suitable during the run though the structure does not change.
    """
    model, s, before = run.model, run.state, run.reduced_at
    if model.reduced is None or not model.only_here or before == s.t:
        return False
    if failed and before is not None and abs(s.t - before) < PROGRESS * abs(s.t_end - s.t):
        return False
    point, run.reduced_at = (s.t, run.y, run.yp), s.t
    other = _find_another(run, point, model.sides or None)
    if other is None or not other.has_freedom_of(model):
        return False
    go_on = _replace_equations if other.has_structure_of(model) else _replace_model
    go_on(run, other, *point[:2])
    run.restart(*point)
    run.record_jumps()
    return run.status == Status.RUNNING


def _restart_beyond(run: Integration) -> bool:
    """Restart with another plan just after a time that no step has passed, if there is one."""
    s, before = run.state, run.tried_at
    t = s.t + s.direction * RESTART_DISTANCE * abs(s.t)
    left = (s.t_end - t) * s.direction
    if left <= 0.0 or (before is not None and abs(t - before) < PROGRESS * left):
        return False
    return try_another_plan(run, t, run.y, run.yp)


def judge_rank(run: Integration) -> None:
    """Judge an attempt at which the constraints had another rank than the plan expects.

    At a singular configuration of the same equations the run may pass. If the equations have
    changed no step can, and the run restarts after the change (`rescue`).
    """
    s, note, n = run.state, run.note, run.n
    s.rank_changed = False
    point = s.t_new, s.y_tried[:n].copy(), s.yp_tried[:n].copy()
    there = _find_another(run, point, run.model.sides or None, anew=True)
    run.note = note
    models = [model for model in (run.model, there) if model is not None and model.reduced]
    redundant = {model.redundant for model in models}
    same = there is not None and there.has_structure_of(run.model) and len(redundant) == 1
    if same:
        s.rank_floor, s.rank_ceiling = 0, 2**30
    else:
        s.rank_understood = True


def try_another_plan(run: Integration, t: float, y: np.ndarray, yp: np.ndarray | None) -> bool:
    """Determine the ranks where the run cannot continue; restart if they have changed."""
    before, note = run.model, run.note
    as_given = run.options.form == "given" or run.problem.var_index is not None
    if before.plan is None or as_given or run.tried_at == t:
        return False
    run.tried_at = t
    sides = before.sides
    if yp is not None:
        sides = before.sides_after(run.given, (t, y, yp), _tolerance(run))
    model = _find_another(run, (t, y, yp), sides or None, anew=True)
    if model is None or (model.has_structure_of(before) and not before.only_here):
        run.note = note
        return False
    kept = run.kept()
    _replace_model(run, model, t, y)
    run.restart(t, y, yp)
    if run.start.success:
        run.record_jumps()
        return True
    run.go_back_to(kept)
    run.note = note
    return False


def _restart_as_is(run: Integration, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Restart with the values as they are if the same equations have led to them.

    In a singular configuration, such as a linkage folded flat, these do not determine multipliers
    and slopes; a step later they do.
    """
    s = run.state
    if run.model.reduced is None or s.n != run.n or not s.n_constraints:
        return False
    status, g = constraints_at(s, t, y)
    raise_user_error(s)
    if status == 0:
        status, slopes = jacobian_of_constraints_at(s, t, y)
        raise_user_error(s)
    if status != 0 or not np.all(np.abs(g) <= abs(slopes) @ s.tolerances):
        return False
    run.restart(t, y, yp, mode="assume")
    return True


# --- surfaces -----------------------------------------------------------------------------------


def switches(run: Integration, timed: bool) -> list[Switch]:
    """List the surfaces where the structure may change; with `timed` also those of time alone."""
    model = run.model
    if model.modes is None:
        return []
    point, tolerance = (run.t, run.y, run.yp), _tolerance(run)
    return [
        Switch.of(model.modes, k, model.inputs, model.sides[k], model.band(k, point, tolerance))
        for k in model.modes.moving if timed or k not in model.modes.timed
    ]


def pass_surfaces(run: Integration) -> None:
    """If the last step passes a surface, end it there and restart in the next mode."""
    whole = run.polynomial()
    polynomial = whole.restricted(run.n)
    found = []
    for switch in run.watched or ():
        new = switch.fun(run.t, run.y, run.yp)
        if new * switch.side < 0.0:
            t = locate(switch, polynomial, (), switch.side, new)
            found.append((run.state.direction * t, t, switch.surface))
    passed = [(run.state.direction * t, t, k) for t, k in run.switching.passed(whole)]
    if not found and not passed:
        return
    t = min([*found, *passed])[1]
    turned, passing = ([k for _, time, k in some if time == t] for some in (found, passed))
    restart_at(run, t, *polynomial(t), turned, passing=passing)
    keep_history(run, whole, t, only_without_kink=bool(passing))


def _sides_beyond(model: Model, point: Point, turned: Sequence[int]) -> Sides:
    """Sides of all surfaces beyond a point that lies on some of them."""
    here = model.sides_at(*point)
    return tuple(
        not old if k in turned else here[k] for k, old in enumerate(model.sides)
    )


def _holds(run: Integration, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Tell whether equations as written hold at a point, up to changes of y within the tolerance.

    Equations that have just begun to contain an unknown do not determine it well.
    """
    s = run.state
    if run.model.reduced is not None or s.n != run.n or s.n_constraints:
        return False
    if probe.move_to(s, t, y, yp) != 0:
        return False
    status, r = probe.residual_at(s, t, y, yp)
    raise_user_error(s)
    if status == 0:
        status, fy, fyp = probe.jacobian_at(s, t, y, yp, r)
        raise_user_error(s)
    if status != 0:
        return False
    slopes = s.tolerances / abs(s.h)
    allowed = np.abs(fy) @ s.tolerances + np.abs(fyp) @ slopes
    return bool(np.all(np.abs(r) <= allowed))


def choose_by_slopes(run: Integration, t: float, y: np.ndarray) -> None:
    """At a start without y': take the mode to which the slopes found belong, if there is one."""
    first, options = run.model, run.options
    if first.modes is None:
        return
    for _ in range(MOST_MODES):
        model, yp = run.model, run.yp
        if model.sides_at(t, y, yp) == model.sides:
            return
        replan(run, (t, y, yp), model.sides_at(t, y, yp))
        run.restart(t, y, None, options.first_step, options.start)
        if not run.start.success:
            break
    _replace_model(run, first, t, y)
    run.restart(t, y, None, options.first_step, options.start)


def _follow_start(run: Integration) -> None:
    """Replan if values that were made consistent now lie on another side of a surface.

    The stop that a mass has hit may have thrown it back.
    """
    for _ in range(MOST_MODES):
        point, model = (run.t, run.y, run.yp), run.model
        if not model.sides or not run.start.moved:
            return
        sides = model.sides_after(run.given, point, _tolerance(run))
        if sides == model.sides:
            return
        earlier = run.start
        replan(run, point, sides)
        run.restart(*point)
        if not run.start.success:
            return
        run.start = run.start.after(earlier)


def _avoids_jump_again(run: Integration, point: Point, way: Way) -> bool:
    """Take at once the mode that avoided a jump the last time the run passed like this.

    Tell whether it does so again.
    """
    sides, plans = run.ways_without_jump.get(way), run.plans
    if sides is None:
        return False
    if _begin_in(run, sides, *point) and _goes_on(run, point):
        return True
    run.plans = plans
    return False


def _avoid_jump(
    run: Integration, point: Point, turned: Sequence[int], entered: Sides
) -> bool:
    """Take another mode if unknowns that evolve can then keep their values; tell whether.

    Sides are also judged from algebraic unknowns, which may jump here: when a switch opens, the
    voltage over a diode is still the old one, and only with another voltage can the current
    continue. `turned` are the surfaces that the solution passes, whose sides are fixed. A run that
    jumped from the mode it `entered` into its current one may continue there without a jump.
    """
    model, start, plans = run.model, run.start, run.plans
    if model.modes is None or not _jumps(run, point[1]):
        return False
    others = _other_modes(model, turned)
    # do not return through what was just passed: an impact must stay
    if entered != model.sides and all(model.sides[k] == entered[k] for k in turned):
        others.insert(0, model.sides)
    for sides in others:
        if _begin_in(run, sides, *point) and _goes_on(run, point):
            run.plans = plans
            return True
    if others:
        _begin_in(run, model.sides, point[0], start.y[: run.n], start.yp[: run.n])
        run.start = run.start.after(start)
        run.plans = plans
    return False


def _take_mode_with_start(run: Integration, point: Point, turned: Sequence[int]) -> bool:
    """Take another mode if the current one has no start and unknowns that evolve continue there.

    When a switch closes, a diode that was conducting has to block: while its voltage is still zero
    and the supply has its own, the equations contradict each other.
    """
    kept, plans = run.kept(), run.plans
    for sides in _other_modes(run.model, turned):
        if _begin_in(run, sides, *point) and _goes_on(run, point):
            run.plans = plans
            return True
    run.go_back_to(kept)
    _replace_equations(run, run.model, *point[:2])     # its memory may have other ones now
    return False


def _other_modes(model: Model, turned: Sequence[int]) -> list[Sides]:
    """List modes that differ from a model's in one or two conditions on algebraic unknowns."""
    if model.modes is None:
        return []
    free = [k for k in model.modes.moving if k not in turned and k not in model.modes.timed]
    flips = [flipped for count in (1, 2) for flipped in combinations(free, count)][:MOST_OTHERS]
    return [
        tuple(side != (k in flipped) for k, side in enumerate(model.sides)) for flipped in flips
    ]


def _begin_in(run: Integration, sides: Sides, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Restart in one mode; tell whether it has a consistent start."""
    replan(run, (t, y, yp), sides)
    run.restart(t, y, yp)
    return run.start.success


def _goes_on(run: Integration, point: Point) -> bool:
    """Tell whether the start lies in its mode, and unknowns that evolve have kept their values."""
    if _jumps(run, point[1]):
        return False
    there = run.t, run.y, run.yp
    return run.model.sides_after(point, there, _tolerance(run)) == run.model.sides


def _jumps(run: Integration, y: np.ndarray) -> bool:
    """Tell whether the start has changed an unknown whose derivative occurs in the equations."""
    return bool(np.max(jumps_of_evolving(run, y)) > SMOOTH)


def keep_history(
    run: Integration, polynomial: Polynomial, t: float, only_without_kink: bool = False
) -> bool:
    """After a restart at a time within the last step: continue at the previous order.

    Tell whether that was done.

    That is right where the solution continues smoothly, and with most equations only saves steps.
    It is needed where an equation begins to contain an unknown with a factor that was zero: at
    order 1 the iteration matrix may be singular however small the step. With `only_without_kink`
    the second derivative must also be continuous, as far as a step of the same size shows: with a
    history that no longer belongs to the equations, a kink costs more digits than a restart.
    """
    s, start, h = run.state, run.start, polynomial.t - polynomial.t_old
    y, yp = polynomial(t)
    if not start.success or len(y) != s.n or t == polynomial.t_old:
        return False
    change = np.maximum(np.abs(start.y - y), np.abs(h * (start.yp - yp)))
    if np.max(change * s.weights) > SMOOTH:
        return False
    if only_without_kink:
        if start.ypp is None:
            return False
        before = (yp - polynomial(t - CURVATURE_SHARE * h)[1]) / (CURVATURE_SHARE * h)
        kink = np.abs(start.ypp - before)
        if np.max(h**2 * kink * s.weights) > KINK:
            return False
        # derivatives of the solution have kinks of lower order, however short the step
        curvature = np.maximum(np.abs(start.ypp), np.abs(before))
        if run.tape is not None and np.any(kink > SAME_CURVATURE * curvature):
            return False
    run.method.go_on(s, t, start, polynomial)
    return True


def _tolerance(run: Integration) -> Tolerance:
    """Tolerances of the user's variables at the current point, and of their slopes."""
    tolerance = run.state.tolerances[: run.n]
    return tolerance, tolerance / run.stride
