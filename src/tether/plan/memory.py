"""The core's memory for a model."""

from __future__ import annotations

import numpy as np

from tether._core.dense import Dense
from tether._core.matrix import Matrix
from tether._core.state import State
from tether.base.capacity import OF_A_RUN, require_matrices
from tether.plan.model import Model
from tether.problem.options import CONTROLLERS, NORMS, SCALINGS, Options

__all__ = ["new_state"]

SMALL = 20                  # up to here the core's own LU beats LAPACK


def new_state(model: Model, options: Options) -> State:
    """Make the core's memory for a model and attach its functions."""
    n = model.size
    if n != model.n:
        rtol, atol = options.tolerances(model.n)
        if model.shares:
            share = np.full(model.shares, rtol[rtol > 0.0].min(initial=1e-3))
            rtol, atol = np.append(rtol, share), np.append(atol, share)
        owner, slack = model.owner, model.slack
        require_matrices(n, OF_A_RUN)
        state = State(new_matrix(n), np.minimum(slack * rtol[owner], 1.0), slack * atol[owner])
    elif options.same_for_all:
        state = State(new_matrix(n), options.rtol, options.atol)
    else:
        state = State(new_matrix(n), *options.tolerances(n))
    state.max_order = options.max_order
    state.max_step = options.max_step
    state.controller = CONTROLLERS.index(options.controller)
    state.error_norm = NORMS.index(options.error_norm)
    state.newton_norm = NORMS.index(options.newton_norm)
    state.newton_tolerance = options.newton_tolerance
    state.newton_by_step = options.newton_test == "yp"
    if options.scaling != "none":
        state.scale_matrix(SCALINGS.index(options.scaling))
    model.attach(state)
    return state


def new_matrix(n: int) -> Matrix:
    """Choose how F_y, F_y' and the factors of the iteration matrix are stored and made."""
    if n <= SMALL:
        return Dense(n)
    from tether._core.lapack import Lapack  # late, to save time

    return Lapack(n)
