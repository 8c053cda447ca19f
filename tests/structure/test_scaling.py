"""Ranks and units do not depend on those that the user has chosen."""

import numpy as np
import pytest

from tether.structure.scaling import Units, ranges


@pytest.mark.parametrize("seed", range(10))
def test_ranks_do_not_depend_on_units(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(5, 3)) @ rng.normal(size=(3, 6))
    rows, unit = (10.0 ** rng.uniform(-12, 12, size) for size in (5, 6))
    found = ranges(rows[:, None] * A / unit, unit, 1e-9)
    assert (found.reached.shape[1], found.left.shape[1], found.right.shape[1]) == (3, 2, 3)
    assert A @ (found.right / unit[:, None]) == pytest.approx(0.0, abs=1e-9)


def test_units_follow_the_tolerances():
    units = Units.of(np.full(3, 1e-6), np.array([1e-9, 1e-3, 0.0]), np.array([0.0, 0.0, 7.0]))
    assert units.y == pytest.approx([1.0, 1e6, 7.0])
