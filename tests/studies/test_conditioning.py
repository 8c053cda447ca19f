"""Conditioning of the iteration matrix (PL2 section 3)."""

import numpy as np
import pytest

from tether.studies import conditioning

UNSCALED = {0: 0, 1: -1, 2: -2, 3: -3}
# algebraic rows divided by h; index 0 has none
ROW_SCALED = {0: 0, 1: 0, 2: -1, 3: -2}


@pytest.mark.parametrize("name", conditioning.PENDULA)
def test_condition_grows_with_the_index_and_scaling_takes_it_back(name):
    index = conditioning.FORMS[name].index
    expected = {"none": UNSCALED[index], "rows": ROW_SCALED[index],
                "kinds, rows": ROW_SCALED[index], "kinds": 0}
    for scaling, slope in expected.items():
        assert conditioning.measure(name, scaling).slope == pytest.approx(slope, abs=0.05)


def test_scaling_by_kinds_bounds_the_condition_of_a_flow():
    assert conditioning.measure("flow, index 2", "kinds").slope == pytest.approx(0, abs=0.05)


def test_scaling_cannot_help_where_no_row_is_algebraic():
    for scaling in conditioning.SCALINGS:
        found = conditioning.measure("circuit, index 1", scaling)
        assert found.slope == pytest.approx(-1, abs=0.05)


@pytest.mark.parametrize("scaling", ["none", "rows", "kinds"])
def test_estimate_of_the_condition_is_close(scaling):
    """It is a lower bound, and rarely far below."""
    for name in conditioning.FORMS:
        found = conditioning.measure(name, scaling)
        assert np.all(found.estimate < 1.05 * found.exact)
        assert np.all(found.estimate > 0.5 * found.exact)
