"""Pictures of a solution."""

import io
import math

import numpy as np
import pytest
from support.front_door import SPAN
from support.helpers import RELAX_START, relax

from tether import solve_dae


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def words(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def looks(line):
    """What tells a line from others without colour."""
    return str(line._unscaled_dash_pattern), line.get_linewidth()


def test_plot(pyplot, reference):
    figure = reference.plot()
    states, size, order = figure.axes
    assert len(states.lines) == 2
    np.testing.assert_array_equal(states.lines[1].get_ydata(), reference.y[1])
    np.testing.assert_array_equal(size.lines[0].get_ydata(), np.diff(reference.t))
    np.testing.assert_array_equal(order.lines[0].get_ydata(), reference.stats.order)
    figure.savefig(io.BytesIO())


def test_plot_of_chosen_components_with_t_eval_and_events(pyplot):
    def event(t, y, yp):
        return y[0] - 1.0

    sol = solve_dae(relax, SPAN, RELAX_START, t_eval=[0.0, 1.0, 2.0], events=event)
    figure = sol.plot([1], labels=["current"])
    (states,) = figure.axes
    assert len(states.lines) == 1 + len(sol.t_events[0]) == 2
    assert words(states) == ["current", "event"]
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="labels"):
        sol.plot(labels=["one"])


def test_plot_of_a_failed_start(pyplot):
    sol = solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0])
    assert len(sol.plot().axes) == 1


# --- what is drawn -----------------------------------------------------------------------------


def motor(t, y, yp):
    speed, current = y[:2]
    heat = y[2]
    return [yp[0] - current, yp[1] + speed, yp[2] - 1e4 - 0 * heat]


@pytest.fixture(scope="module")
def turning():
    return solve_dae(motor, (0, 3), [0.0, 1.0, 0.0], events=lambda t, y: y[0] - 0.5)


def test_unknowns_of_one_size_share_a_panel(pyplot, turning):
    small, large, size, order = turning.plot().axes
    assert words(small) == ["speed", "current", "event 0"]
    assert words(large) == ["heat"]
    assert small.get_ylabel() == "speed, current"
    assert order.get_xlabel() == "t"
    assert size.get_ylabel() == "step size"


def test_unknowns_of_one_unit_share_a_panel(pyplot):
    sol = solve_dae(motor, (0, 3), [0.0, 1.0, 0.0], names=["a [V]", "b (A)", "c [V]"])
    volts, amperes = sol.plot([0, "b", "c [V]"]).axes
    assert words(volts) == ["a", "c"]
    assert (volts.get_ylabel(), amperes.get_ylabel()) == ("a, c [V]", "b [A]")
    (axis,) = sol.plot("a'", against="b").axes
    assert axis.get_xlabel() == "b [A]"
    assert axis.get_legend_handles_labels()[1][0] == "a'"
    many = solve_dae(motor, (0, 3), [0.0, 1.0, 0.0], names=["a rather long name [V]", "b", "c (V)"])
    assert many.plot([0, 2]).axes[0].get_ylabel() == "[V]"


def test_labels_may_carry_units(pyplot, turning):
    first, second = turning.plot(["speed", "heat"], labels=["v [m/s]", "Q [J]"]).axes
    assert (first.get_ylabel(), second.get_ylabel()) == ("v [m/s]", "Q [J]")


def test_curves_of_two_calls_differ_in_one_picture(pyplot, turning):
    _, axis = pyplot.subplots()
    turning.plot("speed", against="current", ax=axis)
    turning.plot("current", against="speed", ax=axis)
    first, second = (line for line in axis.lines if len(line.get_xdata()) > 2)
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert words(axis) == ["speed", "start", "end", "current"]


@pytest.mark.parametrize(("unknowns", "drawn"), [
    ("current", ["current"]),
    (1, ["current"]),
    (["current", 0], ["current", "speed"]),
    (["speed", "speed'"], ["speed", "speed'"]),
    ([], []),
])
def test_chosen_unknowns(pyplot, turning, unknowns, drawn):
    (axis,) = turning.plot(unknowns).axes
    lines = [line for line in axis.lines if len(line.get_xdata()) > 2]
    assert [line.get_label() for line in lines] == drawn
    for line in lines:
        np.testing.assert_array_equal(line.get_ydata(), turning[line.get_label()])


def test_steps_are_drawn_on_request(pyplot, turning):
    assert len(turning.plot("speed", steps=True).axes) == 3
    assert len(turning.plot(steps=False).axes) == 2
    with pytest.raises(ValueError, match="leave against out"):
        turning.plot("speed", against="current", steps=True)


def test_into_axes_of_the_users(pyplot, turning):
    figure, (left, right) = pyplot.subplots(1, 2)
    assert turning.plot("speed", ax=left) is figure
    turning.plot(["speed", "heat"], ax=right, against="current")
    assert len(figure.axes) == 2
    assert (left.get_xlabel(), right.get_xlabel()) == ("t", "current")
    with pytest.raises(ValueError, match="leave ax out"):
        turning.plot("speed", ax=left, steps=True)


def test_a_phase_portrait(pyplot, turning):
    (axis,) = turning.plot("current", against="speed").axes
    curve, begin, end = axis.lines
    np.testing.assert_array_equal(curve.get_xdata(), turning["speed"])
    np.testing.assert_array_equal(curve.get_ydata(), turning["current"])
    assert (begin.get_xdata()[0], begin.get_ydata()[0]) == (0.0, 1.0)
    assert end.get_xdata()[0] == turning["speed"][-1]
    assert words(axis) == ["current", "start", "end"]
    assert axis.get_xlabel() == "speed"


def test_against_time_by_its_name(pyplot, turning):
    (axis,) = turning.plot("current", against="t").axes
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), turning.t)
    called = solve_dae(motor, (0, 1), [0.0, 1.0, 0.0], names=["t", "b", "c"])
    (axis,) = called.plot("b", against="t").axes
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), called.unknowns["t"])


def test_lines_can_be_told_apart_without_colour(pyplot):
    sol = solve_dae(lambda t, y, yp: yp + y, (0, 1), np.arange(5.0, 17.0))
    axis = sol.plot().axes[0]
    assert axis.get_title() == "the first 10 of 12 unknowns"
    assert len({looks(line) for line in axis.lines}) == len(axis.lines) == 10
    assert len(sol.plot(range(12)).axes[0].lines) == 12
    assert sol.plot(range(12)).axes[0].get_title() == ""


def test_wrong_names_raise(pyplot, turning):
    with pytest.raises(KeyError, match="no unknown called 'voltage'"):
        turning.plot("voltage")
    with pytest.raises(KeyError, match="no unknown called 'voltage'"):
        turning.plot("speed", against="voltage")
    with pytest.raises(IndexError):
        turning.plot(7)


def test_odd_values_are_drawn(pyplot):
    sol = solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2, yp[1]], (0, 2), [1.0, 0.0],
                    names=["$blow up$", "_zero"])
    figure = sol.plot()
    figure.savefig(io.BytesIO())
    sol.plot(0, against=1).savefig(io.BytesIO())
    solve_dae(lambda t, y, yp: [yp[0]], (0, 1), [1.0], t_eval=[]).plot().savefig(io.BytesIO())
    one = solve_dae(lambda t, y, yp: [yp[0]], (0, 1), [1.0], t_eval=[1.0]).plot()
    assert one.axes[0].lines[0].get_marker() == "o"       # a line through one point shows nothing


def test_curves_are_smooth_with_dense_output(pyplot):
    def kick(t, y, yp):
        return t - 1.0

    kick.apply = lambda t, y, yp: [5.0]
    fun = lambda t, y, yp: [yp[0] + y[0]]  # noqa: E731
    sol = solve_dae(fun, (0, 2), [1.0], dense_output=True, t_eval=[0.0, 0.7, 2.0], events=kick)
    line = sol.plot(0).axes[0].lines[0]
    t, y = line.get_data()
    assert len(t) == 3 + 2 * 8
    assert np.all(np.diff(t) > 0)
    before = t < 1.0
    np.testing.assert_allclose(y[before], np.exp(-t[before]), rtol=1e-4)
    np.testing.assert_allclose(y[~before], 5 * np.exp(1 - t[~before]), rtol=1e-4)

    sol = solve_dae(fun, (0, 2), [1.0], dense_output=True, events=kick)
    t, y = sol.plot(0).axes[0].lines[0].get_data()
    assert np.count_nonzero(t == 1.0) == np.count_nonzero(sol.t == 1.0) == 2
    np.testing.assert_allclose(y[t < 1.0], np.exp(-t[t < 1.0]), rtol=1e-4)
    t, y = sol.plot("y[0]'", against=0).axes[0].lines[0].get_data()
    np.testing.assert_allclose(y, -t, rtol=0.02)
