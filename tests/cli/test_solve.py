"""tether solve: every problem of the gallery, every file it writes."""

import csv
import json
import re
import sys

import numpy as np
import pytest

from tether import gallery, load

ODD_NAMES = '--names=x[0],t,a"b,é'


@pytest.mark.parametrize("name", gallery.names())
def test_every_problem_of_the_gallery_is_solved(tether, name):
    code, out, _ = tether("solve", name, "--max-seconds", 60)
    assert code == 0
    assert out.startswith("success")


@pytest.mark.parametrize("name", ["robertson", "pend-i3", "akzo"])
def test_results_meet_the_references(tether, name):
    code, out, _ = tether("solve", name, "--rtol", "1e-8", "--points", 2, "--csv", "-", "-q")
    assert code == 0
    end = [float(part) for part in out.splitlines()[-1].split(",")][1:]
    assert gallery.get(name).digits(end) > 5


def test_parameters_of_a_problem(tether):
    code, out, _ = tether("solve", "heat1d", "--args", "m=12", "--csv", "-", "-q", "--points", 2)
    assert code == 0
    assert len(out.splitlines()[0].split(",")) == 1 + 12
    code, _, err = tether("solve", "heat1d", "--args", "m=7")
    assert code == 2
    assert "m must be at least 12" in err


def test_all_files_say_the_same(tether):
    file = tether.write(
        "def fun(t, y, yp):\n"
        "    return [yp[0] - y[1], yp[1] + y[0], y[2] - y[0], yp[3] + y[3]]\n"
        "y0, t_span, units = [1.0, 0.0, 1.0, 2.0], (0, 1), ['m', '', 'm', 'µV']\n"
    )
    code, _, err = tether("solve", file, ODD_NAMES, "--at", "0,0.5,1", "-q", "--csv", "o.csv",
                          "--json", "o.json", "--npz", "o.npz", "--nc", "o.nc")
    assert (code, err) == (0, "")
    names = ["x[0]", "t", 'a"b', "é"]
    rows = list(csv.reader((tether.folder / "o.csv").open(encoding="utf-8")))
    assert rows[0] == ["t", "x[0] [m]", "t", 'a"b [m]', "é [µV]"]
    table = np.array(rows[1:], float)
    assert table[:, 0].tolist() == [0.0, 0.5, 1.0]
    assert np.allclose(table[:, 1], np.cos(table[:, 0]), atol=1e-4)

    content = json.loads((tether.folder / "o.json").read_text(encoding="utf-8"))
    assert content["success"] is True
    assert content["names"] == names
    assert content["units"][3] == "µV"
    assert np.array_equal(np.array([content["y"][name] for name in names]).T, table[:, 1:])
    assert content["stats"]["steps"] > 0

    for kind in ("npz", "nc"):
        sol = load(tether.folder / f"o.{kind}")
        assert list(sol.names) == names
        assert np.array_equal(sol.y.T, table[:, 1:])


def test_numbers_that_json_does_not_have_are_null(tether):
    file = tether.write("def fun(t, y, yp):\n    return [yp[0] - y[0]**2]\n"
                        "y0, t_span = [1.0], (0, 2)\n")
    code, out, _ = tether("solve", file, "--json", "-", "-q")
    assert code == 1
    assert json.loads(out)["success"] is False


def test_pictures(tether):
    pytest.importorskip("matplotlib")
    code, _, _ = tether("solve", "rotor", "--plot", "out.png", "-q")
    assert code == 0
    assert (tether.folder / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("package", "option", "file"), [
    ("matplotlib", "--plot", "out.png"), ("h5py", "--h5", "out.h5"),
])
def test_without_a_package_the_remedy_is_named(tether, monkeypatch, package, option, file):
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = tether("solve", "rotor", option, file)
    assert code == 2
    assert err == f"tether: error: {option} needs {package}: pip install {package}\n"


def test_units_in_pictures(tether):
    pytest.importorskip("matplotlib")
    tether("solve", tether.write("def fun(t, y, yp):\n    return [yp[0] + y[0]]\n"
           "y0, t_span, names, units = [1.0], (0, 1), ['level'], {'level': 'mm'}\n"),
           "--plot", "out.svg", "-q")
    texts = re.findall("<!-- (.*) -->", (tether.folder / "out.svg").read_text(encoding="utf-8"))
    assert any("mm" in text for text in texts)


def test_incidence_picture(tether):
    pytest.importorskip("matplotlib")
    code, out, _ = tether("analyze", "pend-i3", "--plot", "out.png")
    assert code == 0
    assert "index 3" in out
    assert (tether.folder / "out.png").stat().st_size > 1000


def test_options_reach_the_solver(tether):
    def steps(*more):
        code, out, _ = tether("solve", "pend-i3", "--t", "0:1", "--json", "-", "-q", *more)
        assert code == 0
        content = json.loads(out)
        return content["stats"]["steps"], content["how"]

    plain, how = steps()
    assert steps("--rtol", "1e-9", "--atol", "1e-12")[0] > plain
    assert steps("--max-step", "0.001")[0] >= 1000
    assert steps("--max-order", "1")[0] > plain
    assert "reduced" in how
    assert "reduced" not in steps("--form", "given")[1]
    assert "traced" not in steps("--trace", "never", "--form", "given")[1].split(",")[0]
    assert tether("solve", "pend-i3", "--y0", "1,1,0,0,0", "--start", "check")[0] == 1
