"""Traced systems at general points."""

import numpy as np

from tether.structure.equations import Equations, general_points
from tether.trace import trace


def system_of(fun, n):
    return Equations.of_trace(trace(fun, n))


def points_at(y, yp=None):
    y = np.asarray(y, float)
    return general_points(0.0, y, np.zeros_like(y) if yp is None else np.asarray(yp, float))


def is_regular(system, y):
    return system.regular(system.signature, system.values(points_at(y))).any()
