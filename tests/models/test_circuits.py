"""Circuits against exact solutions, textbook formulas and SciPy."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from tether import solve_dae
from tether.models import Circuit, Pulse, Pwl, Sin, read_netlist
from tether.models.circuits import THERMAL_VOLTAGE

FORMS = ["nodal", "tableau"]


def run(netlist, t_end, form="nodal", start=None, **options):
    equations = getattr(read_netlist(netlist), form)()
    options = {"rtol": 1e-8, "atol": 1e-11} | options
    y0 = equations.start(start or {})
    sol = solve_dae(equations.fun, (0.0, t_end), y0, names=equations.names,
                    units=equations.units, start="quiet", **options)
    assert sol.success, sol.message
    assert "traced" in sol.how
    return sol


@pytest.mark.parametrize("form", FORMS)
def test_low_pass(form):
    t = np.linspace(0.0, 3e-3, 31)
    sol = run("V1 in 0 SIN(0 1 1k)\nR1 in out 1k\nC1 out 0 1u", 3e-3, form, t_eval=t)
    w, tau = 2e3 * np.pi, 1e-3
    size, lag = 1.0 / np.hypot(1.0, w * tau), np.arctan(w * tau)
    exact = size * (np.sin(w * t - lag) + np.sin(lag) * np.exp(-t / tau))
    np.testing.assert_allclose(sol["v(out)"], exact, atol=1e-7)
    # the source delivers what the resistor takes
    np.testing.assert_allclose(sol["i(V1)"], -(np.sin(w * t) - exact) / 1e3, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_resonant_circuit(form):
    t = np.linspace(0.0, 2e-3, 41)
    sol = run("L1 a 0 10m\nC1 a 0 1u\nR1 a 0 1k", 2e-3, form, t_eval=t,
              start={"v(a)": 1.0} if form == "nodal" else {
                  "v(a)": 1.0, "v(C1)": 1.0, "v(L1)": 1.0, "v(R1)": 1.0})
    damping, w0 = 1.0 / (2.0 * 1e3 * 1e-6), 1.0 / np.sqrt(10e-3 * 1e-6)
    w = np.sqrt(w0**2 - damping**2)
    exact = np.exp(-damping * t) * (np.cos(w * t) - damping / w * np.sin(w * t))
    np.testing.assert_allclose(sol["v(a)"], exact, atol=1e-6)


WAVES = {
    "PULSE(0 5 1m 0.1m 0.2m 1m 3m)": Pulse(0.0, 5.0, 1e-3, 1e-4, 2e-4, 1e-3, 3e-3),
    "PULSE(1 -4 0.5m 0 0 1m 2m)": Pulse(1.0, -4.0, 5e-4, 0.0, 0.0, 1e-3, 2e-3),
    "PULSE(0 5 1m 0.1m)": Pulse(0.0, 5.0, 1e-3, 1e-4),
    "PWL(0 0 1m 5 2m 5 2.5m -1)": Pwl([0.0, 1e-3, 2e-3, 2.5e-3], [0.0, 5.0, 5.0, -1.0]),
    "SIN(1 2 500 1m 300)": Sin(1.0, 2.0, 500.0, 1e-3, 300.0),
}
KINKS = np.array([0.5, 1.0, 1.1, 1.5, 2.0, 2.1, 2.3, 2.5, 3.5, 4.0, 4.1, 4.5, 5.0]) * 1e-3


@pytest.mark.parametrize("wave", WAVES)
def test_sources_over_time(wave):
    """A low pass driven by each, against SciPy from kink to kink."""
    source, y, tau, begin = WAVES[wave], 0.0, 1e-4, 0.0
    for end in KINKS:
        inside = np.linspace(begin, end, 5)[1:-1]

        def smooth(t, y, inside=inside, begin=begin, end=end):
            # at the ends of a stretch the source has jumped already, or not yet
            width = end - begin
            return (source(np.clip(t, begin + 1e-9 * width, end - 1e-9 * width)) - y) / tau

        y = solve_ivp(smooth, (begin, end), [y], rtol=1e-10, atol=1e-12).y[0, -1]
        begin = end
    sol = run(f"V1 in 0 {wave}\nR1 in out 1k\nC1 out 0 0.1u", KINKS[-1])
    assert sol["v(out)"][-1] == pytest.approx(y, abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_rectifier(form):
    sol = run("V1 in 0 SIN(0 10 50)\nD1 in out IS=1e-14\nR1 out 0 1k\nC1 out 0 10u", 0.05, form)

    def ode(t, v):
        drop = 10.0 * np.sin(100.0 * np.pi * t) - v[0]
        return [(1e-14 * np.expm1(min(drop / THERMAL_VOLTAGE, 500.0)) - v[0] / 1e3) / 10e-6]

    expected = solve_ivp(ode, (0.0, 0.05), [0.0], method="LSODA", rtol=1e-9, atol=1e-11)
    assert sol["v(out)"][-1] == pytest.approx(expected.y[0, -1], rel=1e-6)


@pytest.mark.parametrize(("kind", "sign"), [("NPN", 1.0), ("PNP", -1.0)])
def test_operating_point_of_a_bipolar_transistor(kind, sign):
    """Four resistors set the point; by hand: loops of base and collector solved by bisection."""
    sol = run(f"VCC vcc 0 {12 * sign}\nR1 vcc b 47k\nR2 b 0 10k\nRC vcc c 4.7k\nRE e 0 1k\n"
              f"Q1 c b e {kind} IS=1e-15 BF=150 BR=2\nCL c 0 1n", 1e-3)
    v_open, r_open = 12.0 * 10 / 57, 47e3 * 10e3 / 57e3

    def base_loop(v_be):                       # far from saturation the collector does not matter
        i_c = 1e-15 * np.exp(v_be / THERMAL_VOLTAGE)
        i_b = i_c / 150
        return v_open - i_b * r_open - v_be - (i_b + i_c) * 1e3

    v_be = brentq(base_loop, 0.3, 0.9)
    i_c = 1e-15 * np.exp(v_be / THERMAL_VOLTAGE)
    last = {name: sign * float(sol[f"v({name})"][-1]) for name in "bce"}
    assert last["b"] - last["e"] == pytest.approx(v_be, abs=1e-6)
    assert last["c"] == pytest.approx(12.0 - 4.7e3 * i_c, abs=1e-5)


@pytest.mark.parametrize(("vin", "region"), [(0.5, "off"), (2.0, "on"), (4.5, "on")])
def test_mos_transistor_with_a_load(vin, region):
    sol = run(f"VDD vdd 0 5\nV1 g 0 {vin}\nR1 vdd d 10k\nM1 d g 0 NMOS VTO=1 KP=1e-4 LAMBDA=0.02\n"
              "C1 d 0 1p", 1e-6)

    def balance(v):
        over = vin - 1.0
        if over <= 0.0:
            return (5.0 - v) / 10e3
        current = over * v - 0.5 * v * v if v < over else 0.5 * over**2
        return (5.0 - v) / 10e3 - 1e-4 * current * (1.0 + 0.02 * v)

    expected = 5.0 if region == "off" else brentq(balance, 0.0, 5.0, xtol=1e-12)
    assert sol["v(d)"][-1] == pytest.approx(expected, abs=1e-6)


def test_mos_transistors_are_symmetric():
    """Drain and source change places with the sign of the voltage between them."""
    ends = []
    for pins in ("d g 0", "0 g d"):
        sol = run(f"V1 a 0 -2\nR1 a d 1k\nV2 g 0 1\nM1 {pins} NMOS VTO=1 KP=1e-3\nC1 d 0 1p", 1e-6)
        ends.append(float(sol["v(d)"][-1]))
    assert ends[0] == ends[1]
    assert -2.0 < ends[0] < 0.0


def test_cmos_inverter_switches():
    sol = run("VDD vdd 0 5\nV1 in 0 PULSE(0 5 1n 0.1n 0.1n 10n 20n)\n"
              "M1 out in 0 NMOS VTO=1 KP=1e-4\nM2 out in vdd PMOS VTO=1 KP=1e-4\nC1 out 0 0.1p",
              30e-9, t_eval=[0.9e-9, 10e-9, 20e-9], rtol=1e-6, start={"v(out)": 5.0})
    np.testing.assert_allclose(sol["v(out)"], [5.0, 0.0, 5.0], atol=1e-2)


def test_operational_amplifiers():
    sol = run("V1 in 0 SIN(0 1 1k)\nR1 in m 1k\nR2 m out 10k\nO1 out 0 m", 1e-3, t_eval=[0.3e-3])
    assert sol["v(out)"][0] == pytest.approx(-10.0 * np.sin(0.6 * np.pi), abs=1e-7)
    integrator = run("V1 in 0 0.5\nR1 in m 10k\nC1 m out 1u\nO1 out 0 m", 0.02)
    assert integrator["v(out)"][-1] == pytest.approx(-0.5 * 0.02 / 10e-3, abs=1e-6)
    finite = run("V1 in 0 1\nR1 in m 1k\nR2 m out 10k\nC1 out 0 1n\nO1 out 0 m GAIN=1000", 1e-3)
    assert finite["v(out)"][-1] == pytest.approx(-10.0 / (1.0 + 11.0 / 1000.0), rel=1e-7)


def test_controlled_sources():
    sol = run("V1 a 0 2\nE1 b 0 a 0 3\nR1 b 0 1k\nG1 0 c b a 1m\nR2 c 0 500\nC1 c 0 1n", 1e-4)
    assert sol["v(b)"][-1] == pytest.approx(6.0)
    assert sol["v(c)"][-1] == pytest.approx(4e-3 * 500)


def test_switch_charges_and_discharges():
    sol = run("V1 a 0 10\nV2 g 0 PULSE(0 1 1m 1u 1u 1m)\nS1 a b g 0 VT=0.5 RON=10 ROFF=1meg\n"
              "R1 b 0 100\nC1 b 0 1u", 3e-3, t_eval=[1.05e-3, 2e-3, 2.2e-3])
    on, off = 1e-6 / (1 / 10 + 1 / 100), 1e-6 / (1 / 100 + 1e-6)
    closed, high, rest = 1e-3 + 0.5e-6, 10.0 / 1.1, 10.0 * 100 / (1e6 + 100)
    opened = 1e-3 + 1e-6 + 1e-3 + 0.5e-6
    np.testing.assert_allclose(sol["v(b)"], [
        high + (rest - high) * np.exp(-(1.05e-3 - closed) / on), high,
        rest + (high - rest) * np.exp(-(2.2e-3 - opened) / off),
    ], rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_index_2(form):
    """The current of a capacitor at a source and the voltage of a coil at one need derivatives."""
    t = np.linspace(0.0, 0.04, 17)
    loop = run("V1 a 0 SIN(0 1 50)\nC1 a 0 1u\nR1 a 0 1k", 0.04, form, t_eval=t)
    w = 100.0 * np.pi
    np.testing.assert_allclose(
        loop["i(V1)"], -(1e-6 * w * np.cos(w * t) + np.sin(w * t) / 1e3), atol=1e-9
    )
    cut = run("I1 0 a SIN(0 1 50)\nL1 a b 1m\nR1 b 0 10", 0.04, form, t_eval=t)
    np.testing.assert_allclose(
        cut["v(a)"], 10.0 * np.sin(w * t) + 1e-3 * w * np.cos(w * t), atol=1e-6
    )


def test_converter():
    """A step-down converter delivers the share of the time for which its switch is closed."""
    sol = run("V1 in 0 12\nV2 g 0 PULSE(0 1 0 0.1u 0.1u 4.9u 10u)\n"
              "S1 in sw g 0 VT=0.5 RON=0.01 ROFF=1meg\nD1 0 sw IS=1e-12 CJ=1n\n"
              "L1 sw out 20u\nC1 out 0 2u\nR1 out 0 5", 3e-4, rtol=1e-4, atol=1e-6)
    last = sol.t > 2e-4
    mean = np.trapezoid(sol["v(out)"][last], sol.t[last]) / np.ptp(sol.t[last])
    assert mean == pytest.approx(0.5 * 12.0 - 0.5 * 0.75, abs=0.15)


AMPLIFIER = """
VCC vcc 0 12
VIN in 0 SIN(0 0.02 1k)
C1 in b 10u
R1 vcc b 47k
R2 b 0 10k
RC vcc c 4.7k
RE e 0 1k
CE e 0 100u
Q1 c b e NPN IS=1e-15 BF=150 BR=2
"""


def transistor(vb, vc, ve):
    forward, backward = (1e-15 * np.expm1((vb - v) / THERMAL_VOLTAGE) for v in (ve, vc))
    return forward - backward, forward / 150, backward / 2


def collector(vb, ve):
    def balance(vc):
        through, _, back = transistor(vb, vc, ve)
        return (12.0 - vc) / 4.7e3 - through + back

    return brentq(balance, -1.0, 13.0, xtol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_amplifier(form):
    """By SciPy with the charges of the two capacitors as the only unknowns."""
    def slopes(t, y):
        vb, ve = 0.02 * np.sin(2e3 * np.pi * t) - y[0], y[1]
        through, base, back = transistor(vb, collector(vb, ve), ve)
        return [(base + back - (12.0 - vb) / 47e3 + vb / 10e3) / 10e-6,
                (through + base - ve / 1e3) / 100e-6]

    charges = solve_ivp(slopes, (0.0, 2e-3), [-2.0, 1.3], "DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    start = {"v(b)": 2.0, "v(e)": 1.3, "v(vcc)": 12.0}
    start |= {"v(C1)": -2.0, "v(CE)": 1.3} if form == "tableau" else {}
    sol = run(AMPLIFIER, 2e-3, form, start=start)
    vb, ve = -charges[0], charges[1]
    found = [sol[f"v({node})"][-1] for node in "bce"]
    np.testing.assert_allclose(found, [vb, collector(vb, ve), ve], rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 3, 6])
def test_operating_point_of_diodes(count, form):
    """Found from zero volts, where no diode carries any current."""
    diodes = "\n".join(f"D{k} n{k} {f'n{k + 1}' if k + 1 < count else '0'}" for k in range(count))
    sol = run(f"V1 a 0 12\nR1 a n0 1k\n{diodes}", 1e-3, form)
    v = float(sol["v(n0)"][-1])
    assert v == pytest.approx(count * THERMAL_VOLTAGE * np.log1p((12.0 - v) / 1e3 / 1e-14))


NETLIST = """V1 in 0 SIN(0 5 1k)
R1 in a 100
D1 a out
L1 out b 1m
C1 b 0 1u
R2 b 0 1k
Q1 out a 0 NPN
"""


def test_both_forms_agree():
    one, other = (run(NETLIST, 2e-3, form) for form in FORMS)
    for name in ("v(in)", "v(a)", "v(out)", "v(b)", "i(L1)", "i(V1)"):
        assert one[name][-1] == pytest.approx(other[name][-1], rel=1e-5, abs=1e-8), name


def test_what_is_refused():
    circuit = Circuit()
    with pytest.raises(ValueError, match="no elements"):
        circuit.nodal()
    with pytest.raises(ValueError, match="R1: resistance must be a positive number, got -1"):
        circuit.resistor("R1", "a", "0", -1.0)
    circuit.resistor("R1", "a", "GND", 1.0)
    with pytest.raises(ValueError, match="two elements called R1"):
        circuit.resistor("R1", "a", "b", 1.0)
    with pytest.raises(ValueError, match=r"'v\(b\)' is not an unknown"):
        circuit.nodal().start({"v(b)": 1.0})
    circuit.resistor("a", "a", "b", 1.0)
    with pytest.raises(ValueError, match="a is the name of an element and of a node"):
        circuit.tableau()
