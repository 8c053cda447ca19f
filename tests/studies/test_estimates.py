"""Estimates and the share of the tolerance."""

import numpy as np
import pytest

from tether.run import kinds
from tether.studies import estimates


def cells(table):
    """Rows of a Markdown table without head and rule."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


# --- estimates and the share of the tolerance ---------------------------------------------------


def test_share_is_put_back():
    usual = kinds.HIGH_INDEX_SHARE
    with estimates.share_of_tolerance(0.5):
        assert kinds.HIGH_INDEX_SHARE == 0.5
    assert usual == kinds.HIGH_INDEX_SHARE


def test_smaller_shares_bring_digits():
    found = estimates.compare_shares(estimates.QUICK)
    for name in estimates.QUICK:
        digits = [found[name, share].digits for share in estimates.SHARES]
        assert np.all(np.diff(digits) > -0.4)  # single runs scatter by that
        assert digits[-1] > digits[0] - 0.2
        assert digits[-1] > 4.5
    assert min(found[name, 1.0].digits for name in estimates.QUICK) < 4


def test_default_estimate_is_the_most_accurate_that_always_finishes():
    found = estimates.compare_estimates(estimates.QUICK)
    for other in ("exclude", "scaled"):        # single runs scatter
        gains = [found[name, "auto"].digits - found[name, other].digits for name in estimates.QUICK]
        assert np.median(gains) > 0.5
        assert min(gains) > -1.1
    failed = {(name, estimate) for (name, estimate), run in found.items() if run.digits is None}
    assert {estimate for _, estimate in failed} == {"classical", "local"}
    assert ("pend-i3", "classical") in failed


def test_residuals_at_equal_digits():
    count = estimates.residuals_at_digits("pend-i3", 4.5, (1e-5, 1e-6, 1e-7))
    assert 3000 < count < 12000
    assert estimates.residuals_at_digits("pend-i3", 4.5, (1e-5,), estimate="classical") is None
    ratios = dict.fromkeys([("pend-i3", choice) for choice in estimates.CHOICES], 2.0)
    ratios["pend-i3", "local"] = None
    rows = cells(estimates.ratio_table({**ratios, ("pend-i2", "local"): 3.0}))
    assert rows[0][-1] == "failed"
    assert rows[-1][-2:] == ["2.00", "3.00"]


# --- the commands of these ------------------------------------------------------------------------


@pytest.mark.slow
def test_full_study_of_the_estimates():
    """At equal digits no share and no other estimate is much cheaper than the default."""
    ratios = estimates.compare_at_digits()
    for ratio in ratios.values():
        assert ratio is None or ratio > 0.8
