"""How the core treats the unknowns: by kind, and with which estimate of the error."""

from __future__ import annotations

import numpy as np

from tether._core.state import State
from tether.plan.model import Model
from tether.problem.options import ESTIMATES, ESTIMATES_FOR, HIGH, PLAIN, REDUCED, Options
from tether.structure.pencil import Pencil

__all__ = ["use_kinds"]

# At index 2 and 3 ordinary unknowns are held to this share of the tolerance, a measured value; see
# docs/studies/error-estimates.md.
HIGH_INDEX_SHARE = 2.0**-7
USUAL_ESTIMATE = {PLAIN: "classical", REDUCED: "exclude", HIGH: "mechanical"}


def use_kinds(state: State, model: Model, options: Options, pencil: Pencil | None) -> bool:
    """Let the core treat the unknowns by kind; return False if it already does."""
    s, kinds = state, model.problem.var_index
    if kinds is None and pencil is not None:
        kinds = pencil.var_index
    reduced = model.is_reduced
    if kinds is None:
        if s.highest_kind == 0 and not reduced and options.estimate == "auto":
            return False
        kinds = np.zeros(s.n, int)
    high = kinds.max() > 1
    estimate = _estimate(s, options, high, reduced)
    if reduced and not high and estimate == "exclude":
        return _leave_multipliers_out(s, model)
    code = ESTIMATES.index(estimate)
    if np.array_equal(kinds, s.kinds) and s.estimate == code:
        return False
    if options.estimate == "auto":
        s.share = HIGH_INDEX_SHARE if high else 1.0
    reaction = (kinds > 1) & ~s.with_slopes
    if pencil is not None and pencil.dof == 0:     # nothing evolves: they are the solution
        reaction[:] = False
    s.use_kinds(kinds, reaction, code)
    return True


def _estimate(s: State, options: Options, high: bool, reduced: bool) -> str:
    """Return the error estimate to use; raise an error at the start if it has no meaning."""
    system = HIGH if high else REDUCED if reduced else PLAIN
    wish = options.estimate
    if wish == "auto":
        return USUAL_ESTIMATE[system]
    if system in ESTIMATES_FOR[wish]:
        return wish
    known = options.start != "assume"     # otherwise the index has not been determined yet
    if known and s.steps == 0:
        others = tuple(name for name in ESTIMATES if system in ESTIMATES_FOR[name])
        raise ValueError(
            f"estimate={wish!r} is for unknowns of index 2 and 3 as written, and here "
            + ("the system is integrated reduced to index 1" if reduced else "there are none")
            + f": use one of {others}"
            + (", or form='given'" if reduced else "")
        )
    return USUAL_ESTIMATE[system]


def _leave_multipliers_out(s: State, model: Model) -> bool:
    """Leave the multipliers of a reduced system out of the error test.

    They are exact where the other unknowns are, and do not influence what follows (PL2 section 5).
    Between the steps they are controlled if they are wanted there.
    """
    determined = model.multipliers
    assert determined is not None
    if np.array_equal(2 * determined, s.kinds):
        return False
    s.use_kinds(
        2 * determined, determined, ESTIMATES.index("exclude"), exact_at_steps=True
    )
    return True
