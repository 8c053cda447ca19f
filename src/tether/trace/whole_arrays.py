"""Whole arrays: the symbols for y and y' in a function that works on arrays.

A `WholeArray` is an array of floats. A traced element is a NaN whose lower bits hold its number in
the `Batches` of the trace; all other elements are ordinary numbers. So NumPy itself moves elements
(slices, strides, gathers, in-place writes, concatenation, padding, rolling), and nothing has to be
recorded. Arithmetic reaches this package through NumPy's protocols and makes one batch. Functions
that would read the bits, or compute with them unnoticed, are refused: then the function is traced
number by number, or called as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tether.trace import numpy_protocol
from tether.trace.batches import Batches, current
from tether.trace.refusal import refuse
from tether.trace.scalar import asked_from_inside

__all__ = [
    "WholeArray", "batches_now", "boxed", "element_of", "elements_of", "gathered", "has_elements",
    "new_array", "plain_array", "promoted", "whole",
]

# A quiet NaN without a sign has these upper bits; the rest is the number of the element plus one.
_BOX = np.uint64(0x7FF8000000000000)
_ALL_BITS = np.uint64(0xFFF8000000000000)
_NUMBER = np.uint64(0x0007FFFFFFFFFFFF)


def batches_now() -> Batches:
    """Return the batches of the present trace; without one, the array is from another trace."""
    if current.batches is None:
        refuse("uses an array that belongs to another trace")
    return current.batches


# --- boxes --------------------------------------------------------------------------------


def boxed(elements: np.ndarray, is_condition: bool = False) -> WholeArray:
    """Make an array of traced elements."""
    bits = np.asarray(np.asarray(elements).astype(np.uint64) + np.uint64(1) | _BOX)
    return whole(bits.view(np.float64), is_condition)


def whole(values: np.ndarray, is_condition: bool = False) -> WholeArray:
    """View an array of floats as one that can hold traced elements."""
    result = values.view(WholeArray)
    result.is_condition = is_condition
    return result


def _bits(values: np.ndarray) -> np.ndarray:
    plain = np.ndarray.view(values, np.ndarray)
    if plain.ndim == 0 or not plain.flags.c_contiguous:
        plain = np.array(plain, order="C")
    return plain.view(np.uint64)


def _are_traced(values: np.ndarray) -> np.ndarray:
    bits = _bits(values)
    return ((bits & _ALL_BITS) == _BOX) & ((bits & _NUMBER) != 0)


def has_elements(value: Any) -> bool:
    """Tell whether a value holds traced elements."""
    if isinstance(value, (list, tuple)):
        return any(map(has_elements, value))
    if not isinstance(value, (np.ndarray, np.floating)) or value.dtype != np.float64:
        return False
    array = np.asarray(value)
    # most arrays of numbers have no NaN at all
    return bool(np.isnan(array).any()) and bool(_are_traced(array).any())


def elements_of(values: Any) -> np.ndarray:
    """Return the numbers of the elements of an array; untraced numbers become constants."""
    array = np.array(plain_array(values), np.float64, order="C")
    traced = _are_traced(array).reshape(array.shape)
    numbers = None if traced.all() else array[~traced]
    bits = array.reshape(-1).view(np.uint64)
    bits &= _NUMBER
    found = bits.view(np.int64).reshape(array.shape)
    found -= 1
    if numbers is not None:
        found[~traced] = batches_now().constants(numbers)
    return found


def plain_array(value: Any) -> Any:
    """View a whole array as a plain array of floats."""
    return np.ndarray.view(value, np.ndarray) if isinstance(value, WholeArray) else value


@numpy_protocol.register("new array")
def new_array(shape: Any, value: Any, dtype: Any = None) -> Any:
    """Make an array of one value, traced or not; one of floats can hold traced elements."""
    if dtype is not None and np.dtype(dtype) != np.float64:
        if has_elements(value):
            refuse("stores traced numbers as something other than floats")
        return np.full(shape, value, dtype)
    result = np.empty(shape)
    result[...] = plain_array(value)
    return whole(result)


@numpy_protocol.register("array")
def as_array(
    value: Any, copy: bool | None = True, order: Any = "K", to_floats: bool = False
) -> Any:
    """Convert arrays and nested lists with traced elements to an array; None for other values.

    The array itself is returned where NumPy would return it.
    """
    if isinstance(value, WholeArray):
        plain, converts = plain_array(value), to_floats and value.is_condition
        made = np.array(plain, copy=True if converts else copy, order=order)
        return value if made is plain else whole(made, value.is_condition and not converts)
    if not has_elements(value):
        return None
    if isinstance(value, (list, tuple)):
        return gathered(value)
    return whole(np.array(value))


@numpy_protocol.register("promote")
def promoted(result: Any) -> Any:
    """Convert a new array of floats to one that can hold traced elements."""
    if type(result) is np.ndarray and result.dtype == np.float64 and result.ndim:
        return whole(result)
    return result


# --- the array ----------------------------------------------------------------------------

_get_item, _set_item = np.ndarray.__getitem__, np.ndarray.__setitem__


class WholeArray(np.ndarray):
    """An array of floats, some of which may be traced.

    Attributes
    ----------
    is_condition : bool
        Whether its elements are results of comparisons, 0 or 1.
    """

    is_condition = False
    __hash__ = None  # type: ignore[assignment]

    def __array_finalize__(self, source: Any) -> None:
        self.is_condition = getattr(source, "is_condition", False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return numpy_protocol.answers["whole ufunc"](ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return numpy_protocol.answers["whole function"](function, args, options)

    def __getitem__(self, key: Any) -> Any:
        return element_of(_get_item(self, _index(key)), self.is_condition)

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is WholeArray and key.is_condition:
            if key.shape != self.shape or np.ndim(value) != 0:
                refuse("assigns several values where a traced condition holds")
            key, value = ..., np.where(key, value, self)
        if isinstance(value, (list, tuple)):
            value = gathered(value)
        _set_item(self, _index(key), plain_array(value))

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __bool__(self) -> bool:
        if self.ndim == 0 and current.decide is not None and has_elements(self):
            return current.decide(int(elements_of(self)[()]))
        return bool(self._number("branches on"))

    def __float__(self) -> float:
        return float(self._number("needs the value of"))

    def __int__(self) -> int:
        return int(self._number("needs the value of"))

    def __index__(self) -> int:
        refuse("uses a traced number as an index")

    def __complex__(self) -> complex:
        return complex(self._number("needs the value of"))

    def _number(self, what: str) -> Any:
        if has_elements(self):
            refuse(f"{what} a traced number")
        return plain_array(self)[()] if self.ndim == 0 else plain_array(self)

    def __repr__(self) -> str:
        refuse("makes text of a traced array")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        refuse("makes text of a traced array")

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __round__(self, *args: Any) -> Any:
        refuse("rounds a traced number")

    def __reduce__(self) -> Any:
        refuse("copies a traced array in a way that is not known to tracing")

    def __copy__(self) -> WholeArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> WholeArray:
        return self.copy()

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        """Copy; to floats only."""
        wanted = np.dtype(getattr(dtype, "stands_for", dtype))
        if not has_elements(self):
            result = plain_array(self).astype(wanted, *args, **options)
            return whole(result) if result.dtype == np.float64 else result
        if wanted != np.float64:
            refuse(f"converts traced numbers to {wanted.name}")
        order, copy = _how_to_convert(*args, **options)
        return as_array(self, copy=True if copy else None, order=order, to_floats=True)

    def item(self, *args: Any) -> Any:
        """Return one element."""
        return element_of(np.float64(np.ndarray.item(self, *args)), self.is_condition)

    def tolist(self) -> Any:
        """Return all elements as nested lists."""
        return [x.tolist() if x.ndim else x for x in self] if self.ndim else self

    def dot(self, other: Any, out: None = None) -> Any:  # type: ignore[override]
        """Multiply as `numpy.dot` does."""
        if out is not None:
            refuse("a product stored in an array is not known to tracing")
        return np.dot(self, other)

    def trace(self, *args: Any) -> Any:  # type: ignore[override]
        """Sum of the diagonal."""
        return self.diagonal(*args).sum()

    def fill(self, value: Any) -> None:
        """Set all elements."""
        self[...] = value


def _how_to_convert(
    order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> tuple[str, bool]:
    return order, copy


_KNOWN_TEXT = """
    T all any astype clip conj conjugate copy cumsum diagonal dot dtype fill flatten is_condition
    item mT max mean min ndim prod ravel repeat reshape shape size squeeze sum
    swapaxes take tolist trace transpose
"""
_KNOWN = frozenset(_KNOWN_TEXT.split())
# Members that only NumPy's own functions may use.
_FOR_NUMPY = frozenset(("view", "flags", "base", "strides", "itemsize", "real", "imag", "setflags"))


def _hide_other_members() -> None:
    def hidden(name: str) -> property:
        def look_up(self: WholeArray) -> Any:
            if name not in _FOR_NUMPY or not asked_from_inside():
                refuse(f"asks for {name} of an array, which is not known to tracing")
            return getattr(super(WholeArray, self), name)

        return property(look_up)

    for name in dir(np.ndarray):
        if name not in _KNOWN and not name.startswith("_"):
            setattr(WholeArray, name, hidden(name))


_hide_other_members()


def element_of(found: Any, is_condition: bool) -> Any:
    """Convert what was taken out of an array to an array, a traced number, or a number."""
    if isinstance(found, np.ndarray):
        return found
    array = np.array(found)
    return whole(array, is_condition) if has_elements(array) else found


def _index(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(_index, key))
    if type(key) is WholeArray:
        refuse("picks elements by traced values")
    return key


def gathered(values: Any) -> Any:
    """Convert nested lists that hold traced numbers to an array; leave anything else."""
    if not has_elements(values):
        return values
    array = np.array(_without_class(values), np.float64)
    return whole(array)


def _without_class(values: Any) -> Any:
    if isinstance(values, (list, tuple)):
        return [_without_class(x) for x in values]
    if isinstance(values, WholeArray):
        if values.is_condition:
            refuse("stores conditions and numbers in one array")
        return plain_array(values)
    return values
