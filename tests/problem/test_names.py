"""Names of the user's in messages and pictures."""

import io
import math

import pytest
from support.broken_runs import pole
from support.helpers import circle

import tether
from tether import Problem, solve_dae
from tether.base.reason import Kind, Reason, Row
from tether.explain.start_words import start_words
from tether.problem.names import Names, counted


def decay(t, y, yp):
    return [yp[0] + y[0]]


@pytest.mark.parametrize("name", [
    "$$", "$", "$x", "a$b$c", r"\$", "_x", "x_1", r"$\frac$", "%", "{}",
])
def test_names_are_shown_as_they_are(name):
    pytest.importorskip("matplotlib")
    sol = tether.solve_dae(decay, (0, 1), [1.0])
    figure = sol.plot(labels=[name])
    figure.savefig(io.BytesIO())
    assert [text.get_text().replace(r"\$", "$").strip()
            for text in figure.axes[0].get_legend().get_texts()] == [name]
    picture = tether.analyze(decay, 0.0, [1.0], names=[name]).plot()
    picture.savefig(io.BytesIO())


@pytest.mark.parametrize("solve", [
    lambda names: tether.solve_dae(decay, (0, 1), [1.0], names=names),
    lambda names: tether.solve_dae(decay, (0, 1), [1.0], equation_names=names),
    lambda names: tether.analyze(decay, 0.0, [1.0], names=names),
    lambda names: tether.consistent_start(decay, 0.0, [1.0], names=names),
])
@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "\x00", "a\u202eb"])
def test_names_that_would_spoil_a_message_are_refused(solve, name):
    with pytest.raises(ValueError, match=r"names\[0\] must be text on one line"):
        solve([name])


def test_a_name_that_looks_like_another_is_left_alone():
    names = Names(("equation 1", "y[0]"), ("y[1]", "equation 0"))
    reason = Reason(Kind.SINGULAR, (Row(0), Row(1)), (0, 1))
    assert start_words(reason, names) == (
        "the equations do not determine the solution: equations 0 'y[1]', 1 'equation 0' depend on "
        "each other and leave equation 1, y[0] open"
    )


def test_names_are_used_in_messages():
    sol = solve_dae(lambda t, y, yp: [y[0] + y[1] - 2.0] * 2, (0, 1), [1.0, 1.0],
                    names=["left", "right"], equation_names=["balance", "again"])
    assert "equations 0 'balance', 1 'again' depend on each other" in sol.message
    assert "leave left, right open" in sol.message
    assert "y[0]" not in sol.message


def test_names_are_used_in_what_is_said_about_the_start():
    def fun(t, y, yp):
        return [yp[0] + y[1], y[0] - y[1] ** 2]

    sol = solve_dae(fun, (0, 1), [-1.0, 1.0], names=["level", "flow"],
                    equation_names=["balance", "valve"])
    assert not sol.success
    assert "equation 1 'valve'" in sol.start.message
    sol = solve_dae(fun, (0, 1), [1.0, 3.0], names=["level", "flow"], start="check")
    assert "flow" in sol.start.message
    assert "y[1]" not in sol.start.message


def test_names_are_read_off_the_function():
    assert pole().diagnosis.where.variables == ("mass",)
    assert Names.of(Problem(circle), 2).variables == ("y[0]", "y[1]")


@pytest.mark.parametrize("argument", ["names", "equation_names"])
@pytest.mark.parametrize(("names", "error"), [
    ("xy", TypeError), (7, TypeError), ([1, 2], TypeError), (["x"], ValueError),
    (["x", "x"], ValueError),
])
def test_bad_names_are_refused(argument, names, error):
    with pytest.raises(error, match=argument):
        solve_dae(circle, (0, 1), [1.0, 0.0], **{argument: names})


def test_one_is_not_many():
    assert [counted(k, "value") for k in (0, 1, 2)] == ["0 values", "1 value", "2 values"]
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[0] - 2.0], (0, 1), [2.0, 1.0], start="quiet")
    text = str(sol)
    assert "kept on 1 constraint of the equations" in text
    assert "off 1 constraint or invariant" in text


def test_formulas_for_readers_have_few_digits_and_no_units():
    def across(t, y, yp):
        return [y[1] - 2.2e-3 * yp[0], y[0] - 17.0 * math.sin(100 * math.pi * t)]

    report = tether.analyze(across, 0.0, [0.0, 0.0], names=["v [V]", "i [A]"])
    assert str(report.hidden[0]) == "454.545*i - 5340.71*cos(314.159*t) = 0"
    assert abs(report.hidden[0](0.0, [0.0, 2.2e-3 * 1700 * math.pi])) < 1e-10
    twins = tether.analyze(across, 0.0, [0.0, 0.0], names=["x [V]", "x [A]"])
    assert "x [A]" in str(twins.hidden[0])
