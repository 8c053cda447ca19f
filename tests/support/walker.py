"""Walk all that a function can reach, to see whether anything has changed."""

import array
import collections
import contextlib
import ctypes
import gc
import itertools
import sys
import types
import weakref

import numpy as np

from tether.trace.arrays import TracedArray
from tether.trace.scalar import Scalar

_LEAVES = (int, float, complex, str, bytes, bool, type(None), types.CodeType, types.ModuleType,
           types.BuiltinFunctionType, np.generic)
_SHOWN = (itertools.count, itertools.cycle, itertools.repeat, slice, range)


class Walk:
    """Everything reachable from a function: identities, types, contents.

    Modules other than those that the test makes, and classes of libraries, are left alone.
    """

    def __init__(self, *roots):
        self.found = {}
        self.kept = []
        stack = list(roots)
        while stack:
            value = stack.pop()
            if id(value) in self.found:
                continue
            self.kept.append(value)
            parts, shown = _look(value)
            self.found[id(value)] = (type(value), shown, [id(part) for part in parts])
            self.kept.append(parts)
            stack.extend(parts)

    def difference(self, other):
        """Say what two walks from the same roots do not agree on; empty if they agree."""
        for number, entry in self.found.items():
            if other.found.get(number, entry) != entry:
                value = next(x for x in self.kept if id(x) == number)
                return f"a {entry[0].__name__} has changed: {value!r:.80}"
        if self.found.keys() != other.found.keys():
            return "other objects are reached"
        return ""

    def traced(self):
        """Traced numbers among what was reached."""
        return [x for x in self.kept if issubclass(type(x), (Scalar, TracedArray))]


def _look(value):
    """Parts of a value to follow, and what can be seen of it directly."""
    kind = type(value)
    if issubclass(kind, types.FunctionType):
        names = value.__code__.co_names
        used = [value.__globals__[name] for name in names if name in value.__globals__]
        cells = list(value.__closure__ or ())
        return [value.__defaults__, value.__kwdefaults__, vars(value), *used, *cells], None
    if issubclass(kind, types.CellType):
        return [value.cell_contents] if value != types.CellType() else [], None
    if issubclass(kind, types.ModuleType):
        ours = not hasattr(value, "__spec__") or value.__spec__ is None
        return ([vars(value)] if ours else []), None
    if issubclass(kind, type):
        top = value.__module__.partition(".")[0]
        if top in ("numpy", "scipy") or top in sys.stdlib_module_names:
            return [], None
        own = {k: v for k, v in vars(value).items() if k not in ("__dict__", "__weakref__")}
        return [*own.values(), *value.__bases__, type(value)], list(own)
    if issubclass(kind, np.ndarray):
        return (list(value.flat), None) if value.dtype == object else ([], value.tobytes())
    if issubclass(kind, (bytearray, memoryview, array.array)):
        return [], bytes(value)
    if issubclass(kind, (ctypes._SimpleCData, ctypes.Array)):
        return [], bytes(value)
    if issubclass(kind, _SHOWN):
        return [], repr(value)
    if issubclass(kind, types.GeneratorType):
        return [], value.gi_frame and value.gi_frame.f_lasti
    if issubclass(kind, weakref.ref):
        return [value()], None
    if issubclass(kind, collections.deque):
        return list(value), len(value)
    if issubclass(kind, _LEAVES):
        return [], repr(value) if kind in (float, int, str) else None
    with contextlib.suppress(AttributeError):       # made when it is first asked for
        object.__getattribute__(value, "__dict__")
    return gc.get_referents(value), None
