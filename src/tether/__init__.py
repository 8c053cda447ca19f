"""tether solves differential-algebraic equations F(t, y, y') = 0."""

from tether.bdf import Bdf
from tether.causes import Cause
from tether.constraints import Constraint
from tether.diagnosis import Diagnosis
from tether.fixed import solve_fixed
from tether.options import Options
from tether.problem import Problem
from tether.result import DaeResult, Interpolant, Statistics
from tether.solve import solve_dae
from tether.start.consistent import Start
from tether.start.search import consistent_start
from tether.status import ConsistencyWarning, Status
from tether.structure.analyze import analyze
from tether.structure.report import IndexReport

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
    "solve_dae",
    "solve_fixed",
]
