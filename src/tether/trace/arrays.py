"""Arrays that hold traced numbers, and what NumPy does with them.

All elements of such an array are of one class, as in every array of numbers: bools, integers or
floats. Untraced elements are stored as Python numbers and read as NumPy numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tether.trace import numpy_protocol
from tether.trace.batches import current
from tether.trace.effects import text_of_traced
from tether.trace.functions import BINARY, SPECIAL, UNARY, clip, erf, expit, xlogy
from tether.trace.kinds import (
    BOOL,
    BOXED,
    FLOAT,
    INT,
    MIXED,
    NUMPY,
    PYTHON,
    UNCERTAIN,
    class_of,
    dtype_of,
    kind_of,
    origin_of,
)
from tether.trace.refusal import refuse
from tether.trace.scalar import (
    Scalar,
    asked_from_inside,
    compare,
    logical_not,
    of_kind,
    select,
    with_origin,
)
from tether.trace.special import BY_NAME

# Larger constant arrays stay arrays of floats: functions do not fill those element by element.
_LARGEST_PROMOTED = 100_000

_NUMPY_TYPES: dict[type, Any] = {float: np.float64, bool: np.bool_, int: np.int64}
_PYTHON_TYPES: dict[int, Callable[[Any], Any]] = {BOOL: bool, INT: int, FLOAT: float}
_CLASS_OF_DTYPE = {"b": BOOL, "i": INT, "u": INT, "f": FLOAT}


_get_item, _set_item = np.ndarray.__getitem__, np.ndarray.__setitem__


def _as_objects(array: np.ndarray) -> np.ndarray:
    """View a traced array as a plain array of objects."""
    return np.ndarray.view(array, np.ndarray)


class TracedArray(np.ndarray):
    """An array of objects whose elements are numbers, traced or not."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return numpy_protocol.answers["function"](function, args, options)

    def __getitem__(self, key: Any) -> Any:
        result = _get_item(self, key)
        if type(result) is Scalar:
            return Scalar(result.recorder, result.node, class_of(result.kind) + NUMPY)
        return result if type(result) is TracedArray else read(result)

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is TracedArray:
            key = demoted(key)
            if isinstance(key, TracedArray):
                self._set_where(key, value)
                return
        _set_item(self, key, storable(self, value))

    def _set_where(self, mask: TracedArray, value: Any) -> None:
        """Assign one value where a traced condition holds."""
        if mask.shape != self.shape or np.ndim(plain(value)) != 0:
            refuse("assigns several values where a traced condition holds")
        if class_of_array(mask) != BOOL:
            refuse("picks elements by something other than a condition")
        super().__setitem__(..., plain(where(mask, storable(self, value), self)))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __repr__(self) -> str:
        return text_of_traced("a traced array")

    def __str__(self) -> str:
        return text_of_traced("a traced array")

    def __format__(self, spec: str) -> str:
        return text_of_traced("a traced array")

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        """Copy; only to floats, or conditions to integers: other types cannot hold a trace."""
        wanted = np.dtype(as_dtype(dtype))
        if not has_traced(self):
            if options.get("copy") is False and wanted == np.float64:
                refuse("np.ndarray.astype with these options is not known to tracing")
            return promoted(demoted(self).astype(wanted, *args, **options))
        if asked_from_inside() and wanted.hasobject:
            return self.copy()
        own, is_float = class_of_array(self), is_float_dtype(wanted)
        if args or options or not (is_float or (wanted == np.int64 and own < FLOAT)):
            refuse(f"converts traced numbers to {wanted.name}")
        return converted(self.copy("K"), FLOAT if is_float else INT)

    def conjugate(self) -> Any:
        """Return the array itself, whose numbers are real."""
        return self

    conj = conjugate

    def dot(self, other: Any, out: None = None) -> Any:  # type: ignore[override]
        """Multiply as `numpy.dot` does."""
        if out is not None:
            refuse("a product stored in an array is not known to tracing")
        return np.dot(self, other)

    def fill(self, value: Any) -> None:
        """Set all elements."""
        self[...] = value

    def item(self, *args: Any) -> Any:
        """Return one element as a Python number."""
        return with_origin(PYTHON, super().item(*args))

    def tolist(self) -> Any:
        """Return all elements as Python numbers."""
        values = super().tolist()
        return _of_python(values) if not asked_from_inside() else values

    def view(self, *args: Any) -> Any:  # type: ignore[override]
        """Return another view of the array, of the same type."""
        if args and not asked_from_inside():
            refuse("views traced numbers as another type")
        return super().view(*args)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """Return the index of the largest element, or of the first NaN."""
        return self._extreme_place(lambda x, best: x > best, axis, out, keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """Return the index of the smallest element, or of the first NaN."""
        return self._extreme_place(lambda x, best: x < best, axis, out, keepdims)

    def _extreme_place(
        self, is_better: Callable[[Any, Any], Any], axis: Any, out: Any, keepdims: bool
    ) -> Any:
        values = self.ravel()
        if (axis is not None and self.ndim != 1) or out is not None or keepdims or not len(values):
            refuse("the place of an extreme along an axis is not known to tracing")
        place = 0
        for i, value in enumerate(values):
            if value != value:
                return np.int64(i)
            if is_better(value, values[place]):
                place = i
        return np.int64(place)

    def all(  # type: ignore[override]
        self, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        """Tell whether all elements are true."""
        options |= {"axis": axis, "keepdims": keepdims, "out": None if out is None else (out,)}
        return apply_ufunc(np.logical_and, "reduce", (self,), options)

    def any(  # type: ignore[override]
        self, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        """Tell whether an element is true."""
        options |= {"axis": axis, "keepdims": keepdims, "out": None if out is None else (out,)}
        return apply_ufunc(np.logical_or, "reduce", (self,), options)

    @property
    def flat(self) -> Any:  # type: ignore[override]
        """All elements one after the other."""
        return _Flat(self)

    @property  # type: ignore[misc]
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """Type of the elements; NumPy itself is told that they are objects."""
        return super().dtype if asked_from_inside() else dtype_of(class_of_array(self))

    @property  # type: ignore[misc]
    def real(self) -> Any:  # type: ignore[override]
        """The array itself."""
        return self[...]


_KNOWN_MEMBERS_TEXT = """
    T all any argmax argmin astype clip conj conjugate copy cumprod cumsum diagonal dot dtype fill
    flat flatten item mT max mean min ndim prod ravel real repeat reshape shape size squeeze std
    sum swapaxes take tolist trace transpose var view
"""
KNOWN_MEMBERS = frozenset(_KNOWN_MEMBERS_TEXT.split())


def _hide_other_members() -> None:
    """Hide from traced functions all members of an array that are not known to be right."""

    def hidden(name: str) -> property:
        def look_up(self: TracedArray) -> Any:
            if not asked_from_inside():
                refuse(f"asks for {name} of an array, which is not known to tracing")
            return getattr(super(TracedArray, self), name)

        def change(self: TracedArray, value: Any) -> None:
            refuse(f"sets {name} of an array")

        return property(look_up, change)

    for name in dir(np.ndarray):
        if name not in KNOWN_MEMBERS and not name.startswith("_"):
            setattr(TracedArray, name, hidden(name))


_hide_other_members()


class _Flat:
    """All elements of an array one after the other, to read and to write."""

    def __init__(self, array: TracedArray) -> None:
        self._array, self._elements = array, array.view(np.ndarray).flat

    def __len__(self) -> int:
        return len(self._elements)

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        result = self._elements[key]
        return result.view(TracedArray) if isinstance(result, np.ndarray) else read(result)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._elements[key] = storable(self._array, value)


# --- conversions --------------------------------------------------------------------------


def as_dtype(dtype: Any) -> Any:
    """Return the type that a stand-in stands for."""
    return getattr(dtype, "stands_for", dtype) if isinstance(dtype, type) else dtype


def is_float_dtype(dtype: Any) -> bool:
    """Tell whether an array of this type may hold traced numbers."""
    return dtype is None or np.dtype(as_dtype(dtype)) == np.dtype(float)


def has_traced(value: Any) -> bool:
    """Tell whether a number, an array or a nested sequence holds anything traced."""
    if type(value) is Scalar:
        return True
    if isinstance(value, np.ndarray):
        return _holds_objects(value) and Scalar in map(type, _as_objects(value).flat)
    if isinstance(value, (list, tuple)):
        for x in value:
            if has_traced(x):
                return True
    return False


def _holds_objects(array: np.ndarray) -> bool:
    return type(array) is TracedArray or array.dtype == object


def read(element: Any) -> Any:
    """Element of an array as a function gets it: a NumPy number, a new one every time."""
    if type(element) is Scalar:
        return Scalar(element.recorder, element.node, class_of(element.kind) + NUMPY)
    numpy_type = _NUMPY_TYPES.get(type(element))
    return element if numpy_type is None else numpy_type(element)


def _of_python(value: Any) -> Any:
    if isinstance(value, list):
        return [_of_python(x) for x in value]
    return with_origin(PYTHON, value)


def class_of_number(value: Any) -> int:
    """Class of a number, traced or not; anything that is not a number counts as a float."""
    kind = value.kind if type(value) is Scalar else kind_of(value)
    return FLOAT if kind is None else class_of(kind)


def class_of_array(array: np.ndarray) -> int:
    """Class of all elements of an array."""
    if not _holds_objects(array):
        kind = array.dtype.kind
        if kind not in _CLASS_OF_DTYPE:
            refuse(f"computes with an array of {array.dtype.name}")
        return _CLASS_OF_DTYPE[kind]
    return class_of_number(np.ndarray.item(array, 0)) if array.size else FLOAT


def class_of_value(value: Any) -> int:
    """Class of a number or of the elements of an array."""
    if type(value) is Scalar:
        return class_of(value.kind)
    return class_of_array(value) if isinstance(value, np.ndarray) else class_of_number(value)


def as_class(wanted: int, element: Any) -> Any:
    """Element of an array of that class."""
    if type(element) is Scalar:
        return of_kind(wanted + NUMPY, element) if element.kind != wanted + NUMPY else element
    return _PYTHON_TYPES[wanted](element)


def converted(array: TracedArray, wanted: int) -> TracedArray:
    """Make all elements those of one class, in place."""
    elements = _as_objects(array)
    for place in np.ndindex(elements.shape):
        elements[place] = as_class(wanted, elements[place])
    return array


def homogeneous(array: TracedArray) -> TracedArray:
    """Make all elements NumPy numbers of one class, as in an array of numbers."""
    elements = _as_objects(array)
    classes = {class_of_number(x) for x in elements.flat}
    if not classes or classes == {FLOAT}:
        return array
    widest = max(classes)
    if widest == MIXED:
        refuse("makes an array of values that may be integers or floats")
    if len(classes) > 1 or any(type(x) is Scalar and x.kind != widest + NUMPY
                               for x in elements.flat):  # fmt: skip
        return converted(array, widest)
    return array


def storable(target: np.ndarray, value: Any) -> Any:
    """Convert a value to what is stored when it is assigned to elements of an array."""
    wanted = class_of_array(target)
    if type(value) is Scalar:
        if value.kind == wanted + NUMPY:
            return value
    else:
        value = lifted(value)
        if isinstance(value, np.ndarray) and value.ndim == 0:  # would be stored as such
            value = plain(value)[()]
    if type(value) is Scalar:
        _check_storing(class_of(value.kind), wanted)
        return as_class(wanted, value)
    if isinstance(value, np.ndarray):
        own = class_of_array(value)
        _check_storing(own, wanted)
        if _holds_objects(value):
            same = own == wanted
            return plain(value if same else converted(value.copy().view(TracedArray), wanted))
        return value.astype(dtype_of(wanted)).astype(object)
    if isinstance(value, (list, tuple)):
        return storable(target, np.asarray(value))
    if isinstance(value, (str, bytes, complex)):
        refuse(f"stores a {type(value).__name__} in an array")
    kind = kind_of(value)
    if kind is None:
        return float(value) if isinstance(value, np.floating) else value
    _check_storing(class_of(kind), wanted)
    return _PYTHON_TYPES[wanted](value)


def _check_storing(own: int, wanted: int) -> None:
    if own > wanted:
        refuse("stores numbers in an array of conditions or integers")


def plain(value: Any) -> Any:
    """Hide from NumPy that a value is traced, so that its own loops run."""
    if type(value) is TracedArray:
        return _as_objects(value)
    if type(value) is Scalar:
        box = np.empty((), dtype=object)
        box[()] = value
        return box
    return value


def wrapped(result: Any) -> Any:
    """View arrays of objects as traced arrays; replace one without dimensions by its element."""
    if type(result) is Scalar:
        return result
    if isinstance(result, np.ndarray) and _holds_objects(result):
        return np.ndarray.view(result, TracedArray) if result.ndim else plain(result)[()]
    if isinstance(result, (list, tuple)) and any(isinstance(x, np.ndarray) for x in result):
        return type(result)(map(wrapped, result)) if type(result) in (list, tuple) else result
    return result


def lifted(value: Any) -> Any:
    """Turn a sequence that holds traced numbers into an array; leave anything else."""
    if current.batches is not None and isinstance(value, (list, tuple)):
        made = numpy_protocol.answers["array"](value)
        return value if made is None else made
    if type(value) is not Scalar and isinstance(value, (list, tuple)) and has_traced(value):
        return homogeneous(np.array(_unboxed(value), dtype=object).view(TracedArray))
    return value


def _unboxed(value: Any) -> list:
    """Nested lists without arrays: NumPy would keep those without dimensions as elements."""
    return [
        _unboxed(x) if isinstance(x, (list, tuple))
        else x.tolist() if isinstance(x, np.ndarray)
        else x
        for x in value
    ]  # fmt: skip


def demoted(value: Any) -> Any:
    """Turn a traced array without traced numbers into one of ordinary numbers."""
    if isinstance(value, TracedArray) and not has_traced(value):
        made = np.array(value.tolist()).reshape(value.shape)
        placed = np.empty_like(np.ndarray.view(value, np.ndarray), made.dtype)  # the same layout
        placed[...] = made
        return placed
    return value


def demoted_deep(value: Any) -> Any:
    """Demote a value, or all that nested lists and tuples hold."""
    if type(value) in (list, tuple):
        return type(value)(map(demoted_deep, value))
    return demoted(value)


def promoted(result: Any) -> Any:
    """Convert a new array of floats to one that can hold traced numbers."""
    if current.batches is not None:
        return numpy_protocol.answers["promote"](result)
    if (
        type(result) is np.ndarray
        and result.dtype == float
        and result.ndim
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
_OF_BITS = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "invert"))
_LOGICAL = frozenset(("logical_and", "logical_or", "logical_xor", "logical_not"))
# Right for bools as well. Most other functions compute with few digits then: np.exp of a bool has
# three.
_OF_BOOLS = _OF_BITS | _LOGICAL | _COMPARISONS.keys() | {
    "add", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "isnan", "isfinite",
    "isinf", "matmul", "clip",
}  # fmt: skip
# Given integers, these compute with integers or return integers.
_NOT_OF_INTEGERS = frozenset((
    "sign", "floor", "ceil", "trunc", "fix", "reciprocal", "fmod", "floor_divide", "heaviside",
    "power",
))  # fmt: skip


def _loops() -> dict[str, Any]:
    """Make the function that takes the place of each universal function, by name."""

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
    loops |= {
        name: looping(function, 1 + BY_NAME[name].has_order) for name, function in SPECIAL.items()
    }
    return loops | {"expit": looping(expit, 1), "xlogy": looping(xlogy, 2)}


_LOOPS = _loops()
_SELECT = np.frompyfunc(select, 3, 1)
_TRUTH = np.frompyfunc(lambda x: logical_not(logical_not(x)), 1, 1)
_HARMLESS = {"casting", "order", "subok", "axis", "keepdims", "initial", "axes", "out", "dtype"}
_METHODS = frozenset(("__call__", "reduce", "accumulate", "outer"))


@numpy_protocol.register("ufunc")
def apply_ufunc(ufunc: Any, method: str, inputs: tuple, options: dict) -> Any:
    """Run a universal function of NumPy or SciPy on traced operands."""
    operands = [lifted(x) for x in inputs]
    options = {k: v for k, v in options.items() if not (k == "where" and v is True)}
    (target,) = options.pop("out", None) or (None,)
    name = ufunc.__name__
    if method == "at" and len(operands) > 1:
        return _apply_at(ufunc, *operands)
    if method not in _METHODS:
        refuse(f"np.{name}.{method} is not known to tracing")
    if not any(has_traced(x) for x in operands):
        result = getattr(ufunc, method)(*map(demoted, operands), **options)
        return _stored(promoted(result), target)
    loop = _loop_for(ufunc)
    if unknown := options.keys() - _HARMLESS:
        refuse(f"np.{name} with {', '.join(sorted(unknown))} is not known to tracing")
    dtype = options.get("dtype")
    if not is_float_dtype(dtype) and not np.dtype(dtype).hasobject:
        refuse(f"np.{name} with a dtype is not known to tracing")
    operands = _checked(name, method, operands)
    if "initial" in options and any(class_of_value(x) != FLOAT for x in operands):
        refuse(f"np.{name} with initial is not known to tracing for bools and integers")
    options = {k: v for k, v in options.items() if k not in ("dtype", "casting", "order", "subok")}
    result = getattr(loop, method)(*map(plain, operands), **options)
    return _stored(with_origin(NUMPY, wrapped(result)), target)


def _apply_at(ufunc: Any, target: Any, places: Any, values: Any = None) -> None:
    """Change elements of an array in place, one by one: a place may occur several times."""
    if type(target) is not TracedArray:
        refuse(f"np.{ufunc.__name__}.at changes an array that is not known to tracing")
    numbers = np.arange(target.size).reshape(target.shape)[places]
    flat = target.flat
    if values is None:
        for k in numbers.flat:
            flat[k] = apply_ufunc(ufunc, "__call__", (flat[k],), {})
        return
    given = np.broadcast_to(np.asarray(plain(values)), numbers.shape)
    for k, value in zip(numbers.flat, given.flat, strict=True):
        flat[k] = apply_ufunc(ufunc, "__call__", (flat[k], value), {})


def _loop_for(ufunc: Any) -> Any:
    name = ufunc.__name__
    special = sys.modules.get("scipy.special")
    known = getattr(np, name, None) is ufunc or getattr(special, name, None) is ufunc
    if name in _LOOPS and (known or name == "clip"):
        return _LOOPS[name]
    refuse(f"the function {name} is not known to tracing")


def _checked(name: str, method: str, operands: list) -> list:
    """Operands as NumPy numbers; refuse those for which the function does something else."""
    for x in operands:
        if isinstance(x, (np.ndarray, np.generic)) and not isinstance(x, TracedArray):
            _check_precision(x, operands)
    operands = [with_origin(NUMPY, x) for x in operands]
    classes = [class_of_value(x) for x in operands if x is not None]
    widest = max(classes)
    if widest == BOOL and name not in _OF_BOOLS:
        refuse(f"np.{name} of bools is not known to tracing")
    if widest in (INT, MIXED) and name in _NOT_OF_INTEGERS:
        refuse(f"np.{name} of integers is not known to tracing")
    if widest != BOOL and name in _OF_BITS:
        refuse(f"np.{name} of numbers is not known to tracing")
    if method in ("reduce", "accumulate"):
        if name in ("logical_and", "logical_or"):  # one element is not combined with anything
            return [_TRUTH(plain(operands[0])), *operands[1:]]
        if name in ("add", "multiply") and widest == BOOL:
            array = np.asarray(plain(operands[0])).copy().view(TracedArray)
            return [converted(array, INT), *operands[1:]]
    return operands


def _check_precision(x: Any, operands: list) -> None:
    """Refuse numbers of another precision, unless the other operands are doubles."""
    if x.dtype.kind not in "biufO" or x.dtype.itemsize > 8:
        refuse(f"computes with {x.dtype.name}")
    if x.dtype.kind == "f" and x.dtype.itemsize < 8:
        others = [y for y in operands if type(y) in (Scalar, TracedArray)]
        if any(
            class_of_value(y) != FLOAT
            or (type(y) is Scalar and origin_of(y.kind) in (PYTHON, *UNCERTAIN))
            for y in others
        ):
            refuse(f"computes with {x.dtype.name}")


def _stored(result: Any, target: Any) -> Any:
    if target is None:
        return result
    target[...] = result
    return target


def where(condition: Any, x: Any, y: Any) -> Any:
    """Choose element by element."""
    values = [lifted(v) for v in (condition, x, y)]
    wanted = max(map(class_of_value, values[1:]))
    result = wrapped(_SELECT(*map(plain, values)))
    if isinstance(result, TracedArray):
        return converted(result, wanted)
    return of_kind(wanted + BOXED, result)
