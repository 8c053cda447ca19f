"""A private copy of the user's function, for tracing.

In the copy, NumPy, math and the builtins are replaced by shims, and so they are in everything it
reaches: helpers, closures, lambdas, partial functions, methods, classes, modules of the user.
Everything it can write to is a copy too, so that tracing has no effects; writes are found
afterwards. Only what is known (`known.py`) is copied; everything else is replaced by a stand-in
that ends the tracing when it is used. The copy cannot reach anything that is not part of the key
(`cache.py`).
"""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import math
import sys
import types
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from tether.trace import numpy_protocol
from tether.trace.arguments import HiddenInputs
from tether.trace.arrays import TracedArray
from tether.trace.batches import current
from tether.trace.blocks import Blocks, code_to_run
from tether.trace.cache import Reader
from tether.trace.classes import PrivateClasses, members_of
from tether.trace.code import facts_of, line_of_name
from tether.trace.effects import left_out
from tether.trace.float_types import TYPE_SHIMS
from tether.trace.frames import Frame, is_frame, labels_and_values
from tether.trace.grids import function_on_grid, interpolant_on_grid
from tether.trace.identity import HARMLESS, OF_CONDITIONS, OF_NAMES, identity_tests
from tether.trace.kinds import NP_FLOAT, OF_TYPE
from tether.trace.known import (
    CACHED,
    DESCRIPTORS,
    FLOATS,
    IMMUTABLE,
    METACLASSES,
    NUMPY_FUNCTION,
    build,
    content,
    dictionary,
    fill,
    home,
    in_same_errstate,
    inside_errstate,
    is_enumeration,
    is_holder,
    is_interpolant,
    is_known_member,
    is_library,
    is_numpy_polynomial,
    is_pure_scipy,
    is_sparse,
    jitted_function,
    module_of,
    set_slot,
    slots,
    why_unknown,
)
from tether.trace.opaque import OpaqueFunction, SparseMatrix, is_differentiable
from tether.trace.private_builtins import private_builtins
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar
from tether.trace.shims import (
    MATH,
    MATH_MEMBERS,
    NumpyShim,
    numpy_member,
    vectorised,
)
from tether.trace.splines import interpolant
from tether.trace.standins import (
    CachedFunction,
    ConstantsOnly,
    Forbidden,
    KnownModule,
    LibraryModule,
    UserModule,
    raise_refusal,
)
from tether.trace.watch import Watch, held_by

_HEAP_TYPE = 1 << 9                # flag of a class made by a class statement


class PrivateCopy:
    """Copies values for one trace and remembers what it copied.

    Parameters
    ----------
    reader : Reader
        Has read everything that may be copied.
    blocks : Blocks, optional
        Marks the blocks of all functions.
    marks : dict, optional
        The functions behind the names that mark blocks and exception handlers.
    hidden, symbol : HiddenInputs, callable, optional
        Floats that are inputs, and the function that makes a symbol from a number and a kind.

    Attributes
    ----------
    codes : set
        Code objects that belong to the user, to find the line of a failure.
    watch : Watch
        Finds what the traced function has written to.
    builtins : dict
        The builtins of the copied functions.
    """

    def __init__(
        self,
        reader: Reader,
        blocks: Blocks | None = None,
        marks: dict[str, Any] | None = None,
        hidden: HiddenInputs | None = None,
        symbol: Callable[[int, int], Any] | None = None,
    ) -> None:
        self.codes: set[types.CodeType] = set()
        self.watch = Watch()
        self._reader, self._blocks = reader, blocks
        self._hidden, self._symbol = hidden or HiddenInputs({}, {}, []), symbol
        self._memo: dict[int, tuple[Any, Any]] = {}
        self._globals: dict[int, tuple[dict, dict]] = {}
        self._cells: dict[int, tuple[types.CellType, types.CellType]] = {}
        self._filled: set[tuple[int, str]] = set()
        self._classes = PrivateClasses(
            self.copy, self.part, reader.members_read, self._remember, self.watch
        )
        self.builtins = {**private_builtins(), "__import__": self._import, **(marks or {})}

    def copy(self, value: Any) -> Any:
        """Return the copy of a value, or its stand-in, in the traced function."""
        kind = type(value)
        if kind in IMMUTABLE or kind is Scalar:
            return value
        known = self._memo.get(id(value))
        if known is not None:
            return known[1]
        if not self._is_read(value):
            return Forbidden(f"reaches a {kind.__name__} by a name that is not in the code")
        make = _MAKERS.get(kind)
        return self._remember(value, self._other(value) if make is None else make(self, value))

    def part(self, holder: Any, place: int | str, value: Any) -> Any:
        """Return the copy of a value that an object holds in some place, or a symbol for it."""
        if type(value) in FLOATS and self._symbol is not None:
            number = self._hidden.numbers.get((id(holder), place))
            if number is not None:
                return self._symbol(number, OF_TYPE[type(value)])
        return self.copy(value)

    def _parts(self, value: Any) -> list[Any]:
        """Copy the content of an object."""
        return [self.part(value, i, part) for i, part in enumerate(content(value))]

    def _is_read(self, value: Any) -> bool:
        return self._reader.has_read(value) or self._reader.members_read(value) is not None

    def refuse_memory_attributes(self) -> None:
        """Refuse `base` and `flags` of arrays: copies lie elsewhere in memory and are read-only."""
        for name in _MEMORY_ATTRIBUTES.intersection(self._reader.names):
            if not self._is_an_attribute(name):
                places = ((code, line_of_name(code, name)) for code in self.codes)
                found = next(((code, line) for code, line in places if line), None)
                raise_refusal(Forbidden(f"asks an array for its {name}", found))

    def _is_an_attribute(self, name: str) -> bool:
        """Tell whether an object, class or module of the user's has an attribute of this name."""
        for original, _ in self._memo.values():
            kind = type(original)
            if kind in METACLASSES or kind is types.ModuleType:
                found = not is_library(original.__module__ if kind in METACLASSES
                                       else original.__name__) and name in vars(original)
            else:
                found = name in dictionary(original) or name in slots(original)
            if found:
                return True
        return False

    def _remember(self, value: Any, result: Any) -> Any:
        self._memo[id(value)] = (value, result)
        return result

    def _is_builtin(self, value: Any) -> bool:
        return vars(builtins).get(value.__name__) is value

    def _import(self, name: str, space: Any = None, local: Any = None, members: Any = (),
                level: int = 0) -> Any:
        """Replace the statement `import`; modules that are not loaded yet are refused."""
        if level or name not in sys.modules:
            refuse(f"imports {'.' * level}{name}")
        return self.copy(sys.modules[name if members else name.partition(".")[0]])

    # --- functions ------------------------------------------------------------------------

    def _function(self, function: types.FunctionType) -> Any:
        if not is_library(home(function)):
            return self._user_function(function)
        inner = inside_errstate(function)
        known = None if inner is None else in_same_errstate(function, self.copy(inner))
        return self._library_function(function) if inner is None else known

    def _library_function(self, function: Any) -> Any:
        name, module = function.__name__, function.__module__ or ""
        if type(function) is types.FunctionType:
            module = home(function) or ""
        if module.partition(".")[0] == "numpy":
            return numpy_member(function, name)
        if is_known_member(function):
            return function
        if (quiet := left_out(function, self._reader.shares_with)) is not None:
            return quiet
        if is_pure_scipy(function):
            return function_on_grid(function) or ConstantsOnly(function)
        return Forbidden(f"uses {module}.{name}, which is not known to tracing")

    def _user_function(self, function: types.FunctionType) -> Any:
        code = function.__code__
        self.codes.add(code)
        facts = facts_of(code)
        if facts.trouble:
            return Forbidden(f"{function.__name__} {facts.trouble}", (code, facts.line))
        tests = identity_tests(function)
        if tests != HARMLESS and self._symbol is not None:
            return Forbidden(f"{function.__name__} tests by `is` a value that may be an input")
        if tests == OF_CONDITIONS:
            return Forbidden(f"{function.__name__} tests by `is` a value that may be a condition")
        if tests == OF_NAMES:           # `min` returns one of its operands, but not when traced
            self.builtins |= {name: Forbidden(f"uses {name} in a function with tests by `is`")
                               for name in ("min", "max")}  # fmt: skip
        if getattr(function, "__builtins__", None) is not vars(builtins) and not all(
            name in function.__globals__ for name in facts.globals_read
        ):
            return Forbidden(f"{function.__name__} has builtins of its own")
        namespace = self._namespace(function.__globals__)
        cells = tuple(map(self._cell, code.co_freevars, function.__closure__ or ()))
        # a joined value is a new object, which tests by `is` would notice
        run = code_to_run(function, self._blocks if tests == HARMLESS else None)
        if type(run) is not types.CodeType:
            return Forbidden(f"{function.__name__} {run}", (code, facts.handles))
        place = dict(zip(code.co_freevars, cells, strict=True))
        around = tuple([place[name] for name in run.co_freevars])
        result = types.FunctionType(run, namespace, function.__name__, None, around or None)
        self._remember(function, result)
        result.__defaults__ = self.copy(function.__defaults__)
        result.__kwdefaults__ = self.copy(function.__kwdefaults__)
        result.__module__, result.__qualname__ = function.__module__, function.__qualname__
        result.__doc__ = function.__doc__ if type(function.__doc__) is str else None
        names, asks = self._reader.names, self._reader.asks
        result.__dict__.update(
            {k: self.part(function, k, v) for k, v in vars(function).items()
             if asks or k in names}
        )
        self.watch.mapping(vars(result), f"an attribute of {function.__name__}")
        self.watch.add(lambda: [result.__code__, result.__defaults__, result.__kwdefaults__],
                       f"the function {function.__name__}")
        for name in (*facts.globals_read, *facts.globals_written):
            self._fill_global(name, function.__globals__, namespace)
        for name, cell, original in zip(
            code.co_freevars, cells, function.__closure__ or (), strict=True
        ):
            self._fill_cell(name, cell, original)
        return result

    def _namespace(self, original: dict) -> dict:
        """Global variables of the copied functions of one module; only those they use."""
        if id(original) not in self._globals:
            namespace = {"__builtins__": self.builtins, "__name__": original.get("__name__")}
            self._globals[id(original)] = (original, namespace)
        return self._globals[id(original)][1]

    def _fill_global(self, name: str, original: dict, namespace: dict) -> None:
        key = id(namespace), name
        if name in namespace or key in self._filled:
            return
        self._filled.add(key)
        if name in original:
            namespace[name] = self.part(original, name, original[name])
        self.watch.add(lambda: [namespace.get(name, _ABSENT)], f"the global variable {name!r}")

    def _cell(self, name: str, original: types.CellType) -> types.CellType:
        """Copy of a cell, shared by the same functions as the original."""
        if id(original) not in self._cells:
            self._cells[id(original)] = (original, types.CellType())
        return self._cells[id(original)][1]

    def _fill_cell(self, name: str, cell: types.CellType, original: types.CellType) -> None:
        key = id(cell), name
        if key in self._filled:
            return
        self._filled.add(key)
        value = _content(original)
        if value is not _ABSENT:
            cell.cell_contents = self.part(original, name, value)
        self.watch.add(lambda: [_content(cell)], f"the variable {name!r} of the function around it")

    def _method(self, method: types.MethodType) -> Any:
        function, owner = self.copy(method.__func__), self.copy(method.__self__)
        return function if type(function) is Forbidden else types.MethodType(function, owner)

    def _partial(self, value: functools.partial) -> Any:
        function = self.copy(value.func)
        if type(function) is Forbidden:
            return function
        result = functools.partial(
            function, *self._parts(value.args), **self._items(value.keywords)
        )
        result.__dict__.update(self._items(value.__dict__))
        self.watch.add(lambda: [result.func, result.args, result.keywords], "a partial function")
        self.watch.mapping(result.keywords, "the keywords of a partial function")
        self.watch.mapping(result.__dict__, "an attribute of a partial function")
        return result

    def _items(self, value: dict) -> dict:
        """Copy a dictionary that nothing else refers to."""
        parts = self._parts(value)
        return dict(zip(parts[::2], parts[1::2], strict=True))

    def _builtin(self, function: types.BuiltinFunctionType) -> Any:
        owner = function.__self__
        if self._is_builtin(function):
            return self.builtins[function.__name__]
        if function in MATH_MEMBERS:
            return MATH_MEMBERS[function]
        if owner is None or issubclass(type(owner), types.ModuleType):
            return self._library_function(function)
        if type(owner) is type and owner.__module__ == "builtins":
            return function
        stand_in = self.copy(owner)
        return stand_in if type(stand_in) is Forbidden else getattr(stand_in, function.__name__)

    def _cached(self, function: Any) -> Any:
        inner = self.copy(function.__wrapped__)
        return inner if type(inner) is Forbidden else CachedFunction(inner, self.watch)

    def _numpy_function(self, value: Any) -> Any:
        return numpy_member(value, value.__name__)

    def _ufunc(self, value: np.ufunc) -> Any:
        special = sys.modules.get("scipy.special")
        if any(getattr(place, value.__name__, None) is value for place in (np, np.linalg, special)):
            return numpy_member(value, value.__name__)
        return Forbidden(f"uses the universal function {value.__name__}, which is not NumPy's")

    # --- modules --------------------------------------------------------------------------

    def _module(self, module: types.ModuleType) -> Any:
        if module is np or module.__name__.partition(".")[0] == "numpy":
            return NumpyShim(module)
        if module is math:
            return KnownModule(MATH)
        shim = LibraryModule if is_library(module.__name__) else UserModule
        return shim(module, self.part, self._reader.names)

    # --- containers -----------------------------------------------------------------------

    def _tuple(self, value: tuple) -> tuple:
        parts = tuple(self._parts(value))
        return value if all(x is y for x, y in zip(parts, value, strict=True)) else parts

    def _frozenset(self, value: frozenset) -> Any:
        parts = [self.copy(part) for part in value]
        return _set_in_order(frozenset(parts), parts)

    def _slice(self, value: slice) -> slice:
        return slice(*map(self.copy, (value.start, value.stop, value.step)))

    def _container(self, value: Any) -> Any:
        """Copy a list, a dictionary or the like, or an object of a class derived from it."""
        kind = type(value)
        if kind is collections.Counter:
            kind = self._library_class(kind)
        result = self._remember(value, build(kind, []))
        parts = self._parts(value)
        fill(result, parts)
        if kind is set and type(_set_in_order(result, parts)) is Forbidden:
            return _set_in_order(result, parts)
        what = "a dictionary" if issubclass(kind, dict) else f"a {type(value).__name__}"
        self.watch.add(lambda: content(result), f"{what} from outside")
        return result

    def _simple_namespace(self, value: types.SimpleNamespace) -> Any:
        result = self._remember(value, types.SimpleNamespace())
        for name, part in vars(value).items():
            vars(result)[name] = self._attribute(value, name, part)
        self.watch.mapping(vars(result), "an attribute of a SimpleNamespace")
        return result

    def _attribute(self, holder: Any, name: str, value: Any) -> Any:
        if name in self._reader.attributes_read(holder):
            return self.part(holder, name, value)
        return Forbidden(f"reaches the attribute {name} by a name that is not in the code")

    def _array(self, values: np.ndarray) -> Any:
        if id(values) in self._hidden.arrays:
            result = self._array_of_inputs(values)
            self.watch.array(result, "an array from outside the function")
        elif values.dtype == object:
            result = np.empty_like(values)
            self._remember(values, result)
            result.reshape(-1)[:] = [self.copy(x) for x in values.flat]
            self.watch.array(result, "an array from outside the function")
        elif values.dtype.hasobject or values.dtype.kind in "VMm":
            return Forbidden(f"uses an array of {values.dtype}, which is not known to tracing")
        else:
            order: Literal["F", "C"] = "F" if values.flags.fnc else "C"
            # an array on the memory of an immutable object cannot be made writeable
            flat = np.frombuffer(values.tobytes(order), values.dtype)
            result = flat.reshape(values.shape, order=order)
        result.flags.writeable = False
        self.watch.add(lambda: [repr((result.shape, result.strides, result.dtype)).encode()],
                       "the shape of an array from outside the function")
        return result

    def _array_of_inputs(self, values: np.ndarray) -> np.ndarray:
        assert self._symbol is not None
        elements: list[Any] = values.ravel().tolist()
        for place, number in self._hidden.arrays[id(values)].items():
            elements[place] = self._symbol(number, NP_FLOAT)
        if current.batches is not None:
            return numpy_protocol.answers["array"](elements).reshape(values.shape)
        result = np.fromiter(elements, object, len(elements)).reshape(values.shape)
        return (np.asfortranarray(result) if values.flags.fnc else result).view(TracedArray)

    # --- classes and objects --------------------------------------------------------------

    def _class(self, cls: type) -> Any:
        if self._is_builtin(cls):
            return self.builtins[cls.__name__]
        if not is_library(cls.__module__) or self._reader.members_read(cls) is not None:
            return self._classes.make(cls)
        if cls in TYPE_SHIMS:
            return TYPE_SHIMS[cls]
        if cls.__module__.partition(".")[0] == "numpy":
            return numpy_member(cls, cls.__name__)
        if cls.__module__ != "builtins" and not is_known_member(cls):
            return Forbidden(f"uses {cls.__module__}.{cls.__name__}, which is not known to tracing")
        return self._library_class(cls)

    def _library_class(self, cls: type) -> type:
        """Return a library class, or a private subclass if attributes can be assigned to it."""
        if id(cls) in self._memo:
            return self._memo[id(cls)][1]
        abstract = cls.__module__ in ("collections.abc", "numbers", "abc")
        if not cls.__flags__ & _HEAP_TYPE or abstract or cls in IMMUTABLE:
            return cls
        frame = {"__module__": cls.__module__, "__slots__": ()}
        result = type(cls)(cls.__name__, (cls,), frame)
        self.watch.add(lambda: members_of(result), f"the class {cls.__name__}")
        return self._remember(cls, result)

    def _property(self, value: property) -> Any:
        parts = [self.copy(part) for part in (value.fget, value.fset, value.fdel)]
        for part in parts:
            if type(part) is Forbidden:
                return part
        return property(*parts)

    def _wrapper(self, value: Any) -> Any:
        inner = self.copy(value.__func__)
        return inner if type(inner) is Forbidden else type(value)(inner)

    def _cached_property(self, value: functools.cached_property) -> Any:
        inner = self.copy(value.func)
        if type(inner) is Forbidden:
            return inner
        result = functools.cached_property(inner)
        result.attrname = value.attrname
        return result

    def _enumerated(self, member: enum.Enum) -> Any:
        cls = self.copy(type(member))
        if type(cls) is Forbidden:
            return cls
        found = cls._member_map_.get(member._name_)
        return cls(member._value_) if found is None else found

    def _other(self, value: Any) -> Any:
        kind = type(value)
        if is_library(module_of(kind)):
            return self._of_library(value)
        if is_enumeration(kind):
            return self._enumerated(value)
        if issubclass(kind, type):
            name = type.__getattribute__(value, "__name__")
            return Forbidden(f"the class {name} has a metaclass of its own")
        reason = why_unknown(kind)
        return Forbidden(reason) if reason else self._instance(value)

    def _instance(self, value: Any) -> Any:
        """Copy an object of a class of the user's."""
        cls = self.copy(type(value))
        if type(cls) is Forbidden:
            return cls
        if id(value) in self._memo:      # it was copied with its class, which refers to it
            return self._memo[id(value)][1]
        first = self._parts(value) if issubclass(type(value), _BUILT_WITH_PARTS) else []
        result = self._remember(value, build(cls, first))
        fill(result, self._parts(value))
        for name, part in slots(value).items():
            set_slot(result, name, self._attribute(value, name, part))
        own = dictionary(result)
        for name, part in dictionary(value).items():
            own[name] = self._attribute(value, name, part)
        self.watch.add(lambda: held_by(result), f"an attribute of a {type(value).__name__}")
        return result

    def _of_library(self, value: Any) -> Any:
        if (function := jitted_function(value)) is not None:
            return self.copy(function)
        if type(value) is np.vectorize:
            inner = self.copy(value.pyfunc)
            options = {k: getattr(value, k) for k in ("cache", "excluded", "signature")}
            return inner if type(inner) is Forbidden else vectorised(
                inner, value.otypes, **options
            )
        if is_interpolant(value):
            for found in (interpolant(value), interpolant_on_grid(value)):
                if found is not None:
                    return found
            if is_differentiable(value):
                return OpaqueFunction(value)
        if is_sparse(value):
            return SparseMatrix(value)
        if is_numpy_polynomial(value) or is_holder(value):
            return self._holder(value)
        if is_frame(value) and (held := labels_and_values(value)) is not None:
            return Frame.of(value, [self.part(value, i, x) for i, x in enumerate(held[1])])
        if type(value) is types.MethodWrapperType:
            owner = self.copy(value.__self__)
            return owner if type(owner) is Forbidden else getattr(owner, value.__name__)
        if issubclass(type(value), np.dtype):
            return value
        if (quiet := left_out(value, self._reader.shares_with)) is not None:
            return quiet
        if issubclass(type(value), types.ModuleType):
            return Forbidden(f"uses the module {value.__name__}, which is not known to tracing")
        return Forbidden(f"uses a {type(value).__name__}, which is not known to tracing")

    def _holder(self, value: Any) -> Any:
        """Copy an object of a library class whose methods compute with its attributes."""
        kind = type(value)
        cls = self._library_class(kind) if is_holder(value) else kind
        result = self._remember(value, object.__new__(cls))
        own = dictionary(result)
        own.update({k: self.part(value, k, v) for k, v in dictionary(value).items()})
        self.watch.mapping(own, f"an attribute of a {type(value).__name__}")
        return result


_MEMORY_ATTRIBUTES = frozenset(("base", "flags"))
_BUILT_WITH_PARTS = (tuple, frozenset, float, int, BaseException)
_ABSENT = object()


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return _ABSENT


def _set_in_order(values: Any, parts: list[Any]) -> Any:
    """Return the copy of a set, or a refusal if its order differs from that of the original."""
    same = all(x is y for x, y in zip(values, parts, strict=True))
    return values if same else Forbidden("uses a set whose copy has a different order")


_MAKERS: dict[type, Callable[[PrivateCopy, Any], Any]] = {
    types.FunctionType: PrivateCopy._function,
    types.MethodType: PrivateCopy._method,
    functools.partial: PrivateCopy._partial,
    types.BuiltinFunctionType: PrivateCopy._builtin,
    CACHED: PrivateCopy._cached,
    NUMPY_FUNCTION: PrivateCopy._numpy_function,
    np.ufunc: PrivateCopy._ufunc,
    types.ModuleType: PrivateCopy._module,
    tuple: PrivateCopy._tuple,
    frozenset: PrivateCopy._frozenset,
    slice: PrivateCopy._slice,
    **dict.fromkeys(
        (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict,
         collections.Counter), PrivateCopy._container),
    types.SimpleNamespace: PrivateCopy._simple_namespace,
    np.ndarray: PrivateCopy._array,
    property: PrivateCopy._property,
    classmethod: PrivateCopy._wrapper,
    staticmethod: PrivateCopy._wrapper,
    functools.cached_property: PrivateCopy._cached_property,
    enum.EnumType: lambda private, cls: (
        cls if is_library(cls.__module__) else private._classes.enumeration(cls)),
    **dict.fromkeys(METACLASSES, PrivateCopy._class),
    **dict.fromkeys(DESCRIPTORS, lambda private, value: value),
}
