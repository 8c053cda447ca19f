"""What a function depends on at one moment: a key for its trace, and the values of its inputs.

Floats that a function reaches through closures, attributes, containers, arrays and global names
are constants of its first trace, which makes the simplest program. Those that have changed when it
is read again become inputs of the next trace, like the floats in `args`. A controller that writes
to an attribute, or a fit that makes a new object for every run, then needs no third trace.

Functions that differ only in such floats form a family, which remembers which floats have changed
so far. All other values are part of the key, so that the memory of the family affects the number of
traces but never a result.
"""

from __future__ import annotations

import functools
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from tether.trace.arguments import HiddenInputs, Place
from tether.trace.cache import Reader, TooLarge
from tether.trace.known import FLOATS, content, home
from tether.trace.tracer import TraceFailure

__all__ = ["Reading", "cache_key", "read_function", "value_key", "want_inputs"]

# Families that are remembered.
MOST_FAMILIES = 512
# A zero may decide about the structure, so zeros are constants, in up to so many combinations.
MOST_PATTERNS = 8
# If further floats have changed more often than this, all floats of the same object are inputs ...
FEW_GROWTHS = 3
# ... and more often than this, all floats.
MANY_GROWTHS = 8
# After so many failures to trace a family with its inputs, all its floats are constants.
MOST_REFUSALS = 3


def cache_key(
    fun: Callable[..., Any], n: int, args: Sequence[Any] = (), fills: bool = False
) -> Hashable | None:
    """Key of everything that a function depends on, by value; None if that cannot be compared.

    Examples
    --------
    >>> from tether.trace import cache_key
    >>> def make(k):
    ...     return lambda t, y, yp: [yp[0] + k * y[0]]
    >>> cache_key(make(2.0), 1) == cache_key(make(2.0), 1)
    True
    >>> cache_key(make(2.0), 1) == cache_key(make(3.0), 1)
    False
    """
    reader = Reader()
    shape = _read(reader, fun, n, args, fills)
    return None if shape is None else (shape, reader.floats.tobytes())


def value_key(args: Sequence[Any]) -> Hashable | None:
    """Key of arguments by their values; None if they cannot be compared."""
    try:
        reader = Reader()
        return reader.read(tuple(args)), reader.read_by_name(), reader.floats.tobytes()
    except (TooLarge, RecursionError):
        return None


def read_function(
    fun: Callable[..., Any], n: int, args: Sequence[Any] = (), fills: bool = False
) -> Reading | None:
    """Read what a function depends on now; None if that cannot be compared.

    Examples
    --------
    >>> from tether.trace.reading import read_function
    >>> def make(k):
    ...     return lambda t, y, yp: [yp[0] + k * y[0]]
    >>> first, second, third = (read_function(make(k), 1) for k in (2.0, 3.0, 4.0))
    >>> first.hidden, second.hidden, third.hidden
    (array([], dtype=float64), array([3.]), array([4.]))
    >>> second.key == third.key, second == third
    (True, False)
    """
    reader = Reader()
    shape = _read(reader, fun, n, args, fills)
    if shape is None:
        return None
    floats = np.array(reader.floats) if reader.floats else _NO_FLOATS
    family, inputs = _families.look_up(shape, floats, reader.groups)
    return Reading(family, floats, inputs, (fun, n, args, fills))


def want_inputs(
    fun: Callable[..., Any], n: int, args: Sequence[Any] = (), fills: bool = False
) -> None:
    """Make all floats that a function reads inputs from now on, not only those that change.

    Examples
    --------
    >>> from tether.trace.reading import read_function, want_inputs
    >>> k = 2.0
    >>> def fun(t, y, yp):
    ...     return [yp[0] + k * y[0]]
    >>> want_inputs(fun, 1)
    >>> read_function(fun, 1).hidden
    array([2.])
    """
    reader = Reader()
    shape = _read(reader, fun, n, args, fills)
    if shape is not None and reader.floats:
        _families.want(shape, np.array(reader.floats), reader.groups)


def _read(
    reader: Reader, fun: Callable[..., Any], n: int, args: Sequence[Any], fills: bool
) -> Hashable | None:
    code = getattr(fun, "__code__", None)
    if code is not None and id(code) in _too_large:
        return None
    try:
        return n, fills, reader.read_call(fun, args)
    except (TooLarge, RecursionError):
        # wrappers of our own are the same code for all functions
        if isinstance(fun, types.FunctionType) and not (home(fun) or "").startswith("tether."):
            number = id(fun.__code__)
            _too_large[number] = weakref.ref(fun.__code__, lambda _: _too_large.pop(number, None))
        return None


class Reading:
    """Everything that a function depended on at one moment; equal if nothing has changed.

    Attributes
    ----------
    key : hashable
        Key of everything but the inputs, under which plans are kept.
    hidden : ndarray
        Values of the inputs that are not floats of `args`.
    """

    __slots__ = ("_call", "_family", "_floats", "_inputs", "hidden", "key")

    def __init__(
        self, family: _Family, floats: np.ndarray, inputs: np.ndarray, call: tuple
    ) -> None:
        self._family, self._inputs, self._call = family, inputs, call
        self._floats = floats.tobytes()
        if not len(inputs):
            self.hidden = _NO_FLOATS
            self.key: Hashable = family, b"", self._floats
            return
        self.hidden = floats[inputs]
        floats[inputs] = 0.0
        self.key = family, inputs.tobytes(), floats.tobytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reading) or self._floats != other._floats:
            return False
        return self._family is other._family or self._family.shape == other._family.shape

    def __hash__(self) -> int:
        return hash((self._floats, self._family.shape))

    def floats_are_those_of(self, other: Reading) -> bool:
        """Whether no float has changed, but something else, such as a flag or a counter."""
        return len(self._floats) != len(other._floats) or self._floats == other._floats

    def places(self) -> HiddenInputs | None:
        """Places of the inputs; None if there are none.

        Raises
        ------
        TraceFailure
            If a float has changed in the meantime.
        """
        if not len(self._inputs):
            return None
        locator = _Locator()
        _read(locator, *self._call)
        if locator.floats.tobytes() != self._floats:
            raise TraceFailure("the values it reads change while it is traced")
        return locator.hidden_inputs(self._inputs.tolist())

    def keep_constant(self) -> None:
        """Make the inputs constants from now on, since the function cannot be traced with them."""
        _families.refuse(self._family, self._inputs)


class _Family:
    """Functions that differ only in the floats they reach."""

    def __init__(self, shape: Hashable, floats: np.ndarray, groups: list[int]) -> None:
        self.shape = shape
        self._first = floats.copy()
        self._groups = np.array(groups, np.intp)
        self._changing = np.zeros(len(floats), bool)
        self._constant = np.zeros(len(floats), bool)
        self._patterns: set[bytes] = set()
        self._usual, self._rest = _NONE, b""       # the inputs if the other floats are `_rest`
        self._growths = self._refusals = 0
        self._last: tuple[bytes, np.ndarray] = b"", _NONE      # the last values, and their inputs

    def inputs(self, floats: np.ndarray) -> np.ndarray:
        """Numbers of the floats that are inputs, with these values."""
        values = floats.tobytes()
        if values != self._last[0]:
            self._last = values, self._inputs(floats)
        return self._last[1]

    def _inputs(self, floats: np.ndarray) -> np.ndarray:
        if len(self._usual) and _are_finite_and_nonzero(floats[self._usual]):
            rest = floats.copy()
            rest[self._usual] = 0.0
            if rest.tobytes() == self._rest:
                return self._usual
        changed = floats.view(np.int64) != self._first.view(np.int64)
        if np.any(changed > self._changing):
            self._grow(changed | self._changing)
        if not self._growths:
            return _NONE
        inputs = self._changing & ~self._constant & np.isfinite(floats)
        zeros = inputs & (floats == 0.0)
        if zeros.any():
            pattern = zeros.tobytes()
            if pattern in self._patterns or len(self._patterns) < MOST_PATTERNS:
                self._patterns.add(pattern)
                inputs &= ~zeros
        found = np.flatnonzero(inputs)
        if not zeros.any() and not self._constant.any():
            self._usual, rest = found, floats.copy()
            rest[found] = 0.0
            self._rest = rest.tobytes()
        return found

    def _grow(self, changing: np.ndarray) -> None:
        self._growths += 1
        self._usual = _NONE
        if self._growths > MANY_GROWTHS:
            changing[:] = True
        elif self._growths > FEW_GROWTHS:
            group = np.searchsorted(self._groups, np.arange(len(changing)), side="right")
            changing = np.isin(group, group[changing])
        self._changing = changing

    def want_all(self) -> None:
        """Make all floats inputs from now on."""
        self._growths = max(self._growths, 1)
        self._usual, self._last = _NONE, (b"", _NONE)
        self._changing = np.ones(len(self._changing), bool)

    def refuse(self, inputs: np.ndarray) -> None:
        """Make some floats constants from now on."""
        self._refusals += 1
        self._usual, self._last = _NONE, (b"", _NONE)
        self._constant[inputs if self._refusals < MOST_REFUSALS else slice(None)] = True


class _Families:
    """The most recently used families; safe to use from several threads."""

    def __init__(self) -> None:
        self._by_shape: OrderedDict[Hashable, _Family] = OrderedDict()
        self._lock = threading.Lock()

    def look_up(
        self, shape: Hashable, floats: np.ndarray, groups: list[int]
    ) -> tuple[_Family, np.ndarray]:
        """Return a family, and which of these floats are inputs."""
        with self._lock:
            family = self._by_shape.get(shape)
            if family is None:
                family = self._by_shape[shape] = _Family(shape, floats, groups)
                if len(self._by_shape) > MOST_FAMILIES:
                    self._by_shape.popitem(last=False)
                return family, _NONE
            if next(reversed(self._by_shape)) is not family.shape:
                self._by_shape.move_to_end(shape)
            return family, family.inputs(floats) if len(floats) else _NONE

    def want(self, shape: Hashable, floats: np.ndarray, groups: list[int]) -> None:
        """Make all floats of a family inputs from now on."""
        family, _ = self.look_up(shape, floats, groups)
        with self._lock:
            family.want_all()

    def refuse(self, family: _Family, inputs: np.ndarray) -> None:
        """Make some floats of a family constants from now on."""
        with self._lock:
            family.refuse(inputs)

    def empty(self) -> None:
        """Forget everything."""
        with self._lock:
            self._by_shape.clear()


# --- places of the floats -----------------------------------------------------------------------

class _Locator(Reader):
    """Notes the places and names of the floats that a `Reader` leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self._places: list[tuple[Place, str]] = []
        self._names: dict[int, str] = {}
        self._parameters: dict[int, Sequence[str]] = {}        # names of the values in a container
        self._replaced: dict[int, dict[str, Any]] = {}         # defaults that partial calls replace

    def hidden_inputs(self, inputs: list[int]) -> HiddenInputs:
        """Places of some of the floats that were read."""
        found = HiddenInputs({}, {}, [])
        for number, slot in enumerate(inputs):
            (holder, place), name = self._places[slot]
            if name:
                found.numbers[holder, place] = number
            else:
                found.arrays.setdefault(holder, {})[int(place)] = number
                name = f"{self._names.get(holder, 'array')}[{place}]"
            found.names.append(name)
        return found

    def read(self, value: Any) -> Hashable:
        """Token of a value."""
        if type(value) is types.FunctionType:
            self._note_defaults(value)
        elif type(value) is functools.partial:
            self._note_partial(value)
        before = len(self.floats)
        token = super().read(value)
        if type(value) is np.ndarray and not value.dtype.hasobject:
            count = len(self.floats) - before
            self._places += [((id(value), i), "") for i in range(count)]
        return token

    def _note_defaults(self, function: types.FunctionType) -> None:
        """Name defaults after their parameters; those that a partial call replaces, otherwise."""
        code, given, named = function.__code__, function.__defaults__, function.__kwdefaults__
        other = self._replaced.get(id(function), {})

        def titles(names: Iterable[str]) -> list[str]:
            return [f"default of {name}" if name in other else name for name in names]

        if given:
            self._parameters[id(given)] = titles(
                code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
            )
        if named:
            self._parameters[id(named)] = titles(named)

    def _note_partial(self, value: functools.partial) -> None:
        """Name the arguments of a partial call after the parameters to which they are passed."""
        code = getattr(value.func, "__code__", None)
        if code is not None:
            self._parameters[id(value.args)] = code.co_varnames[: len(value.args)]
        self._parameters[id(value.keywords)] = list(value.keywords)
        self._replaced[id(value.func)] = value.keywords

    def part(self, holder: Any, place: int | str, value: Any) -> Hashable:
        """Token of a value in a place of its holder that the private copy copies."""
        before, name = len(self.floats), self._name(holder, place)
        is_float = type(value) in FLOATS
        if not is_float:
            self._names.setdefault(id(value), name)
        token = super().part(holder, place, value)
        if is_float and len(self.floats) > before:
            self._places.append(((id(holder), place), name))
        return token

    def _name(self, holder: Any, place: int | str) -> str:
        kind, parameters = type(holder), self._parameters.get(id(holder))
        if parameters is not None and not isinstance(place, str):
            number = place // 2 if kind is dict else place
            if number < len(parameters):
                return parameters[number]
        if isinstance(place, str):
            if kind is types.CellType or kind is dict:         # of a function, of a module
                return place
            own = getattr(holder, "__name__", "self") if callable(holder) else "self"
            return f"{self._names.get(id(holder), own)}.{place}"
        key: Any = place
        if issubclass(kind, dict):
            key = content(holder)[place - 1]
            key = repr(key) if type(key) in (str, int, bool) else f"value {place // 2}"
        return f"{self._names.get(id(holder), kind.__name__)}[{key}]"


def _are_finite_and_nonzero(values: np.ndarray) -> bool:
    """Tell whether values are finite and not zero."""
    return bool(values.all()) and bool(np.isfinite(values).all())


_NONE = np.zeros(0, np.intp)
_NO_FLOATS = np.zeros(0)
_families = _Families()
# Code of functions that depend on too much to compare; an entry lives as long as the code.
_too_large: dict[int, weakref.ref[types.CodeType]] = {}
