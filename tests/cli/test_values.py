"""Numbers, intervals and assignments as they are typed."""

import argparse

import pytest

from tether.cli.values import assignments, attach_negative, count, form, numbers, span, tolerance


@pytest.mark.parametrize(("text", "value"), [
    ("1", [1.0]), ("1,2", [1.0, 2.0]), ("-1e-3, .5", [-1e-3, 0.5]),
])
def test_numbers(text, value):
    assert numbers(text) == value


@pytest.mark.parametrize(("read", "text"), [
    (numbers, ""), (numbers, "1,,2"), (numbers, "1;2"), (span, ""), (span, "a:b"), (span, ":"),
    (span, "nan"), (count, "0"), (count, "1.5"), (count, "-1"), (count, "inf"), (count, "x"),
    (assignments, "2"), (assignments, "k=other"), (assignments, "k=f(1)"), (assignments, "**k"),
    (assignments, "k=1,k=2"), (assignments, "k=1)+dict(a=2"),
])
def test_what_cannot_be_read_is_refused(read, text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected"):
        read(text)


def test_values():
    assert span("-1:2e3") == (-1.0, 2000.0)
    assert span("5") == (None, 5.0)
    assert count("1e5") == 100_000
    assert tolerance("1e-3") == 1e-3
    assert tolerance("1e-3,1") == [1e-3, 1.0]
    assert (form("2"), form("auto")) == (2, "auto")
    assert assignments("k=-2, m=[1, 2], s='a,b'") == {"k": -2, "m": [1, 2], "s": "a,b"}


@pytest.mark.parametrize(("given", "joined"), [
    (["--y0", "-1,0"], ["--y0=-1,0"]), (["--t", "-1:0"], ["--t=-1:0"]),
    (["--y0", "-.5"], ["--y0=-.5"]), (["--y0=1", "-1"], ["--y0=1", "-1"]),
    (["solve", "-q"], ["solve", "-q"]), (["--csv", "-"], ["--csv", "-"]),
])
def test_negative_values_belong_to_their_option(given, joined):
    assert attach_negative(given) == joined
