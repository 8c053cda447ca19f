"""Units of unknowns: in the names or beside them, and everywhere a result is shown or kept."""

import csv
import io
import pickle

import pytest

import tether
from tether import analyze, consistent_start, solve_dae, solve_fixed
from tether.problem.units import separated, unit_of, with_unit, without_unit


def motion(t, y, yp):
    x, v, force = y
    return [yp[0] - v, yp[1] - force, x - t]


UNITS = ("m", "m/s", "")
WAYS = {
    "in the names": {"names": ["x [m]", "v (m/s)", "force"]},
    "in order": {"units": ["m", "m/s", ""]},
    "by name": {"units": {"v": "m/s", "x": "m"}},
    "both": {"names": ["x", "v [km/h]", "force"], "units": ("m", "m/s", "")},
}


@pytest.mark.parametrize(("name", "unit"), [
    ("speed [m/s]", "m/s"), ("speed (m/s)", "m/s"), ("x [ V ]", "V"), ("y[0]", ""), ("f(x)", ""),
    ("x", ""), ("", ""), ("[V]", ""), ("a [V] b", ""), ("Ω [Ω]", "Ω"),
])
def test_a_unit_stands_in_brackets_at_the_end(name, unit):
    assert unit_of(name) == unit
    assert unit_of(with_unit(without_unit(name), unit)) == unit


def test_what_tells_names_apart_stays_in_them():
    names = ["flow [hot]", "flow [cold]", "p [bar]", "q"]
    assert separated(names) == (("flow [hot]", "flow [cold]", "p", "q"), ("hot", "cold", "bar", ""))
    assert [with_unit(*pair) for pair in zip(*separated(names), strict=True)] == names


@pytest.fixture(scope="module", params=WAYS)
def sol(request):
    return solve_dae(motion, (0, 1), [0.0, 1.0, 0.0], t_eval=[0, 1], **WAYS[request.param])


def test_names_and_units_are_apart(sol):
    assert sol.names == ("x", "v", "force")
    assert sol.units == sol["units"] == UNITS
    assert sol.labels == ("x [m]", "v [m/s]", "force")
    for key in ("v", "v [m/s]", "v (m/s)"):
        assert sol[key] is not None
        assert (sol[key] == sol.y[1]).all()
    assert (sol["v'"] == sol.yp[1]).all()
    with pytest.raises(KeyError):
        sol["v [km/h]"]
    assert list(sol.unknowns) == ["x", "v", "force"]


def test_the_summary_has_units(sol):
    assert "x = 1 m, v = 1 m/s, force = " in str(sol)
    assert "v [m/s]" in sol._repr_html_()


def test_tables_have_units(sol):
    text = io.StringIO()
    sol.to_csv(text, derivatives=True)
    head = next(csv.reader([text.getvalue().splitlines()[0]]))
    assert head == ["t", "x [m]", "v [m/s]", "force", "x'", "v'", "force'"]


def test_data_frames_have_units(sol):
    pytest.importorskip("pandas")
    frame = sol.to_dataframe()
    assert list(frame.columns) == ["x [m]", "v [m/s]", "force"]
    assert frame.attrs["units"] == {"x [m]": "m", "v [m/s]": "m/s", "force": ""}


def test_data_sets_have_units(sol):
    pytest.importorskip("xarray")
    data = sol.to_xarray()
    assert str(data.y.sel(unknown="v").unit.values) == "m/s"


@pytest.mark.parametrize("ending", ["npz", "nc", "h5"])
def test_units_are_saved(sol, tmp_path, ending):
    if ending == "h5":
        pytest.importorskip("h5py")
    sol.save(tmp_path / f"motion.{ending}")
    again = tether.load(tmp_path / f"motion.{ending}")
    assert (again.names, again.units, again.labels) == (sol.names, UNITS, sol.labels)


def test_other_readers_find_units_in_a_netcdf_file(tmp_path):
    from scipy.io import netcdf_file

    for units in (["m", "m/s", ""], ["V", "V", "V"]):
        solve_dae(motion, (0, 1), [0, 1, 0], units=units).save(tmp_path / "a.nc")
        with netcdf_file(tmp_path / "a.nc", mmap=False) as file:
            rows = file.variables["unit"][:]
            assert [b"".join(row).strip(b"\0").decode() for row in rows] == units
            alike = getattr(file.variables["y"], "units", None)
        assert alike == (b"V" if units[0] == "V" else None)


def test_units_are_pickled(sol):
    assert pickle.loads(pickle.dumps(sol)).units == UNITS


def test_there_need_not_be_any():
    sol = solve_dae(motion, (0, 1), [0.0, 1.0, 0.0])
    assert sol.units == ("", "", "")
    assert sol.labels == sol.names


def test_formulas_are_without_units():
    def pendulum(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam*x, yp[3] + lam*z + 9.8, x*x + z*z - 1]

    names = ["x [m]", "z [m]", "u [m/s]", "w [m/s]", "force"]
    assert "x*u + z*w = 0" in str(analyze(pendulum, 0, [1, 0, 0, 0, 0], names=names))
    sol = solve_dae(pendulum, (0, 0.1), [1, 0, 0, 0, 0], names=names)
    assert "x*u + z*w = 0" in str(sol.index)
    start = consistent_start(pendulum, 0, [0.6, -0.8, 1, 0, 0], fixed=["x", "z [m]"], names=names)
    assert start.success


def test_with_constant_steps_too():
    names = ["x [m]", "v [m/s]"]
    sol = solve_fixed(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], (0, 1), [1.0, 0.0],
                      step=0.1, order=1, names=names)
    assert (sol.names, sol.units) == (("x", "v"), ("m", "m/s"))


@pytest.mark.parametrize(("units", "error", "text"), [
    (["m"], ValueError, "units must be 3 strings"),
    ("mks", TypeError, "units must be a list"),
    (5, TypeError, "units must be a list"),
    (["m", "s", 3], TypeError, "strings"),
    (["m", "s", "a\nb"], TypeError, "one line"),
    ({"w": "m"}, ValueError, "units names 'w', which is not an unknown"),
    ({"x": 1}, TypeError, "strings"),
])
def test_wrong_units_are_refused(units, error, text):
    with pytest.raises(error, match=text):
        solve_dae(motion, (0, 1), [0.0, 1.0, 0.0], units=units)
