"""SciPy's special functions as operations: their numbers, names and derivatives.

A program calls SciPy's own functions without Python, by the addresses that
`scipy.special.cython_special` offers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tether._core import special as core
from tether.trace import opcodes as op
from tether.trace.refusal import refuse

__all__ = ["BY_NAME", "name_of", "number_of", "slopes_of", "value_of"]

SPREAD, MIDDLE, POLYGAMMA = core.numbering()


@dataclass(frozen=True)
class Special:
    """A special function, or a family of functions with an order."""

    number: int
    name: str
    has_order: bool
    slope: Callable[[Any, int, float], int]    # derivative, from (graph, operand, order)


def _node(g: Any, name: str, a: int, order: float = 0.0) -> int:
    return g.special(a, number_of(name, order))


def _of_erfc(g: Any, a: int, _: float) -> int:
    return g.mul(g.constant(-2 / math.sqrt(math.pi)), g.unary(op.EXP, g.neg(g.mul(a, a))))


def _of_gamma(g: Any, a: int, _: float) -> int:
    return g.mul(_node(g, "gamma", a), _node(g, "psi", a))


def _mean(name: str, lower: float, upper: float) -> Callable[[Any, int, float], int]:
    """Return the rule of a Bessel function: the mean of both neighbours, with these signs."""
    def slope(g: Any, a: int, order: float) -> int:
        down, up = _node(g, name, a, order - 1.0), _node(g, name, a, order + 1.0)
        return g.add(g.mul(g.constant(0.5 * lower), down), g.mul(g.constant(0.5 * upper), up))

    return slope


def _minus(name: str, sign: float = -1.0) -> Callable[[Any, int, float], int]:
    return lambda g, a, _: g.mul(g.constant(sign), _node(g, name, a))


def _fixed(rule: Callable[[Any, int, float], int], order: float) -> Callable[..., int]:
    return lambda g, a, _: rule(g, a, order)


_J, _Y = _mean("jv", 1.0, -1.0), _mean("yv", 1.0, -1.0)
_I, _K = _mean("iv", 1.0, 1.0), _mean("kv", -1.0, -1.0)
_ALL = (
    Special(POLYGAMMA, "polygamma", True, lambda g, a, m: _node(g, "polygamma", a, m + 1.0)),
    Special(1, "erfc", False, _of_erfc),
    Special(2, "gamma", False, _of_gamma),
    Special(3, "gammaln", False, lambda g, a, _: _node(g, "psi", a)),
    Special(4, "psi", False, lambda g, a, _: _node(g, "polygamma", a, 1.0)),
    Special(5, "j0", False, _minus("j1")),
    Special(6, "j1", False, _fixed(_J, 1.0)),
    Special(7, "y0", False, _minus("y1")),
    Special(8, "y1", False, _fixed(_Y, 1.0)),
    Special(9, "i0", False, _minus("i1", 1.0)),
    Special(10, "i1", False, _fixed(_I, 1.0)),
    Special(11, "k0", False, _minus("k1")),
    Special(12, "k1", False, _fixed(_K, 1.0)),
    Special(13, "jv", True, _J),
    Special(14, "yv", True, _Y),
    Special(15, "iv", True, _I),
    Special(16, "kv", True, _K),
)
BY_NAME = {special.name: special for special in _ALL}
_BY_NUMBER = {special.number: special for special in _ALL}


def number_of(name: str, order: float = 0.0) -> int:
    """Return the number of a function of this order, and register the function in the core."""
    special = BY_NAME[name]
    _load(name)
    place = round(2.0 * order) + MIDDLE
    if place != 2.0 * order + MIDDLE or not 0 <= place < SPREAD:
        refuse(f"{name} of the order {order} is not known to tracing")
    return special.number * SPREAD + place


def _parts(number: int) -> tuple[Special, float]:
    which, place = divmod(number, SPREAD)
    return _BY_NUMBER[which], 0.5 * (place - MIDDLE)


@functools.cache
def _load(name: str) -> None:
    """Register the address of a function in the core."""
    special = BY_NAME[name]
    if special.number == POLYGAMMA:
        return
    import scipy.special  # late, to save time: few functions need it
    from scipy.special import cython_special

    wanted = "double (double, double" if special.has_order else "double (double"
    wanted += ", int __pyx_skip_dispatch)"
    offered: dict[str, Any] = cython_special.__pyx_capi__
    for own, capsule in offered.items():
        plain = own.removeprefix("__pyx_fuse_").lstrip("0123456789") if "fuse" in own else own
        if plain == name and _signature(capsule) == wanted:
            function = getattr(scipy.special, name)
            core.put(
                special.number, special.has_order, _pointer(capsule, wanted.encode()),
                function if special.has_order else functools.partial(_without_order, function),
            )
            return
    refuse(f"{name} is not offered by this version of SciPy")


def _without_order(function: Callable[[float], float], order: float, x: float) -> float:
    return function(x)


def _signature(capsule: Any) -> str:
    import ctypes  # late, to save time

    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return (name(capsule) or b"").decode()


def _pointer(capsule: Any, name: bytes) -> int:
    import ctypes  # late, to save time

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name) or 0)


def value_of(number: int, x: Any) -> Any:
    """Evaluate for numbers or arrays of them."""
    import scipy.special  # late, to save time

    special, order = _parts(number)
    if special.number == POLYGAMMA:
        return scipy.special.polygamma(int(order), x)
    function = getattr(scipy.special, special.name)
    return function(order, x) if special.has_order else function(x)


def slopes_of(g: Any, v: int, a: int, number: int) -> tuple[int, ...]:
    """Return the derivative of a node by its operand."""
    special, order = _parts(number)
    return (special.slope(g, a, order),)


def name_of(number: int) -> tuple[str, float | None]:
    """Name of a function, and its order if it has one."""
    special, order = _parts(number)
    return special.name, order if special.has_order else None
