"""The equations as formulas, or, where they could not be traced, as the user wrote them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import numpy as np

from tether.cli.report.markup import as_formula, paragraphs, preformatted
from tether.problem.problem import as_problem, prepared
from tether.trace import TraceFailure, formula, trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tether.cli.source import Source
    from tether.explain.report import IndexReport

__all__ = ["equations", "hidden_constraints"]

MAX_EQUATIONS = 60


def equations(source: Source, names: Sequence[str]) -> str:
    """Write the equations, numbered from 0 as in messages."""
    y0 = np.asarray(source.y0, float)
    problem = prepared(as_problem(source.fun, args=source.args), float(source.t_span[0]), y0)
    if problem.capsule is not None:
        return paragraphs(["The residual is a C function: there are no formulas."])
    try:
        traced = trace(problem.fun, len(y0), problem.args, problem.fills)
    except TraceFailure as failure:
        return paragraphs([f"The function was not traced: {failure}"]) + _as_written(problem.fun)
    written = [
        formula(traced.graph, node, names, traced.args.names)
        for node in traced.outputs[:MAX_EQUATIONS]
    ]
    left_out = len(traced.outputs) - len(written)
    more = [f"{left_out} more equations are left out."] if left_out else []
    return _listed(enumerate(written)) + paragraphs(more)


def hidden_constraints(report: IndexReport) -> str:
    """Write the constraints that the equations imply."""
    hidden = report.hidden[:MAX_EQUATIONS]
    if not hidden:
        return ""
    shown = _listed((str(entry.equation) + "'" * entry.order, entry.formula) for entry in hidden)
    text = "Hidden constraints, by equation; ' for each differentiation:"
    left_out = len(report.hidden) - len(hidden)
    more = [f"{left_out} more hidden constraints are left out."] if left_out else []
    return paragraphs([text]) + shown + paragraphs(more)


def _listed(pairs: Iterable[tuple[object, str]]) -> str:
    lines = [f"<tr><th>{label}</th><td>{as_formula(text)} = 0</td></tr>" for label, text in pairs]
    return f'<div class="wide"><table class="formulas">{"".join(lines)}</table></div>'


def _as_written(fun: object) -> str:
    try:
        return preformatted(inspect.getsource(fun))    # type: ignore[arg-type]
    except (OSError, TypeError):
        return ""
