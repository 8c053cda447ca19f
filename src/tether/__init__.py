"""tether solves differential-algebraic equations F(t, y, y') = 0."""

from tether.analyze import analyze
from tether.base.status import ConsistencyWarning, Status
from tether.bdf import Bdf
from tether.consistent import consistent_start
from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis
from tether.explain.report import IndexReport
from tether.fixed import solve_fixed
from tether.problem.constraint import Constraint
from tether.problem.options import Options
from tether.problem.problem import Problem
from tether.result.load import load
from tether.result.solution import DaeResult
from tether.run.interpolant import Interpolant
from tether.run.statistics import Statistics
from tether.solve import solve_dae
from tether.structure.start import Start

__version__ = "0.1.0"

__all__ = [
    "Bdf",
    "Cause",
    "ConsistencyWarning",
    "Constraint",
    "DaeResult",
    "Diagnosis",
    "IndexReport",
    "Interpolant",
    "Options",
    "Problem",
    "Start",
    "Statistics",
    "Status",
    "analyze",
    "consistent_start",
    "load",
    "solve_dae",
    "solve_fixed",
]
