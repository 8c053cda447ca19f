"""Filippov's solution of a random switched system, with every switch located.

Between switches the system is smooth: SciPy's DOP853 integrates it with tolerances far below those
of the run that is judged, and restarts at every surface, kink and edge of a pulse. Where both sides
of a surface point at it, the solution is held there by a mixture of them. Where it can go on in
several ways, all of them are followed. Nothing is shared with tether.
"""

from itertools import pairwise, product

import numpy as np
from scipy.integrate import solve_ivp

# Values of what jumps, below and above its surface s = 0.
LEVELS = {"sign": (-1.0, 1.0), "if": (-0.4, 1.0), "where": (0.5, -1.0)}
# What has kinks: where they are, and (slope, offset) before, between and behind them.
PIECES = {
    "max": ((0.0,), ((0.0, 0.0), (1.0, 0.0))),
    "abs": ((0.0,), ((-1.0, 0.0), (1.0, 0.0))),
    "clip": ((-1 / 3, 1 / 3), ((0.0, -1.0), (3.0, 0.0), (0.0, 1.0))),
}
RTOL, ATOL = 1e-11, 1e-13
LONGEST_STEP = 0.02            # a surface that is crossed twice within a step is not seen
SAME_TIME = 1e-12
# Surfaces nearer than this are met together: a spiral around a corner ends there.
NEAR = 1e-9
# Round-off in the share of a side, and in the rate at which a surface is left.
SHARE_ROUND_OFF, RATE_ROUND_OFF = 1e-10, 1e-7
MOST_SWITCHES = 3000
MOST_SOLUTIONS = 50


class NoReference(Exception):  # noqa: N818
    """The solution has no continuation from some point, too many, or switches without end."""


def references(case, times):
    """Return all solutions at increasing times, with one row for each time; mostly there is one."""
    found, choices = [], [()]
    while choices:
        solution = _Solution(case, choices.pop())
        found.append(solution.at(times))
        choices += solution.others
        if len(found) + len(choices) > MOST_SOLUTIONS:
            raise NoReference(f"more than {MOST_SOLUTIONS} solutions")
    return found


class _Solution:
    """A solution at one time, and the smooth system that holds there.

    `side` is -1 below the surface of a jump, 1 above it and 0 where the solution is held on it;
    `piece` numbers the pieces of what has kinks. `choices` says which way it takes where there are
    several; from then on it takes the first ones, and notes the `others`.
    """

    def __init__(self, case, choices=()):
        self.choices, self.taken, self.others = choices, (), []
        self.case, self.t, self.y, self.on = case, 0.0, case.start.copy(), 0.0
        self.jumps = [j for j, kind in enumerate(case.kinds) if kind in LEVELS]
        self.kinks = [j for j, kind in enumerate(case.kinds) if kind in PIECES]
        distance = self.distances(self.y)
        self.side = {j: int(np.sign(distance[j])) for j in self.jumps}
        self.piece = dict.fromkeys(self.kinks, 0)

    # --- the smooth system ----------------------------------------------------------------------

    def distances(self, y):
        return self.case.c @ y - self.case.d

    def rate(self, t, y, inputs):
        case = self.case
        forces = case.force * np.sin(case.rate * t) + 0.5 * self.on
        return forces + case.a @ y - case.b @ inputs

    def inputs(self, t, y):
        """Values of u; those that hold the solution keep its distances from their surfaces."""
        case, distance = self.case, self.distances(y)
        u = np.zeros(len(case.kinds))
        for j in self.kinks:
            slope, offset = PIECES[case.kinds[j]][1][self.piece[j]]
            u[j] = slope * distance[j] + offset
        for j in self.jumps:
            if self.side[j]:
                u[j] = LEVELS[case.kinds[j]][self.side[j] > 0]
        held = self.held
        if held:
            towards = case.c[held] @ self.rate(t, y, u)
            u[held] = np.linalg.solve(case.c[held] @ case.b[:, held], towards)
        return u

    def slope(self, t, y):
        return self.rate(t, y, self.inputs(t, y))

    def share(self, t, y, j):
        """Share of the upper side in the mixture that holds the solution on surface j."""
        below, above = LEVELS[self.case.kinds[j]]
        return (self.inputs(t, y)[j] - below) / (above - below)

    @property
    def held(self):
        return [j for j in self.jumps if self.side[j] == 0]

    # --- which system holds -----------------------------------------------------------------------

    def choose_sides(self, met):
        """Find the way on from surfaces that the solution is on."""
        sides, ways = self.side, []
        for new in product((-1, 1, 0), repeat=len(met)):
            self.side = {**sides, **dict(zip(met, new, strict=True))}
            if self.goes_on(met):
                ways.append(self.side)
        if not ways:
            raise NoReference(f"no way on from surfaces {met} at t = {self.t:.6g}")
        way, number = 0, len(self.taken)
        if len(ways) > 1:
            if number < len(self.choices):
                way = self.choices[number]
            else:
                self.others += [(*self.taken, k) for k in range(1, len(ways))]
            self.taken += (way,)
        self.side = ways[way]

    def goes_on(self, met):
        """Whether the solution leaves or stays on the surfaces it is on, as `side` says."""
        try:
            leaving = self.case.c @ self.slope(self.t, self.y)
        except np.linalg.LinAlgError:
            return False
        return all(
            self.side[j] * leaving[j] > RATE_ROUND_OFF if self.side[j]
            else abs(self.share(self.t, self.y, j) - 0.5) < 0.5 + SHARE_ROUND_OFF
            for j in met
        )

    def settle(self):
        """Put the solution on the surfaces that hold it, and on the pieces that lie ahead."""
        held = self.held
        if held:
            away = self.distances(self.y)[held]
            self.y = self.y - np.linalg.lstsq(self.case.c[held], away, rcond=None)[0]
        distance, rising = self.distances(self.y), self.case.c @ self.slope(self.t, self.y) > 0.0
        for j in self.kinks:
            places = PIECES[self.case.kinds[j]][0]
            self.piece[j] = sum(
                distance[j] > place + (-NEAR if rising[j] else NEAR) for place in places
            )

    # --- from switch to switch --------------------------------------------------------------------

    def at(self, times):
        """Return the solution at increasing times."""
        rows, switches = [], 0
        for start, end in pairwise(self.edges(times[-1])):
            period, duty = self.case.pulse
            self.on = 1.0 if 0.5 * (start + end) % period < duty * period else 0.0
            self.t = start
            if self.held:
                self.choose_sides(self.held)
            self.settle()
            while end - self.t > SAME_TIME:
                asked = [time for time in times[len(rows):] if time <= end]
                rows += self.advance(end, asked)
                switches += 1
                if switches > MOST_SWITCHES:
                    raise NoReference(f"it switches without end at t = {self.t:.6g}")
        return np.array(rows + [self.y] * (len(times) - len(rows)))

    def edges(self, end):
        period, duty = self.case.pulse
        rising = np.arange(0.0, end + period, period)
        edges = np.unique(np.concatenate([rising, rising + duty * period, [end]]))
        edges = edges[edges <= end]
        return edges[np.diff(edges, prepend=-np.inf) > SAME_TIME]

    def advance(self, end, asked):
        """Go to the next switch or to the end; return the values on the way."""
        watched = self.watched()
        found = solve_ivp(
            self.slope, (self.t, end), self.y, method="DOP853", rtol=RTOL, atol=ATOL,
            max_step=LONGEST_STEP, first_step=min(1e-6, end - self.t), dense_output=True,
            events=[event for event, _ in watched],
        )
        if found.status < 0:
            raise NoReference(found.message)
        self.assert_on_its_side(found.y)
        self.t, self.y = found.t[-1], found.y[:, -1]
        values = [found.sol(time) for time in asked if time <= self.t]
        for (_, happens), times in zip(watched, found.t_events, strict=True):
            if len(times):
                happens()
        self.settle()
        return values

    def assert_on_its_side(self, points):
        """Raise if a solution has left the side it is on without meeting a surface."""
        for j in self.jumps:
            distance = self.case.c[j] @ points - self.case.d[j]
            beyond = -self.side[j] * distance if self.side[j] else abs(distance)
            if beyond.max() > NEAR:
                raise NoReference(f"it is beyond surface {j} after t = {self.t:.6g}")

    def watched(self):
        """List functions of (t, y) that stop the integration, and what happens there."""
        some = []
        for j in self.jumps:
            if self.side[j]:
                some.append((_Passing(self, j, 0.0, -self.side[j]), lambda j=j: self.meet(j)))
            else:
                some += [
                    (_Leaving(self, j, side), lambda j=j, side=side: self.side.update({j: side}))
                    for side in (-1, 1)
                ]
        for j in self.kinks:
            places, k = PIECES[self.case.kinds[j]][0], self.piece[j]
            some += [(_Passing(self, j, place, -1), _nothing) for place in places[:k][-1:]]
            some += [(_Passing(self, j, place, 1), _nothing) for place in places[k:][:1]]
        return some

    def meet(self, j):
        """Go on from a surface, and from all others that are there as well."""
        distance = self.distances(self.y)
        self.choose_sides([
            k for k in self.jumps if k == j or self.side[k] == 0 or abs(distance[k]) < NEAR
        ])


class _Passing:
    """A surface is passed at some distance from its middle: an event of SciPy."""

    terminal = True

    def __init__(self, solution, surface, place, direction):
        self.solution, self.surface, self.place = solution, surface, place
        self.direction = direction

    def __call__(self, t, y):
        return self.solution.distances(y)[self.surface] - self.place


class _Leaving:
    """The mixture on a surface becomes all of one side: an event of SciPy."""

    terminal, direction = True, -1

    def __init__(self, solution, surface, side):
        self.solution, self.surface, self.side = solution, surface, side

    def __call__(self, t, y):
        share = self.solution.share(t, y, self.surface)
        return 1.0 - share if self.side > 0 else share


def _nothing():
    """At a kink the system is chosen anew as after all events."""
