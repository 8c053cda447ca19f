"""A result in one line, and in a notebook."""

import math

import numpy as np
from support.helpers import circle

from tether import solve_dae


def test_one_line():
    sol = solve_dae(circle, (0, 500), [1.0, 0.0], names=["a", "b"])
    assert repr(sol) == (
        f"<DaeResult: success, t = 0 to 500, {len(sol.t)} points, 2 unknowns (a, b)>"
    )
    assert repr(sol.stats).startswith(f"Statistics(steps={sol.stats.steps}, nfev=")
    assert "array" not in repr(sol.stats)
    assert len(repr(sol.stats)) < 300


def test_one_line_of_other_runs():
    failed = solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0, 2), [1.0])
    assert repr(failed).startswith("<DaeResult: FAILED (")
    none = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 2), [1.0], t_eval=[])
    assert repr(none) == "<DaeResult: success, 0 points, 1 unknown (y[0])>"
    many = solve_dae(lambda t, y, yp: yp + y, (0, 1), np.ones(30), t_eval=[1.0])
    assert repr(many).endswith("1 point, 30 unknowns (y[0], y[1], y[2], y[3], y[4], y[5] "
                               "and 24 more)>")


def test_names_are_escaped_in_a_notebook():
    sol = solve_dae(circle, (0, 1), [1.0, 0.0], names=["<script>", "a & b"])
    page = sol._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &amp; b" in page
    assert f"{sol.y[1].max():.6g}" in page
    assert f"{sol.stats.nfev} residuals" in page


def test_notebook_pages_of_other_runs():
    broken = solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0])
    assert "FAILED" in broken._repr_html_()
    assert "success" in solve_dae(circle, (0, 1), [1.0, 0.0], t_eval=[])._repr_html_()
    many = solve_dae(lambda t, y, yp: yp + y, (0, 1), np.ones(30))
    assert "and 10 more unknowns" in many._repr_html_()
    assert "error test failures" in many.stats._repr_html_()
    assert len(many.stats._repr_html_()) < 2000
