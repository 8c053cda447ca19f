"""Arrays that hold traced numbers, and what NumPy does with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tether.trace.functions import BINARY, UNARY, clip, erf, expit, xlogy
from tether.trace.scalar import Scalar, compare, refuse, select

# Larger constant arrays stay arrays of floats: nobody fills them element by element.
_LARGEST_PROMOTED = 100_000


class TracedArray(np.ndarray):
    """An array of objects whose elements are numbers, traced or not."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return apply_function(function, args, options)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, TracedArray):
            key = demoted(key)
            if isinstance(key, TracedArray):
                self._set_where(key, value)
                return
        super().__setitem__(key, plain(lifted(value)))

    def _set_where(self, mask: TracedArray, value: Any) -> None:
        """Assign one value where a traced condition holds."""
        if mask.shape != self.shape or np.ndim(value) != 0:
            refuse("assigns several values where a traced condition holds")
        super().__setitem__(..., plain(where(mask, value, self)))

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        """Copy; only to floats, since everything else loses what is traced."""
        if not has_traced(self):
            return promoted(demoted(self).astype(as_dtype(dtype), *args, **options))
        if not is_float_dtype(dtype):
            refuse(f"converts traced numbers to {np.dtype(as_dtype(dtype)).name}")
        return self.copy()

    def dot(self, other: Any, out: None = None) -> Any:  # type: ignore[override]
        """Multiply as `numpy.dot` does."""
        return apply_function(np.dot, (self, other), {})


class FloatMeta(type):
    """Lets traced numbers pass as floats in ``isinstance``."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (float, Scalar))


class TracedFloat(float, metaclass=FloatMeta):
    """Stands for ``float`` in traced functions: a traced number is one already."""

    def __new__(cls, value: Any = 0.0) -> Any:
        """Convert what is not traced."""
        if type(value) is Scalar:
            return value
        if isinstance(value, TracedArray) and value.size == 1:
            return value.reshape(-1)[0]
        return float(value)


# --- conversions --------------------------------------------------------------------------


def as_dtype(dtype: Any) -> Any:
    """Type that a traced function meant."""
    return float if dtype is TracedFloat else dtype


def is_float_dtype(dtype: Any) -> bool:
    """Tell whether an array of this type may hold traced numbers."""
    return dtype is None or np.dtype(as_dtype(dtype)) in (np.dtype(float), np.dtype(object))


def has_traced(value: Any) -> bool:
    """Tell whether a number, an array or a nested sequence holds anything traced."""
    if type(value) is Scalar:
        return True
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(type(x) is Scalar for x in value.flat)
    if isinstance(value, (list, tuple)):
        return any(has_traced(x) for x in value)
    return False


def plain(value: Any) -> Any:
    """Hide from NumPy that a value is traced, so that its own loops run."""
    if isinstance(value, TracedArray):
        return value.view(np.ndarray)
    if type(value) is Scalar:
        box = np.empty((), dtype=object)
        box[()] = value
        return box
    return value


def wrapped(result: Any) -> Any:
    """Give the arrays of a result their methods; an array of one number becomes the number."""
    if isinstance(result, np.ndarray) and result.dtype == object:
        return result.view(TracedArray) if result.ndim else result[()]
    if isinstance(result, (list, tuple)) and any(isinstance(x, np.ndarray) for x in result):
        return type(result)(map(wrapped, result)) if type(result) in (list, tuple) else result
    return result


def lifted(value: Any) -> Any:
    """Turn sequences that hold traced numbers into arrays; leave the rest."""
    if isinstance(value, (list, tuple)) and has_traced(value):
        return np.array(_unboxed(value), dtype=object).view(TracedArray)
    return value


def _unboxed(value: Any) -> list:
    """Nested lists without arrays of one object, which NumPy would keep as elements."""
    return [
        _unboxed(x) if isinstance(x, (list, tuple))
        else x.tolist() if isinstance(x, np.ndarray)
        else x
        for x in value
    ]  # fmt: skip


def demoted(value: Any) -> Any:
    """Turn a traced array without traced numbers into one of ordinary numbers."""
    if isinstance(value, TracedArray) and not has_traced(value):
        return np.array(value.tolist()).reshape(value.shape)
    return value


def promoted(result: Any) -> Any:
    """Let a new array of floats hold traced numbers from now on."""
    if isinstance(result, np.ndarray) and result.ndim == 0:
        return result[()]
    if (
        type(result) is np.ndarray
        and result.dtype == float
        and result.base is None
        and result.size <= _LARGEST_PROMOTED
    ):
        return result.astype(object).view(TracedArray)
    return wrapped(result)


# --- universal functions --------------------------------------------------------------------

_NATIVE = ("add", "subtract", "multiply", "divide", "negative", "positive", "power", "remainder",
           "matmul", "vecdot", "matvec", "vecmat")  # fmt: skip
_COMPARISONS = {"less": "lt", "less_equal": "le", "equal": "eq", "not_equal": "ne",
                "greater": "gt", "greater_equal": "ge"}  # fmt: skip


def _loops() -> dict[str, Any]:
    """Make what runs over arrays of objects in place of each universal function, by name."""

    def looping(function: Callable[..., Any], operands: int) -> Any:
        # an identity of None says that the order does not matter, as reductions require
        return np.frompyfunc(function, operands, 1, identity=None)

    loops = {name: getattr(np, name) for name in _NATIVE if hasattr(np, name)}
    loops["float_power"] = np.power
    loops |= {name: looping(function, 1) for name, function in UNARY.items()}
    loops |= {name: looping(function, 2) for name, function in BINARY.items()}
    loops |= {name: looping(compare(sign), 2) for name, sign in _COMPARISONS.items()}
    loops |= {"bitwise_and": loops["logical_and"], "bitwise_or": loops["logical_or"]}
    loops |= {"bitwise_xor": loops["logical_xor"], "invert": loops["logical_not"]}
    loops |= {"clip": looping(clip, 3), "erf": looping(erf, 1)}
    return loops | {"expit": looping(expit, 1), "xlogy": looping(xlogy, 2)}


_LOOPS = _loops()
_SELECT = np.frompyfunc(select, 3, 1)
_HARMLESS = {"casting", "order", "subok", "axis", "keepdims", "initial", "axes", "out", "dtype"}


def apply_ufunc(ufunc: Any, method: str, inputs: tuple, options: dict) -> Any:
    """Run a universal function of NumPy or SciPy on traced operands."""
    operands = [lifted(x) for x in inputs]
    options = {k: v for k, v in options.items() if not (k == "where" and v is True)}
    (target,) = options.pop("out", None) or (None,)
    if method == "at":
        refuse(f"np.{ufunc.__name__}.at is not known to tracing")
    if not any(has_traced(x) for x in operands):
        result = getattr(ufunc, method)(*map(demoted, operands), **options)
        return _stored(promoted(result), target)
    loop = _loop_for(ufunc)
    if unknown := options.keys() - _HARMLESS:
        refuse(f"np.{ufunc.__name__} with {', '.join(sorted(unknown))} is not known to tracing")
    options = {k: v for k, v in options.items() if k not in ("dtype", "casting", "order", "subok")}
    result = getattr(loop, method)(*map(plain, operands), **options)
    return _stored(wrapped(result), target)


def _loop_for(ufunc: Any) -> Any:
    name = ufunc.__name__
    special = sys.modules.get("scipy.special")
    known = getattr(np, name, None) is ufunc or getattr(special, name, None) is ufunc
    if name in _LOOPS and (known or name == "clip"):
        return _LOOPS[name]
    refuse(f"the function {name} is not known to tracing")


def _stored(result: Any, target: Any) -> Any:
    if target is None:
        return result
    target[...] = result
    return target


# --- other functions --------------------------------------------------------------------------

HANDLERS: dict[Any, Callable[..., Any]] = {}

# Functions whose own implementation does the right thing with objects. Not all do: nan_to_num,
# for one, gives objects back as they came.
_TRUSTED_TEXT = """
    all amax amin any append apply_along_axis argmax argmin array_split atleast_1d
    atleast_2d atleast_3d average block broadcast_arrays broadcast_to clip column_stack
    compress concatenate convolve copy copyto cross cumprod cumsum delete det diag diagonal
    diff dot dsplit dstack ediff1d einsum einsum_path expand_dims fill_diagonal flip fliplr
    flipud hsplit hstack inner insert kron matrix_transpose max mean min moveaxis ndim norm
    outer pad permute_dims polyval prod ptp ravel repeat reshape resize roll rollaxis rot90
    shape size split squeeze stack std sum swapaxes take take_along_axis tensordot tile
    trace transpose trapezoid tril triu unstack vander var vdot vsplit vstack iscomplexobj
    isrealobj result_type
"""
_TRUSTED = frozenset(_TRUSTED_TEXT.split())


def apply_function(function: Any, args: tuple, options: dict) -> Any:
    """Run a function of NumPy that is no universal function on traced operands."""
    args = tuple(map(_known_values, args))
    options = {k: as_dtype(_known_values(v)) for k, v in options.items()}
    if not any(_holds_traced(x) for x in (*args, *options.values())):
        return promoted(function(*map(_demoted_deep, args), **options))
    handler = HANDLERS.get(function)
    if handler is not None:
        return wrapped(handler(*args, **options))
    if function.__name__ not in _TRUSTED:
        refuse(f"the function {function.__name__} is not known to tracing")
    # NumPy's own implementation; the calls it makes come back here one by one
    anything = np.empty(0, dtype=object).view(TracedArray)
    return wrapped(np.ndarray.__array_function__(anything, function, (), args, options))


def _known_values(value: Any) -> Any:
    return plain(value) if type(value) is Scalar else value


def _holds_traced(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_traced, value.values()))
    return has_traced(value)


def _demoted_deep(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_demoted_deep, value))
    return demoted(value)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Choose element by element."""
    return wrapped(_SELECT(*(plain(lifted(v)) for v in (condition, x, y))))
