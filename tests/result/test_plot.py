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
    figure = sol.plot(components=[1], labels=["current"])
    (states,) = figure.axes
    assert len(states.lines) == 1 + len(sol.t_events[0]) == 2
    assert states.get_legend().get_texts()[0].get_text() == "current"
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="labels"):
        sol.plot(labels=["one"])


def test_plot_of_a_failed_start(pyplot):
    sol = solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0])
    assert len(sol.plot().axes) == 1
