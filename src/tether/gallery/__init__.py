"""Problems with trusted reference values.

They are used by tests, benchmarks, documentation and the command line; docs/gallery lists them.
Every problem is made by a function of its own; `get` makes one by name, and `names` lists all of
them, or those of a group.

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

from tether.gallery.adding_unit import adding_unit
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
from tether.gallery.circuits import (
    boost_converter,
    buck_converter,
    charge_pump,
    diode_bridge,
    nand_gate,
    ring_modulator,
    sallen_key,
    transamp,
)
from tether.gallery.compiled import compile_residual, find_compiler
from tether.gallery.control import aircraft, inverted_pendulum
from tether.gallery.fekete import fekete
from tether.gallery.fields import heat1d
from tether.gallery.grids import brusselator, brusselator2d, driven_cavity, heat2d
from tether.gallery.machines import (
    chain,
    geared_motor,
    rope_and_pulley,
    slider_crank,
    stick_slip,
)
from tether.gallery.mechanisms import car_axis, pendulum, pendulum_ggl
from tether.gallery.netlists import clamped_line, common_emitter
from tether.gallery.oscillators import van_der_pol
from tether.gallery.plants import (
    battery,
    distillation,
    flash_drum,
    neutralisation,
    pipe_network,
)
from tether.gallery.water import water_tubes
from tether.gallery.wheelset import wheelset

__all__ = [
    "GalleryProblem",
    "adding_unit",
    "aircraft",
    "akzo",
    "andrews",
    "battery",
    "boost_converter",
    "brusselator",
    "brusselator2d",
    "buck_converter",
    "car_axis",
    "chain",
    "charge_pump",
    "clamped_line",
    "common_emitter",
    "compile_residual",
    "diode_bridge",
    "distillation",
    "driven_cavity",
    "fekete",
    "find_compiler",
    "flash_drum",
    "geared_motor",
    "get",
    "groups",
    "harmonic",
    "heat1d",
    "heat2d",
    "implicit_oscillator",
    "inverted_pendulum",
    "names",
    "nand_gate",
    "neutralisation",
    "pendulum",
    "pendulum_ggl",
    "pipe_network",
    "prothero_robinson",
    "ring_modulator",
    "robertson",
    "rope_and_pulley",
    "rotor",
    "sallen_key",
    "slider_crank",
    "stick_slip",
    "transamp",
    "trivial",
    "van_der_pol",
    "water_tubes",
    "wheelset",
]

_Factory = Callable[..., GalleryProblem]

_GROUPS: dict[str, dict[str, _Factory]] = {
    "classic": {
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
    },
    "circuits": {
        "diode-bridge": diode_bridge,
        "buck-converter": buck_converter,
        "boost-converter": boost_converter,
        "sallen-key": sallen_key,
        "charge-pump": charge_pump,
        "nand-gate": nand_gate,
        "ring-modulator": ring_modulator,
        "adding-unit": adding_unit,
        "common-emitter": common_emitter,
        "clamped-line": clamped_line,
    },
    "machines": {
        "slider-crank": slider_crank,
        "rope-and-pulley": rope_and_pulley,
        "chain": chain,
        "stick-slip": stick_slip,
        "geared-motor": geared_motor,
        "wheelset": wheelset,
    },
    "control": {
        "aircraft": aircraft,
        "inverted-pendulum": inverted_pendulum,
    },
    "plants": {
        "neutralisation": neutralisation,
        "flash-drum": flash_drum,
        "distillation": distillation,
        "battery": battery,
        "pipe-network": pipe_network,
        "water-tubes": water_tubes,
    },
    "fields": {
        "heat2d": heat2d,
        "brusselator": brusselator,
        "brusselator2d": brusselator2d,
        "driven-cavity": driven_cavity,
    },
}
_FACTORIES: dict[str, _Factory] = {
    name: factory for group in _GROUPS.values() for name, factory in group.items()
}


def groups() -> tuple[str, ...]:
    """Names of the groups; "classic" has the problems of the literature that benchmarks use.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.groups()
    ('classic', 'circuits', 'machines', 'control', 'plants', 'fields')
    """
    return tuple(_GROUPS)


def names(group: str | None = None) -> tuple[str, ...]:
    """Names of all problems, or of those in one group.

    Parameters
    ----------
    group : str, optional
        One of `groups`.

    Examples
    --------
    >>> from tether import gallery
    >>> "transamp" in gallery.names()
    True
    >>> gallery.names("control")
    ('aircraft', 'inverted-pendulum')
    """
    if group is None:
        return tuple(_FACTORIES)
    if group not in _GROUPS:
        raise ValueError(f"unknown group {group!r}; the groups are {', '.join(_GROUPS)}")
    return tuple(_GROUPS[group])


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
        raise ValueError(f"unknown problem {name!r}; the problems are {', '.join(_FACTORIES)}")
    return _FACTORIES[name](**options)
