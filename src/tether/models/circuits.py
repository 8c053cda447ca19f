"""Circuits from their elements: modified nodal analysis, and the sparse tableau of LP1 (3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tether.models.equations import Equations
from tether.models.sources import Dc
from tether.models.topology import Topology, analyze_network

__all__ = ["Branch", "Circuit"]

THERMAL_VOLTAGE = 0.02585                      # kT/q at 300 K
GROUND = ("0", "gnd", "ground")

# The law of a branch, as a function of what it may depend on.
Law = Callable[["Point"], Any]


class Point(NamedTuple):
    """What the law of a branch may depend on."""

    t: Any
    between: Callable[[str, str], Any]         # voltage between two nodes
    v: Any                                     # voltage of the branch
    dv: Any                                    # its derivative
    i: Any = 0.0                               # current of the branch
    di: Any = 0.0                              # its derivative


@dataclass(frozen=True, eq=False)
class Branch:
    """A branch between two nodes, with its law.

    Attributes
    ----------
    name : str
        Name of the element, with a suffix if the element has several branches.
    plus, minus : str
        Nodes; the current flows from plus through the branch to minus.
    kind : str
        A letter: R, L, C, V (voltage source), I (current source), or X for others.
    gives : {"current", "zero"}
        What its law returns: the current, or a residual for voltage and current.
    law : callable
        The law, a function of a `Point`.
    """

    name: str
    plus: str
    minus: str
    kind: str
    gives: str
    law: Law


@dataclass(eq=False)
class Circuit:
    """A circuit, built element by element; the node ``0`` is ground.

    Examples
    --------
    A capacitor that is charged through a resistor:

    >>> from tether import solve_dae
    >>> from tether.models import Circuit
    >>> circuit = Circuit()
    >>> circuit.voltage("V1", "in", "0", 5.0)
    >>> circuit.resistor("R1", "in", "out", 1e3)
    >>> circuit.capacitor("C1", "out", "0", 1e-6)
    >>> equations = circuit.nodal()
    >>> equations.names
    ('v(in)', 'v(out)', 'i(V1)')
    >>> sol = solve_dae(equations.fun, (0, 1e-3), equations.y0, names=equations.names,
    ...                 start="quiet")
    >>> round(float(sol["v(out)"][-1]), 3)
    3.161
    >>> print(circuit.topology())
    Index 1: no loop of capacitors and voltage sources, no cut of coils and current sources.
    """

    branches: list[Branch] = field(default_factory=list)

    # --- two-terminal elements ------------------------------------------------------------------

    def resistor(self, name: str, plus: str, minus: str, resistance: float) -> None:
        """Add a resistor, in ohm."""
        _check_positive(name, "resistance", resistance)
        self._add(name, plus, minus, "R", "current", lambda p: p.v / resistance)

    def capacitor(self, name: str, plus: str, minus: str, capacity: float) -> None:
        """Add a capacitor, in farad."""
        _check_positive(name, "capacity", capacity)
        self._add(name, plus, minus, "C", "current", lambda p: capacity * p.dv)

    def inductor(self, name: str, plus: str, minus: str, inductance: float) -> None:
        """Add a coil, in henry."""
        _check_positive(name, "inductance", inductance)
        self._add(name, plus, minus, "L", "zero", lambda p: p.v - inductance * p.di)

    def voltage(self, name: str, plus: str, minus: str, value: Any) -> None:
        """Add a voltage source: a number, or a function of time such as `tether.models.Sin`."""
        wave = value if callable(value) else Dc(float(value))
        self._add(name, plus, minus, "V", "zero", lambda p: p.v - wave(p.t))

    def current(self, name: str, plus: str, minus: str, value: Any) -> None:
        """Add a current source; the current flows from plus through the source to minus."""
        wave = value if callable(value) else Dc(float(value))
        self._add(name, plus, minus, "I", "current", lambda p: wave(p.t))

    def diode(
        self, name: str, anode: str, cathode: str, saturation: float = 1e-14,
        ideality: float = 1.0, capacity: float = 0.0,
    ) -> None:
        """Add a diode, by Shockley's law; `capacity` is that of its junction, in farad.

        A diode that has to take over a current at once, as in a converter, needs a capacity:
        without it the voltage of the diode would jump, and equations that are exponential in the
        voltage are hard to solve from far away.
        """
        _check_positive(name, "saturation", saturation)
        if capacity:
            self.capacitor(f"{name}.c", anode, cathode, capacity)
        self._add(
            name, anode, cathode, "R", "current",
            lambda p: _junction(p.v, saturation, ideality),
        )

    # --- controlled elements --------------------------------------------------------------------

    def controlled_voltage(
        self, name: str, plus: str, minus: str, control: tuple[str, str], gain: float
    ) -> None:
        """Add a voltage source whose value is `gain` times the voltage between two nodes."""
        a, b = self._nodes(*control)
        self._add(name, plus, minus, "X", "zero", lambda p: p.v - gain * p.between(a, b))

    def controlled_current(
        self, name: str, plus: str, minus: str, control: tuple[str, str], conductance: float
    ) -> None:
        """Add a current source whose value is `conductance` times the voltage between two nodes."""
        a, b = self._nodes(*control)
        self._add(name, plus, minus, "X", "current", lambda p: conductance * p.between(a, b))

    def opamp(
        self, name: str, out: str, plus: str, minus: str, gain: float = np.inf
    ) -> None:
        """Add an operational amplifier; an ideal one keeps its two inputs at one voltage."""
        a, b = self._nodes(plus, minus)
        if np.isinf(gain):
            self._add(name, out, "0", "X", "zero", lambda p: p.between(a, b))
        else:
            self.controlled_voltage(name, out, "0", (plus, minus), gain)

    def switch(
        self, name: str, plus: str, minus: str, control: tuple[str, str], threshold: float = 0.0,
        on: float = 1.0, off: float = 1e9,
    ) -> None:
        """Add a switch with resistances `on` and `off`, closed above a voltage of its control."""
        _check_positive(name, "on", on)
        _check_positive(name, "off", off)
        a, b = self._nodes(*control)
        self._add(
            name, plus, minus, "R", "current",
            lambda p: p.v * np.where(p.between(a, b) > threshold, 1.0 / on, 1.0 / off),
        )

    def bipolar(
        self, name: str, collector: str, base: str, emitter: str, *, saturation: float = 1e-16,
        forward: float = 100.0, reverse: float = 1.0, polarity: int = 1,
    ) -> None:
        """Add a bipolar transistor by the model of Ebers and Moll; `polarity` 1 is npn, -1 pnp.

        `forward` and `reverse` are its current gains.
        """
        _check_positive(name, "saturation", saturation)
        c, b, e = self._nodes(collector, base, emitter)

        def transport(p: Point) -> Any:
            """Return the current from collector to emitter."""
            from_emitter = _junction(polarity * p.between(b, e), saturation)
            from_collector = _junction(polarity * p.between(b, c), saturation)
            return polarity * (from_emitter - from_collector)

        def diode(end: str, gain: float) -> Law:
            return lambda p: polarity * _junction(polarity * p.between(b, end), saturation) / gain

        self._add(f"{name}.ce", collector, emitter, "X", "current", transport)
        self._add(f"{name}.be", base, emitter, "R", "current", diode(e, forward))
        self._add(f"{name}.bc", base, collector, "R", "current", diode(c, reverse))

    def mosfet(
        self, name: str, drain: str, gate: str, source: str, *, threshold: float = 1.0,
        gain: float = 2e-5, modulation: float = 0.0, polarity: int = 1,
    ) -> None:
        """Add a MOS transistor by the model of Shichman and Hodges.

        `polarity` 1 has an n-channel, -1 a p-channel. `gain` is in A/V^2, `modulation` (of the
        channel length) in 1/V. No current flows into the gate. The law is written symmetrically in
        drain and source, so that it holds in all regions.
        """
        _check_positive(name, "gain", gain)
        d, g, s = self._nodes(drain, gate, source)

        def law(p: Point) -> Any:
            above_source = np.maximum(polarity * p.between(g, s) - threshold, 0.0)
            above_drain = np.maximum(polarity * p.between(g, d) - threshold, 0.0)
            current = 0.5 * gain * (above_source**2 - above_drain**2)
            if modulation:
                current = current * (1.0 + modulation * np.abs(p.between(d, s)))
            return polarity * current

        self._add(f"{name}.ds", drain, source, "X", "current", law)

    # --- equations ------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes except ground, in the order in which they were added."""
        ends = [node for branch in self.branches for node in (branch.plus, branch.minus)]
        return tuple(dict.fromkeys(node for node in ends if node != "0"))

    def nodal(self) -> Equations:
        """Return modified nodal analysis: node voltages, and currents that no law gives."""
        self._check()
        nodes, branches = self.nodes, self.branches
        place = {node: k for k, node in enumerate(nodes)}
        own = [branch for branch in branches if branch.gives == "zero"]
        current = {branch.name: len(nodes) + k for k, branch in enumerate(own)}

        def fun(t: float, y: Any, yp: Any) -> list[Any]:
            def between(a: str, b: str, of: Any = y) -> Any:
                return (of[place[a]] if a != "0" else 0.0) - (of[place[b]] if b != "0" else 0.0)

            balance: list[Any] = [0.0] * len(nodes)        # currents out of every node
            laws: list[Any] = []
            for branch in branches:
                v, dv = (between(branch.plus, branch.minus, of) for of in (y, yp))
                if branch.gives == "zero":
                    k = current[branch.name]
                    flow = y[k]
                    laws.append(branch.law(Point(t, between, v, dv, flow, yp[k])))
                else:
                    flow = branch.law(Point(t, between, v, dv))
                if branch.plus != "0":
                    balance[place[branch.plus]] += flow
                if branch.minus != "0":
                    balance[place[branch.minus]] -= flow
            return balance + laws

        names = [f"v({node})" for node in nodes] + [f"i({branch.name})" for branch in own]
        units = ["V"] * len(nodes) + ["A"] * len(own)
        return Equations(fun, tuple(names), tuple(units), np.zeros(len(names)))

    def tableau(self) -> Equations:
        """Return the sparse tableau: voltages and currents of all branches, node voltages.

        Its rows are those of LP1 (3.1): the laws of the branches, then Kirchhoff's voltage law for
        every branch, and his current law for every node.
        """
        self._check()
        nodes, branches = self.nodes, self.branches
        b, m = len(branches), len(nodes)
        place = {node: 2 * b + k for k, node in enumerate(nodes)}

        def fun(t: float, y: Any, yp: Any) -> list[Any]:
            def at(node: str) -> Any:
                return 0.0 if node == "0" else y[place[node]]

            def between(a: str, other: str) -> Any:
                return at(a) - at(other)

            laws, loops = [], []
            balance: list[Any] = [0.0] * m
            for k, branch in enumerate(branches):
                v, i = y[k], y[b + k]
                found = branch.law(Point(t, between, v, yp[k], i, yp[b + k]))
                laws.append(found if branch.gives == "zero" else found - i)
                loops.append(between(branch.plus, branch.minus) - v)
                if branch.plus != "0":
                    balance[place[branch.plus] - 2 * b] += i
                if branch.minus != "0":
                    balance[place[branch.minus] - 2 * b] -= i
            return laws + loops + balance

        names = [
            *[f"v({branch.name})" for branch in branches],
            *[f"i({branch.name})" for branch in branches],
            *[f"v({node})" for node in nodes],
        ]
        units = ["V"] * b + ["A"] * b + ["V"] * m
        return Equations(fun, tuple(names), tuple(units), np.zeros(2 * b + m))

    def topology(self, form: str = "nodal") -> Topology:
        """Find the index from the network alone, with the reason.

        Parameters
        ----------
        form : {"nodal", "tableau"}
            Which equations. A loop of capacitors alone matters only in the tableau, where their
            voltages are unknowns.
        """
        self._check()
        return analyze_network([(b.name, b.plus, b.minus, b.kind) for b in self.branches], form)

    # --- checks ---------------------------------------------------------------------------------

    def _nodes(self, *names: Any) -> tuple[str, ...]:
        return tuple("0" if str(name).lower() in GROUND else str(name) for name in names)

    def _add(self, name: str, plus: str, minus: str, kind: str, gives: str, law: Law) -> None:
        if any(branch.name == name for branch in self.branches):
            raise ValueError(f"there are two elements called {name}")
        a, b = self._nodes(plus, minus)
        self.branches.append(Branch(name, a, b, kind, gives, law))

    def _check(self) -> None:
        if not self.branches:
            raise ValueError("the circuit has no elements")
        names = [branch.name for branch in self.branches]
        nodes = set(self.nodes)
        twice = [name for name in names if name in nodes]
        if twice:
            raise ValueError(f"{twice[0]} is the name of an element and of a node")


def _junction(v: Any, saturation: float, ideality: float = 1.0) -> Any:
    """Return the current through a junction."""
    return saturation * (np.exp(v / (ideality * THERMAL_VOLTAGE)) - 1.0)


def _check_positive(name: str, what: str, value: float) -> None:
    if not (isinstance(value, (int, float, np.number)) and value > 0.0 and np.isfinite(value)):
        raise ValueError(f"{name}: {what} must be a positive number, got {value!r}")

