"""The replacements of np, math and the builtins in a traced function."""

from __future__ import annotations

import builtins
import functools
import math
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tether.trace import numpy_protocol
from tether.trace.array_functions import apply_function
from tether.trace.arrays import (
    TracedArray,
    apply_ufunc,
    as_dtype,
    class_of_number,
    class_of_value,
    converted,
    demoted,
    has_traced,
    is_float_dtype,
    lifted,
    plain,
    promoted,
)
from tether.trace.batches import current
from tether.trace.choices import first_unless_greater, first_unless_less, hypot
from tether.trace.effects import LeftOut
from tether.trace.float_types import TYPE_SHIMS, TracedFloat, TracedFloat64, type_of
from tether.trace.functions import BINARY, SPECIAL, UNARY, erf
from tether.trace.guards import guards
from tether.trace.kinds import BOOL, BOXED, FLOAT, INT, NUMPY, PYTHON, class_of, origin_of
from tether.trace.numpy_functions import empty_like, filled, full_like, ones_like, zeros_like
from tether.trace.raising import check_math, never_raises
from tether.trace.refusal import refuse
from tether.trace.scalar import (
    Scalar,
    is_traced,
    logical_and,
    logical_not,
    logical_or,
    of_kind,
    with_origin,
)

# --- numpy ------------------------------------------------------------------------------------

_OWN = dict(vars(np))      # NumPy's members before anything replaces one of them

# Functions that take a sequence of arrays as one argument, which must not become an array.
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


def _array(
    value: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = "K",
    subok: bool = False, ndmin: int = 0,
) -> Any:
    if current.batches is not None and not ndmin and is_float_dtype(dtype):
        made = numpy_protocol.answers["array"](value, copy, order, dtype is not None)
        if made is not None:
            return made
    value = lifted(value)
    shares = type(value) is TracedArray and copy is not True and is_float_dtype(dtype)
    if not shares and (type(value) not in (Scalar, TracedArray) or not has_traced(value)):
        value = demoted(value)
        options: dict[str, Any] = {"copy": copy, "order": order, "subok": subok, "ndmin": ndmin}
        return promoted(np.array(value, dtype=as_dtype(dtype), **options))
    if dtype is not None and not is_float_dtype(dtype):
        refuse(f"stores traced numbers as {np.dtype(as_dtype(dtype)).name}")
    if type(value) is Scalar and not ndmin:
        return of_kind((class_of(value.kind) if dtype is None else FLOAT) + BOXED, value)
    own = class_of_value(value)
    changes = dtype is not None and own != FLOAT
    array = np.array(
        plain(value), dtype=object, copy=True if changes else copy, order=order, ndmin=ndmin
    )
    return converted(array.view(TracedArray), FLOAT if changes else own)


def _asarray(
    value: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None, **options: Any
) -> Any:
    if options:
        refuse("np.asarray with these options is not known to tracing")
    if isinstance(value, np.ndarray):
        if type(value) is np.ndarray and current.batches is None:
            return np.asarray(value, as_dtype(dtype), order, copy=copy)
        return _array(value, dtype, copy=copy, order=order or "K")
    if order not in (None, "K", "C") or copy is False:
        refuse("np.asarray with these options is not known to tracing")
    return _array(value, dtype)


def _ascontiguousarray(value: Any, dtype: Any = None) -> Any:
    made = _asarray(value, dtype, "C")
    return made if made.ndim else made.reshape(1)


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
    "ascontiguousarray": _ascontiguousarray,
    "float64": TracedFloat64,
    "double": TracedFloat64,
    "isscalar": lambda x: _is_scalar(x),
    "vectorize": lambda function, **options: vectorised(function, **options),
}


def _is_scalar(x: Any) -> bool:
    return issubclass(type_of(x), (np.generic, float, int)) if is_traced(x) else np.isscalar(x)


def _full(shape: Any, value: Any, dtype: Any) -> Any:
    value = lifted(value)
    if dtype is None and not has_traced(value):
        if np.asarray(demoted(value)).dtype.kind != "f":
            return np.full(shape, value)
    elif dtype is None and class_of_value(value) != FLOAT:
        refuse("np.full of conditions is not known to tracing")
    if np.ndim(value):
        result = filled(shape, 0.0, dtype)
        result[...] = value
        return result
    return filled(shape, value, dtype)


# NumPy classes that are harmless with traced numbers.
_TYPES = (np.ndarray, np.dtype, np.ufunc, np.errstate, np.ndindex, np.finfo, np.iinfo, np.poly1d)


class _ErrState(np.errstate):
    """Stands for `numpy.errstate`."""

    def __enter__(self) -> None:
        super().__enter__()
        guards.enter_errstate()


_ErrState.__name__ = "errstate"


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
            refuse("np.random returns different numbers in every call")
        value = getattr(self._module, name)
        if self._module is np and _OWN.get(name, value) is not value:
            refuse(f"np.{name} has been replaced")
        if self._module is np and name not in _OWN and not isinstance(value, types.ModuleType):
            refuse(f"np.{name} is not NumPy's own")
        return numpy_member(value, name)


def numpy_member(value: Any, name: str) -> Any:
    """Return the stand-in for a member of NumPy."""
    if name in _NUMPY and value is getattr(np, name):
        return _NUMPY[name]
    if isinstance(value, np.ufunc):
        return _ufunc_shim(value)
    if isinstance(value, types.ModuleType):
        return NumpyShim(value)
    if isinstance(value, type):
        if value is np.errstate:
            return _ErrState
        if issubclass(value, Exception):
            return value
        known = issubclass(value, np.generic) or value in _TYPES
        return value if known else refusing(f"np.{name} is not known to tracing")
    if not callable(value):
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
    return isinstance(value, (list, tuple)) and any(
        isinstance(x, np.ndarray) and x.ndim for x in value
    )


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


class UfuncShim:
    """Stands for a universal function; takes lists of traced numbers, too."""

    __slots__ = ("_of_floats", "_ufunc")

    def __init__(self, ufunc: np.ufunc) -> None:
        name = ufunc.__name__
        is_own = ufunc.nin == 1 and _OWN.get(name) is ufunc and _OWN.get(name) is vars(np)[name]
        object.__setattr__(self, "_ufunc", ufunc)
        object.__setattr__(self, "_of_floats", UNARY.get(name) if is_own else None)

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"sets {name} of np.{self._ufunc.__name__}")

    def __delattr__(self, name: str) -> None:
        refuse(f"deletes {name} of np.{self._ufunc.__name__}")

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._ufunc, name)
        return functools.partial(self._run, name) if callable(member) else member

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the universal function."""
        if self._of_floats is not None and len(args) == 1 and not options:
            x = args[0]
            if type(x) is Scalar and x.kind >= FLOAT:      # the same as `apply_ufunc`, but faster
                return with_origin(NUMPY, self._of_floats(with_origin(NUMPY, x)))
        return self._run("__call__", *args, **options)

    def _run(self, method: str, /, *args: Any, **options: Any) -> Any:
        args = tuple(map(lifted, args))
        if method == "at" and isinstance(args[0], np.ndarray) and not args[0].flags.writeable:
            refuse("writes to an array from outside the function")    # `at` ignores the flag
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


_ufunc_shim = functools.lru_cache(256)(UfuncShim)


def vectorised(function: Callable[..., Any], otypes: Any = None, **options: Any) -> Any:
    """Return the stand-in for `numpy.vectorize` of a traced function of numbers."""
    if any(value for name, value in options.items() if name != "doc"):
        refuse("np.vectorize with these options is not known to tracing")
    if otypes is not None and [np.dtype(as_dtype(x)) for x in otypes] != [np.dtype(float)]:
        refuse("np.vectorize with results other than floats is not known to tracing")

    def run(*args: Any) -> Any:
        values = [lifted(x) for x in args]
        if not any(map(has_traced, values)):
            values = [demoted(x) for x in values]
        # elements reach the function as Python numbers
        boxes = [np.asarray(plain(x)).astype(object) for x in values]
        loop = np.frompyfunc(_with_python_numbers(function), len(args), 1)
        result = np.asarray(loop(*boxes), dtype=object)
        return _of_first_class(result, otypes)

    return run


def _with_python_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: function(*(with_origin(PYTHON, x) for x in args))


def _of_first_class(result: np.ndarray, otypes: Any) -> Any:
    """Array of results, whose class is that of the first one."""
    classes = [class_of_number(x) for x in result.flat]
    if not classes:
        refuse("np.vectorize of nothing is not known to tracing")
    chosen = FLOAT if otypes is not None else classes[0]
    if max(classes) > chosen:
        refuse("np.vectorize converts its results to the type of the first one")
    if not result.ndim:
        value = result[()]
        return of_kind(chosen + BOXED, value) if is_traced(value) else np.array(value)
    return converted(result.view(TracedArray), chosen)


# --- math -----------------------------------------------------------------------------------

_SAME_NAME_IN_MATH = """
    sqrt exp sin cos tan sinh cosh tanh fabs floor ceil trunc log1p expm1 log2 log10 exp2
    cbrt isnan isinf isfinite degrees radians
"""
_INVERSE_IN_MATH = ("asin", "acos", "atan", "asinh", "acosh", "atanh")


def _log(x: Any, base: Any = None) -> Any:
    return UNARY["log"](x) if base is None else UNARY["log"](x) / UNARY["log"](base)


def _hypot(*sides: Any) -> Any:
    return functools.reduce(hypot, sides) if len(sides) > 1 else abs(sides[0])


def _dist(p: Iterable[Any], q: Iterable[Any]) -> Any:
    sides = [x - y for x, y in zip(p, q, strict=True)]
    return of_kind(FLOAT + PYTHON, _hypot(*sides)) if sides else 0.0


def _math_functions() -> dict[str, Callable[..., Any]]:
    functions: dict[str, Callable[..., Any]] = {k: UNARY[k] for k in _SAME_NAME_IN_MATH.split()}
    functions |= {k: UNARY["arc" + k[1:]] for k in _INVERSE_IN_MATH}
    functions |= {name: BINARY[name] for name in ("copysign", "fmod")}
    functions |= {"atan2": BINARY["arctan2"], "log": _log, "erf": erf, "hypot": _hypot}
    functions |= {"erfc": SPECIAL["erfc"], "gamma": SPECIAL["gamma"], "lgamma": SPECIAL["gammaln"]}
    functions["pow"] = lambda x, y: x**y
    functions["prod"] = lambda values, *, start=1: functools.reduce(operator.mul, values, start)
    functions["dist"] = _dist
    return functions


_GIVE_INTEGERS = frozenset(("floor", "ceil", "trunc"))
_GIVE_BOOLS = frozenset(("isnan", "isinf", "isfinite"))


def _math_shim(name: str, plain: Callable[..., Any], traced: Callable[..., Any] | None) -> Any:
    wanted = INT if name in _GIVE_INTEGERS else BOOL if name in _GIVE_BOOLS else FLOAT
    of_one = None if name in _OF_ITERABLES else traced

    def function(*args: Any, **options: Any) -> Any:
        if guards:
            return guarded(*args, **options)
        return run(*args, **options)

    def guarded(*args: Any, **options: Any) -> Any:
        if not has_traced(args) and not has_traced(tuple(options.values())):
            return guards.raised_by(run, *args, **options)
        if not never_raises(name):
            check_math(name, [_python_number(x) for x in args])
        with guards.lifted():
            return run(*args, **options)

    def run(*args: Any, **options: Any) -> Any:
        if of_one is not None and len(args) == 1 and type(args[0]) is Scalar and not options:
            return of_kind(wanted + PYTHON, of_one(with_origin(PYTHON, args[0])))
        args = tuple(x if not _is_iterator(x) else list(x) for x in args)
        if current.batches is not None and any(isinstance(x, np.ndarray) for x in args):
            return numpy_protocol.answers["math"](name, args)
        if not has_traced(args) and not has_traced(tuple(options.values())):
            return plain(*map(demoted, args), **options)
        if traced is None:
            refuse(f"math.{name} is not known to tracing")
        if name in _OF_ITERABLES:
            return traced(*args, **options)
        result = traced(*map(_python_number, args), **options)
        return of_kind(wanted + PYTHON, result)

    return function


_OF_ITERABLES = frozenset(("prod", "dist"))


def _python_number(x: Any) -> Any:
    """Convert an argument of a function of `math` to a Python number."""
    if isinstance(x, np.ndarray):
        if x.ndim:
            refuse("a function of math with an array is not known to tracing")
        x = np.ndarray.item(x)
    if type(x) is Scalar:
        return of_kind(class_of(x.kind) + PYTHON, x)
    return float(x) if isinstance(x, np.floating) else x


def _is_iterator(x: Any) -> bool:
    return hasattr(x, "__next__")


_TRACED_MATH = _math_functions()
MATH = {
    name: _math_shim(name, value, _TRACED_MATH.get(name)) if callable(value) else value
    for name, value in vars(math).items()
    if not name.startswith("_")
}
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
        values = [x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in values]
        if any(isinstance(x, np.ndarray) for x in values):
            refuse("compares arrays")
        return functools.reduce(choose, values)

    return function


def _quantifier(plain: Callable[..., Any], join: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(values: Iterable[Any]) -> Any:
        values = list(values)
        if not any(map(is_traced, values)):
            return plain(values)
        if not all(is_traced(x) or isinstance(x, (bool, int, float, np.bool_)) for x in values):
            return plain(values)  # decides one value after the other
        result = functools.reduce(join, map(_truth, values))
        return of_kind(BOOL + PYTHON, result)

    return function


def _truth(x: Any) -> Any:
    return logical_not(logical_not(x)) if is_traced(x) else bool(x)


# --- types ------------------------------------------------------------------------------------


def _real_types(types_asked: Any) -> Any:
    """Replace the stand-ins for classes in the second argument of `isinstance` by the classes."""
    if isinstance(types_asked, tuple):
        return tuple(map(_real_types, types_asked))
    if types_asked is _type:
        return type
    if isinstance(types_asked, types.UnionType):
        return tuple(map(_real_types, types_asked.__args__))
    return getattr(types_asked, "stands_for", types_asked)


def _refuse_if_element(value: Any) -> None:
    """Refuse to tell the type of an element of a whole array: in the function it is a number."""
    if current.batches is not None and isinstance(value, np.ndarray) and value.ndim == 0:
        refuse("asks what kind of number an element of an array is")


# A number of whatever kind is an instance of none of these.
_NOT_NUMBERS = (list, tuple, dict, set, str)


def _isinstance(value: Any, types_asked: Any) -> bool:
    types_asked = _real_types(types_asked)
    asked = types_asked if isinstance(types_asked, tuple) else (types_asked,)
    if not all(cls in _NOT_NUMBERS for cls in asked):
        _refuse_if_element(value)
    if type(value) in (Scalar, TracedArray):
        return issubclass(type_of(value), types_asked)
    return isinstance(value, types_asked)


def _issubclass(cls: Any, types_asked: Any) -> bool:
    return issubclass(_real_types(cls), _real_types(types_asked))


def _type(*args: Any, **options: Any) -> Any:
    if len(args) != 1:
        return type(*args, **options)
    _refuse_if_element(args[0])
    found = type_of(args[0])
    return TYPE_SHIMS.get(found, found)


_PYTHON_SAMPLES = {BOOL: True, INT: 1, FLOAT: 1.0}
_NUMPY_SAMPLES = {BOOL: np.True_, INT: np.int64(1), FLOAT: np.float64(1.0)}


def _sample(value: Any) -> Any:
    """Return a value of the type that a traced number has in the function itself."""
    type_of(value)
    if isinstance(value, TracedArray) or origin_of(value.kind) == BOXED:
        return np.zeros(1)
    is_numpys = origin_of(value.kind) == NUMPY
    return (_NUMPY_SAMPLES if is_numpys else _PYTHON_SAMPLES)[class_of(value.kind)]


def _hasattr(value: Any, name: str) -> bool:
    _refuse_if_element(value)
    return hasattr(_sample(value) if type(value) in (Scalar, TracedArray) else value, name)


def _getattr(value: Any, name: str, *default: Any) -> Any:
    _refuse_if_element(value)
    if type(value) in (Scalar, TracedArray):
        sample = _sample(value)
        if not hasattr(sample, name):
            return getattr(sample, name, *default)
        if name.startswith("__"):
            refuse(f"asks for {name} of a traced value")
    return getattr(value, name, *default)


_REFUSED_BUILTINS = {
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
    "dir": "looks at all attributes of an object",
    "help": "prints",
    "memoryview": "looks at the memory of an object",
    "exit": "ends the program",
    "quit": "ends the program",
}


def _build_class(body: types.FunctionType, name: str, *bases: Any, **options: Any) -> Any:
    """Run a class statement."""
    if any(base in TYPE_SHIMS.values() for base in bases if isinstance(base, type)):
        refuse(f"defines {name}, a class derived from float")
    if "__exit__" in body.__code__.co_names:
        refuse(f"defines {name}, which may swallow exceptions")
    return builtins.__build_class__(body, name, *bases, **options)


# Builtins that are replaced in traced functions.
BUILTINS: dict[str, Any] = {
    **{name: refusing(f"{name} {what}") for name, what in _REFUSED_BUILTINS.items()},
    "float": TracedFloat,
    "min": _extreme(min, first_unless_less),
    "max": _extreme(max, first_unless_greater),
    "any": _quantifier(any, logical_or),
    "all": _quantifier(all, logical_and),
    "__build_class__": _build_class,
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "type": _type,
    "hasattr": _hasattr,
    "getattr": _getattr,
    "print": LeftOut("print"),
}
