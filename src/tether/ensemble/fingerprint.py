"""A digest of a function, its arguments and options, the same in every process."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tether.ensemble.members import Members, Shared
from tether.ensemble.task import Task

__all__ = ["fingerprint"]


def fingerprint(task: Task, members: Members, keep: str) -> str:
    """Return a digest of all that determines the results.

    For functions it covers their code, closures and the globals that they use; for objects that
    cannot be inspected, only their type.
    """
    digest = _Digest()
    digest.add((
        "tether ensemble", keep, task.keep, task.t0, task.t_end, task.times, task.fun,
        task.options, task.problem, task.more, members.count, members.args, members.names,
        members.y0, members.yp0,
    ))
    return digest.hash.hexdigest()


class _Digest:
    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._seen: dict[int, int] = {}

    def add(self, value: Any) -> None:
        """Add a value of any type."""
        self._write(type(value).__name__)
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            self._write(repr(value))
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self._write(f"{value.dtype.str}{value.shape}")
            self.hash.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, np.generic):
            self._write(repr(value.item()))
        elif id(value) in self._seen:
            self._write(f"seen {self._seen[id(value)]}")
        else:
            self._seen[id(value)] = len(self._seen)
            self._add_object(value)

    def _add_object(self, value: Any) -> None:
        if isinstance(value, (list, tuple)):
            self._add_all(value)
        elif isinstance(value, np.ndarray):
            self._add_all(value.ravel().tolist())
        elif isinstance(value, (set, frozenset)):
            self._add_all(sorted(value, key=repr))
        elif isinstance(value, Mapping):
            self._add_all(value.items())
        elif isinstance(value, Shared):
            self.add(value.value)
        elif isinstance(value, types.MethodType):
            self._add_all((value.__func__, value.__self__))
        elif isinstance(value, functools.partial):
            self._add_all((value.func, value.args, value.keywords))
        elif isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, types.CodeType):
            self._add_code(value)
        elif isinstance(value, types.ModuleType):
            self._write(value.__name__)
        elif isinstance(value, type):
            self._write(f"{value.__module__}.{value.__qualname__}")
        elif hasattr(value, "__dict__"):
            self.add(type(value))
            self._add_all((type(value).__dict__.get("__call__"), dict(value.__dict__)))
        else:
            self.add(type(value))

    def _add_all(self, values: Iterable[Any]) -> None:
        parts = list(values)
        self._write(str(len(parts)))
        for part in parts:
            self.add(part)

    def _add_function(self, fun: types.FunctionType) -> None:
        self._add_all((fun.__code__, fun.__defaults__, fun.__kwdefaults__, dict(fun.__dict__)))
        for cell in fun.__closure__ or ():
            try:
                self.add(cell.cell_contents)
            except ValueError:
                self._write("empty")
        module = fun.__module__ or ""
        if module.partition(".")[0] in ("numpy", "scipy", "tether", "builtins"):
            return
        for name in _global_names(fun.__code__):
            if name in fun.__globals__:
                self._write(name)
                self.add(fun.__globals__[name])

    def _add_code(self, code: types.CodeType) -> None:
        self.hash.update(code.co_code)
        self._add_all((code.co_names, code.co_varnames, code.co_consts))

    def _write(self, text: str) -> None:
        self.hash.update(f"{len(text)}:{text};".encode(errors="surrogatepass"))


def _global_names(code: types.CodeType) -> list[str]:
    found = set(code.co_names)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            found.update(_global_names(part))
    return sorted(found)
