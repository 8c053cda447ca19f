"""Which unknowns share a panel of a picture."""

import numpy as np
import pytest

from tether.result.panels import MOST_PANELS, in_panels


@pytest.mark.parametrize(("sizes", "panels"), [
    ([1.0, 2.0, 9.0], [[0, 1, 2]]),
    ([1.0, 20.0, 1.5], [[0, 2], [1]]),
    ([0.0, 5.0], [[0, 1]]),
    ([0.0, 0.0], [[0, 1]]),
    ([np.inf, 1.0], [[0, 1]]),
    ([np.nan, 1.0, 1e3], [[0, 1], [2]]),
    ([], []),
])
def test_sizes(sizes, panels):
    assert in_panels([""] * len(sizes), [np.array([0.0, -size]) for size in sizes]) == panels


def test_there_are_never_many_panels_and_no_line_is_lost():
    panels = in_panels([""] * 9, [np.array([10.0 ** (3 * i)]) for i in range(9)])
    assert len(panels) == MOST_PANELS
    assert sorted(line for panel in panels for line in panel) == list(range(9))
    panels = in_panels([f"u{i}" for i in range(9)], [np.ones(1)] * 9)
    assert len(panels) == MOST_PANELS
