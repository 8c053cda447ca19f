"""Problems with trusted reference values.

They feed tests, benchmarks and documentation. Every problem is made by a function of its own;
`get` makes one by name.

Examples
--------
>>> from tether import gallery
>>> problem = gallery.get("robertson")
>>> problem.fun(0.0, problem.y0, problem.yp0)[2]
np.float64(0.0)
>>> problem.digits(problem.reference)
16.0
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from tether.gallery.analytic import (
    harmonic,
    implicit_oscillator,
    prothero_robinson,
    rotor,
    trivial,
)
from tether.gallery.andrews import andrews
from tether.gallery.base import GalleryProblem
from tether.gallery.chemistry import akzo, robertson
from tether.gallery.circuits import transamp
from tether.gallery.compiled import compile_residual, find_compiler
from tether.gallery.fekete import fekete
from tether.gallery.fields import heat1d
from tether.gallery.mechanisms import car_axis, pendulum, pendulum_ggl
from tether.gallery.oscillators import van_der_pol

__all__ = [
    "GalleryProblem",
    "akzo",
    "andrews",
    "car_axis",
    "compile_residual",
    "fekete",
    "find_compiler",
    "get",
    "harmonic",
    "heat1d",
    "implicit_oscillator",
    "names",
    "pendulum",
    "pendulum_ggl",
    "prothero_robinson",
    "robertson",
    "rotor",
    "transamp",
    "trivial",
    "van_der_pol",
]

_FACTORIES: dict[str, Callable[..., GalleryProblem]] = {
    "robertson": robertson,
    "akzo": akzo,
    "transamp": transamp,
    "pend-i1": pendulum,
    "pend-i2": partial(pendulum, index=2),
    "pend-i3": partial(pendulum, index=3),
    "pend-ggl": pendulum_ggl,
    "caraxis-i1": car_axis,
    "caraxis-i2": partial(car_axis, index=2),
    "caraxis-i3": partial(car_axis, index=3),
    "andrews-i1": partial(andrews, index=1),
    "andrews-i2": partial(andrews, index=2),
    "andrews-i3": andrews,
    "fekete": fekete,
    "heat1d": heat1d,
    "vdpol": van_der_pol,
    "trivial": trivial,
    "prothero-robinson": prothero_robinson,
    "rotor": rotor,
    "implicit-oscillator": implicit_oscillator,
    "harmonic": harmonic,
}


def names() -> tuple[str, ...]:
    """Names of all problems.

    Examples
    --------
    >>> from tether import gallery
    >>> "transamp" in gallery.names()
    True
    """
    return tuple(_FACTORIES)


def get(name: str, **options: Any) -> GalleryProblem:
    """Make a problem by name.

    Parameters
    ----------
    name : str
        One of `names`.
    **options
        Arguments of the function that makes it, such as ``t_end``.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.get("heat1d", m=20).n
    20
    """
    if name not in _FACTORIES:
        raise ValueError(f"unknown problem {name!r}; there are {', '.join(_FACTORIES)}")
    return _FACTORIES[name](**options)
