"""Stand-ins for modules, cached functions and unknown objects in a traced function."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tether.trace.arrays import TracedArray, as_dtype, demoted, has_traced, promoted
from tether.trace.known import IMMUTABLE, dictionary
from tether.trace.refusal import Untraceable, refusals, refuse
from tether.trace.watch import Watch

_OPERATIONS_TEXT = """
    call bool eq ne lt le gt ge hash len iter next reversed contains getitem setitem delitem
    add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor
    radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor
    iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor
    neg pos abs invert complex int float index round trunc floor ceil repr str format bytes
    enter exit await aiter anext get set delete instancecheck subclasscheck copy deepcopy
    setattr delattr getattribute dir fspath mro_entries array array_ufunc array_function
    length_hint reduce reduce_ex sizeof class_getitem
"""


OPERATIONS = tuple(_OPERATIONS_TEXT.split())


class Forbidden:
    """Stands for something that tracing does not understand: using it ends the tracing.

    It may be passed on and compared by identity.
    """

    __slots__ = ("_place", "_reason")

    def __init__(self, reason: str, place: tuple[types.CodeType, int] | None = None) -> None:
        object.__setattr__(self, "_reason", reason)
        object.__setattr__(self, "_place", place)


def _refuse_use(self: Forbidden, *args: Any, **options: Any) -> NoReturn:
    raise_refusal(self)


def raise_refusal(stand_in: Forbidden) -> NoReturn:
    """End the tracing with the reason and the place that a stand-in contains."""
    problem = Untraceable(object.__getattribute__(stand_in, "_reason"))
    problem.place = object.__getattribute__(stand_in, "_place")
    refusals.last = str(problem)
    raise problem


for _name in OPERATIONS:
    if _name not in ("setattr",):
        setattr(Forbidden, f"__{_name}__", _refuse_use)
Forbidden.__setattr__ = _refuse_use  # type: ignore[method-assign, assignment]


class Unread:
    """Stands for a member of a class that no name in the code asks for."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __get__(self, instance: Any, owner: Any = None) -> NoReturn:
        refuse(f"uses {self._what} without naming it")

    def __set__(self, instance: Any, value: Any) -> NoReturn:
        refuse(f"writes to {self._what}")


class UserModule:
    """Stands for a module of the user.

    A member whose name is not written in the code, as `getattr` may ask for, is refused, because it
    would not be compared from call to call (`tether.trace.cache`).
    """

    __slots__ = ("_module", "_names", "_part")

    def __init__(
        self, module: types.ModuleType, part: Callable[[Any, str, Any], Any],
        names: dict[str, None],
    ) -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_part", part)
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str) -> Any:
        value = _member(self._module, name, self._names)
        return self._part(vars(self._module), name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes the global variable {self._module.__name__}.{name}")

    def __delattr__(self, name: str) -> None:
        refuse(f"deletes the global variable {self._module.__name__}.{name}")


class LibraryModule(UserModule):
    """Stands for a module of Python or SciPy: members that tracing does not know are refused."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        value = _member(self._module, name, self._names)
        result = value if type(value) in IMMUTABLE else self._part(None, name, value)
        if type(result) is Forbidden:
            refuse(f"uses {self._module.__name__}.{name}, which is not known to tracing")
        return result


def _member(module: types.ModuleType, name: str, names: dict[str, None]) -> Any:
    text = f"{module.__name__}.{name}"
    if name not in names:
        refuse(f"looks up {text} by a name that is not in the code")
    if name not in vars(module):
        if "__getattr__" in vars(module):
            refuse(f"looks up {text}, which the module makes on demand")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    return vars(module)[name]


class KnownModule:
    """Stands for a module whose members are all known."""

    __slots__ = ("_members",)

    def __init__(self, members: dict[str, Any]) -> None:
        object.__setattr__(self, "_members", members)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._members[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes to a module: {name}")

    def __delattr__(self, name: str) -> None:
        refuse(f"deletes from a module: {name}")


class CachedFunction:
    """Stands for a function under `functools.cache`: the same arguments give the same object."""

    __slots__ = ("__wrapped__", "_found", "_watch")

    def __init__(self, function: Callable[..., Any], watch: Watch) -> None:
        object.__setattr__(self, "__wrapped__", function)
        object.__setattr__(self, "_found", {})
        object.__setattr__(self, "_watch", watch)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function, or return the result of an earlier call."""
        try:
            key: Any = args, tuple(options.items()), tuple(map(type, args))
            if key in self._found:
                return self._found[key]
        except TypeError:      # traced numbers cannot be keys
            key = None
        result = self.__wrapped__(*args, **options)
        if not self._watch.deep(result, "what a cached function returned"):
            refuse(f"caches a {type(result).__name__}, which may change later")
        if key is not None:
            self._found[key] = result
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes to {name} of a cached function")

    def __getattr__(self, name: str) -> Any:
        refuse(f"uses {name} of a cached function")


class Unchanging:
    """Stands for an object of a library: some attributes can be read, none can be written.

    Attributes
    ----------
    known : frozenset of str
        Names of the attributes, and of methods without effects, that can be used.
    """

    known: frozenset[str] = frozenset()

    def __init__(self, thing: Any) -> None:
        object.__setattr__(self, "_thing", thing)

    def __getattr__(self, name: str) -> Any:
        thing = object.__getattribute__(self, "_thing")
        if name not in self.known:
            if not hasattr(type(thing), name) and name not in dictionary(thing):
                raise AttributeError(name)
            refuse(f"uses {name} of a {type(thing).__name__}, which is not known to tracing")
        value = getattr(thing, name)
        if callable(value):
            return ConstantsOnly(value)
        if type(value) is np.ndarray:
            value = value.copy()
            value.flags.writeable = False
        elif not _is_constant(value):
            refuse(f"uses {name} of a {type(thing).__name__}, which is not known to tracing")
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes to an attribute of a {type(self._thing).__name__}: {name}")

    def __delattr__(self, name: str) -> None:
        refuse(f"deletes an attribute of a {type(self._thing).__name__}: {name}")


class ConstantsOnly:
    """Stands for a SciPy function without effects: it takes only untraced numbers."""

    __slots__ = ("_function",)

    _function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function."""
        values = [*args, *options.values()]
        name = self._function.__name__
        if not all(map(_is_constant, values)):
            refuse(f"the function {name} is not known to tracing")
        options = {k: _plain_value(v) for k, v in options.items()}
        result = self._function(*map(_plain_value, args), **options)
        if not _is_constant(result):
            refuse(f"the function {name} returns a value that is not known to tracing")
        return promoted(result)

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes to {name} of {self._function.__name__}")


def _is_constant(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_constant, value))
    if type(value) in (np.ndarray, TracedArray):
        return not has_traced(value)
    return type(value) in IMMUTABLE


def _plain_value(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_plain_value, value))
    return as_dtype(demoted(value))
