"""Times at which functions switch, against all answers on a fine grid."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import special

from tether.structure.switch_times import SwitchTimes
from tether.trace import trace

# A function, and the times from 0 to 10 at which it turns, where these are easy to tell.
CASES = {
    "later": (lambda t: 1.0 if t > 2.5 else 0.0, [2.5]),
    "window": (lambda t: 1.0 if 5.0 < t < 5.001 else 0.0, [5.0, 5.001]),
    "nested": (lambda t: (1.0 if t % 2.0 < 0.5 else 0.0) if t < 5.0 else 2.0, None),
    "remainder": (lambda t: 1.0 if t % 0.7 < 0.2 else 0.0, None),
    "remainder of a remainder": (lambda t: 1.0 if (t % 3.0) % 0.7 < 0.2 else 0.0, None),
    "negative divisor": (lambda t: t % -1.5, [1.5, 3.0, 4.5, 6.0, 7.5, 9.0]),
    "floor": (lambda t: np.floor(3 - 0.5 * t), [2.0 * k for k in range(1, 5)]),
    "ceil": (lambda t: np.ceil(t / 3), [3.0, 6.0, 9.0]),
    "sawtooth": (lambda t: t - np.floor(t), [float(k) for k in range(1, 10)]),
    "limits": (lambda t: max(0.0, min(1.0, t - 2)), [2.0, 3.0]),
    "size": (lambda t: abs(t - 4.0), [4.0]),
    "points": (lambda t: np.interp(t, [0, 1, 2.5, 7], [0, 1, -1, 3]), [1.0, 2.5, 7.0]),
    "points of a remainder": (lambda t: np.interp(t % 2.0, [0, 0.5, 2], [0, 1, 0]), None),
    "sine": (lambda t: np.sign(np.sin(7 * t) - 0.3), None),
    "two sines": (lambda t: 1.0 if np.sin(t) > np.cos(2 * t) else 0.0, None),
    "decay": (lambda t: 1.0 if np.exp(-t) > 1e-3 else 0.0, [math.log(1e3)]),
    "square": (lambda t: np.floor(0.3 * t * t), None),
    "narrow": (lambda t: 1.0 if (t - 3.3) ** 2 < 1e-12 else 0.0, [3.299999, 3.300001]),
    "root": (lambda t: 1.0 if np.sqrt(t) + np.log1p(t) > 3.0 else 0.0, None),
    "and, or": (lambda t: 1.0 if (t > 1 and t < 2) or t**3 > 400 else 0.0, None),
}


def switch_times(fun, t0, t1, args=()):
    found = SwitchTimes.of(trace(lambda t, y, yp, *a: [yp[0] - fun(t, *a)], 1, args))
    table, times, t = found.timetable(np.array(args, float), t0, t1), [], t0
    while (turn := table.next(t)) is not None:
        times.append(turn)
        t = turn + math.copysign(4e-16 * max(abs(turn), 1e-2), t1 - t0)
    return times


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backwards", [False, True])
def test_times(name, backwards):
    fun, expected = CASES[name]
    span = (10.0, 0.0) if backwards else (0.0, 10.0)
    times = np.array(switch_times(fun, *span))
    times = times[times != span[1]]            # where the interval ends it does not matter
    assert np.all(np.diff(times) * (span[1] - span[0]) > 0)
    if expected is not None:
        assert sorted(times) == pytest.approx(expected, rel=1e-14)
    edges = np.concatenate([[0.0], np.sort(times), [10.0]])
    for a, b in pairwise(edges):
        if b - a < 1e-9:
            continue
        inside = np.linspace(a, b, 41)[1:-1]
        values = np.array([float(fun(t)) for t in inside])
        # in between it is smooth: differences of a fine grid are small beside those of a coarse one
        assert np.max(np.abs(np.diff(values, 3)), initial=0.0) <= 0.2 * np.ptp(values) + 1e-9


def test_every_change_of_the_answer_is_found():
    """Against the answers themselves, on a grid of a million points."""
    def wave(t):
        return np.where(np.sin(40 * t) * np.exp(-0.2 * t) > 0.1 * np.cos(3 * t), 1.0, 0.0)

    grid = np.linspace(0.0, 10.0, 1_000_001)
    answers = wave(grid)
    expected = grid[1:][np.diff(answers) != 0]
    assert switch_times(wave, 0.0, 10.0) == pytest.approx(expected.tolist(), abs=1.1e-5)


def test_arguments_decide():
    def pulse(t, on, width):
        return 1.0 if on < t < on + width else 0.0

    for on, width in ((1.0, 0.5), (3.0, 1e-6)):
        assert switch_times(pulse, 0.0, 10.0, (on, width)) == pytest.approx([on, on + width])


def test_many_edges_are_found_bit_by_bit():
    times = switch_times(lambda t: np.sign(np.sin(2 * np.pi * 1e3 * t + 0.5)), 0.0, 10.0)
    exact = (np.arange(1, 20001) - 0.5 / math.pi) / 2e3
    assert times == pytest.approx(exact[exact < 10].tolist(), abs=1e-12)


def test_nothing_switches():
    traced = trace(lambda t, y, yp: [yp[0] - np.sin(t) * abs(y[0])], 1)
    assert SwitchTimes.of(traced) is None


def test_bounds_that_tell_nothing():
    """There are none for Bessel's functions: points are looked at, and that ends."""
    times = switch_times(lambda t: 1.0 if special.j0(3 * t) > 0.1 else 0.0, 0.0, 10.0)
    grid = np.linspace(0.0, 10.0, 1_000_001)
    expected = grid[1:][np.diff(special.j0(3 * grid) > 0.1)]
    assert times == pytest.approx(expected.tolist(), abs=1.1e-5)
