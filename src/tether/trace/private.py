"""A private copy of the user's function, for tracing.

The copy finds shims under the names of NumPy, math and the builtins, in itself and in all that it
reaches: helpers, closures, lambdas, partial functions, methods, modules of the user. What it
writes to is a copy too, so that tracing leaves no effects behind; a write is found afterwards.
"""

from __future__ import annotations

import abc
import array
import collections
import copy
import dis
import enum
import functools
import inspect
import io
import math
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tether.trace.arrays import TracedArray
from tether.trace.opaque import OpaqueFunction, SparseMatrix, is_differentiable, is_sparse
from tether.trace.scalar import Scalar, refuse
from tether.trace.shims import (
    MATH_MEMBERS,
    MATH_SHIM,
    NumpyShim,
    builtin_shims,
    numpy_member,
    refusing,
    vectorised,
)
from tether.trace.splines import interpolant

_IMMUTABLE = (int, float, complex, str, bytes, type(None), slice, range, Scalar, np.generic)
_CHANGING_OBJECTS = ("numpy.random", "random", "logging")  # modules of their classes
_CHANGING_MODULES_TEXT = """
    random time datetime warnings os io sys pathlib secrets uuid socket subprocess threading
    multiprocessing logging shutil tempfile urllib pickle sqlite3 ctypes gc inspect
"""
_CHANGING_MODULES = frozenset(_CHANGING_MODULES_TEXT.split())
_LIBRARIES = frozenset(("numpy", "scipy", "numba"))
_STANDARD = sysconfig.get_paths()["stdlib"]
_DUNDERS = frozenset(("__class__", "__dict__", "__weakref__", "__doc__", "__module__"))


def names_used(code: types.CodeType) -> Iterator[str]:
    """Names that a code object and those nested in it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_used(constant)


@functools.cache
def globals_used(code: types.CodeType) -> tuple[str, ...]:
    """Global names that a code object and those nested in it look up, without attributes."""
    own = [
        step.argval for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    ]
    nested = [
        name for part in code.co_consts if isinstance(part, types.CodeType)
        for name in globals_used(part)
    ]
    return tuple(dict.fromkeys([*own, *nested]))


@functools.cache
def modules_imported(code: types.CodeType) -> tuple[str, ...]:
    """Modules that a code object and those nested in it import when they run."""
    own = [step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"]
    nested = [
        name for part in code.co_consts if isinstance(part, types.CodeType)
        for name in modules_imported(part)
    ]
    return tuple(dict.fromkeys([*own, *nested]))


@functools.cache
def handles_exceptions(code: types.CodeType) -> bool:
    """Tell whether a code object or one nested in it has an `except`.

    A program does not raise where Python does, so that a handler would never be reached.
    """
    steps = {step.opname for step in dis.get_instructions(code)}
    bare = "PUSH_EXC_INFO" in steps and "WITH_EXCEPT_START" not in steps
    if bare or "CHECK_EXC_MATCH" in steps:
        return True
    return any(handles_exceptions(part) for part in code.co_consts
               if isinstance(part, types.CodeType))


def plain_function(value: Any) -> Any:
    """Return what Numba or a decorator keeps of the plain function, if anything."""
    for name in ("py_func", "__wrapped__"):
        try:
            if inspect.getattr_static(value, name, None) is not None:
                return getattr(value, name, None)
        except Exception:
            return None
    return None


@functools.cache
def is_library(module: str | None) -> bool:
    """Tell whether a module belongs to NumPy, SciPy or Python rather than to the user."""
    top = (module or "").partition(".")[0]
    if top in _LIBRARIES or top == "builtins":
        return True
    if top not in sys.stdlib_module_names:
        return False
    # the user may have a module of the same name
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is None or file.startswith(_STANDARD)


class PrivateCopy:
    """Copies values for one tracing and remembers what it copied.

    Attributes
    ----------
    codes : set
        Code objects that belong to the user, to find the line of a failure.
    """

    def __init__(self) -> None:
        self.codes: set[types.CodeType] = set()
        self._names: set[str] = set()          # written in that code
        self._memo: dict[int, tuple[Any, Any]] = {}
        self._globals: dict[int, tuple[dict, dict]] = {}
        self._watched: list[tuple[Callable[[], Any], Any, str]] = []
        self._builtins = builtin_shims(self.copy)

    def copy(self, value: Any) -> Any:
        """Give what stands for a value in the traced function."""
        if type(value) is bool or isinstance(value, _IMMUTABLE):
            return value
        known = self._memo.get(id(value))
        if known is not None:
            return known[1]
        result = self._make(value)
        return self._remember(value, result)

    def writes(self) -> str | None:
        """Say what the traced function wrote to, if anything."""
        for read, before, what in self._watched:
            if not _same(read(), before):
                return what
        return None

    # --- one method per kind of value -----------------------------------------------------

    def _remember(self, value: Any, result: Any) -> Any:
        self._memo[id(value)] = (value, result)
        return result

    def _make(self, value: Any) -> Any:
        if isinstance(value, (bytearray, memoryview, array.array)):
            refuse(f"a {type(value).__name__} may be written to unnoticed")
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return types.MethodType(self.copy(value.__func__), self.copy(value.__self__))
        if isinstance(value, functools.partial):
            keywords = {k: self.copy(v) for k, v in value.keywords.items()}
            return functools.partial(self.copy(value.func), *map(self.copy, value.args), **keywords)
        if isinstance(value, functools._lru_cache_wrapper):
            return self.copy(value.__wrapped__)
        if isinstance(value, io.IOBase) or type(value).__module__.startswith(_CHANGING_OBJECTS):
            return _Forbidden(f"uses a {type(value).__name__}")
        if isinstance(value, np.ndarray):
            return _read_only(value)
        if isinstance(value, (list, tuple, dict, set, collections.deque)):
            return self._container(value)
        if isinstance(value, type):
            return self._class(value)
        return self._object(value)

    def _object(self, value: Any) -> Any:
        if callable(inner := plain_function(value)):  # Numba keeps the plain function
            return self.copy(inner)
        if isinstance(value, np.vectorize):
            return vectorised(self.copy(value.pyfunc))
        if (found := interpolant(value)) is not None:
            return found
        if is_differentiable(value):
            return OpaqueFunction(value)
        if is_sparse(value):
            return SparseMatrix(value)
        if isinstance(value, types.SimpleNamespace):
            return self._simple_namespace(value)
        if isinstance(value, enum.Enum):
            return value
        if self._is_instance(value):
            return self._instance(value)
        if callable(value) and type(value).__module__.startswith("numpy"):
            # functions that dispatch on their arguments are objects with a name
            name = getattr(value, "__name__", None)
            return numpy_member(value, name) if name else value
        return value

    def _module(self, module: types.ModuleType) -> Any:
        top = module.__name__.partition(".")[0]
        if module is np or top == "numpy":
            return NumpyShim(module)
        if module is math:
            return MATH_SHIM
        if top in _CHANGING_MODULES:
            return _Forbidden(f"uses the module {module.__name__}")
        if is_library(module.__name__):
            return module
        return _ModuleShim(module, self.copy, self._names)

    def _function(self, function: Any) -> Any:
        if isinstance(function, types.FunctionType):
            if not is_library(function.__module__):
                return self._user_function(function)
            if function.__module__.startswith("numpy"):
                return numpy_member(function, function.__name__)
        elif isinstance(function, np.ufunc):
            return numpy_member(function, function.__name__)
        elif function in MATH_MEMBERS:
            return MATH_MEMBERS[function]
        elif (function.__module__ or "").startswith("numpy"):
            return numpy_member(function, function.__name__)
        else:
            owner = function.__self__
            if not isinstance(owner, types.ModuleType) and owner is not None:
                return getattr(self.copy(owner), function.__name__, function)
        module = (function.__module__ or "").partition(".")[0].lstrip("_")
        if module in _CHANGING_MODULES or module == "posix":
            return refusing(f"uses {function.__module__}.{function.__name__}")
        return function

    def _user_function(self, function: types.FunctionType) -> types.FunctionType:
        if handles_exceptions(function.__code__):
            text = f"{function.__name__} handles exceptions, and a program raises none"
            self.codes.add(function.__code__)
            return self._remember(function, refusing(text))
        namespace = self._namespace(function.__globals__)
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        result = types.FunctionType(
            function.__code__, namespace, function.__name__, None, cells or None
        )
        self._remember(function, result)
        self.codes.add(function.__code__)
        self._names.update(names_used(function.__code__))
        result.__defaults__ = self.copy(function.__defaults__)
        result.__kwdefaults__ = self.copy(function.__kwdefaults__)
        result.__module__ = function.__module__
        result.__dict__.update({k: self.copy(v) for k, v in vars(function).items()})
        self._watch_namespace(vars(result), f"an attribute of {function.__name__}")
        self._fill_namespace(function, namespace)
        self._fill_cells(function, cells)
        return result

    def _namespace(self, original: dict) -> dict:
        """Global variables for the functions of one module; only those they use."""
        if id(original) not in self._globals:
            namespace = {"__builtins__": self._builtins, "__name__": original.get("__name__")}
            self._globals[id(original)] = (original, namespace)
        return self._globals[id(original)][1]

    def _fill_namespace(self, function: types.FunctionType, namespace: dict) -> None:
        for name in names_used(function.__code__):
            if name not in namespace:
                if name in function.__globals__:
                    namespace[name] = self.copy(function.__globals__[name])
                missing = name not in namespace
                self._watch(
                    functools.partial(namespace.get, name, _ABSENT),
                    _ABSENT if missing else namespace[name],
                    f"the global variable {name!r}",
                )

    def _fill_cells(self, function: types.FunctionType, cells: tuple) -> None:
        names, originals = function.__code__.co_freevars, function.__closure__ or ()
        for name, cell, original in zip(names, cells, originals, strict=True):
            try:
                value = original.cell_contents
            except ValueError:  # not yet assigned
                continue
            # super() needs the class that the method was defined in
            cell.cell_contents = value if name == "__class__" else self.copy(value)
            self._watch(
                functools.partial(getattr, cell, "cell_contents"),
                cell.cell_contents,
                f"the variable {name!r} of the function around it",
            )

    def _container(self, value: Any) -> Any:
        if isinstance(value, tuple):
            parts = tuple(map(self.copy, value))
            if all(x is y for x, y in zip(parts, value, strict=True)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else parts
        result = copy.copy(value)
        self._remember(value, result)
        if isinstance(value, dict):
            for k, v in value.items():
                result[k] = self.copy(v)
            self._watch_namespace(result, "a dictionary from outside")
        else:
            if isinstance(value, list):
                result[:] = map(self.copy, value)
            kind = type(value).__name__
            self._watch(lambda: list(result), list(result), f"a {kind} from outside")
        return result

    def _class(self, cls: type) -> type:
        # a subclass must not announce itself anywhere
        quiet = type(cls) in (type, abc.ABCMeta) and "__init_subclass__" not in _names_defined(cls)
        if not quiet or is_library(cls.__module__) or not _has_functions(cls):
            return cls
        result = type(cls)(cls.__name__, (cls,), {"__module__": cls.__module__, "__slots__": ()})
        self._remember(cls, result)
        for name, member in _members(cls):
            type.__setattr__(result, name, self._member(member))
        self._watch(lambda: dict(vars(result)), dict(vars(result)), f"the class {cls.__name__}")
        return result

    def _member(self, member: Any) -> Any:
        if isinstance(member, (classmethod, staticmethod)):
            return type(member)(self.copy(member.__func__))
        if isinstance(member, property):
            return property(self.copy(member.fget) if member.fget else None)
        return self.copy(member)

    def _is_instance(self, value: Any) -> bool:
        """Tell whether a value is an object of a class written in Python, by the user or Python."""
        return (
            type(value).__module__.partition(".")[0] not in _LIBRARIES
            and (isinstance(getattr(value, "__dict__", None), dict) or bool(_slots(type(value))))
            and not isinstance(value, (types.FunctionType, types.ModuleType, type))
        )

    def _instance(self, value: Any) -> Any:
        try:
            result = object.__new__(type(value))
        except TypeError:  # made in C
            return value
        self._remember(value, result)
        for name, part in attributes(value).items():
            object.__setattr__(result, name, self.copy(part))
        cls = self.copy(type(value))
        if cls is not type(value):
            object.__setattr__(result, "__class__", cls)
        what = f"an attribute of a {type(value).__name__}"
        self._watch(lambda: attributes(result), attributes(result), what)
        return result

    def _simple_namespace(self, value: types.SimpleNamespace) -> Any:
        result = types.SimpleNamespace(**{k: self.copy(v) for k, v in vars(value).items()})
        self._watch_namespace(vars(result), "an attribute of a SimpleNamespace")
        return result

    # --- watching for writes --------------------------------------------------------------

    def _watch(self, read: Callable[[], Any], before: Any, what: str) -> None:
        self._watched.append((read, before, what))

    def _watch_namespace(self, namespace: dict, what: str) -> None:
        self._watch(lambda: dict(namespace), dict(namespace), what)


_ABSENT = object()


def _same(now: Any, before: Any) -> bool:
    """Compare by identity, one level deep."""
    if isinstance(now, dict):
        return now.keys() == before.keys() and all(now[k] is before[k] for k in now)
    if isinstance(now, list) and isinstance(before, list) and now is not before:
        return len(now) == len(before) and all(x is y for x, y in zip(now, before, strict=True))
    return now is before


def _slots(cls: type) -> list[str]:
    """Attributes that objects of a class of the user's keep outside a dictionary."""
    return [
        name
        for base in cls.__mro__
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType) and not is_library(base.__module__)
    ]


def attributes(value: Any) -> dict[str, Any]:
    """All attributes that an object itself has."""
    slots = {k: getattr(value, k) for k in _slots(type(value)) if hasattr(value, k)}
    own = getattr(value, "__dict__", None)
    return slots | own if isinstance(own, dict) else slots


def _names_defined(cls: type) -> set[str]:
    """Names that a class and its bases define, other than `object`."""
    return {name for base in cls.__mro__[:-1] for name in vars(base)}


def _has_functions(cls: type) -> bool:
    return any(True for _ in _members(cls))


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Functions that a class and its bases of the user's define, the nearest first."""
    seen: set[str] = set()
    for base in cls.__mro__:
        if is_library(base.__module__):
            continue
        for name, member in vars(base).items():
            function = isinstance(member, (types.FunctionType, property, classmethod, staticmethod))
            if function and name not in seen and name not in _DUNDERS:
                seen.add(name)
                yield name, member


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view() if not isinstance(array, TracedArray) else array
    view.flags.writeable = False
    return view


class _Forbidden:
    """Stands for what must not be used: randomness, clocks, files."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Forbidden(f"{self._reason}: {name}")

    def __call__(self, *args: Any, **options: Any) -> Any:
        refuse(self._reason)


class _ModuleShim:
    """Stands for a module of the user.

    What is asked for by a name that is not written in the code, as `getattr` can, would not be
    compared from call to call (`tether.trace.cache`).
    """

    def __init__(
        self, module: types.ModuleType, copier: Callable[[Any], Any], names: set[str]
    ) -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_copy", copier)
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str) -> Any:
        if name not in self._names and not name.startswith("__"):
            refuse(f"looks up {self._module.__name__}.{name} by a name that is not in the code")
        return self._copy(getattr(self._module, name))

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes the global variable {self._module.__name__}.{name}")
