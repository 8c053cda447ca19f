"""The core's memory for a model."""

from __future__ import annotations

import numpy as np

from tether._core.dense import Dense
from tether._core.matrix import Matrix
from tether._core.sparse import Sparse
from tether._core.state import State
from tether.base.capacity import OF_A_RUN, require_matrices
from tether.base.pattern import Pattern
from tether.plan.model import Model
from tether.problem.options import CONTROLLERS, NORMS, SCALINGS, Options

__all__ = ["new_state"]

SMALL = 20                  # up to here the core's own LU beats LAPACK
SPARSE_FROM = 80            # below, loading SciPy's sparse matrices takes longer than they save
# Nanoseconds of an operation and an entry, of sparse factors and of full ones; only their ratios
# matter (benchmarks/large.py).
OPERATION, ENTRY = 0.8, 4.0
FULL_OPERATION, FULL_ENTRY = 0.2, 1.0


def new_state(model: Model, options: Options) -> State:
    """Make the core's memory for a model and attach its functions."""
    n = model.size
    matrix = new_matrix(model, options.linear_solver)
    if n != model.n:
        rtol, atol = options.tolerances(model.n)
        if model.shares:
            share = np.full(model.shares, rtol[rtol > 0.0].min(initial=1e-3))
            rtol, atol = np.append(rtol, share), np.append(atol, share)
        owner, slack = model.owner, model.slack
        state = State(matrix, np.minimum(slack * rtol[owner], 1.0), slack * atol[owner])
    elif options.same_for_all:
        state = State(matrix, options.rtol, options.atol)
    else:
        state = State(matrix, *options.tolerances(n))
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


def new_matrix(model: Model, solver: str) -> Matrix:
    """Choose how F_y, F_y' and the factors of the iteration matrix are stored and made."""
    n = model.size
    if solver == "sparse":
        return Sparse(model.pattern or Pattern(n))
    # a pattern may take calls of the user's function: it is asked for where it matters
    if solver == "auto" and n >= SPARSE_FROM and model.pattern is not None:
        sparse = Sparse(model.pattern)
        if is_cheaper(sparse):
            return sparse
    if n <= SMALL:
        return Dense(n)
    from tether._core.lapack import Lapack  # late, to save time

    require_matrices(n, OF_A_RUN)
    return Lapack(n)


def is_cheaper(sparse: Sparse) -> bool:
    """Tell whether factors that leave zeros out cost less than those of LAPACK."""
    n, pattern = sparse.n, sparse.pattern
    if pattern.work is None:
        # any values will do that let all pivots be where they are preferred
        own = pattern.row == pattern.elimination[1][pattern.columns]
        factors = sparse.open_factors()
        found = factors.take(np.where(own, 1.0, 0.1 / n))
        pattern.work = (factors.operations, factors.entries) if found else (0, 0)
        factors.forget()
    operations, entries = pattern.work
    return operations * OPERATION + entries * ENTRY < n**3 / 3 * FULL_OPERATION + n**2 * FULL_ENTRY
