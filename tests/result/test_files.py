"""Solutions in files."""

import json
import math
import sys

import numpy as np
import pytest

import tether
from tether import solve_dae


def ball(t, y, yp):
    _height, speed = y
    return [yp[0] - speed, yp[1] + 9.81]


def ground(t, y, yp):
    return y[0]


ground.direction = -1
ground.apply = lambda t, y, yp: [0.0, -0.8 * y[1]]


def never(t, y, yp):
    return 1.0


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1.0]


def charge(t, y, yp):
    v1, v2, i = y
    return [yp[0] + i, 4 * yp[1] - i, v1 - v2 if t > 1 else i]


RUNS = {
    "bounces": lambda: solve_dae(ball, (0, 3), [1.0, 0.0], events=[ground, never],
                                 dense_output=True),
    "pendulum": lambda: solve_dae(pendulum, (0, 1), [1.0, 0, 0, 0, 0], dense_output=True),
    "jump": lambda: solve_dae(charge, (0, 2), [10, 0, 0]),
    "output times": lambda: solve_dae(ball, (0, 1), [1.0, 0.0], t_eval=[0.2, 0.7],
                                      names=["höhe über Null", "電"]),
    "backward": lambda: solve_dae(ball, (1, 0), [1.0, 0.0], dense_output=True),
    "no time": lambda: solve_dae(ball, (0, 1), [1.0, 0.0], t_eval=[]),
    "failed": lambda: solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0, 2), [1.0]),
    "no step": lambda: solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0], dense_output=True),
    "nameless": lambda: solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], names=[""]),
}
ENDINGS = [".npz", ".nc", ".h5"]


def same(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("run", RUNS)
def test_what_is_saved_comes_back(run, ending, tmp_path):
    if ending == ".h5":
        pytest.importorskip("h5py")
    sol = RUNS[run]()
    path = tmp_path / f"so l{ending}"
    sol.save(path)
    again = tether.load(str(path))
    for name in ("t", "y", "yp", "drift"):
        same(getattr(sol, name), getattr(again, name))
    for name in ("t_events", "y_events", "yp_events"):
        assert (getattr(sol, name) is None) == (getattr(again, name) is None)
        for a, b in zip(getattr(sol, name) or [], getattr(again, name) or [], strict=True):
            same(a, b)
            assert a.shape == b.shape
    for name in ("names", "status", "message", "success", "how", "warnings", "jumps", "nfev",
                 "event_names"):
        assert getattr(sol, name) == getattr(again, name)
    for name in ("t", "h", "order"):
        same(getattr(sol.stats, name), getattr(again.stats, name))
    assert repr(sol.stats) == repr(again.stats)
    assert str(sol) == str(again)
    assert str(sol.diagnosis) == str(again.diagnosis)
    assert sol.diagnosis.where == again.diagnosis.where
    assert sol.start.moved == again.start.moved
    assert sol.start.message == again.start.message
    same(sol.start.y, again.start.y)
    assert (sol.sol is None) == (again.sol is None)
    if sol.sol is not None:
        times = np.linspace(sol.t[0], sol.t[-1], 50)
        np.testing.assert_array_equal(sol.sol(times), again.sol(times))
    assert again.index is None
    again.save(path)                                # and once more, over itself
    assert str(tether.load(path)) == str(sol)


def test_the_runs_are_what_they_are_called():
    assert len(RUNS["jump"]().jumps) == 1
    assert len(RUNS["bounces"]().t_events[0]) > 2
    assert not RUNS["failed"]().success
    assert RUNS["no step"]().stats.steps == 0


def test_other_programs_can_read_netcdf(tmp_path):
    xarray = pytest.importorskip("xarray")
    sol = RUNS["output times"]()
    sol.save(tmp_path / "sol.nc")
    with xarray.open_dataset(tmp_path / "sol.nc", engine="scipy") as data:
        assert [str(name) for name in data["unknown"].values] == list(sol.names)
        np.testing.assert_array_equal(data["y"].values, sol.y)


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_that_hold_something_else(ending, tmp_path):
    if ending == ".h5":
        pytest.importorskip("h5py")
    path = tmp_path / f"other{ending}"
    with pytest.raises(FileNotFoundError, match="there is no file"):
        tether.load(path)
    path.write_bytes(b"something else altogether")
    with pytest.raises(ValueError, match="is not a solution saved by tether"):
        tether.load(path)


def test_files_of_other_arrays_and_of_later_versions(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, t=[1.0])
    with pytest.raises(ValueError, match="is not a solution saved by tether"):
        tether.load(path)
    np.savez(path, about=np.array(json.dumps({"format": "tether solution", "version": 99})))
    with pytest.raises(ValueError, match="later version"):
        tether.load(path)


@pytest.mark.parametrize("name", ["sol", "sol.csv", "sol.npz.bak"])
def test_the_end_of_the_name_says_the_format(name, tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.npz, \.nc, \.h5"):
        RUNS["nameless"]().save(tmp_path / name)
    with pytest.raises(ValueError, match=r"must end in \.npz, \.nc, \.h5"):
        tether.load(tmp_path / name)


def test_loading_hdf5_without_h5py_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "sol.h5").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="pip install h5py"):
        tether.load(tmp_path / "sol.h5")
