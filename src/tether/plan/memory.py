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

SMALL = 20                  # up to here the core's own LU beats LAPACK
# Of so many unknowns it takes a thousand calls to see where the entries of the matrices stand.
MOST_SEEN = 20_000
# Of more unknowns a full matrix by differences is dearer than iterations that do without. Without
# entries nobody sees that equations depend on each other while they do not contradict themselves.
MOST_FULL = 1000
# Full matrices that fit into what a full pattern, its entries and their factors take.
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
    if solver in WAYS:
        return in_way(solver, places_of(model))
    # a pattern may take calls of the user's function: it is asked for where it matters
    if solver == "auto" and n >= SPARSE_FROM and model.pattern is not None:
        from tether.plan.cost import cheapest_way  # late, to save time

        way = cheapest_way(model.pattern)
        if way != "dense":
            return in_way(way, model.pattern)
    if n <= SMALL:
        return Dense(n)
    from tether._core.lapack import Lapack  # late, to save time

    require_matrices(n, OF_A_RUN)
    return Lapack(n)


def places_of(model: Model) -> Pattern:
    """Return where entries may stand: those of a full matrix would be found one by one."""
    n = model.size
    if model.pattern is not None or not model.is_full:
        return model.pattern or Pattern(n)
    require_matrices(n, OF_A_FULL_PATTERN)
    row = np.arange(n, dtype=np.intc)
    return Pattern(n, (np.tile(row, n), np.repeat(row, n)))


def is_matrix_free(model: Model, preconditioner: Any) -> bool:
    """Tell whether GMRES does without entries: too many calls would show them, or none are zero.

    A preconditioner may want none.
    """
    if preconditioner is not None:
        return not hasattr(preconditioner, "factor")
    if model.reading is not None or model.problem.jac is not None or model.problem.sparsity:
        return False
    return model.size > MOST_SEEN or (model.size > MOST_FULL and model.is_full)


def band_factors(pattern: Pattern) -> Factors:
    """Make factors in the band of a pattern; one that has grown may need more diagonals."""
    if pattern.size and pattern.band.is_three:
        from tether._core.three import ThreeLU  # late, to save time

        return ThreeLU(pattern)
    from tether._core.band import BandLU  # late, to save time

    return BandLU(pattern)


# Factors of sparse matrices by name; None stands for those that a sparse matrix has by itself.
WAYS: dict[str, Callable[[Pattern], Factors] | None] = {"sparse": None, "band": band_factors}


def in_way(way: str, pattern: Pattern) -> Sparse:
    """Store the entries of a pattern, with factors of the kind that is named."""
    return Sparse(pattern, WAYS[way])
