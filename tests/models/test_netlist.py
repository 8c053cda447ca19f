"""Netlists as text."""

import pytest

from tether.models import read_netlist
from tether.models.netlist import read_number


@pytest.mark.parametrize(("word", "value"), [
    ("1", 1.0), ("-2.5", -2.5), ("4.7k", 4700.0), ("10uF", 1e-5), ("1MEG", 1e6), ("1m", 1e-3),
    ("3e-6", 3e-6), ("2.2n", 2.2e-9), ("5V", 5.0), (".5p", 0.5e-12), ("1e3k", 1e6),
])
def test_numbers(word, value):
    assert read_number(word) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("word", ["", "k", "1..2", "one", "1 2", "--1"])
def test_what_is_no_number(word):
    with pytest.raises(ValueError, match="is not a number"):
        read_number(word)


def test_comments_and_lines_that_go_on():
    circuit = read_netlist("""
    * a divider
    V1 in 0
    + DC 5   ; volts
    r1 in OUT 1k
    R2 OUT gnd 1k
    .end
    """)
    assert [branch.name for branch in circuit.branches] == ["V1", "r1", "R2"]
    assert circuit.nodes == ("in", "OUT")


@pytest.mark.parametrize(("line", "message"), [
    ("R1 a 0", "cannot be read"), ("R1 a 0 1k 2k", "unexpected '2k'"),
    ("X1 a b", "begins with 'X'"), ("V1 a 0 SIN(0 1)", "SIN takes 3 to 5 numbers"),
    ("V1 a 0 PWL(0 1 2)", "pairs"), ("V1 a 0 PWL(0 1 0 2)", "must increase"),
    ("D1 a 0 VT=1", "'VT' is not one of IS, N, CJ"), ("D1 a 0 IS", "NAME=value"),
    ("Q1 a b c NMOS", "cannot be read"), ("C1 a 0 0", "positive"), ("R1 a 0 1x2", "not a number"),
])
def test_lines_that_cannot_be_read(line, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_netlist(line)
    assert line in str(caught.value)
