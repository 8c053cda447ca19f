"""Unknowns in whose derivatives the equations are nonlinear: these derivatives need guesses."""

from __future__ import annotations

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.plan.model import Model
from tether.structure.scaling import Units
from tether.trace import opcodes as op

__all__ = ["nonlinear_slopes"]

# Relative difference below which derivatives are the same.
SAME = 1e-6


def nonlinear_slopes(
    model: Model, state: State, t: float, y: np.ndarray, units: Units
) -> tuple[int, ...]:
    """List unknowns in whose derivatives the equations are nonlinear.

    Parameters
    ----------
    model, state : Model, State
        The equations and their memory.
    t, y : float, ndarray
        The point.
    units : Units
        Units of the unknowns and of time.
    """
    if model.plan is not None:
        trace = model.plan.original
        leaves = (trace.graph.nodes[x] for x in trace.graph.inputs(trace.f_yp.nodes))
        return tuple(sorted({j for code, j, order, _ in leaves if code == op.Y and order == 1}))
    found = [_of_slopes(state, t, y, factor * units.y / units.t) for factor in (1.0, -0.5)]
    if state.n != len(y) or not all(np.isfinite(part).all() for part in found):
        return ()
    size = np.maximum(*np.abs(found))
    differs = np.abs(found[0] - found[1]) > SAME * size.max(axis=1, keepdims=True, initial=0.0)
    return tuple(np.flatnonzero(differs.any(axis=0)).tolist())


def _of_slopes(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    if not state.fyp_known:
        state.fyp_exists = state.fyp_constant = False
    status, _, fyp = probe.jacobian_at(state, t, y, yp)
    state.jacobian_exists = False              # it is that of another point
    raise_user_error(state)
    return fyp if status == 0 else np.full_like(fyp, np.nan)
