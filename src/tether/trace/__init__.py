"""A plain Python residual as an exact expression graph.

`trace` runs a function on symbols; `Trace` holds its expressions, their Jacobians and programs.
"""

from tether.trace.derive import (
    SparseJacobian,
    directional,
    gradients,
    jacobian,
    switching_function,
    total_derivative,
)
from tether.trace.emit import NoProgram, Program, emit
from tether.trace.formula import formula
from tether.trace.graph import Graph
from tether.trace.interpret import evaluate
from tether.trace.reading import cache_key
from tether.trace.rewrite import substitute
from tether.trace.tracer import Trace, TraceFailure, trace
from tether.trace.verify import verify

__all__ = [
    "Graph",
    "NoProgram",
    "Program",
    "SparseJacobian",
    "Trace",
    "TraceFailure",
    "cache_key",
    "directional",
    "emit",
    "evaluate",
    "formula",
    "gradients",
    "jacobian",
    "substitute",
    "switching_function",
    "total_derivative",
    "trace",
    "verify",
]
