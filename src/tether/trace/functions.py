"""Mathematical functions of one number, traced or not, by their names in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tether.trace import opcodes as op
from tether.trace import special
from tether.trace.choices import arctan2, fmax, fmin, hypot, maximum, minimum
from tether.trace.kinds import FLOAT, origin_of
from tether.trace.operations import OPERATIONS
from tether.trace.refusal import refuse
from tether.trace.scalar import (
    Scalar,
    apply,
    floor_divide,
    fmod,
    is_traced,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    select,
    truncate,
    unboxed,
)

Function = Callable[..., Any]

def _operation(name: str, code: int) -> Function:
    plain = getattr(np, name)

    def function(x: Any) -> Any:
        return apply(code, x) if type(x) is Scalar else plain(x)

    function.__name__ = name
    return function


UNARY: dict[str, Function] = {
    o.numpy: _operation(o.numpy, code) for code, o in OPERATIONS.items() if o.numpy
}


def erf(x: Any) -> Any:
    """Error function."""
    return apply(op.ERF, x) if is_traced(x) else math.erf(x)


def special_function(name: str) -> Function:
    """Return the function called in place of a special function of (x), or of (order, x)."""
    def function(*args: Any) -> Any:
        if not is_traced(*args):
            import scipy.special  # late, to save time

            return getattr(scipy.special, name)(*args)
        order, x = (0.0, *args) if len(args) == 1 else args
        if type(x) is not Scalar or is_traced(order):
            refuse(f"{name} of an order that is traced is not known to tracing")
        node = x.recorder.graph.special(x.node, special.number_of(name, float(order)))
        return Scalar(x.recorder, node, FLOAT + origin_of(unboxed(x.kind)))

    return function


SPECIAL: dict[str, Function] = {
    name: special_function(name) for name in special.BY_NAME if name != "polygamma"
}


def log2(x: Any) -> Any:
    """Logarithm to base 2."""
    return UNARY["log"](x) / math.log(2.0) if is_traced(x) else np.log2(x)


def log10(x: Any) -> Any:
    """Logarithm to base 10."""
    return UNARY["log"](x) / math.log(10.0) if is_traced(x) else np.log10(x)


def exp2(x: Any) -> Any:
    """Power of two."""
    return 2.0**x


def cbrt(x: Any) -> Any:
    """Real cube root."""
    if not is_traced(x):
        return np.cbrt(x)
    return UNARY["sign"](x) * UNARY["absolute"](x) ** (1 / 3)


def heaviside(x: Any, at_zero: Any) -> Any:
    """Step from 0 to 1."""
    if not is_traced(x, at_zero):
        return np.heaviside(x, at_zero)
    # the last choice is NaN if x is
    return select(x > 0.0, 1.0, select(x < 0.0, 0.0, select(x == 0.0, at_zero, x)))


def copysign(x: Any, y: Any) -> Any:
    """Size of x with the sign of y."""
    if not is_traced(x, y):
        return np.copysign(x, y)
    size = abs(x)
    if not is_traced(y):
        return size if np.copysign(1.0, y) > 0.0 else -size
    # zero has a sign, which arctan2 shows
    at_zero = size * UNARY["sign"](arctan2(y, -1.0))
    return select(y < 0.0, -size, select(y == 0.0, at_zero, size))


def clip(x: Any, low: Any, high: Any) -> Any:
    """Limit a number from below and above."""
    if low is not None:
        x = maximum(x, low)
    return x if high is None else minimum(x, high)


def isnan(x: Any) -> Any:
    """Tell whether x is NaN."""
    return x != x


def isfinite(x: Any) -> Any:
    """Tell whether x is neither NaN nor infinite."""
    return abs(x) < math.inf


def isinf(x: Any) -> Any:
    """Tell whether x is infinite."""
    return abs(x) == math.inf


def logaddexp(x: Any, y: Any) -> Any:
    """Logarithm of the sum of exponentials."""
    if not is_traced(x, y):
        return np.logaddexp(x, y)
    apart = maximum(x, y) + UNARY["log1p"](UNARY["exp"](-abs(x - y)))
    return select(x == y, x + math.log(2.0), apart)  # also where both are infinite


def expit(x: Any) -> Any:
    """Logistic function, without overflow on either side."""
    small = UNARY["exp"](-abs(x))
    return select(x < 0.0, small / (1.0 + small), 1.0 / (1.0 + small))


def xlogy(x: Any, y: Any) -> Any:
    """``x log y``, zero where x is zero."""
    return select(x == 0.0, 0.0, x * UNARY["log"](y))


UNARY |= {
    "abs": UNARY["absolute"],
    "fabs": UNARY["absolute"],
    "log2": log2,
    "log10": log10,
    "exp2": exp2,
    "cbrt": cbrt,
    "trunc": truncate,
    "fix": truncate,
    "isnan": isnan,
    "isfinite": isfinite,
    "isinf": isinf,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "deg2rad": lambda x: x * (math.pi / 180.0),
    "radians": lambda x: x * (math.pi / 180.0),
    "rad2deg": lambda x: x * (180.0 / math.pi),
    "degrees": lambda x: x * (180.0 / math.pi),
    "conjugate": lambda x: x,
    "logical_not": logical_not,
}

BINARY: dict[str, Function] = {
    "minimum": minimum,
    "maximum": maximum,
    "fmin": fmin,
    "fmax": fmax,
    "arctan2": arctan2,
    "hypot": hypot,
    "heaviside": heaviside,
    "copysign": copysign,
    "fmod": fmod,
    "floor_divide": floor_divide,
    "logical_and": logical_and,
    "logical_or": logical_or,
    "logical_xor": logical_xor,
    "logaddexp": logaddexp,
}

# NumPy calls these methods on the elements of arrays that hold objects.
for _name, _function in UNARY.items():
    if _name not in ("conjugate", "abs"):
        setattr(Scalar, _name, _function)
