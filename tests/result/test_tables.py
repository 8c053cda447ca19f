"""A solution as a table."""

import csv
import io
import math
import sys

import numpy as np
import pytest

from tether import solve_dae


def plain(t, y, yp):
    return [yp[0] + y[1], y[0] - 2.0 * y[1]]


NAMES = ['comma, "quote"', "電 流"]


@pytest.fixture(scope="module")
def sol():
    return solve_dae(plain, (0, 1), [1.0, 0.5], names=NAMES)


@pytest.mark.parametrize("derivatives", [False, True])
def test_csv(sol, tmp_path, derivatives):
    path = tmp_path / "table.csv"
    sol.to_csv(path, derivatives=derivatives)
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    primed = [name + "'" for name in NAMES] if derivatives else []
    assert head == ["t", *NAMES, *primed]
    values = np.array(rows, float).T
    np.testing.assert_array_equal(values[0], sol.t)
    np.testing.assert_array_equal(values[1:3], sol.y)
    if derivatives:
        np.testing.assert_array_equal(values[3:], sol.yp)


def test_csv_to_an_open_file(sol):
    file = io.StringIO()
    sol.to_csv(file)
    assert len(file.getvalue().splitlines()) == len(sol.t) + 1


def test_data_frame(sol):
    pytest.importorskip("pandas")
    frame = sol.to_dataframe()
    assert list(frame.columns) == NAMES
    assert frame.index.name == "t"
    np.testing.assert_array_equal(frame.index, sol.t)
    np.testing.assert_array_equal(frame["電 流"], sol["電 流"])
    assert sol.to_dataframe(derivatives=True).shape == (len(sol.t), 4)
    frame.iloc[0, 0] = 99.0                 # what the user does to it is his own
    assert sol.y[0, 0] == 1.0


def test_data_set(sol):
    pytest.importorskip("xarray")
    data = sol.to_xarray()
    np.testing.assert_array_equal(data.y.sel(unknown="電 流"), sol["電 流"])
    np.testing.assert_array_equal(data.yp, sol.yp)
    np.testing.assert_array_equal(data.t, sol.t)
    assert data.attrs["success"] == 1


@pytest.mark.parametrize("made", [
    lambda: solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0]),
    lambda: solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0, 2), [1.0], names=["t"]),
    lambda: solve_dae(plain, (0, 1), [1.0, 0.5], t_eval=[]),
    lambda: solve_dae(plain, (0, 1), [1.0, 0.5], t_eval=[1.0]),
], ids=["no step", "failed, called t", "no time", "one time"])
def test_tables_of_any_run(made):
    result = made()
    file = io.StringIO()
    result.to_csv(file, derivatives=True)
    assert len(file.getvalue().splitlines()) == len(result.t) + 1
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.to_dataframe(), pandas.DataFrame)
    assert result.to_dataframe().shape == (len(result.t), len(result.y))


@pytest.mark.parametrize(("package", "call"), [
    ("pandas", lambda sol: sol.to_dataframe()),
    ("xarray", lambda sol: sol.to_xarray()),
    ("h5py", lambda sol: sol.save("never_written.h5")),
    ("matplotlib.pyplot", lambda sol: sol.plot()),
    ("matplotlib.animation", lambda sol: sol.animate([(0, 0)])),
])
def test_what_is_missing_says_what_to_install(sol, package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    name = package.partition(".")[0]
    if name == "matplotlib":
        pytest.importorskip("matplotlib")
    with pytest.raises(ImportError, match=f"needs {name}: pip install {name}$"):
        call(sol)
