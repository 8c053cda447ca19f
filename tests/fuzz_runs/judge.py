"""Run one case with random options and compare it with its reference."""

import signal
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq

from fuzz_runs.case import Case, Dressed, dress
from fuzz_runs.reference import Precision, Unusable
from tether import solve_dae

# Error in units of the tolerance, and of what the problem makes of a start changed by it; every
# step may add to it, so that for many steps it is this share of their number.
ALLOWED = 200.0
SHARE = 0.1
SECONDS = 120
# Of their size: what multipliers may be off by where index 2 and 3 are integrated as written.
ROUGHLY = 0.03
SAMPLES = 241


@dataclass
class Verdict:
    kind: str  # ok, wrong, raised, failed, warned, skipped, hangs
    name: str
    text: str = ""
    worst: float = 0.0  # largest error, 1 is what is allowed
    options: dict = field(default_factory=dict)
    solution: object = None
    dressed: Dressed | None = None
    case: Case | None = None
    truth: object = None


@contextmanager
def time_limit(seconds):
    if not hasattr(signal, "SIGPROF"):  # Windows
        yield
        return

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)  # processor time: the machine may be busy
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Truth:
    """A reference, how large the unknowns get, and how far they may be off."""

    trajectory: object
    times: np.ndarray
    values: np.ndarray
    allowed: np.ndarray  # per unknown
    size: np.ndarray  # typical, per unknown
    reach: float  # how far switching times may be off


def know(case, start, rtol, atol, values=None):
    """Compute the reference and what becomes of small changes of the start."""
    trajectory = case.reference(start)
    times = np.linspace(*case.span, SAMPLES)
    if values is None:
        values = np.array([trajectory(t) for t in times])
    size = np.maximum(np.abs(values).max(axis=0), _at_switches(trajectory))
    rng = np.random.default_rng(7)  # whatever is tried here, the options stay what they are
    beside = perturbed(case, start, rtol, rng)
    with Precision(Precision.current.rtol, rtol, rng.choice([-1.0, 1.0], 40)):
        other = case.reference(beside)
    if len(other.switches) != len(trajectory.switches) or other.sequence != trajectory.sequence:
        raise Unusable("another sequence of switchings nearby")
    shift = 0.0
    if trajectory.switches:
        shift = np.abs(np.subtract(other.switches, trajectory.switches)).max()
    keep = np.ones(len(times), bool)
    for s in trajectory.switches:
        keep &= np.abs(times - s) > 3 * shift
    moved = np.abs(np.array([other(t) for t in times]) - values) * keep[:, None]
    moved = moved.max(axis=0)
    if np.any(moved > 0.02 * size + 50 * (rtol * size + atol)):
        raise Unusable("sensitive")
    for i, least in case.least.items():
        size[i] = max(size[i], least)
    allowed = ALLOWED * (rtol * size + atol + moved)
    span = abs(case.span[1] - case.span[0])
    reach = ALLOWED * (3 * shift + 0.1 * rtol * span)
    gaps = np.diff([case.span[0], *trajectory.switches, case.span[1]])
    if trajectory.switches and reach > 0.3 * np.abs(gaps).min():
        # a switching that may be anywhere between its neighbours tells nothing
        reach = 0.3 * np.abs(gaps).min()
        if ALLOWED * shift > 10 * reach:
            raise Unusable("switchings too close for the tolerance")
    return Truth(trajectory, times, values, allowed, sizes(case, values), reach)


def _at_switches(trajectory):
    """Largest values at both ends and in the middle of every piece, however short it is."""
    found = [
        np.abs(piece.values(x))
        for piece in trajectory.pieces
        for x in (piece.low, 0.5 * (piece.low + piece.high), piece.high)
    ]
    return np.max(found, axis=0)


def perturbed(case, start, rtol, rng):
    if case.perturb is not None:
        return case.perturb(start, rtol, rng)
    signs = rng.choice([-1.0, 1.0], len(start))
    size = np.maximum(np.abs(start), 1e-2)
    return start + rtol * size * signs


def sizes(case, values):
    """Typical sizes: the largest value of any unknown with the same unit."""
    largest = np.abs(values).max(axis=0)
    groups: dict[tuple, float] = {}
    for i, unit in enumerate(case.units):
        groups[tuple(unit)] = max(groups.get(tuple(unit), 0.0), largest[i])
    return np.array([groups[tuple(unit)] or 1.0 for unit in case.units])


def random_options(case, rng):
    rtol = 10.0 ** rng.uniform(-9, -3)
    options = {"form": case.forms[rng.integers(len(case.forms))]}
    if case.called and rng.random() < 0.2:
        options["trace"] = "never"
    if rng.random() < 0.2:
        options["max_order"] = int(rng.integers(2, 6))
    return rtol, options


def level_event(case, truth, rng, given):
    """Choose an unknown and a level that it passes clearly; its times by the reference."""
    times, values, trajectory = truth.times, truth.values, truth.trajectory
    rough = case.guessed if case.late and given else ()
    candidates = [i for i in range(len(case.units)) if i not in (*case.unwatched, *rough)]
    rng.shuffle(candidates)
    for i in candidates:
        x = values[:, i]
        spread = x.max() - x.min()
        if spread < 0.05 * np.abs(x).max() + 1e-300 or spread < 5 * truth.allowed[i]:
            continue
        level = x.min() + rng.uniform(0.2, 0.8) * spread
        below = x < level
        changes = np.flatnonzero(below[1:] != below[:-1])
        if not len(changes) or len(changes) > 60:
            continue
        slope = np.abs(np.diff(x))
        if slope[changes].min() < 0.05 * slope.max():
            continue
        if any(
            _jumps_over(trajectory, s, i, level, 3 * truth.allowed[i]) for s in trajectory.switches
        ):
            continue
        # no turning close to the level between the samples
        turning = np.flatnonzero(np.diff(np.sign(np.diff(x))) != 0) + 1
        if len(turning) and np.abs(x[turning] - level).min() < 0.02 * spread + 2 * truth.allowed[i]:
            continue
        if min(abs(x[0] - level), abs(x[-1] - level)) < 0.02 * spread + 2 * truth.allowed[i]:
            continue
        exact = [
            brentq(
                lambda t, i=i, level=level: trajectory(t)[i] - level,
                times[c],
                times[c + 1],
                xtol=1e-14,
                rtol=1e-14,
            )
            for c in changes
        ]
        step = abs(times[1] - times[0])
        rates = [
            abs(trajectory(t + 1e-4 * step)[i] - trajectory(t - 1e-4 * step)[i]) / (2e-4 * step)
            for t in exact
        ]
        if min(rates) * step < 0.01 * slope.max():
            continue
        reach = np.array([truth.allowed[i] / r for r in rates])
        gaps = np.abs(np.diff([*exact, case.span[1]]))
        if (reach > 0.3 * gaps.min()).any():
            continue
        rising = [bool(below[c]) for c in changes]
        return i, level, np.array(exact), reach, rising
    return None


def _jumps_over(trajectory, s, i, level, margin):
    low, high = trajectory.near(s, 1e-9 * abs(np.subtract(*trajectory.span)))
    return high[i] - low[i] > margin and low[i] - margin < level < high[i] + margin


def make_event(k, level):
    def event(t, y, yp, unit):
        return y[k] - level

    return event


def judge(case: Case, rng) -> Verdict:
    """Solve the case and say how it went."""
    rtol, options = random_options(case, rng)
    with Precision(min(max(1e-3 * rtol, 1e-11), 1e-7)):
        return _judge(case, rng, rtol, options)


def _judge(case, rng, rtol, options):
    try:
        trajectory = case.reference(case.start)
        times = np.linspace(*case.span, SAMPLES)
        values = np.array([trajectory(t) for t in times])
        if not np.isfinite(values).all() or np.abs(values).max() > 1e8:
            raise Unusable("grows without bound")
        atol = rtol * 10.0 ** rng.uniform(-3, 0) * sizes(case, values)
        truth = know(case, case.start, rtol, atol, values)
    except Unusable as reason:
        return Verdict("skipped", case.name, str(reason))
    y0 = np.array(values[0] if case.y0 is None else case.y0, float)
    exact_start = True
    given = as_written(options)
    if case.guessed and not given and rng.random() < 0.5:
        y0[list(case.guessed)] *= rng.uniform(0, 2, len(case.guessed))
    if case.approximate is not None and not given and rng.random() < 0.3:
        y0 += 0.01 * sizes(case, values) * rng.uniform(-1, 1, len(y0))
        exact_start = False
    dressed = dress(case, y0, rng, rtol, atol)
    if not exact_start or (case.late and given):  # at index 3 as written they are refused
        dressed.options.pop("constraints", None)
        dressed.options.pop("invariants", None)
    if options.get("trace") == "never" and case.breaks:  # what is called may step over a pulse
        dressed.options["t_breaks"] = [b * dressed.time for b in case.breaks]
    dressed.options.update(options)
    observed = _output_options(case, dressed, truth, rng, exact_start)
    try:
        with warnings.catch_warnings(), time_limit(SECONDS):
            warnings.simplefilter("ignore")
            sol = solve_dae(
                dressed.fun, dressed.span, dressed.y0, args=dressed.args, **dressed.options
            )
    except TimeoutError:
        return Verdict(
            "hangs",
            case.name,
            f"longer than {SECONDS} s",
            options=dressed.options,
            dressed=dressed,
            case=case,
            truth=truth,
        )
    except Exception as error:
        kind = "refused" if isinstance(error, ValueError) else "raised"
        return Verdict(
            kind,
            case.name,
            f"{type(error).__name__}: {error}",
            options=dressed.options,
            dressed=dressed,
            case=case,
            truth=truth,
        )
    found = Verdict(
        "ok",
        case.name,
        options=dressed.options,
        solution=sol,
        dressed=dressed,
        case=case,
        truth=truth,
    )
    if not sol.success:
        found.kind, found.text = "failed", sol.message
        return found
    if not exact_start:
        try:
            start = case.approximate(dressed.to_case(sol.start.y))
            truth = found.truth = know(case, start, rtol, atol)
        except Unusable as reason:
            found.kind, found.text = "skipped", str(reason)
            return found
        change = np.abs(dressed.to_case(sol.start.y) - y0) / sizes(case, values)
        change[list(case.guessed)] = 0
        if change.max() > 0.2:
            found.kind, found.text = "wrong", f"start moved by {change.max():.3g}"
    truth.allowed *= max(1.0, SHARE * sol.stats.steps / ALLOWED)
    _compare(case, dressed, sol, truth, observed, found)
    if found.kind == "wrong" and sol.warnings:
        found.kind = "warned"
    return found


def _output_options(case, dressed, truth, rng, exact_start):
    """Add output, an event and a callback; return what is to be compared."""
    options, t0, t1 = dressed.options, *dressed.span
    observed = {"event": None, "dense": False, "called": []}
    way = rng.random()
    if way < 0.4:
        inner = np.sort(rng.uniform(0, 1, int(rng.integers(3, 200))))
        options["t_eval"] = np.unique(t0 + (t1 - t0) * inner)[:: 1 if t1 > t0 else -1]
    if way > 0.7 or rng.random() < 0.1:
        options["dense_output"] = observed["dense"] = True
    if exact_start and rng.random() < 0.4:
        chosen = level_event(case, truth, rng, as_written(options))
        if chosen is not None:
            i, level, exact, reach, rising = chosen
            k = int(np.flatnonzero(dressed.order == i)[0])
            event = make_event(k, float(level * dressed.scale[i]))
            expected = np.ones(len(exact), bool)
            if rng.random() < 0.3:
                event.direction = int(rng.choice([-1, 1]))
                expected = np.array([r == (event.direction > 0) for r in rising])
            exact, reach = exact[expected], reach[expected]
            last = None
            if rng.random() < 0.3 and len(exact):
                last = int(rng.integers(1, len(exact) + 1))
                event.terminal = last if last > 1 or rng.random() < 0.5 else True
                exact, reach = exact[:last], reach[:last]
            options["events"] = [*options.get("events", []), event]
            observed["event"] = (i, level, exact, reach, last)
    if rng.random() < 0.1:
        options["callback"] = lambda t, y, yp: observed["called"].append((t, y.copy())) and None
    return observed


def _compare(case, dressed, sol, truth, observed, found):
    end = case.span[1]
    terminal = False
    if observed["event"] is not None:
        i, level, exact, reach, last = observed["event"]
        times = sol.t_events[-1] / dressed.time
        terminal = last is not None
        if len(times) != len(exact):
            found.kind = "wrong"
            found.text = (
                f"event on unknown {i} (level {level:.6g}) at {times[:6]}, {len(times)} in all, "
                f"instead of {exact[:6]}, {len(exact)} in all"
            )
            return
        if len(exact):
            off = np.abs(times - exact) / (reach + 1e-12 * abs(end))
            _worst(
                found,
                off.max(),
                f"event on unknown {i} at {times[off.argmax()]:.10g}, "
                f"not {exact[off.argmax()]:.10g}",
            )
            if last is not None:
                end = times[-1]
            for t, y in zip(times, sol.y_events[-1], strict=True):
                _check_point(case, truth, t, dressed.to_case(y), found, "event")
    reached = sol.t[-1] / dressed.time if "t_eval" not in dressed.options else end
    if abs(reached - end) > 1e-9 * abs(case.span[1] - case.span[0]):
        found.kind, found.text = "wrong", f"ended at {reached:.10g}, not {end:.10g}"
        return
    count = len(sol.t)
    chosen = range(count) if count < 400 else np.unique(np.linspace(0, count - 1, 400).astype(int))
    if "t_eval" in dressed.options and not terminal:
        asked = dressed.options["t_eval"]
        if len(asked) != count or np.abs(asked - sol.t).max() > 0:
            found.kind, found.text = "wrong", "not the times asked for"
            return
    for k in chosen:
        _check_point(
            case,
            truth,
            sol.t[k] / dressed.time,
            dressed.to_case(sol.y[:, k]),
            found,
            "t_eval" if "t_eval" in dressed.options else "step",
        )
    if observed["dense"] and sol.sol is not None:
        for t in np.linspace(case.span[0], end, 173):
            inside = min(max(t * dressed.time, sol.sol.t_min), sol.sol.t_max)
            y, _ = sol.sol(inside)
            _check_point(case, truth, t, dressed.to_case(y), found, "dense")
    for t, y in observed["called"][:: max(1, len(observed["called"]) // 50)]:
        _check_point(case, truth, t / dressed.time, dressed.to_case(y), found, "callback")


def _check_point(case, truth, t, y, found, where):
    low, high = truth.trajectory.near(t, truth.reach)
    allowed = truth.allowed.copy()
    if case.late and as_written(found.options):
        late = list(case.guessed)
        allowed[late] = np.maximum(allowed[late], ROUGHLY * truth.size[late])
    beyond = np.maximum(np.maximum(low - y, y - high), 0.0) / allowed
    if not np.isfinite(y).all():
        beyond[~np.isfinite(y)] = np.inf
    i = int(beyond.argmax())
    _worst(
        found,
        beyond[i],
        f"{where}: unknown {i} is {y[i]:.10g} at {t:.10g}, not {low[i]:.10g}"
        + (f" to {high[i]:.10g}" if high[i] > low[i] else ""),
    )


def as_written(options):
    """Whether equations of index 2 and 3 are integrated as they are."""
    return options.get("form") != "auto" or options.get("trace") == "never"


def _worst(found, error, text):
    if error > found.worst:
        found.worst = float(error)
        if error > 1.0:
            found.kind, found.text = "wrong", f"{text} ({error:.3g} times what is allowed)"
