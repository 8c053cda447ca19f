"""C functions of every kind as `scipy.LowLevelCallable`, and what their signatures say."""

from __future__ import annotations

import ctypes
from types import FunctionType
from typing import Any

C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__      # the base of all ctypes functions


def as_low_level(fun: Any, name: str = "fun") -> Any:
    """Wrap C functions of every kind as a `scipy.LowLevelCallable`; None for anything else."""
    if type(fun) is FunctionType:          # the usual case
        return None
    is_numba = hasattr(fun, "address") and hasattr(fun, "ctypes")
    is_ctypes = isinstance(fun, C_FUNCTION)
    is_low_level = type(fun).__name__ == "LowLevelCallable"
    if not (is_numba or is_ctypes or is_low_level):
        return None
    if is_low_level:
        return fun
    from scipy import LowLevelCallable

    if is_ctypes and fun.argtypes is None:
        raise ValueError(f"{name} is a ctypes function without argtypes; set them and restype")
    return LowLevelCallable(fun.ctypes if is_numba else fun)


def read_signature(low_level: Any, pointers: int, expected: str, name: str) -> tuple[bool, bool]:
    """Check ``(double, double * ...)``; return whether it returns a status and takes user data."""
    signature = low_level.signature
    returned, _, arguments = signature.partition("(")
    types = [a.strip().replace(" ", "") for a in arguments.rstrip(") ").split(",")]
    head, tail = types[: 1 + pointers], types[1 + pointers :]
    if (
        returned.strip() not in ("void", "int")
        or [a.replace("const", "") for a in head] != ["double"] + ["double*"] * pointers
        or tail not in ([], ["void*"])
    ):
        raise ValueError(f"{name} has the C signature {signature!r}; expected {expected}")
    return returned.strip() == "int", bool(tail)


def capsule(low_level: Any) -> Any:
    """Return the capsule inside a `scipy.LowLevelCallable`."""
    return tuple.__getitem__(low_level, 0)


def capsule_address(low_level: Any, expected: str, name: str) -> tuple[int, int]:
    """Addresses of a C function of t, y and values, and of its user data (-1: takes none)."""
    returns_status, takes_data = read_signature(low_level, 2, f"void {expected}", name)
    if returns_status:
        raise ValueError(f"{name} returns an int, which would be ignored; expected void {expected}")
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetContext.restype = ctypes.c_void_p
    api.PyCapsule_GetContext.argtypes = [ctypes.py_object]
    inside = capsule(low_level)
    address = api.PyCapsule_GetPointer(inside, api.PyCapsule_GetName(inside))
    return address, (api.PyCapsule_GetContext(inside) or 0) if takes_data else -1
