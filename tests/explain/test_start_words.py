"""What became of a start: reasons as data, and the words that are made of them."""

import re
from pathlib import Path

import numpy as np
import pytest

import tether
from tether import Bdf, Cause, solve_dae
from tether.base.reason import Kind, Reason, Row
from tether.explain.start_words import TEXTS, start_words
from tether.problem.names import Names

SOURCE = Path(tether.__file__).parent


def full(kind):
    """Make a reason with everything that a text may ask for."""
    values = (1.5, 0.5) if kind in (Kind.Y0_INCONSISTENT, Kind.YP0_INCONSISTENT) else (1, 2, 3, 4)
    return Reason(kind, (Row(0), Row(1)), (0, 1), values, index=4)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_words(kind):
    plain = start_words(full(kind))
    named = start_words(full(kind), Names(("{x}", "}"), ("{", "balance")))
    assert bool(plain) == (kind is not Kind.NOTHING)
    assert ("[0]" in plain) == ("{x}" in named)
    assert ("equation 0" in plain or "equations 0" in plain) == ("0 '{'" in named)
    assert "[0]" not in named.replace("y0[0] ({x})", "").replace("yp0[0] ({x})", "")


def test_there_is_no_text_without_a_kind():
    assert set(TEXTS) == set(Kind)


@pytest.mark.parametrize(("row", "text"), [
    (Row(2), "equation 2 'length' cannot"),
    (Row(2, 1), "equation 2 'length', differentiated once, cannot"),
    (Row(2, 2), "equation 2 'length', differentiated twice, cannot"),
    (Row(2, 3), "equation 2 'length', differentiated 3 times, cannot"),
])
def test_rows_in_words(row, text):
    names = Names(("x",), ("", "", "length"))
    assert start_words(Reason(Kind.CANNOT_HOLD, (row,), values=(0.5,)), names).startswith(text)


def test_reasons_are_joined():
    first = Reason(Kind.MOVED_ONTO_CONSTRAINTS, values=(2,))
    both = first.then(Reason(Kind.FOUND_SLOPES_ONLY, index=2))
    assert start_words(both) == (
        "moved 2 values onto the constraints; found y' for the given y (local index 2)"
    )
    assert not both.names_something
    assert first.then(Reason(Kind.LEFT_OVER, (Row(1),), values=(1.0,))).equations == (1,)
    assert Reason(Kind.NOTHING).then(both) is both
    assert Reason(Kind.MOVED, columns=(1,)).then(Reason(Kind.FOUND_SLOPES)).names_something


def valve(t, y, yp):
    pressure, flow = y
    return [yp[0] + flow, pressure - 2.0 * flow]


def test_names_stand_in_the_message_of_a_run_and_of_a_step_by_step_one():
    options = {"start": "check"}
    sol = solve_dae(valve, (0, 1), [1.0, 0.7], start="check", equation_names=["tank", "valve"])
    bdf = Bdf(valve, 0.0, [1.0, 0.7], None, options, t_bound=1.0)
    for start in (sol.start, bdf.start):
        assert start.message == (
            "y0 is inconsistent: y0[1] (flow) would have to be 0.5 instead of 0.7"
        )
        assert start.reason == Reason(Kind.Y0_INCONSISTENT, columns=(1,), values=(0.5, 0.7))


def test_a_name_with_the_word_hidden_is_no_hidden_constraint():
    """The diagnosis looks at the kind of the reason, not at its words."""
    def fun(t, y, yp):
        return [yp[0] + y[1], y[1] ** 2 + 1.0]

    sol = solve_dae(fun, (0, 1), [1.0, 1.0], equation_names=["tank", "hidden equation 0"])
    assert not sol.success
    assert sol.diagnosis.cause == Cause.START
    assert sol.diagnosis.where.rows == (1,)
    assert sol.start.reason.equations == (1,)


def test_constraints_that_y0_is_not_on_are_refused_by_name():
    def off(t, y):
        return y[0] - 2.0

    for run in (
        lambda: solve_dae(valve, (0, 1), [1.0, 0.5], constraints=off, names=["p", "q"]),
        lambda: Bdf(tether.Problem(valve, constraints=off), 0.0, [1.0, 0.5], names=["p", "q"]),
    ):
        with pytest.raises(ValueError, match=r"not on the constraints: .* changes y0\[0\] \(p\)"):
            run()


def test_no_room_below_explain_reads_messages():
    """Words are made in explain and read by people."""
    reading = re.compile(r"re\.(search|match|sub|compile)\(.*equation|in (\w+\.)*message\b")
    for path in SOURCE.rglob("*.py"):
        assert not reading.search(path.read_text(encoding="utf-8")), path


def test_a_start_in_data():
    sol = solve_dae(valve, (0, 1), [1.0, 0.5])
    assert sol.start.reason == Reason(Kind.FOUND_SLOPES)
    np.testing.assert_array_equal(sol.start.y, [1.0, 0.5])
