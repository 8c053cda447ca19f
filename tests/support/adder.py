"""A two-bit adder of MOS transistors, as in the Test Set for IVP Solvers: 350 unknowns, index 1.

Unknowns are the charges and voltages of 175 nodes: q' is the current into a node, and q follows
from the voltages. A XOR gate is a NOR gate and an AND-OR-invert gate, a carry two more of them.
Every transistor has resistors at its ends, a channel, and two junctions to the bulk; the equations
are written as in a textbook, with an `if` for every region of operation.
"""

from math import exp, sqrt

import numpy as np

SUPPLY, BULK = 5.0, -2.5
GATE_CAPACITY, JUNCTION_CAPACITY, BARRIER = 0.6e-4, 2.4e-5, 0.87
LEAKAGE, THERMAL = 1e-11, 25.85e-3
CONTACT, BULK_CONTACT, LINE, WIRE_CAPACITY = 4.0, 10.0, 0.4, 1e-4
# threshold, body effect, surface potential, gain, modulation of the channel
LOAD = (-2.43, 0.2, 1.28, 5.35e-4, 0.02)
DRIVER = (0.2, 0.035, 1.01, 1.748e-3, 0.02)


def on(model, vds, vgs, vbs):
    """Return the current through a channel whose drain is the higher end."""
    threshold, body, surface, gain, modulation = model
    drive = vgs - threshold - body * (sqrt(surface - vbs) - sqrt(surface))
    if drive <= 0.0:
        return 0.0
    if drive <= vds:
        return gain * drive**2 * (1.0 + modulation * vds)
    return gain * vds * (2.0 * drive - vds) * (1.0 + modulation * vds)


def channel(model, drain, gate, source, bulk):
    """Return the current from drain to source."""
    if drain > source:
        return on(model, drain - source, gate - source, bulk - source)
    elif drain == source:
        return 0.0
    else:
        return -on(model, source - drain, gate - drain, bulk - drain)


def junction(v):
    """Return the current through a junction from the bulk."""
    if v <= 0.0:
        return LEAKAGE * (exp(v / THERMAL) - 1.0)
    return LEAKAGE * v / THERMAL


def junction_charge(v):
    """Return the charge of a junction."""
    if v <= 0.0:
        return JUNCTION_CAPACITY * 2.0 * BARRIER * (1.0 - sqrt(1.0 - v / BARRIER))
    return JUNCTION_CAPACITY * v * (1.0 + v / (4.0 * BARRIER))


def pulse(t, late):
    """Return the voltage of an input, which is high in the second half of its period."""
    phase = (t - late) % 40.0
    if phase < 15.0:
        return 0.0
    if phase < 20.0:
        return phase - 15.0
    if phase < 35.0:
        return 5.0
    return 40.0 - phase


class Circuit:
    """Currents and charges of all nodes, as the transistors add them one by one."""

    def __init__(self, u):
        self.u, self.used = u, 0
        self.current, self.charge = [0.0] * len(u), [0.0] * len(u)

    def node(self):
        """Return the number of a new node."""
        self.used += 1
        return self.used - 1

    def wire(self):
        """Return the number of a new node that has a capacity of its own."""
        end = self.node()
        self.capacitor(end, 0.0, WIRE_CAPACITY)
        return end

    def volts(self, end):
        """Return the voltage of a node, or of a source, which is given by its voltage."""
        return self.u[end] if isinstance(end, int) else end

    def add(self, end, current, charge=0.0):
        """Let a current flow out of a node, on which there is a charge."""
        if isinstance(end, int):
            self.current[end] = self.current[end] - current
            self.charge[end] = self.charge[end] + charge

    def resistor(self, a, b, ohms):
        """Connect two nodes."""
        current = (self.volts(a) - self.volts(b)) / ohms
        self.add(a, current)
        self.add(b, -current)

    def capacitor(self, a, b, capacity):
        """Put a capacitor between two nodes."""
        charge = capacity * (self.volts(a) - self.volts(b))
        self.add(a, 0.0, charge)
        self.add(b, 0.0, -charge)

    def transistor(self, model, drain, gate, source):
        """Put a transistor between nodes; it has four of its own."""
        d, g, s, b = self.node(), self.node(), self.node(), self.wire()
        for outside, inside in ((drain, d), (gate, g), (source, s)):
            self.resistor(outside, inside, CONTACT)
        self.resistor(BULK, b, BULK_CONTACT)
        current = channel(model, self.u[d], self.u[g], self.u[s], self.u[b])
        self.add(d, current)
        self.add(s, -current)
        for end in (d, s):
            self.capacitor(g, end, GATE_CAPACITY)
            v = self.u[b] - self.u[end]
            self.add(b, junction(v), junction_charge(v))
            self.add(end, -junction(v), -junction_charge(v))

    def nor(self, *inputs):
        """Return the output of an inverter or a NOR gate."""
        out = self.wire()
        self.transistor(LOAD, SUPPLY, out, out)
        for gate in inputs:
            self.transistor(DRIVER, out, gate, 0.0)
        return out

    def and_or_invert(self, a, b, c):
        """Return the output of a gate that is low if a is high, or b and c are."""
        out = self.nor(a)
        middle = self.wire()
        self.transistor(DRIVER, out, b, middle)
        self.transistor(DRIVER, middle, c, 0.0)
        return out

    def xor(self, a, b):
        """Return the output of an exclusive or."""
        return self.and_or_invert(self.nor(a, b), a, b)

    def line(self, end):
        """Put an output at the end of a line."""
        self.resistor(end, self.wire(), LINE)


def adder(t, y, yp):
    """Residual: charges, then voltages."""
    n = len(y) // 2
    circuit = Circuit(y[n:])
    a0, b0, a1, b1, carry = (pulse(t, late) for late in (0.0, 5.0, 10.0, 20.0, 25.0))
    half = circuit.xor(a0, b0)
    circuit.line(circuit.nor(circuit.xor(half, 5.0 - carry)))
    both = circuit.nor(5.0 - a0, 5.0 - b0)
    no_carry = circuit.and_or_invert(both, half, carry)
    circuit.line(circuit.xor(circuit.xor(a1, b1), circuit.nor(no_carry)))
    result = [yp[i] - circuit.current[i] for i in range(n)]
    result += [y[i] - circuit.charge[i] for i in range(n)]
    return result


START = np.zeros(350)
OUTPUTS = (71, 174)        # nodes of the two bits
