"""NumPy's functions on traced operands, other than its universal functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tether.trace import numpy_protocol
from tether.trace.arrays import (
    TracedArray,
    as_dtype,
    class_of_value,
    demoted_deep,
    has_traced,
    homogeneous,
    is_float_dtype,
    lifted,
    plain,
    promoted,
    wrapped,
)
from tether.trace.kinds import FLOAT, NUMPY, UNSURE
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar, with_origin

HANDLERS: dict[Any, Callable[..., Any]] = {}

# Functions whose own implementation is right for arrays of objects. Not all are: nan_to_num, for
# one, returns objects unchanged.
_TRUSTED_TEXT = """
    all amax amin any append apply_along_axis argmax argmin array_split atleast_1d
    atleast_2d atleast_3d average block broadcast_arrays broadcast_to clip column_stack
    compress concatenate convolve copy cross cumprod cumsum delete diag diagonal
    diff dot dsplit dstack ediff1d einsum einsum_path expand_dims fill_diagonal flip fliplr
    flipud hsplit hstack inner insert kron matrix_transpose max mean min moveaxis ndim
    outer pad permute_dims polyval prod ptp ravel repeat reshape resize roll rollaxis rot90
    shape size split squeeze stack std sum swapaxes take take_along_axis tensordot tile
    trace transpose trapezoid tril triu unstack vander var vdot vsplit vstack iscomplexobj
    isrealobj
"""
_TRUSTED = frozenset(
    getattr(np, name) for name in _TRUSTED_TEXT.split() if hasattr(np, name)
)
# Those that store their other arguments in an array of the type of the first one.
_KEEP_TYPE = frozenset(("insert", "fill_diagonal", "pad"))
# Functions that return a single result as a NumPy number; others may return an array without
# dimensions.
_GIVE_NUMBERS_TEXT = """
    all amax amin any average clip convolve dot inner max mean min polyval prod ptp std sum trace
    trapezoid var vdot interp det norm solve inv
"""
GIVE_NUMBERS = frozenset(_GIVE_NUMBERS_TEXT.split())


@numpy_protocol.register("function")
def apply_function(function: Any, args: tuple, options: dict) -> Any:
    """Run a NumPy function that is not a universal function on traced operands."""
    args = tuple(map(_known_values, args))
    options = {k: as_dtype(_known_values(v)) for k, v in options.items()}
    if not any(_holds_traced(x) for x in (*args, *options.values())):
        given = tuple(map(demoted_deep, args))
        result = function(*given, **options)
        if not any(_is_part(result, x) for x in given if _is_new(x, args)):
            return promoted(result)
        # the result is a view: traced numbers may be written through it, or to its base
    handler = HANDLERS.get(function)
    if handler is not None:
        return _finished(function, wrapped(handler(*args, **options)))
    if function not in _TRUSTED:
        refuse(f"the function {getattr(function, '__name__', function)} is not known to tracing")
    _check_options(function, args, options)
    # NumPy's own implementation; the calls it makes come back here one by one
    anything = np.empty(0, dtype=object).view(TracedArray)
    result = np.ndarray.__array_function__(anything, function, (), args, options)
    return _finished(function, wrapped(result))


# Applied to conditions, these return a condition, not a count.
_PRODUCTS = frozenset(("dot", "inner", "vdot", "tensordot", "kron"))


def _check_options(function: Any, args: tuple, options: dict) -> None:
    """Refuse options that NumPy ignores for arrays of objects."""
    name = function.__name__
    if not is_float_dtype(options.get("dtype")):
        refuse(f"np.{name} with a dtype is not known to tracing")
    no_floats = all(class_of_value(lifted(x)) != FLOAT for x in args[: 1 + (name in _PRODUCTS)])
    if name in (_KEEP_TYPE | _PRODUCTS) and no_floats:
        refuse(f"np.{name} of conditions or integers is not known to tracing")
    if not isinstance(options.get("where", True), (bool, type(np._NoValue))):
        refuse(f"np.{name} with where is not known to tracing")


def _finished(function: Any, result: Any) -> Any:
    """Convert a result to what the function itself returns: elements of one class."""
    if type(result) is Scalar:
        gives_number = function.__name__ in GIVE_NUMBERS
        return with_origin(NUMPY if gives_number else UNSURE, result)
    if isinstance(result, TracedArray):
        return homogeneous(result)
    if type(result) in (list, tuple):
        return type(result)(_finished(function, x) for x in result)
    return result


def _known_values(value: Any) -> Any:
    return plain(value).view(TracedArray) if type(value) is Scalar else value


def _holds_traced(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_traced, value.values()))
    return has_traced(value)


def _is_new(value: Any, args: tuple) -> bool:
    return isinstance(value, np.ndarray) and not any(value is x for x in args)


def _is_part(result: Any, array: np.ndarray) -> bool:
    """Tell whether a result is a view of an array instead of a copy."""
    if isinstance(result, (list, tuple)):
        return any(_is_part(x, array) for x in result)
    return isinstance(result, np.ndarray) and np.may_share_memory(result, array)
