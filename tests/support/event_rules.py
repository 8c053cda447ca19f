"""The rule for events that set each other off, on straight lines: in plain Python.

The unknowns are x0, x1, v0, v1 with x' = v and v' = 0, so that all event functions, linear in time
and unknowns, pass zero at times that can be written down.
"""

import math

import numpy as np

from support.events import event

MOST = 100


def lines(t, y, yp):
    return [yp[0] - y[2], yp[1] - y[3], yp[2], yp[3]]


def passes(old, new, direction):
    """Whether a function comes to zero or through it."""
    if old is None or old == new:
        return False
    up, down = old <= 0 <= new, old >= 0 >= new
    return (up and direction >= 0) or (down and direction <= 0)


class Rule:
    """One event: a.y + b t - c, with a direction, an action and perhaps the end of the run."""

    def __init__(self, a, b, c, direction, action, terminal):
        self.a, self.b, self.c = np.array(a, float), b, c
        self.direction, self.action, self.terminal = direction, action, terminal

    def value(self, t, y):
        return sum(a * v for a, v in zip(self.a, y, strict=True) if a) + self.b * t - self.c

    def rate(self, y):
        return self.a[0] * y[2] + self.a[1] * y[3] + self.b

    def event(self):
        attributes = {"direction": self.direction, "terminal": self.terminal}
        if self.action is not None:
            attributes["apply"] = lambda t, y, yp: acted(self.action, y)
        return event(lambda t, y, yp: self.value(t, y), **attributes)


def acted(action, y):
    y = list(y)
    kind, k, number = action
    if kind == "put":
        y[k] = number
    elif kind == "move":
        y[k] = y[k] + number
    else:
        y[2 + k % 2] = -y[2 + k % 2]
    return y


def follow(rules, t_end, y):
    """Return times of all events, the last state, and how the run ends."""
    t, times = 0.0, [[] for _ in rules]
    left = [None] * len(rules)                 # time of the zero that a function has just left
    while True:
        soonest, first = t_end, None
        for i, rule in enumerate(rules):
            value, rate = rule.value(t, y), rule.rate(y)
            if left[i] is not None and abs(value) < 1e-12:
                continue
            if value * rate < 0 and passes(value, rate, rule.direction):
                when = t - value / rate
                if when < soonest:
                    soonest, first = when, i
        y = [y[0] + (soonest - t) * y[2], y[1] + (soonest - t) * y[3], y[2], y[3]]
        t = soonest
        if first is None:
            return times, y, "end"
        if len(times[first]) > 3 and 0.0 < t - times[first][-1] < 1e-7:
            return times, y, "storm"           # they come sooner and sooner
        happening, counts, located = [first], [0] * len(rules), True
        left = [None] * len(rules)
        while happening:
            for i in happening:
                times[i].append(t)
                counts[i] += 1
            before = [rule.value(t, y) for rule in rules]
            acting = [i for i in happening if rules[i].terminal or rules[i].action is not None]
            if max(counts) > MOST:
                return times, y, "storm"
            if not acting:
                left = [t if i in happening else left[i] for i in range(len(rules))]
                break
            for i in acting:
                if rules[i].action is not None:
                    y = acted(rules[i].action, y)
            if any(rules[i].terminal for i in acting):
                return times, y, "event"
            after = [rule.value(t, y) for rule in rules]
            next_ones = []
            for i, rule in enumerate(rules):
                at_zero = abs(after[i]) < 1e-12
                if at_zero:
                    left[i] = t
                own = i in acting or (located and i in happening)
                if own or abs(before[i]) < 1e-12:
                    continue
                if passes(before[i], 0.0 if at_zero else after[i], rule.direction):
                    next_ones.append(i)
            happening, located = next_ones, False


def random_rules(rng, count):
    """Make events at random places, many of which jump onto or across each other's zeros."""
    rules = []
    places = [round(float(c), 3) for c in rng.uniform(-3, 3, count)]
    for c in places:
        kind = rng.integers(5)
        a, b = np.zeros(4), 0.0
        if kind < 2:
            a[rng.integers(2)] = rng.choice([1.0, -2.0])
        elif kind == 2:
            a[0], a[1] = 1.0, -1.0
        elif kind == 3:
            a[2 + rng.integers(2)] = 1.0
            c = 0.1 * c
        else:
            b, c = 1.0, 1.5 * abs(c) + 0.01
        action = None
        choice = rng.integers(6)
        if choice < 2:
            action = ("put", int(rng.integers(2)), float(rng.choice(places)))
        elif choice == 2:
            action = ("move", int(rng.integers(2)), float(rng.normal()))
        elif choice == 3:
            action = ("turn", int(rng.integers(2)), 0.0)
        elif choice == 4:
            speed = float(rng.choice([-1.0, 1.0]) * rng.random())
            action = ("put", int(2 + rng.integers(2)), speed)
        rules.append(Rule(a, b, c, int(rng.integers(-1, 2)), action, bool(rng.random() < 0.1)))
    return rules


def is_close(times, others):
    return len(times) == len(others) and all(
        math.isclose(t, other, rel_tol=1e-7, abs_tol=1e-7)
        for t, other in zip(times, others, strict=True)
    )
