"""Whether a function takes y' as an argument."""

from __future__ import annotations

import inspect
from typing import Any

from tether.problem.problem import plain_parameters, refuse_swapped

__all__ = ["takes_slopes"]

NAMES_OF_SLOPES = {"yp", "ydot", "y_dot", "dy", "dydt", "dy_dt", "yprime", "y_prime"}


def takes_slopes(name: str, fun: Any, args: tuple) -> bool:
    """Tell a function of (t, y, yp, *args) from one of (t, y, *args); refuse others.

    Where both are possible, a third parameter with a default value is not taken for y', and one
    with a usual name of y' is taken for nothing else.

    Examples
    --------
    >>> from tether.problem.signatures import takes_slopes
    >>> takes_slopes("event", lambda t, y, yp: y[0], ()), takes_slopes("event", lambda t, y: t, ())
    (True, False)
    """
    if not callable(fun):
        raise TypeError(f"{name} must be callable, got {type(fun).__name__}")
    names = plain_parameters(fun)
    if names is not None:
        refuse_swapped(name, names)
        if len(names) == 3 + len(args):
            return True
        if len(names) == 2 + len(args) and NAMES_OF_SLOPES.isdisjoint(names[2:3]):
            return False
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return True                    # a builtin without a signature
    refuse_swapped(name, list(signature.parameters))
    third = [*signature.parameters.values()][2:3]
    is_slope = bool(third) and third[0].name in NAMES_OF_SLOPES
    if _binds(signature, 3 + len(args)) and (is_slope or not any(map(_has_default, third))):
        return True
    if _binds(signature, 2 + len(args)) and not is_slope:
        return False
    followed = f", followed by the {len(args)} values of args" if args else ""
    raise TypeError(
        f"{name} must accept (t, y, yp) or (t, y){followed}, but its signature is {signature}"
    )


def _binds(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _has_default(parameter: inspect.Parameter) -> bool:
    return parameter.default is not inspect.Parameter.empty and parameter.default is not None
