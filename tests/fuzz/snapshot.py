"""What every object reachable from a module looks like: has anybody written to it?"""

import collections
import functools
import gc
import types
import weakref

import numpy as np

PLAIN = (int, float, complex, str, bytes, bool, type(None))
NOT_THE_USERS = ("_abc", "_sitebuiltins", "importlib", "_frozen", "dataclasses", "numba")
# Python itself writes these when they are first asked for.
LAZY = {"__annotations__", "__weakref__", "__dict__", "__doc__", "__builtins__", "__firstlineno__",
        "__static_attributes__", "__annotations_cache__", "__annotate_func__", "_abc_impl",
        "__slotnames__"}
SKIPPED = (types.BuiltinFunctionType, types.CodeType, types.FrameType, functools._lru_cache_wrapper)


def snapshot(module):
    """Return a dict of id to what the object looks like, and the objects to keep them alive."""
    seen, keep, todo = {}, [], [vars(module)]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or not _ours(thing, module):
            continue
        keep.append(thing)
        seen[id(thing)] = _look(thing)
        todo.extend(_parts(thing))
    return seen, keep


def differences(before, after):
    """Return words for each object that changed."""
    old, keep = before
    new, _ = after
    names = {id(thing): thing for thing in keep}
    words = []
    for key, look in old.items():
        if key in new and new[key] != look:
            words.append(f"{type(names[key]).__name__}: {_short(look)} -> {_short(new[key])}")
    return words


def _short(look):
    return str(look)[:150]


def _ours(thing, module):
    if issubclass(type(thing), types.ModuleType):
        return thing is module or (not getattr(thing, "__file__", None) and \
            thing.__name__ not in ("builtins", "sys") and thing.__spec__ is None)
    if issubclass(type(thing), type | types.FunctionType):
        return str(getattr(thing, "__module__", "")).startswith(("fuzzed", "fuzz_m"))
    if issubclass(type(thing), SKIPPED):
        return False
    home = getattr(type(thing), "__module__", "")
    return not home.startswith(NOT_THE_USERS)


def _parts(thing):
    if type(thing) in PLAIN:
        return []
    parts = list(gc.get_referents(thing))
    if issubclass(type(thing), np.ndarray) and thing.base is not None:
        parts.append(thing.base)
    return [*parts, _attributes(thing)] if _attributes(thing) else parts


def _attributes(thing):
    """Return the dict of an object; asking for it also makes Python keep one."""
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def _look(thing):
    if type(thing) in PLAIN:
        return repr(thing)
    own = ""
    if issubclass(type(thing), np.ndarray) and thing.dtype != object:
        own = thing.tobytes()
    elif issubclass(type(thing), collections.abc.Iterator):
        own = _position(thing)
    elif issubclass(type(thing), int | float | str | complex | bytearray):
        own = type(thing).__mro__[-2].__repr__(thing)
    if issubclass(type(thing), dict):
        items = [(repr(k) if type(k) in PLAIN else id(k), _name(v))
                 for k, v in dict.items(thing) if not _is_lazy(k)]
        return (id(type(thing)), items)
    if issubclass(type(thing), type):
        return [(k, _name(v)) for k, v in vars(thing).items() if k not in LAZY]
    if issubclass(type(thing), list | tuple | collections.deque):
        return (id(type(thing)), [_name(v) for v in type(thing).__mro__[-2].__iter__(thing)])
    if issubclass(type(thing), types.FunctionType):
        return (_name(thing.__code__), _name(thing.__defaults__), _name(thing.__kwdefaults__),
                _name(thing.__closure__))
    values = {id(value) for value in _attributes(thing).values()}
    return (id(type(thing)), own, sorted(str(_name(v)) for v in gc.get_referents(thing)
                                        if type(v) is not dict and id(v) not in values))


def _is_lazy(key):
    if type(key) is str:
        return key in LAZY
    return type(key) is weakref.ref and issubclass(type(key()), type)     # singledispatch's cache


def _name(thing):
    return repr(thing) if type(thing) in PLAIN else (type(thing).__name__, id(thing))


def _position(iterator):
    if isinstance(iterator, types.GeneratorType):
        frame = iterator.gi_frame
        return "" if frame is None else (frame.f_lasti, repr(frame.f_locals))
    try:
        return repr(iterator)
    except Exception:
        return ""
