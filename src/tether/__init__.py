"""tether solves differential-algebraic equations F(t, y, y') = 0."""

import importlib
from typing import TYPE_CHECKING, Any

from tether.analyze import analyze
from tether.base.status import ConsistencyWarning, Status
from tether.problem.constraint import Constraint
from tether.problem.options import Options
from tether.problem.problem import Problem
from tether.result.solution import DaeResult
from tether.run.statistics import Statistics
from tether.solve import solve_dae
from tether.structure.start import Start

if TYPE_CHECKING:
    from tether.adjoint import Gradient, gradient, hessian_product, vjp
    from tether.bdf import Bdf
    from tether.consistent import consistent_start
    from tether.ensemble import EnsembleResult, solve_ensemble
    from tether.explain.causes import Cause
    from tether.explain.diagnosis import Diagnosis
    from tether.explain.report import IndexReport
    from tether.fitting import FitResult, fit
    from tether.fixed import solve_fixed
    from tether.result.load import load
    from tether.run.interpolant import Interpolant
    from tether.run.requests import Request

__version__ = "0.1.0"

__all__ = [
    "Bdf",
    "Cause",
    "ConsistencyWarning",
    "Constraint",
    "DaeResult",
    "Diagnosis",
    "EnsembleResult",
    "FitResult",
    "Gradient",
    "IndexReport",
    "Interpolant",
    "Options",
    "Problem",
    "Request",
    "Start",
    "Statistics",
    "Status",
    "analyze",
    "consistent_start",
    "fit",
    "gradient",
    "hessian_product",
    "load",
    "solve_dae",
    "solve_ensemble",
    "solve_fixed",
    "vjp",
]

# Only what `solve_dae` needs is imported above; these names are imported when first used, which
# saves time.
_LAZY = {
    "Bdf": "tether.bdf",
    "Cause": "tether.explain.causes",
    "Diagnosis": "tether.explain.diagnosis",
    "EnsembleResult": "tether.ensemble",
    "FitResult": "tether.fitting",
    "Gradient": "tether.adjoint",
    "IndexReport": "tether.explain.report",
    "Interpolant": "tether.run.interpolant",
    "Request": "tether.run.requests",
    "consistent_start": "tether.consistent",
    "fit": "tether.fitting",
    "gradient": "tether.adjoint",
    "hessian_product": "tether.adjoint",
    "load": "tether.result.load",
    "solve_ensemble": "tether.ensemble",
    "solve_fixed": "tether.fixed",
    "vjp": "tether.adjoint",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
