"""C library functions for the interpreted machine: NaN or infinity where `math` raises."""

import math

import numpy as np

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "fabs",
    "floor",
    "fmod",
    "hypot",
    "log",
    "log1p",
    "pow",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


def quiet(name, ufunc):
    """Return ``math.name``, with the value of a NumPy function where it would raise."""
    function = getattr(math, name)

    def value(*x):
        try:
            return function(*x)
        except (OverflowError, ValueError):
            with np.errstate(all="ignore"):
                return float(ufunc(*x))

    return value


acos = quiet("acos", np.arccos)
acosh = quiet("acosh", np.arccosh)
asin = quiet("asin", np.arcsin)
asinh = quiet("asinh", np.arcsinh)
atan = quiet("atan", np.arctan)
atan2 = quiet("atan2", np.arctan2)
atanh = quiet("atanh", np.arctanh)
ceil = np.ceil
copysign = math.copysign
cos = quiet("cos", np.cos)
cosh = quiet("cosh", np.cosh)
erf = math.erf
exp = quiet("exp", np.exp)
expm1 = quiet("expm1", np.expm1)
fabs = math.fabs
floor = np.floor
fmod = quiet("fmod", np.fmod)
hypot = quiet("hypot", np.hypot)
log = quiet("log", np.log)
log1p = quiet("log1p", np.log1p)
pow = quiet("pow", np.power)
sin = quiet("sin", np.sin)
sinh = quiet("sinh", np.sinh)
sqrt = quiet("sqrt", np.sqrt)
tan = quiet("tan", np.tan)
tanh = quiet("tanh", np.tanh)
