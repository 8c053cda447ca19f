"""Formulations of a mechanism (PL2 section 2)."""

import numpy as np
import pytest

from tether.base.status import Status
from tether.gallery.formulations import FORMULATIONS
from tether.studies import formulations


def cells(table):
    """Rows of a Markdown table without head and rule."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


# --- formulations (PL2 section 2) -----------------------------------------------------------------


def test_double_pendulum_in_angles_obeys_the_equations_in_coordinates():
    h = 1e-4
    before, here, ahead = (formulations.double_pendulum_exact(t) for t in (0.5 - h, 0.5, 0.5 + h))
    yp = (ahead - before) / (2 * h)
    for formulation in ("index 3", "index 2", "index 1"):
        fun = formulations.double_pendulum().problem(formulation).fun
        assert np.abs(fun(0.5, here, yp)).max() < 1e-5


@pytest.mark.parametrize("name", formulations.EXAMPLES)
def test_formulations(name):
    runs = {run.formulation: run for run in formulations.compare(name, 1e-5, t_end=3.0)}
    assert list(runs) == list(FORMULATIONS)
    for run in runs.values():
        assert run.status == Status.REACHED_END
        assert run.error < 5e-3
    assert runs["projection"].position_drift < 1e-13
    assert runs["projection"].velocity_drift < 1e-12
    # the constraint that is solved for holds as well as Newton's method does
    assert runs["index 3"].position_drift < 1e-8
    assert runs["index 2"].velocity_drift < 1e-5
    assert runs["index 2"].position_drift > 3 * runs["ggl"].position_drift
    assert runs["index 1"].position_drift > 2 * runs["baumgarte"].position_drift
    rows = cells(formulations.run_table(list(runs.values())))
    assert [row[0] for row in rows] == list(FORMULATIONS)


def test_work_at_equal_errors():
    runs = [formulations.run("pendulum", "projection", rtol, 3.0) for rtol in (1e-4, 1e-5, 1e-6)]
    middle = formulations.work_at_error(runs, [runs[1].error])[0]
    assert runs[0].residuals < middle < runs[2].residuals
    rows = cells(formulations.work_table({"projection": runs}, [runs[1].error]))
    assert rows == [["projection", f"{middle:,.0f}"]]


# --- the commands of these ------------------------------------------------------------------------


@pytest.mark.slow
def test_full_study_of_the_formulations(capsys):
    formulations.main(["--full"])
    out = capsys.readouterr().out
    assert out.count("# pendulum on [0, 100]") == 3
    assert out.count("residuals at equal errors") == 2
