"""The two-bit adding unit of the Test Set for IVP Solvers: 39 transistors in ten gates.

The unknowns are the 175 voltages; charges are differentiated by hand. Nodes that are connected only
by capacitors make the matrix of the derivatives singular, so the system has index 1.

The text of the Test Set has two errors: it omits the supply in one charge, and uses the node of
another gate in a second one. The capacities there become negative for a while, which makes the
circuit unstable: small disturbances grow by a factor of e within 0.01, and runs are right only if
their steps are too long to notice. The circuit here is the intended one.
"""

import math
from typing import Any

import numpy as np

from tether.gallery.base import GalleryProblem

__all__ = ["adding_unit"]

Vector = Any

# As in the Test Set: the unit of time is 1e-4 times the true one, and a factor of 5 makes the
# circuit stiffer. Voltages in V.
TIME, STIFFNESS = 1e4, 5.0
CHANNEL_CONDUCTANCE, BULK_CONDUCTANCE = TIME * STIFFNESS / 40.0, TIME * STIFFNESS / 100.0
GATE_CAPACITY, BULK_CAPACITY, LOAD = 0.6e-4 * TIME, 2.4e-5 * TIME, 2e-4 * TIME
SATURATION, THERMAL = 1e-15 * TIME * STIFFNESS, 25.85
SUPPLY, BULK, BUILT_IN, SLOPE = 5.0, -2.5, 0.87, 0.02
# Transistors: threshold, its change with the bulk voltage, surface potential, and gain; of the
# depletion type, and of the enhancement type, alone or as one of two or three in series.
DEPLETION = (-2.43, 0.2, 1.28, 53.5e-6 * TIME * STIFFNESS)
ALONE, OF_TWO, OF_THREE = [
    (0.2, 0.035, 1.01, 43.7e-6 * factor * TIME * STIFFNESS) for factor in (4, 8, 12)
]
Kind = tuple[float, float, float, float]


def _overdrive(kind: Kind, gate: float, bulk: float) -> float:
    """Return how far a gate is above its threshold, or zero."""
    threshold, factor, potential, _ = kind
    shift = factor * (math.sqrt(potential - bulk) - math.sqrt(potential))
    return max(gate - threshold - shift, 0.0)


def _channel(kind: Kind, u: float, over_source: float, over_drain: float) -> float:
    """Return the current from drain to source at a voltage u (model of Shichman and Hodges)."""
    if u > 0.0:
        open_part = over_source**2 - max(over_source - u, 0.0) ** 2
        return kind[3] * open_part * (1.0 + SLOPE * u)
    open_part = over_drain**2 - max(over_drain + u, 0.0) ** 2
    return -kind[3] * open_part * (1.0 - SLOPE * u)


def _junction(u: float) -> float:
    return SATURATION * (math.exp(u / THERMAL) - 1.0) if u <= 0.0 else 0.0


def _bulk_capacity(u: float) -> float:
    """Return the charge between bulk and channel, divided by their voltage."""
    if u <= 0.0:
        return BULK_CAPACITY / math.sqrt(1.0 - u / BUILT_IN)
    return BULK_CAPACITY * (1.0 + u / (2.0 * BUILT_IN))


def _bulk_slope(u: float) -> float:
    """Return the derivative of `_bulk_capacity`."""
    if u <= 0.0:
        return BULK_CAPACITY / (2.0 * BUILT_IN) / (1.0 - u / BUILT_IN) ** 1.5
    return BULK_CAPACITY / (2.0 * BUILT_IN)


def bulk_current(u: float, v: float, u_rate: float, v_rate: float) -> float:
    """Return the rate of the charge ``_bulk_capacity(u) * v``."""
    return _bulk_slope(u) * u_rate * v + _bulk_capacity(u) * v_rate


class Circuit:
    """Sums of currents at the nodes, collected transistor by transistor.

    Nodes are numbered from 1, as in the Test Set. A signal is a node, or a pair of voltage and
    slope of an input.
    """

    def __init__(self, u: Vector, rate: Vector) -> None:
        self.u, self.rate = u, rate
        self.left: list[Any] = [0.0] * (len(u) + 1)

    def at(self, node: int) -> tuple[Any, Any]:
        """Voltage of a node and its rate; 0 is the ground."""
        return (self.u[node - 1], self.rate[node - 1]) if node else (0.0, 0.0)

    def transistor(self, kind: Kind, first: int, gate: Any, source: int, drain: int | None) -> None:
        """Add a transistor with inner nodes from `first` on; without a drain, to the supply."""
        left = self.left
        (s, s_rate), (d, d_rate), (bs, bs_rate), (bd, bd_rate) = (
            self.at(first + k) for k in range(4)
        )
        (at_source, source_rate) = self.at(source)
        (at_drain, drain_rate) = (SUPPLY, 0.0) if drain is None else self.at(drain)
        g, g_rate = self.at(gate) if isinstance(gate, int) else gate
        channel = _channel(
            kind, d - s, _overdrive(kind, g - s, bs - at_source),
            _overdrive(kind, g - d, bd - at_drain),
        )
        to_source, to_drain = _junction(bs - at_source), _junction(bd - at_drain)
        from_s, from_d = CHANNEL_CONDUCTANCE * (s - at_source), CHANNEL_CONDUCTANCE * (d - at_drain)
        to_s, to_d = GATE_CAPACITY * (s_rate - g_rate), GATE_CAPACITY * (d_rate - g_rate)
        u, rate = bs - at_source, bs_rate - source_rate
        at_bulk = bulk_current(u, u, rate, rate)
        left[first] += to_s + from_s - channel
        left[first + 1] += to_d + from_d + channel
        left[first + 2] += at_bulk + BULK_CONDUCTANCE * (bs - BULK) + to_source
        left[source] -= at_bulk + to_source + from_s
        if isinstance(gate, int):
            left[gate] -= to_s + to_d
        u, rate = bd - at_drain, bd_rate - drain_rate
        at_bulk = bulk_current(u, u, rate, rate)
        if drain is not None:
            left[drain] -= at_bulk + to_drain + from_d
        left[first + 3] += at_bulk + BULK_CONDUCTANCE * (bd - BULK) + to_drain

    def load(self, first: int) -> int:
        """Add the depletion transistor of a gate, and return the node of the gate's output."""
        result = first + 4
        self.transistor(DEPLETION, first, result, result, None)
        return result

    def nor(self, first: int, a: Any, b: Any) -> None:
        """Not (a or b)."""
        result = self.load(first)
        self.transistor(ALONE, first + 5, a, 0, result)
        self.transistor(ALONE, first + 9, b, 0, result)

    def and_or_not(self, first: int, a: Any, b: Any, c: Any) -> None:
        """Not (a or (b and c))."""
        result, between = self.load(first), first + 13
        self.transistor(ALONE, first + 5, a, 0, result)
        self.transistor(OF_TWO, first + 9, b, between, result)
        self.transistor(OF_TWO, first + 14, c, 0, between)

    def nand(self, first: int, a: Any, b: Any) -> None:
        """Not (a and b)."""
        result, between = self.load(first), first + 9
        self.transistor(OF_TWO, first + 5, a, between, result)
        self.transistor(OF_TWO, first + 10, b, 0, between)

    def or_and_not(self, first: int, a: Any, b: Any, c: Any) -> None:
        """Not (a and (b or c))."""
        result, between = self.load(first), first + 9
        self.transistor(OF_TWO, first + 5, a, between, result)
        self.transistor(OF_TWO, first + 10, b, 0, between)
        self.transistor(OF_TWO, first + 14, c, 0, between)


def _pulse(t: float, delay: float, high: float, period: float) -> tuple[float, float]:
    """Voltage and slope of an input: it rises within 5, stays at 5 V for `high`, falls within 5."""
    time = t % period - delay
    if time > high + 10.0:
        return 0.0, 0.0
    if time > high + 5.0:
        return high + 10.0 - time, -1.0
    if time > 5.0:
        return 5.0, 0.0
    if time > 0.0:
        return time, 1.0
    return 0.0, 0.0


def _adder(t: float, y: Vector, yp: Vector) -> list[float]:
    return add(Circuit(y, yp), t)


def add(circuit: Circuit, t: float) -> list[float]:
    """Connect the gates, and return the residual at each node."""
    a0, b0 = _pulse(t, 0.0, 5.0, 20.0), _pulse(t, 10.0, 15.0, 40.0)         # inverted
    a1, b1 = _pulse(t, 30.0, 35.0, 80.0), _pulse(t, 70.0, 75.0, 160.0)
    carry = _pulse(t, 150.0, 155.0, 320.0)
    circuit.nor(1, a0, b0)
    circuit.and_or_not(14, 5, b0, a0)
    circuit.nor(32, 18, carry)
    circuit.and_or_not(45, 36, carry, 18)
    circuit.and_or_not(63, 5, carry, 18)
    circuit.nor(81, a1, b1)
    circuit.and_or_not(94, 85, b1, a1)
    circuit.nand(112, 67, 98)
    circuit.or_and_not(126, 116, 67, 98)
    circuit.and_or_not(144, 85, 5, 98)
    circuit.transistor(OF_THREE, 162, 98, 166, 148)
    circuit.transistor(OF_THREE, 167, 18, 171, 166)
    circuit.transistor(OF_THREE, 172, carry, 0, 171)
    for result in (49, 130, 148):
        circuit.left[result] += LOAD * circuit.at(result)[1]
    return circuit.left[1:]


# At rest, with all inputs low.
START = (
    4.999999999996544, 4.99999999999997, -2.499999999999975, -2.499999999999975,
    4.999999999996514, 0.0, 4.999999999996514, -2.499999999999991, -2.499999999999975, 0.0,
    4.999999999996514, -2.499999999999991, -2.499999999999975, 0.215858486765796,
    4.988182208251953, -2.49999999999999, -2.499999999999975, 0.204040695017748,
    0.011817791748026, 0.192222903269723, -2.499999999999991, -2.49999999999999,
    -0.228160951881239, 0.204040695017748, -2.499999999999992, -2.49999999999999,
    -0.228160951881241, 0.0, -0.228160951881239, -2.499999999999991, -2.499999999999992,
    4.999999999996547, 4.99999999999997, -2.499999999999975, -2.499999999999975,
    4.999999999996517, 0.0, 4.999999999996517, -2.499999999999991, -2.499999999999975, 0.0,
    4.999999999996517, -2.499999999999991, -2.499999999999975, 0.215858484247529,
    4.988182208251953, -2.49999999999999, -2.499999999999975, 0.204040692499482,
    0.011817791748035, 0.192222900751447, -2.499999999999991, -2.49999999999999,
    -0.026041071738432, 0.204040692499482, -2.499999999999992, -2.49999999999999,
    -0.026041071738434, 0.0, -0.026041071738432, -2.499999999999991, -2.499999999999992,
    0.215858484880918, 4.988182208251953, -2.49999999999999, -2.499999999999975, 0.20404069313287,
    0.011817791748026, 0.192222901384845, -2.499999999999991, -2.49999999999999,
    -0.026041071737961, 0.20404069313287, -2.499999999999992, -2.49999999999999,
    -0.026041071737963, 0.0, -0.026041071737961, -2.499999999999991, -2.499999999999992,
    4.999999999996546, 4.99999999999997, -2.499999999999975, -2.499999999999975,
    4.999999999996516, 0.0, 4.999999999996516, -2.499999999999991, -2.499999999999975, 0.0,
    4.999999999996516, -2.499999999999991, -2.499999999999975, 0.215858481060569,
    4.988182208251953, -2.49999999999999, -2.499999999999975, 0.204040689312522,
    0.011817791748023, 0.192222897564498, -2.499999999999991, -2.49999999999999,
    4.734672533390068, 0.204040689312522, -2.499999999999977, -2.49999999999999,
    4.734672533390062, 0.0, 4.734672533390068, -2.499999999999991, -2.499999999999977,
    4.99999999999687, 4.999999999999972, -2.499999999999975, -2.499999999999975,
    4.999999999996843, -0.025968303070038, 4.999999999996843, -2.499999999999992,
    -2.499999999999975, -0.02596830307004, 0.0, -0.025968303070038, -2.499999999999991,
    -2.499999999999992, 4.999999999997699, 4.99999999999998, -2.499999999999975,
    -2.499999999999975, 4.999999999997678, 4.744923533081106, 4.999999999997678,
    -2.499999999999977, -2.499999999999975, 4.744923533081098, 0.0, 4.744923533081106,
    -2.499999999999991, -2.499999999999977, 0.0, 4.744923533081106, -2.499999999999991,
    -2.499999999999977, 0.215858484844162, 4.988182208251953, -2.49999999999999,
    -2.499999999999975, 0.204040693096114, 0.011817791748023, 0.192222901348091,
    -2.499999999999991, -2.49999999999999, 0.204040693096045, 0.204040693096107,
    -2.49999999999999, -2.49999999999999, 0.204040693096037, 0.0, 0.204040693096037,
    -2.499999999999991, -2.49999999999999, -0.026017361873565, 0.204040693096114,
    -2.499999999999992, -2.49999999999999, -0.026017361873568, -0.026017590106916,
    -0.026017361873565, -2.499999999999992, -2.499999999999992, -0.026017590106918, 0.0,
    -0.026017590106916, -2.499999999999991, -2.499999999999992,
)
OUTPUTS = {49: "s0", 130: "s1", 148: "carry"}
T_END = 20.0


def adding_unit(t_end: float = T_END) -> GalleryProblem:
    """Two-bit adding unit: index 1, 175 unknowns, conditions in every transistor.

    Parameters
    ----------
    t_end : float
        End of the run; 320, as in the Test Set, covers all sums of two numbers of two bits and a
        carry. The reference is for 20.

    Examples
    --------
    >>> from tether import gallery
    >>> problem = gallery.adding_unit()
    >>> problem.n, problem.names[48]
    (175, 's0')
    """
    reference = [4.9998950633, 0.22815286665, 0.20403986744]
    return GalleryProblem(
        name="adding-unit",
        title="Two-bit adding unit",
        description=(
            "Ten gates of 39 MOS transistors add two numbers of two bits. Transistors cut off, "
            "conduct and saturate in turn, several at the same time. This is the circuit of the "
            "Test Set without two errors in its text, which make it unstable."
        ),
        fun=_adder,
        t_span=(0.0, float(t_end)),
        y0=np.array(START),
        names=tuple(OUTPUTS.get(node, f"u{node}") for node in range(1, len(START) + 1)),
        units=("V",) * len(START),
        picture=("s0", "s1", "carry"),
        reference=np.array(reference if t_end == T_END else [math.nan] * 3),
        compare=tuple(node - 1 for node in OUTPUTS),
        source="SUNDIALS' IDA, restarted where the slopes of the inputs jump, tolerance 1e-10",
        reference_digits=8,
        expected_digits=6,
        atol_scale=np.ones(len(START)),
    )
