"""Runs of functions that handle exceptions."""

import math

import numpy as np
import pytest
from support.handlers import function_of

from tether import solve_dae
from tether.trace import trace

RUNS = {
    "diode": ("""
        try:
            i = 1e-14 * (math.exp(x / 0.02585) - 1.0)
        except OverflowError:
            i = 1e300
        w = 1e3 * (20.0 * math.sin(300.0 * t) - x) - 1e6 * i
        """, 0.0, 0.02),
    "limit": ("""
        try:
            k = math.exp(u)
        except OverflowError:
            k = 0.0
        w = 1000.0 if k else 500.0
        """, 0.0, 1.0),
    "tank": ("""
        try:
            q = math.sqrt(u)
        except ValueError:
            q = 0.0
        w = 0.3 * math.sin(t) - q
        """, 1.0, 10.0),
    "log": ("""
        try:
            q = math.log(x)
        except ValueError:
            q = -20.0
        w = 0.01 * q - 1.0
        """, 1.0, 3.0),
    "zero at the start only": ("""
        try:
            w = math.sin(t) / t
        except ZeroDivisionError:
            w = 1.0
        """, 0.0, 6.0),
    "time": ("""
        try:
            w = math.sqrt(math.cos(t) + 0.5) - 0.5
        except ValueError:
            w = -0.2
        """, 1.0, 9.0),
    "raise": ("""
        try:
            if x > 2.0:
                raise ValueError("too much")
            w = x
        except ValueError:
            w = 0.5
        """, 1.0, 3.0),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(name):
    block, start, end = RUNS[name]
    fun = function_of(block)
    traced = solve_dae(fun, (0.0, end), [start], rtol=1e-7, atol=1e-9)
    called = solve_dae(fun, (0.0, end), [start], rtol=1e-7, atol=1e-9, trace="never",
                       max_step=end / 1000)
    assert traced.success
    assert called.success
    assert traced.how.startswith("traced")
    assert traced.y[0, -1] == pytest.approx(called.y[0, -1], rel=2e-5)


def test_an_exception_without_a_handler_is_as_it_was():
    plain = function_of("w = math.log(1.0 - t)")
    other = function_of("try:\n    w = math.log(1.0 - t)\nexcept OverflowError:\n    w = 1.0")
    for fun in (plain, other):
        with pytest.raises(ValueError, match="math domain error"):
            solve_dae(fun, (1.5, 2.0), [1.0])
    expected, sol = (solve_dae(fun, (0.0, 2.0), [1.0]) for fun in (plain, other))
    assert not sol.success
    assert (sol.status, sol.t[-1]) == (expected.status, expected.t[-1])


@pytest.mark.parametrize("start", [0.0, 1.5])
def test_an_exception_raised_by_a_handler_passes(start):
    fun = function_of("""
        try:
            w = math.log(1.0 - t)
        except ValueError:
            raise KeyError("beyond the end")
        """)
    assert trace(fun, 1).raises
    with pytest.raises(KeyError, match="beyond the end"):
        solve_dae(fun, (start, 2.0), [1.0])


def test_what_a_handler_reads_may_change_between_runs():
    """Constants, keys and attributes that decide whether something is raised."""
    fun = function_of("""
        try:
            w = p["k"] * math.sqrt(p["low"] + 0.0 * u) + math.log(limit)
        except KeyError:
            w = -1.0
        except ValueError:
            w = -2.0
        """, setup="p = {}\nlimit = 1.0")
    space = fun.__globals__
    for changes, expected in (
        ({}, -1.0), ({"k": 2.0}, -1.0), ({"low": 4.0}, 4.0), ({"low": -1.0}, -2.0),
        ({"low": 9.0}, 6.0), ({"k": 3.0}, 9.0), ({"low": 1.0, "k": 0.0}, 0.0),
        ({"low": -4.0}, -2.0),
    ):
        space["p"].update(changes)
        sol = solve_dae(fun, (0.0, 1.0), [0.0])
        assert sol.y[0, -1] == pytest.approx(expected, abs=1e-12), changes
    space["limit"] = -1.0
    space["p"]["low"] = 4.0
    assert solve_dae(fun, (0.0, 1.0), [0.0]).y[0, -1] == pytest.approx(-2.0)
    space["limit"] = math.e
    assert solve_dae(fun, (0.0, 1.0), [0.0]).y[0, -1] == pytest.approx(1.0)


def test_arguments_that_are_zero():
    fun = function_of("""
        try:
            w = 1.0 / k
        except ZeroDivisionError:
            w = 3.0
        """.replace("k", "k[0]"), setup="k = [2.0]")

    def with_args(t, y, yp, k):
        try:
            w = 1.0 / k
        except ZeroDivisionError:
            w = 3.0
        return [yp[0] - w]

    for value, expected in ((2.0, 0.5), (0.0, 3.0), (4.0, 0.25), (0.0, 3.0), (-1.0, -1.0)):
        fun.__globals__["k"][0] = value
        assert solve_dae(fun, (0.0, 1.0), [0.0]).y[0, -1] == pytest.approx(expected)
        sol = solve_dae(with_args, (0.0, 1.0), [0.0], args=(value,))
        assert sol.y[0, -1] == pytest.approx(expected)
        assert sol.how.startswith("traced")
    with np.errstate(divide="ignore"):
        sol = solve_dae(with_args, (0.0, 1.0), [0.0], args=(np.float64(4.0),))
    assert sol.y[0, -1] == pytest.approx(0.25)
