"""What the network says about the index, against the analysis of the equations."""

import numpy as np
import pytest

from tether import analyze
from tether.models import Circuit, Sin, read_netlist

FORMS = ["nodal", "tableau"]
KNOWN = {
    "low pass": ("V1 a 0 1\nR1 a b 1k\nC1 b 0 1u", 1, 1),
    "source and capacitor": ("V1 a 0 1\nC1 a 0 1u\nR1 a 0 1k", 2, 2),
    "loop of source and two capacitors": ("V1 a 0 1\nC1 a b 1u\nC2 b 0 1u\nR1 b 0 1k", 2, 2),
    "loop of capacitors": ("I1 0 a 1m\nC1 a 0 1u\nC2 a b 1u\nC3 b 0 1u\nR1 a 0 1k", 0, 2),
    "two capacitors side by side": ("R1 a 0 1k\nC1 a 0 1u\nC2 a 0 2u", 0, 2),
    "source and coil": ("I1 0 a 1m\nL1 a 0 1m", 2, 2),
    "coils in a row": ("V1 a 0 1\nL1 a b 1m\nL2 b 0 1m", 2, 2),
    "star of coils": ("R1 a 0 1\nR2 b 0 1\nR3 c 0 1\nL1 a m 1m\nL2 b m 1m\nL3 c m 1m\nV1 a 0 1",
                      2, 2),
    "coils with a resistor between": ("V1 a 0 1\nL1 a b 1m\nL2 b 0 1m\nR1 b 0 1", 1, 1),
    "both": ("V1 a 0 1\nC1 a 0 1u\nI1 0 b 1m\nL1 b c 1m\nR1 c 0 1", 2, 2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", KNOWN)
def test_known_circuits(case, form):
    netlist, nodal, tableau = KNOWN[case]
    circuit = read_netlist(netlist)
    expected = nodal if form == "nodal" else tableau
    assert circuit.topology(form).index == expected
    equations = getattr(circuit, form)()
    assert analyze(equations.fun, 0.0, equations.y0).index == expected


def random_circuit(seed):
    random = np.random.default_rng(seed)
    circuit, nodes = Circuit(), [str(k) for k in range(int(random.integers(2, 5)))]
    for k in range(int(random.integers(3, 8))):
        a, b = random.choice(nodes, 2, replace=False)
        value = float(random.uniform(0.5, 2.0))
        kind = random.choice(["resistor", "capacitor", "inductor", "voltage", "current"],
                             p=[0.35, 0.25, 0.2, 0.1, 0.1])
        source = Sin(value, 0.5, float(random.uniform(0.5, 2.0)))
        getattr(circuit, kind)(f"E{k}", a, b, source if kind in ("voltage", "current") else value)
    return circuit


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(30))
def test_random_circuits(seed, form):
    circuit = random_circuit(seed)
    if "0" not in {node for branch in circuit.branches for node in (branch.plus, branch.minus)}:
        pytest.skip("without ground")
    found = circuit.topology(form)
    equations = getattr(circuit, form)()
    report = analyze(equations.fun, 0.0, equations.y0)
    if found.impossible:
        assert report.singular
    else:
        assert report.index == found.index


def test_words():
    words = str(read_netlist(KNOWN["both"][0]).topology())
    assert words.startswith("Index 2: V1 and C1 form a loop of capacitors and voltage sources.")
    assert "I1 and L1 are the only connections of two parts of the circuit" in words
    loop = read_netlist(KNOWN["two capacitors side by side"][0]).topology("tableau")
    assert loop.loops == (("C1", "C2"),)
    assert "Controlled elements" in str(read_netlist("V1 a 0 1\nR1 a 0 1\nE1 b 0 a 0 2\nR2 b 0 1")
                                        .topology())


@pytest.mark.parametrize(("netlist", "words"), [
    ("V1 a 0 1\nV2 a 0 2\nR1 a 0 1", "V1 and V2 form a loop of voltage sources"),
    ("V1 a 0 1\nR1 a 0 1\nR2 b c 1", "Nothing connects b and c to ground"),
    ("V1 a 0 1\nR1 a 0 1\nI1 0 b 1\nI2 b a 1", "I1 and I2 are the only connections"),
])
def test_circuits_without_a_solution(netlist, words):
    circuit = read_netlist(netlist)
    assert words in str(circuit.topology())
    assert circuit.topology().index is None
    equations = circuit.nodal()
    assert analyze(equations.fun, 0.0, equations.y0).singular


def test_form_is_checked():
    with pytest.raises(ValueError, match="form must be"):
        read_netlist("R1 a 0 1").topology("mesh")
