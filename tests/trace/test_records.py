"""States unpacked into named tuples and data classes."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest

from tether import solve_dae


class Tuple(NamedTuple):
    x: float
    v: float


@dataclasses.dataclass
class Record:
    x: float
    v: float = 0.0

    def force(self):
        return -4.0 * self.x


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: float
    v: float

    @property
    def force(self):
        return -4.0 * self.x

    @classmethod
    def of(cls, y):
        return cls(*y)


def named(t, y, yp):
    s, d = Tuple(*y), Tuple(*yp)
    return Tuple(d.x - s.v, d.v + 4.0 * s.x)


def replaced(t, y, yp):
    s = Tuple._make(y)._replace(v=2.0 * y[1])
    d = Tuple(v=yp[1], x=yp[0])._asdict()
    return [d["x"] - 0.5 * s.v, d["v"] + 4.0 * s[0]]


def matched(t, y, yp):
    match Tuple(*y):
        case Tuple(x=x, v=v):
            return [yp[0] - v, yp[1] + 4.0 * x]


def data(t, y, yp):
    s, d = Record(*y), Record(x=yp[0], v=yp[1])
    return [d.x - s.v, d.v - s.force()]


def data_replaced(t, y, yp):
    s = Record(y[0])
    s.v = y[1]
    d = dataclasses.replace(s, x=yp[0], v=yp[1])
    return list(dataclasses.astuple(Record(d.x - s.v, d.v - s.force())))


def data_as_dict(t, y, yp):
    s = dataclasses.asdict(Record(*y))
    return np.array([yp[0] - s["v"], yp[1] + 4.0 * s["x"]])


def frozen(t, y, yp):
    s = Frozen.of(y)
    return [yp[0] - s.v, yp[1] - s.force]


def nested(t, y, yp):
    s = dataclasses.asdict(Record({"a": [y[0]]}, (y[1],)))
    return [yp[0] - s["v"][0], yp[1] + 4.0 * s["x"]["a"][0]]


@pytest.mark.parametrize("fun", [named, replaced, matched, data, data_replaced, data_as_dict,
                                 frozen, nested])
def test_states(fun):
    sol = solve_dae(fun, (0.0, 1.0), [1.0, 0.0], rtol=1e-9, atol=1e-11)
    assert sol.how.startswith("traced")
    assert sol.y[:, -1] == pytest.approx([math.cos(2.0), -2.0 * math.sin(2.0)], abs=1e-7)
