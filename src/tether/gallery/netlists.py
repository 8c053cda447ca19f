"""Circuits given as netlists, or built by `tether.models`."""

import math

import numpy as np

from tether.gallery.base import GalleryProblem
from tether.models import Circuit, Equations, Pulse, read_netlist

_AMPLIFIER = """
* one transistor, with capacitors at base, emitter and load
VCC vcc 0 9
VIN in 0 SIN(0 0.02 1k)
C1 in b 1u
R1 vcc b 47k
R2 b 0 10k
RC vcc c 2.2k
Q1 c b e NPN IS=1e-15 BF=150
RE e 0 470
CE e 0 10u
C2 c out 1u
RL out 0 10k
"""


def common_emitter() -> GalleryProblem:
    """Transistor amplifier from a netlist, switched on: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.common_emitter().names[:3]
    ('v(vcc)', 'v(in)', 'v(b)')
    """
    equations = read_netlist(_AMPLIFIER).nodal()
    collector, bias = 9.0 / 1.22, 9.0 / 47e3   # with uncharged capacitors, Q1 has no current
    start = {
        "v(vcc)": 9.0, "v(c)": collector, "v(out)": collector,
        "i(VCC)": -(collector / 1e4 + bias), "i(VIN)": bias,
    }
    return GalleryProblem(
        name="common-emitter",
        title="Common-emitter amplifier",
        description=(
            "A netlist of eleven elements: the supply of an amplifier is switched on, and its "
            "capacitors charge until the transistor amplifies a sine of 20 mV."
        ),
        fun=equations.fun,
        t_span=(0.0, 0.025),
        y0=equations.start(start),
        names=equations.names,
        units=equations.units,
        picture=("v(b)", "v(e)", "v(out)"),
        reference=np.array(_AMPLIFIER_END),
        compare=_places(equations, ("v(b)", "v(c)", "v(e)", "v(out)")),
        source="SciPy's LSODA on the voltages of the capacitors, tolerance 1e-12",
        reference_digits=9,
        expected_digits=6,
        atol_scale=_scale(equations),
        algebraic=_algebraic(equations),
    )


_AMPLIFIER_END = (1.42998618020, 4.3819582919, 0.69546327799, -0.9064881828)

# By number of sections: voltages in the middle and at the end of the line, currents of the first
# and of the last coil, at the end.
_LINE_ENDS: dict[int, tuple[float, ...]] = {
    8: (0.634552733533, -0.084710640774, -0.0277935352839, 0.000796341893808),
    16: (0.726175890445, 2.81706599468, -0.0147841667325, -0.00394741973152),
}


def clamped_line(sections: int = 8) -> GalleryProblem:
    """Pulse on a line of coils and capacitors, clamped at its end by a diode: index 2.

    Parameters
    ----------
    sections : int
        Number of coils, at least 2, which makes 2 * sections + 5 unknowns; 8 and 16 have a
        reference.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.clamped_line().n
    21
    """
    if sections < 2:
        raise ValueError(f"sections must be at least 2, got {sections!r}")
    line = Circuit()
    line.voltage("V1", "in", "0", Pulse(0.0, 5.0, 1e-9, 1e-9, 1e-9, 1e-8, 4e-8))
    line.capacitor("C0", "in", "0", 1e-12)
    line.resistor("RS", "in", "n0", 50.0)
    for k in range(sections):
        line.inductor(f"L{k}", f"n{k}", f"n{k + 1}", 5e-9)
        line.capacitor(f"C{k + 1}", f"n{k + 1}", "0", 2e-12)
    end = f"n{sections}"
    line.resistor("RL", end, "0", 500.0)
    line.diode("D1", end, "top")
    line.voltage("VC", "top", "0", 2.5)
    equations = line.nodal()
    middle = f"v(n{sections // 2})"
    return GalleryProblem(
        name="clamped-line",
        title="Pulse on a clamped line",
        description=(
            "A pulse travels along a line of coils and capacitors and is reflected by a load that "
            "is clamped by a diode. A capacitor directly at the source forms a loop with it: the "
            "current of the source follows from the slope of the pulse."
        ),
        fun=equations.fun,
        t_span=(0.0, 1.4e-8),
        y0=equations.start({"v(top)": 2.5}),
        names=equations.names,
        units=equations.units,
        picture=("v(in)", middle, f"v({end})"),
        reference=np.array(_LINE_ENDS.get(sections, [math.nan] * 4)),
        compare=_places(equations, (middle, f"v({end})", "i(L0)", f"i(L{sections - 1})")),
        source="SciPy's Radau on voltages and currents between the edges, tolerance 1e-12",
        reference_digits=9,
        expected_digits=3,
        atol_scale=_scale(equations),
        algebraic=_algebraic(equations),
        index=2,
    )


def _places(equations: Equations, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(equations.names.index, names))


def _scale(equations: Equations) -> np.ndarray:
    return np.array([1e-3 if unit == "A" else 1.0 for unit in equations.units])


def _algebraic(equations: Equations) -> tuple[int, ...]:
    """Unknowns on whose derivatives no equation depends: all are linear in derivatives."""
    n = len(equations.names)
    still = np.asarray(equations.fun(0.0, equations.y0, np.zeros(n)), float)
    moved = [np.asarray(equations.fun(0.0, equations.y0, row), float) for row in np.eye(n)]
    return tuple(k for k, values in enumerate(moved) if np.array_equal(values, still))
