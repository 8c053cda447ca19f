"""Given: the arguments of a run, checked as far as possible without the equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from tether.problem.options import Options
from tether.problem.problem import Problem

__all__ = ["Given"]


class Given(NamedTuple):
    """The arguments of a run; the fields are arguments of `solve_dae`."""

    problem: Problem
    y0: ArrayLike
    yp0: ArrayLike | None
    options: Options
    names: Sequence[str] | None
    equation_names: Sequence[str] | None
    units: Sequence[str] | Mapping[str, str] | None
    callback: Callable[..., Any] | None
