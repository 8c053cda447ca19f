"""Find out how a solution continues from the surfaces that it has reached.

It goes to one side of each or stays on some of them. Where it arrives at several surfaces by ever
faster switches, or leaves a corner in which it was held, staying on some of them may imply staying
on the others (`tether.structure.sliding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tether.run.integration import Integration

__all__ = ["find_way"]

# Limit on how many times surfaces may be left and met again at one time.
MOST_ROUNDS = 8
# With up to this many surfaces at once, all ways to continue are tried ...
MOST_MET = 4
# ... and otherwise this many.
MOST_TRIALS = 30
# Shares that pinned surfaces get, in the order in which they are tried.
PINNED = (0.5, 0.0, 1.0)

Restart = Callable[[], None]


def find_way(run: Integration, restart: Restart) -> None:
    """Stay on surfaces that both sides point at, and leave those that no longer hold the start.

    `restart` finds a start for the ways that are assumed.
    """
    switching = run.switching
    cannot_stay = not run.start.success and bool(run.model.shares)
    if cannot_stay:        # as where a belt turns back, or on a surface that does not matter yet
        switching.stop_sliding()
        restart()
    if switching.pass_after_all():
        restart()
    ended, switching.ended = switching.ended, ()
    if ended and run.start.success and _hold_where_it_ended(run, restart, list(ended)):
        return
    left = switching.leave_corners()
    if left and _leave_corner(run, restart, left):
        return
    met = switching.met
    if len(met) > (0 if cannot_stay else 1) and run.start.success and _choose(run, restart, met):
        return
    for _ in range(MOST_ROUNDS + len(met)):
        if not run.start.success:
            if not run.model.shares:
                return
            switching.give_up_sliding()
        elif not (switching.leave_without_mixture() or switching.decide_on_surfaces()):
            return
        restart()


def _choose(run: Integration, restart: Restart, met: list[int]) -> bool:
    """Find out how the solution continues from a point where it meets several surfaces.

    If it passes all of them, there is nothing to do. Otherwise it is first assumed to stay on all;
    surfaces that cannot hold it are left, and those to which it returns are stayed on. Tell whether
    a way was found; if not, the start lies on all of them, and they can be examined one after
    another.
    """
    switching = run.switching
    if switching.passes(met):
        return True
    ways: dict[int, float] | None = dict.fromkeys(met, 0.0)
    tried = []
    while ways is not None and ways not in tried:      # back and forth until nothing contradicts
        tried.append(ways)
        switching.assume(ways)
        restart()
        better = switching.better_ways(ways)
        if better == ways:
            return True
        ways = better if len(tried) < MOST_TRIALS else None
    if len(met) <= MOST_MET and (_go(run, restart, met, {}) or _hold(run, restart, met)):
        return True
    switching.stand_on(met)
    restart()
    return False


def _go(run: Integration, restart: Restart, met: list[int], known: dict[int, float]) -> bool:
    """Try all ways to go on from some surfaces, of which some are `known`; tell if one fits."""
    switching = run.switching
    open_ones = [function for function in met if function not in known]
    trials = product((1.0, -1.0, 0.0), repeat=len(open_ones))
    for trial in sorted(trials, key=lambda way: way.count(0.0)):
        ways = {**known, **dict(zip(open_ones, trial, strict=True))}
        switching.assume(ways)
        restart()
        better = switching.better_ways(ways)
        if better is not None and {**better, **known} == ways:
            return True
    return False


def _hold(run: Integration, restart: Restart, met: list[int]) -> bool:
    """Hold the solution where surfaces meet, by some of them; tell whether that is possible."""
    switching = run.switching
    for slides, pins in _corners(met):
        switching.assume_corner(slides, pins)
        restart()
        if switching.is_held(met):
            return True
    return False


def _corners(met: list[int]) -> Iterator[tuple[tuple[int, ...], dict[int, float]]]:
    """List the surfaces that may hold a solution, and shares of the others."""
    for count in range(len(met), 0, -1):
        for slides in combinations(met, count):
            others = [function for function in met if function not in slides]
            shares = product(PINNED, repeat=len(others))
            for some in sorted(shares, key=lambda way: len(way) - way.count(PINNED[0])):
                yield slides, dict(zip(others, some, strict=True))


def _hold_where_it_ended(run: Integration, restart: Restart, ended: list[int]) -> bool:
    """Hold the solution on surfaces that it has passed ever faster; tell whether that is possible.

    Otherwise it goes on as it would have.
    """
    switching = run.switching
    before = switching.kept()
    if len(ended) <= MOST_MET and _hold(run, restart, ended):
        return True
    switching.go_back_to(before)
    restart()
    return False


def _leave_corner(run: Integration, restart: Restart, left: dict[int, float]) -> bool:
    """Find another way to hold a solution in a corner, or the way out of it."""
    met = list(left)
    if _hold(run, restart, met):
        return True
    known = {function: side for function, side in left.items() if side}
    return _go(run, restart, met, known) or _go(run, restart, met, {})
