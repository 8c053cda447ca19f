"""The core's memory for a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tether._core.dense import Dense
from tether._core.factors import Factors
from tether._core.matrix import Matrix
from tether._core.sparse import Sparse
from tether._core.state import State
from tether.base.capacity import OF_A_RUN, require_matrices
from tether.base.pattern import Pattern
from tether.plan.model import Model
from tether.problem.options import CONTROLLERS, NORMS, OWN_SOLVERS, SCALINGS, Options

__all__ = ["new_state"]

OWN_LU_UP_TO = 20           # up to this size the core's own LU beats LAPACK
# With more unknowns, finding the pattern of the matrices would take over a thousand calls.
PATTERN_UP_TO = 20_000
# With more unknowns, a full matrix by differences costs more than iterations without a matrix. Not
# for fewer: without entries, dependent equations that are consistent go unnoticed.
FULL_UP_TO = 1000
# A full pattern, its entries and their factors take the memory of so many full matrices.
OF_A_FULL_PATTERN = 12
SPARSE_FROM = 80            # below, loading SciPy's sparse matrices takes longer than they save


def new_state(model: Model, options: Options) -> State:
    """Make the core's memory for a model and attach its functions."""
    n = model.size
    matrix = new_matrix(model, options.linear_solver, options.preconditioner)
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
    if isinstance(options.linear_solver, str) and options.linear_solver == "krylov":
        from tether._core.gmres import LEFT_OVER  # late, to save time

        state.linear_error = LEFT_OVER
    if options.scaling != "none":
        if matrix.has_no_entries:
            raise ValueError(
                f"scaling={options.scaling!r} needs the entries of the matrix, which are not made "
                "here: pass jac_sparsity, or leave scaling out"
            )
        state.scale_matrix(SCALINGS.index(options.scaling))
    model.attach(state)
    return state


def new_matrix(model: Model, solver: Any, preconditioner: Any = None) -> Matrix:
    """Choose how F_y, F_y' and the factors of the iteration matrix are stored and made."""
    n = model.size
    if not isinstance(solver, str) or solver not in OWN_SOLVERS:
        from tether.plan.libraries import with_solver  # late, to save time

        return with_solver(places_of(model), solver)
    if solver == "krylov":
        if is_matrix_free(model, preconditioner):
            from tether._core.matrix_free import MatrixFree  # late, to save time

            return MatrixFree(n, preconditioner)
        from tether._core.krylov import Krylov  # late, to save time

        return Sparse(places_of(model), partial(Krylov, user=preconditioner), True)
    if solver in FACTORS:
        return sparse_with(solver, places_of(model))
    # finding the pattern may call the user's function, so it is only asked for where it matters
    if solver == "auto" and n >= SPARSE_FROM and model.pattern is not None:
        from tether.plan.cost import cheapest_way  # late, to save time

        way = cheapest_way(model.pattern)
        if way != "dense":
            return sparse_with(way, model.pattern)
    if n <= OWN_LU_UP_TO:
        return Dense(n)
    from tether._core.lapack import Lapack  # late, to save time

    require_matrices(n, OF_A_RUN)
    return Lapack(n)


def places_of(model: Model) -> Pattern:
    """Return the pattern of a model's matrices; all entries if they are known to be full."""
    n = model.size
    if model.pattern is not None or not model.is_full:
        return model.pattern or Pattern(n)
    require_matrices(n, OF_A_FULL_PATTERN)
    row = np.arange(n, dtype=np.intc)
    return Pattern(n, (np.tile(row, n), np.repeat(row, n)))


def is_matrix_free(model: Model, preconditioner: Any) -> bool:
    """Tell whether GMRES runs without matrix entries.

    It does if finding them would take too many calls, if hardly any of them is zero, or if the
    preconditioner needs none.
    """
    if preconditioner is not None:
        return not hasattr(preconditioner, "factor")
    if model.reading is not None or model.problem.jac is not None or model.problem.sparsity:
        return False
    return model.size > PATTERN_UP_TO or (model.size > FULL_UP_TO and model.is_full)


def band_factors(pattern: Pattern) -> Factors:
    """Make band factors for a pattern; called again when the pattern has grown."""
    if pattern.size and pattern.band.is_three:
        from tether._core.three import ThreeLU  # late, to save time

        return ThreeLU(pattern)
    from tether._core.band import BandLU  # late, to save time

    return BandLU(pattern)


# Factors of sparse matrices by name; None stands for the default ones of `Sparse`.
FACTORS: dict[str, Callable[[Pattern], Factors] | None] = {"sparse": None, "band": band_factors}


def sparse_with(factors: str, pattern: Pattern) -> Sparse:
    """Make a sparse matrix with factors of the kind named."""
    return Sparse(pattern, FACTORS[factors])
