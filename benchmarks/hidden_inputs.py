"""What it costs that a function reads values outside `args` which change.

    python -m benchmarks.hidden_inputs [--rounds 15] [--quick]

A sampled controller writes its output 100 times in a run; a fit solves with other parameters every
time. Each does so by way of `args`, and in the ways in which people write it. All take turns in one
process, and `ratio` is the best time over that by way of `args`. `traces` are those of the first
run, or of all solves of the first fit.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import conditions
from tether import solve_dae
from tether.plan import choose, functions
from tether.plan.shelf import shelf

RESULTS = Path(__file__).parent / "results"
SAMPLES = 100

Run = Callable[[], float]


# --- a controller ---------------------------------------------------------------------------------


def _plant(y: Any, yp: Any, u: Any) -> list[Any]:
    x, v, q = y
    return [yp[0] - v, yp[1] + 0.4 * v + math.pi * x - q, 0.05 * yp[2] + q - u]


def _sampled(fun: Callable[..., Any], write: Callable[[float], None], args: tuple = ()) -> Run:
    """Return a run in which a controller acts SAMPLES times."""
    period = 10.0 / SAMPLES

    def clock(t: float, y: Any, yp: Any, *args: Any) -> Any:
        return np.sin(math.pi * (t / period + 0.5))

    def act(t: float, y: Any, yp: Any, *args: Any) -> Any:
        write(float(2.0 - 1.5 * y[0] - 0.8 * y[1]))
        return y

    clock.apply = act                                  # type: ignore[attr-defined]

    def run() -> float:
        write(0.5)
        found = solve_dae(fun, (0.0, 10.0), [0.0, 0.0, 0.5], events=clock, args=args)
        assert found.success
        assert len(found.t_events[0]) == SAMPLES
        return float(found.y[0, -1])

    return run


def in_args() -> Run:
    """Write to a list that is an argument."""
    u = [0.5]
    return _sampled(lambda t, y, yp, u: _plant(y, yp, u[0]), lambda x: u.__setitem__(0, x), (u,))


def in_a_list() -> Run:
    """Write to a list around the function."""
    u = [0.5]
    return _sampled(lambda t, y, yp: _plant(y, yp, u[0]), lambda x: u.__setitem__(0, x))


def in_a_variable() -> Run:
    """Write to a variable around the function."""
    u = 0.5

    def write(x: float) -> None:
        nonlocal u
        u = x

    return _sampled(lambda t, y, yp: _plant(y, yp, u), write)


def in_an_array() -> Run:
    """Write to an array around the function."""
    u = np.full(4, 0.5)
    return _sampled(lambda t, y, yp: _plant(y, yp, u[1]), lambda x: u.__setitem__(1, x))


class Controller:
    """An object with its output and its parameters."""

    def __init__(self) -> None:
        self.u, self.gain, self.samples, self.log = 0.5, 1.5, 0, [0.0]

    def residual(self, t: float, y: Any, yp: Any) -> list[Any]:
        """Return the equations of the plant."""
        return _plant(y, yp, self.u)


def in_an_attribute() -> Run:
    """Write to an attribute."""
    controller = Controller()
    return _sampled(controller.residual, lambda x: setattr(controller, "u", x))


def with_a_log() -> Run:
    """Write to an attribute, count and take notes in others."""
    controller = Controller()

    def write(x: float) -> None:
        controller.u = x
        controller.samples += 1
        controller.log.append(x)

    return _sampled(controller.residual, write)


# --- a fit ----------------------------------------------------------------------------------------


@dataclass
class Parameters:
    """What is looked for."""

    rate: float
    feed: float
    order: int = 2


def _reactor(y: Any, yp: Any, rate: Any, feed: Any, order: int) -> list[Any]:
    a, b = y
    return [yp[0] + rate * a**order - feed, yp[1] - rate * a**order + 0.1 * b]


def _fit(count: int, solve: Callable[[float, float], Any]) -> Run:
    def run() -> float:
        total = 0.0
        for i in range(count):
            found = solve(1.0 + 0.01 * i, 0.5 + 0.002 * i)
            assert found.success
            total += float(found.y[1, -1])
        return total

    return run


def fit_in_args(count: int) -> Run:
    """Pass the parameters as arguments."""
    def fun(t: float, y: Any, yp: Any, rate: Any, feed: Any, order: int) -> list[Any]:
        return _reactor(y, yp, rate, feed, order)

    return _fit(count, lambda rate, feed: solve_dae(
        fun, (0.0, 5.0), [1.0, 0.0], args=(rate, feed, 2), t_eval=[5.0]))


def fit_object_in_args(count: int) -> Run:
    """Pass a new object every time."""
    def fun(t: float, y: Any, yp: Any, p: Parameters) -> list[Any]:
        return _reactor(y, yp, p.rate, p.feed, p.order)

    return _fit(count, lambda rate, feed: solve_dae(
        fun, (0.0, 5.0), [1.0, 0.0], args=(Parameters(rate, feed),), t_eval=[5.0]))


def fit_new_closure(count: int) -> Run:
    """Make a new function around a new object every time."""
    def make(p: Parameters) -> Callable[..., Any]:
        return lambda t, y, yp: _reactor(y, yp, p.rate, p.feed, p.order)

    return _fit(count, lambda rate, feed: solve_dae(
        make(Parameters(rate, feed)), (0.0, 5.0), [1.0, 0.0], t_eval=[5.0]))


def fit_closure(count: int) -> Run:
    """Change floats around the function between the calls."""
    rate = feed = 1.0

    def fun(t: float, y: Any, yp: Any) -> list[Any]:
        return _reactor(y, yp, rate, feed, 2)

    def solve(new_rate: float, new_feed: float) -> Any:
        nonlocal rate, feed
        rate, feed = new_rate, new_feed
        return solve_dae(fun, (0.0, 5.0), [1.0, 0.0], t_eval=[5.0])

    return _fit(count, solve)


# --- measurement ----------------------------------------------------------------------------------


class Case:
    """A way of writing it; the first run counts traces."""

    def __init__(self, name: str, run: Run) -> None:
        self.name, self.run, self.best, self.value = name, run, math.inf, math.nan
        self.traces = self._count()

    def _count(self) -> int:
        count = 0
        modules: list[Any] = [choose, functions]
        real = choose.trace

        def counted(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            return real(*args, **options)

        shelf.empty()
        for module in modules:
            module.trace = counted
        self.value = self.run()
        for module in modules:
            module.trace = real
        return count

    def turn(self) -> None:
        """Run once."""
        began = time.perf_counter()
        self.run()
        self.best = min(self.best, time.perf_counter() - began)


def measure(ways: dict[str, Run], rounds: int) -> list[Case]:
    """Let the ways take turns; the first is what the others are compared with."""
    cases = [Case(name, run) for name, run in ways.items()]
    for _ in range(rounds):
        for case in cases:
            case.turn()
    return cases


def table(title: str, cases: list[Case]) -> str:
    """Return a table of ratios and counts."""
    first = cases[0]
    rows = [f"| {title} | traces | ratio | result |", "|---|---|---|---|"]
    rows += [
        f"| {case.name} | {case.traces} | {case.best / first.best:.2f} | {case.value:.6f} |"
        for case in cases
    ]
    return "\n".join(rows)


def main() -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rounds, count = (3, 100) if options.quick else (options.rounds, 1000)
    controllers = {
        way.__name__.replace("_", " "): way()
        for way in (in_args, in_a_list, in_a_variable, in_an_array, in_an_attribute, with_a_log)
    }
    fits = {
        way.__name__.replace("_", " "): way(count)
        for way in (fit_in_args, fit_object_in_args, fit_new_closure, fit_closure)
    }
    text = "\n\n".join([
        "# Values that change outside `args`", conditions(),
        table(f"a controller that acts {SAMPLES} times", measure(controllers, rounds)),
        table(f"a fit of {count} solves", measure(fits, max(3, rounds // 5))),
    ])
    print(text)
    if not options.quick:
        (options.output / "hidden_inputs.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
