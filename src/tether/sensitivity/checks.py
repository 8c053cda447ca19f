"""Refuse what cannot be differentiated, before a derivative would be wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tether.plan.model import Model
from tether.plan.on_arrays import OnArrays, ReducedOnArrays
from tether.sensitivity.parameters import Parameters
from tether.structure.start import Start
from tether.trace.reading import Reading, read_function, want_inputs

__all__ = ["check_model", "check_not_changed", "check_outside", "reading_of"]

# A function that is called is not differentiated for more unknowns: its matrices would be full.
MAX_CALLED_UNKNOWNS = 1500


def check_model(model: Model, start: Start, parameters: Parameters, lowest_order: int) -> None:
    """Refuse a model whose runs cannot be differentiated."""
    if start.pencil is not None or lowest_order > 1:
        raise ValueError(
            "sensitivity: equations of index 2 or 3 are differentiated when they are reduced, not "
            "as they are written; pass form='auto' and a function that can be traced (sol.how says "
            "what prevents it)"
        )
    if isinstance(model, ReducedOnArrays):
        raise ValueError(
            "sensitivity: the equations of whole arrays were reduced to a lower index, which is "
            f"not differentiated yet for as many as {model.n} unknowns"
        )
    if model.plan is None and not isinstance(model, OnArrays):
        _check_called(model, parameters)
        return
    traced = model.plan.traced if model.plan is not None else None
    if traced is not None and traced.args.fixed and len(parameters.of_inputs):
        name = parameters.names[parameters.of_inputs[0]]
        raise ValueError(
            f"sensitivity: there is no derivative by {name}, because the function needs floats of "
            f"args as plain numbers: {'; '.join(traced.notes)}. Pass sizes, indices and choices as "
            "integers, or outside of args"
        )


def _check_called(model: Model, parameters: Parameters) -> None:
    if parameters.hidden:
        raise ValueError(
            f"sensitivity: the function is called, not traced, so {parameters.hidden[0]}, which it "
            "reads outside of args, cannot be varied; pass it in args"
        )
    if model.size > MAX_CALLED_UNKNOWNS:
        raise ValueError(
            f"sensitivity: the function is called, not traced, and has {model.size} unknowns, more "
            f"than {MAX_CALLED_UNKNOWNS}; sol.how of a run without sensitivity= says what prevents "
            "a trace"
        )


def check_outside(
    parameters: Parameters, n: int, functions: Iterable[tuple[str, Callable[..., Any], bool]]
) -> None:
    """Refuse parameters outside of args that other functions of the user's read as well.

    `functions` are triples: a name, the function, and whether it takes y'. In these functions only
    args are varied.
    """
    if not parameters.hidden:
        return
    problem = parameters.problem
    wanted = _places(problem.fun, n, problem.args, problem.fills, parameters.hidden)
    for name, fun, takes_slopes in functions:
        found = fun if takes_slopes else (lambda t, y, yp, *args, fun=fun: fun(t, y, *args))
        if wanted & _places(found, n, problem.args, False, None):
            raise ValueError(
                f"sensitivity: {parameters.hidden[0]} is read outside of args, by {name} too; pass "
                "it in args, so that it can be varied in both"
            )


def _places(
    fun: Callable[..., Any], n: int, args: tuple, fills: bool, names: tuple[str, ...] | None
) -> set[Any]:
    """Return where the floats lie that a function reads: those of the given names, or all."""
    want_inputs(fun, n, args, fills)
    reading = read_function(fun, n, args, fills)
    places = None if reading is None else reading.places()
    if places is None:
        return set()
    numbers = {k for k, name in enumerate(places.names) if names is None or name in names}
    found = {place for place, k in places.numbers.items() if k in numbers}
    for holder, inside in places.arrays.items():
        found |= {(holder, i) for i, k in inside.items() if k in numbers}
    return found


def reading_of(parameters: Parameters, n: int) -> Reading | None:
    """Read all that the residual depends on now."""
    problem = parameters.problem
    return read_function(problem.fun, n, problem.args, problem.fills)


def check_not_changed(before: Reading | None, after: Reading | None) -> None:
    """Refuse a run during which floats that the residual reads were changed."""
    if before is None or after is None or before.floats_are_those_of(after):
        return
    raise ValueError(
        "sensitivity: floats that the function reads outside of y were changed during the run, by "
        "an event's apply or by the callback; how they depend on the parameters is not known. Make "
        "them unknowns of the system, with the equation yp[k] = 0, and let apply change y"
    )


def is_same(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two calls of a function gave the same values."""
    size = np.maximum(np.abs(first), np.abs(second))
    return bool(np.all(np.abs(first - second) <= 1e-9 * size + 1e-300))
