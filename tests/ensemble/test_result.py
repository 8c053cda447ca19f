"""What comes back: members, tables, pictures, quantiles."""

import io
import pickle

import numpy as np
import pytest
from support.ensembles import alone, ball, decay, ground, oscillator, rates, robertson

from tether import Status, solve_dae, solve_ensemble
from tether.ensemble import bands
from tether.ensemble.progress import Progress

K = np.linspace(0.5, 2.5, 21)
TIMES = np.linspace(0.0, 2.0, 9)


@pytest.fixture(scope="module")
def decays():
    return solve_ensemble(decay, (0.0, 2.0), [1.0], args=(K,), t_eval=TIMES)


def test_shapes_and_names(decays):
    assert decays.y.shape == decays.yp.shape == (21, 1, 9)
    np.testing.assert_array_equal(decays.t, TIMES)
    np.testing.assert_array_equal(decays.parameters["rate"], K)
    assert (decays.t_final == 2.0).all()
    assert len(list(decays)) == len(decays) == 21
    assert decays.messages[0] == Status.REACHED_END.text
    assert decays.errors == {}
    assert decays.t_events is None
    assert decays.engine == "threads"
    assert repr(decays) == (
        "<EnsembleResult: 21 of 21 members succeeded, 1 unknown, 9 times>"
    )
    assert "REACHED_END: 21" in str(decays)


def test_one_member(decays):
    sol = decays[4]
    expected = alone(decay, (0.0, 2.0), [1.0], (float(K[4]),), t_eval=TIMES)
    np.testing.assert_array_equal(sol.t, expected.t)
    np.testing.assert_array_equal(sol.y, expected.y)
    assert sol.success
    assert sol.nfev == expected.nfev
    assert sol.stats.steps == expected.stats.steps
    assert sol.index.index == 0
    assert "success" in str(sol)
    pickle.loads(pickle.dumps(sol))
    full = decays.member(4)
    np.testing.assert_allclose(full.sol(0.3)[0], np.exp(-0.3 * K[4]), rtol=1e-5)


def test_names_and_units():
    result = solve_ensemble(oscillator, (0.0, 1.0), [1.0, 0.0], args=(K,), t_eval=[0.5, 1.0],
                            units={"x": "m"})
    assert result.names == ("x", "v")
    assert result[0].units == ("m", "")
    assert result[0]["x"].shape == (2,)
    named = solve_ensemble(oscillator, (0.0, 1.0), [1.0, 0.0], args=(K,), names=["place", "speed"])
    assert named.names == ("place", "speed")


def test_all_steps():
    result = solve_ensemble(decay, (0.0, 2.0), [1.0], args=(K[:3],), keep="full")
    assert result.y.shape == (3, 1, 0)
    for i in range(3):
        expected = solve_dae(decay, (0.0, 2.0), [1.0], args=(float(K[i]),), dense_output=True)
        np.testing.assert_array_equal(result[i].t, expected.t)
        np.testing.assert_array_equal(result[i].sol(0.7)[0], expected.sol(0.7)[0])
    with pytest.raises(ValueError, match="t_eval"):
        result.quantiles()
    with pytest.raises(ValueError, match="t_eval"):
        result.plot()
    sent = solve_ensemble(decay, (0.0, 2.0), [1.0], args=(K[:3],), keep="full", engine="processes")
    np.testing.assert_array_equal(sent[2].sol(0.7)[0], result[2].sol(0.7)[0])


def test_quantiles(decays):
    found = decays.quantiles([0.1, 0.5, 0.9])
    assert found.shape == (3, 1, 9)
    np.testing.assert_allclose(found, np.quantile(decays.y, [0.1, 0.5, 0.9], axis=0))
    np.testing.assert_allclose(found[1, 0], np.exp(-1.5 * TIMES), rtol=1e-4)
    assert decays.quantiles().shape == (5, 1, 9)
    assert decays.quantiles(0.5).shape == (1, 1, 9)


def test_quantiles_while_members_come_in(decays):
    shares = [0.1, 0.5, 0.9]
    found = solve_ensemble(decay, (0.0, 2.0), [1.0], args=(K,), t_eval=TIMES[1:-1], keep="final",
                           quantiles=shares)
    assert found.y.shape == (21, 1, 1)
    np.testing.assert_array_equal(found.t_bands, TIMES[1:])
    np.testing.assert_allclose(found.quantiles(), decays.quantiles(shares)[..., 1:], rtol=1e-12)
    np.testing.assert_allclose(found.y[..., 0], decays.y[..., -1], rtol=1e-12)


def test_ends_of_streamed_members_with_events():
    g = np.array([1.0, 9.81, np.nan])
    found = solve_ensemble(ball, (0.0, 2.0), [4.0, 0.0], args=(g,), t_eval=[0.5, 1.0],
                           keep="final", quantiles=[0.5], events=ground)
    assert found.status[:2].tolist() == [Status.REACHED_END, Status.EVENT]
    assert abs(found.y[1, 0, 0]) < 1e-9
    assert found.t_final[1] == pytest.approx(np.sqrt(8 / 9.81))
    assert not found.success[2]


def test_quantiles_of_many_are_of_a_fixed_lot(monkeypatch):
    monkeypatch.setattr(bands, "MAX_EXACT", 500)
    values = np.random.default_rng(1).random((4000, 2, 1))
    everything = np.ones(4000, bool)
    one, other = bands.Bands(4000, (2, 1)), bands.Bands(4000, (2, 1))
    one.take(0, values, everything)
    for first in (3000, 0, 1000, 2000):
        other.take(first, values[first : first + 1000], everything[:1000])
    found = one.quantiles([0.05, 0.5, 0.95])
    np.testing.assert_array_equal(found, other.quantiles([0.05, 0.5, 0.95]))
    np.testing.assert_allclose(found[:, 0, 0], [0.05, 0.5, 0.95], atol=0.06)


def test_tables(decays):
    pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    frame = decays.to_dataframe()
    assert list(frame.columns) == ["rate", "y[0]", "success"]
    assert frame.index.names == ["member", "t"]
    assert frame.loc[(3, 2.0), "y[0]"] == decays.y[3, 0, -1]
    assert frame.loc[(3, 2.0), "rate"] == K[3]
    data = decays.to_xarray()
    assert data.y.dims == ("member", "unknown", "t")
    assert float(data.y.sel(member=3, t=2.0)[0]) == decays.y[3, 0, -1]
    np.testing.assert_array_equal(data.rate, K)


def test_parameters_with_names_of_the_table():
    xarray = pytest.importorskip("xarray")

    def fun(t, y, yp, success, member):
        return [yp[0] + success * member * y[0]]

    result = solve_ensemble(fun, (0.0, 1.0), [1.0], args=(K, K))
    assert isinstance(result.to_xarray(), xarray.Dataset)
    assert result.to_dataframe().shape[0] == 21


def test_bands_in_a_picture(decays, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = decays.plot(bands=[0.5, 0.9], path=tmp_path / "bands.png", title="decay")
    assert (tmp_path / "bands.png").stat().st_size > 1000
    axis = figure.axes[0]
    np.testing.assert_allclose(axis.lines[0].get_ydata(), decays.quantiles([0.5])[0, 0])
    assert len(axis.collections) == 2
    assert len(decays.plot(["y[0]", 0]).axes) == 2
    with pytest.raises(KeyError, match="no unknown"):
        decays.plot("speed")
    with pytest.raises(ValueError, match="bands must be"):
        decays.plot(bands=[2.0])
    with pytest.raises(ValueError, match="t_eval"):
        solve_ensemble(decay, (0.0, 2.0), [1.0], args=(K,)).plot()


def test_progress(capsys):
    solve_ensemble(robertson, (0.0, 10.0), [1.0, 0.0, 0.0], args=rates(30), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "30/30 members" in shown.err
    assert "100.0%" in shown.err
    seen = []
    solve_ensemble(robertson, (0.0, 10.0), [1.0, 0.0, 0.0], args=rates(30),
                   progress=lambda *state: seen.append(state))
    assert seen[-1][:2] == (30, 30)
    assert all(left >= 0.0 for _, _, left in seen)
    assert capsys.readouterr() == ("", "")


def test_progress_says_how_long_it_will_take():
    stream = io.StringIO()
    bar = Progress(100, stream)
    bar.update(50, 2, 3700.0)
    bar.close()
    assert "50/100 members  2 failed  1 h 1 min left" in stream.getvalue()


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    k = np.linspace(0.5, 3.0, 11)
    result = solve_ensemble(decay, (0.0, 2.0), [1.0], args=(k,), t_eval=[0.0, 1.0, 2.0])
    place = tmp_path / "decay.zarr"
    result.to_zarr(place)
    group = zarr.open_group(str(place), mode="r")
    np.testing.assert_array_equal(group["y"][:], result.y)
    np.testing.assert_array_equal(group["rate"][:], k)
    with pytest.raises(FileExistsError, match=r"decay\.zarr exists"):
        result.to_zarr(place)
    xarray = pytest.importorskip("xarray")
    with xarray.open_zarr(place) as data:
        xarray.testing.assert_identical(data.load(), result.to_xarray())


def test_zarr_in_parts(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    monkeypatch.setattr("tether.ensemble.tables.NUMBERS_IN_CHUNK", 10)
    result = solve_ensemble(decay, (0.0, 2.0), [1.0], args=(np.linspace(0.5, 3.0, 11),),
                            t_eval=[0.0, 1.0, 2.0])
    result.to_zarr(tmp_path / "decay.zarr")
    group = zarr.open_group(str(tmp_path / "decay.zarr"), mode="r")
    np.testing.assert_array_equal(group["yp"][:], result.yp)
    assert group["y"].chunks == (3, 1, 3)
