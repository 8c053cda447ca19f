"""What a traced function finds under the names np, math and those of the builtins."""

from __future__ import annotations

import builtins
import functools
import math
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tether.trace.arrays import (
    TracedArray,
    TracedFloat,
    apply_function,
    apply_ufunc,
    as_dtype,
    demoted,
    has_traced,
    is_float_dtype,
    lifted,
    plain,
    promoted,
    wrapped,
)
from tether.trace.functions import BINARY, UNARY, erf
from tether.trace.numpy_functions import empty_like, filled, full_like, ones_like, zeros_like
from tether.trace.scalar import (
    Scalar,
    is_traced,
    logical_and,
    logical_or,
    maximum,
    minimum,
    refuse,
)

# --- numpy ------------------------------------------------------------------------------------

_OWN = dict(vars(np))      # before anybody changes it

# These take a sequence of arrays as one argument, which must not become an array itself.
_OF_SEQUENCES_TEXT = """
    concatenate stack hstack vstack dstack column_stack block select piecewise
    broadcast_arrays meshgrid ix_
"""
_OF_SEQUENCES = frozenset(_OF_SEQUENCES_TEXT.split())
_EFFECTS_TEXT = """
    save savez savez_compressed savetxt load loadtxt genfromtxt fromfile seterr seterrcall
    set_printoptions memmap
"""
_EFFECTS = frozenset(_EFFECTS_TEXT.split())


def _array(value: Any, dtype: Any = None, *, copy: bool | None = True, **options: Any) -> Any:
    value = lifted(value)
    if isinstance(value, (Scalar, TracedArray)) and has_traced(value):
        if not is_float_dtype(dtype):
            refuse(f"stores traced numbers as {np.dtype(as_dtype(dtype)).name}")
        return wrapped(np.array(value, dtype=object, copy=copy, **options))
    value = demoted(value)
    return promoted(np.array(value, dtype=as_dtype(dtype), copy=copy, **options))


def _asarray(value: Any, dtype: Any = None, **options: Any) -> Any:
    if isinstance(value, TracedArray) and is_float_dtype(dtype):
        return value
    if type(value) is np.ndarray and (dtype is None or value.dtype == as_dtype(dtype)):
        return value
    return _array(value, dtype, **options)


def _eye(*args: Any, dtype: Any = float, **options: Any) -> Any:
    return promoted(np.eye(*args, dtype=as_dtype(dtype), **options))


_NUMPY: dict[str, Callable[..., Any]] = {
    "zeros": lambda shape, dtype=None, order="C": filled(shape, 0.0, dtype),
    "ones": lambda shape, dtype=None, order="C": filled(shape, 1.0, dtype),
    "empty": lambda shape, dtype=None, order="C": filled(shape, math.nan, dtype)
    if is_float_dtype(dtype)
    else np.zeros(shape, as_dtype(dtype)),
    "full": lambda shape, value, dtype=None, order="C": _full(shape, value, dtype),
    "zeros_like": zeros_like,
    "ones_like": ones_like,
    "empty_like": empty_like,
    "full_like": full_like,
    "eye": _eye,
    "identity": _eye,
    "array": _array,
    "asarray": _asarray,
    "asanyarray": _asarray,
    "ascontiguousarray": _asarray,
    "float64": TracedFloat,
    "double": TracedFloat,
    "isscalar": lambda x: type(x) is Scalar or np.isscalar(x),
}


def _full(shape: Any, value: Any, dtype: Any) -> Any:
    value = lifted(value)
    if dtype is None and not has_traced(value) and np.asarray(value).dtype.kind in "biu":
        return np.full(shape, value)
    if np.ndim(value):
        result = filled(shape, 0.0, dtype)
        result[...] = value
        return result
    return filled(shape, value, dtype)


class NumpyShim:
    """Stands for numpy or one of its submodules."""

    __slots__ = ("_module",)

    def __init__(self, module: types.ModuleType) -> None:
        object.__setattr__(self, "_module", module)

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes to {self._module.__name__}.{name}")

    def __delattr__(self, name: str) -> None:
        refuse(f"deletes {self._module.__name__}.{name}")

    def __getattr__(self, name: str) -> Any:
        if name == "random":
            refuse("np.random gives other numbers at every call")
        value = getattr(self._module, name)
        if self._module is np and _OWN.get(name, value) is not value:
            refuse(f"np.{name} has been replaced")
        if self._module is np and name not in _OWN and not isinstance(value, types.ModuleType):
            refuse(f"np.{name} is not NumPy's own")
        return numpy_member(value, name)


def numpy_member(value: Any, name: str) -> Any:
    """Give what stands for a member of NumPy."""
    if name in _NUMPY and value is getattr(np, name):
        return _NUMPY[name]
    if isinstance(value, np.ufunc):
        return UfuncShim(value)
    if isinstance(value, types.ModuleType):
        return NumpyShim(value)
    if isinstance(value, type) or not callable(value):
        return value
    if name in _EFFECTS:
        return refusing(f"np.{name} has effects")
    return functools.partial(_call_numpy, value)


def _call_numpy(function: Any, /, *args: Any, **options: Any) -> Any:
    lift = _lift_members if function.__name__ in _OF_SEQUENCES else lifted
    args = tuple(lift(x) for x in args)
    options = {k: as_dtype(lift(v)) for k, v in options.items()}
    if any(isinstance(x, (Scalar, TracedArray)) for x in _flat((args, tuple(options.values())))):
        return apply_function(function, args, options)
    return promoted(function(*map(as_dtype, args), **options))


def _lift_members(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_lift_members(x) if _holds_arrays(x) else lifted(x) for x in value]
    return value


def _holds_arrays(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(x, np.ndarray) for x in value)


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


class UfuncShim:
    """Stands for a universal function: also takes lists of traced numbers."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._ufunc, name)
        return functools.partial(self._run, name) if callable(member) else member

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run it."""
        return self._run("__call__", *args, **options)

    def _run(self, method: str, /, *args: Any, **options: Any) -> Any:
        args = tuple(map(lifted, args))
        if method == "at" and isinstance(args[0], np.ndarray) and not args[0].flags.writeable:
            refuse("writes to an array from outside the function")    # which `at` does not notice
        if any(isinstance(x, (Scalar, TracedArray)) for x in (*args, options.get("out"))):
            out = options.get("out")
            if out is not None and not isinstance(out, tuple):
                options["out"] = (out,)
            if len(args) > self._ufunc.nin and method == "__call__":
                options["out"] = args[self._ufunc.nin :]
                args = args[: self._ufunc.nin]
            return apply_ufunc(self._ufunc, method, args, options)
        options = {k: as_dtype(v) for k, v in options.items()}
        return promoted(getattr(self._ufunc, method)(*args, **options))


def vectorised(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stand for `numpy.vectorize` of a traced function of numbers."""

    def run(*args: Any) -> Any:
        loop = np.frompyfunc(function, len(args), 1)
        return wrapped(loop(*(plain(lifted(x)) for x in args)))

    return run


# --- math -----------------------------------------------------------------------------------

_SAME_IN_MATH = """
    sqrt exp sin cos tan sinh cosh tanh fabs floor ceil trunc log1p expm1 log2 log10 exp2
    cbrt isnan isinf isfinite degrees radians
"""
_INVERSE_IN_MATH = ("asin", "acos", "atan", "asinh", "acosh", "atanh")


def _log(x: Any, base: Any = None) -> Any:
    return UNARY["log"](x) if base is None else UNARY["log"](x) / UNARY["log"](base)


def _sum(values: Iterable[Any]) -> Any:
    return functools.reduce(operator.add, values, 0.0)


def _hypot(*sides: Any) -> Any:
    return UNARY["sqrt"](_sum(x * x for x in sides))


def _math_functions() -> dict[str, Callable[..., Any]]:
    functions: dict[str, Callable[..., Any]] = {k: UNARY[k] for k in _SAME_IN_MATH.split()}
    functions |= {k: UNARY["arc" + k[1:]] for k in _INVERSE_IN_MATH}
    functions |= {name: BINARY[name] for name in ("copysign", "fmod")}
    functions |= {"atan2": BINARY["arctan2"], "log": _log, "erf": erf, "hypot": _hypot}
    functions |= {"pow": lambda x, y: x**y, "fsum": _sum}
    functions["prod"] = lambda values, *, start=1: functools.reduce(operator.mul, values, start)
    functions["dist"] = lambda p, q: _hypot(*(x - y for x, y in zip(p, q, strict=True)))
    functions["sumprod"] = lambda p, q: _sum(x * y for x, y in zip(p, q, strict=True))
    return functions


def _math_shim(name: str, plain: Callable[..., Any], traced: Callable[..., Any] | None) -> Any:
    def function(*args: Any, **options: Any) -> Any:
        args = tuple(x if not _is_iterator(x) else list(x) for x in args)
        if not has_traced(args):
            return plain(*args, **options)
        if traced is None:
            refuse(f"math.{name} is not known to tracing")
        args = tuple(x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in args)
        return traced(*args, **options)

    return function


def _is_iterator(x: Any) -> bool:
    return hasattr(x, "__next__")


_TRACED_MATH = _math_functions()
MATH = {
    name: _math_shim(name, value, _TRACED_MATH.get(name)) if callable(value) else value
    for name, value in vars(math).items()
    if not name.startswith("_")
}
MATH_SHIM = types.SimpleNamespace(**MATH)
MATH_MEMBERS = {getattr(math, name): value for name, value in MATH.items() if callable(value)}

# --- builtins -------------------------------------------------------------------------------


def refusing(reason: str) -> Callable[..., Any]:
    """Make a function that ends the tracing when called."""

    def function(*args: Any, **options: Any) -> Any:
        refuse(reason)

    return function


def _extreme(plain: Callable[..., Any], choose: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(*args: Any, **options: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        if not values or options.get("key") is not None or not any(map(is_traced, values)):
            return plain(values, **options)
        return functools.reduce(choose, values)

    return function


def _quantifier(plain: Callable[..., Any], join: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(values: Iterable[Any]) -> Any:
        values = list(values)
        return functools.reduce(join, values) if any(map(is_traced, values)) else plain(values)

    return function


_REFUSED_BUILTINS = {
    "print": "prints",
    "open": "opens a file",
    "input": "asks for input",
    "exec": "runs text as code",
    "eval": "runs text as code",
    "compile": "runs text as code",
    "globals": "looks at all global variables",
    "locals": "looks at all local variables",
    "vars": "looks at all variables of an object",
    "breakpoint": "stops in the debugger",
    "setattr": "sets an attribute",
    "delattr": "deletes an attribute",
    "id": "asks for the identity of an object",
    "exit": "ends the program",
    "quit": "ends the program",
}


def builtin_shims(copy: Callable[[Any], Any]) -> dict[str, Any]:
    """Builtins for traced functions; `copy` gives what stands for an imported module."""

    def import_shim(name: str, *args: Any, **options: Any) -> Any:
        return copy(builtins.__import__(name, *args, **options))

    shims = dict(vars(builtins))
    shims |= {name: refusing(f"{name} {what}") for name, what in _REFUSED_BUILTINS.items()}
    return shims | {
        "__import__": import_shim,
        "float": TracedFloat,
        "min": _extreme(min, minimum),
        "max": _extreme(max, maximum),
        "any": _quantifier(any, logical_or),
        "all": _quantifier(all, logical_and),
    }

