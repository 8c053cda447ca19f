"""What a fit prints and draws, and how much work it is."""

import numpy as np
import pytest
from scipy.optimize import least_squares
from support.fits import ENZYME, ENZYME_START, enzyme, enzyme_data, exact, pendulum
from support.fits import PENDULUM as TRUE
from support.fits import PENDULUM_START as BEGIN

import tether
from tether import FitResult, fit, solve_dae

T = np.linspace(0.0, 8.0, 41)


@pytest.fixture(scope="module")
def found():
    data = enzyme_data(T, 0.02)
    data["substrate"][7] = np.nan
    return fit(enzyme, data, {name: 1.3 * value for name, value in ENZYME.items()},
               y0=ENZYME_START, sigma=0.02, log=True)


def test_public_names():
    assert tether.fit is fit
    assert isinstance(FitResult.__doc__, str)


def test_a_table(found):
    lines = str(found).splitlines()
    assert lines[0].startswith("Fit of 5 parameters to 81 values: converged, ")
    assert f"{found.solves} solves" in lines[0]
    assert lines[1].split("  ")[1].strip() == "parameter"
    for line, name, value, (low, high) in zip(
        lines[2:7], found.names, found.x, found.confidence(), strict=True
    ):
        words = line.split()
        assert words[0] == name
        assert float(words[1]) == pytest.approx(value, rel=1e-5)
        assert float(words[3]) == pytest.approx(low, rel=1e-4)
        assert float(words[5]) == pytest.approx(high, rel=1e-4)
    assert "Strongly correlated: binding and release" in lines[7]
    assert len(lines) == 8
    assert max(map(len, lines)) <= 100


def test_one_line(found):
    assert repr(found) == (
        "<FitResult: converged, 5 parameters (binding, release, catalysis, total, feed), 81 values>"
    )


def test_a_page(found):
    page = found._repr_html_()
    assert page.count("<tr>") == 6
    assert "catalysis" in page
    assert "Strongly correlated" in page


def test_unidentifiable_parameters_are_printed():
    def fun(t, y, yp, a, b):
        return [yp[0] + a * b * y[0]]

    text = str(fit(fun, (T, np.exp(-T)), [1.0, 2.0], y0=[1.0]))
    assert "unknown" in text
    assert "- The data determine only the product of a and b." in text


def test_solutions_are_the_model_with_these_parameters(found):
    sol, = found.solutions
    again = solve_dae(enzyme, (0, 8), ENZYME_START, args=tuple(found.x), rtol=1e-10, atol=1e-13,
                      start="quiet", dense_output=True)
    np.testing.assert_allclose(sol.y_at(T), again.y_at(T), atol=1e-5)
    assert sol.sens_at(1.0).shape == (5, 4)
    assert sol.names == ("substrate", "complex_", "product", "free")


def test_pictures(found, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = found.plot(path=tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 0
    assert [axis.get_ylabel() for axis in figure.axes] == ["substrate", "product"]
    points, curve = figure.axes[0].lines
    assert len(points.get_xdata()) == 40
    np.testing.assert_allclose(
        curve.get_ydata(), found.solutions[0].y_at(curve.get_xdata())[0], rtol=1e-12
    )
    assert len(figure.axes[0].collections) == 2          # errors of the data, and the band
    alone = found.plot("complex_")
    assert len(alone.axes[0].lines) == 1                 # nobody measured it
    with pytest.raises(ValueError, match="unknowns: there is no 'speed'"):
        found.plot("speed")
    with pytest.raises(ValueError, match="axes must be 1"):
        found.plot("free", axes=figure.axes)
    picture = found.plot_correlation()
    shown = picture.axes[0].images[0].get_array()
    np.testing.assert_array_equal(shown, found.correlation)
    profile = found.profile("feed").plot()
    assert len(profile.axes[0].lines) == 2
    matplotlib.pyplot.close("all")


def test_a_picture_of_several_experiments_with_observables():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")

    def fun(t, y, yp, a, b):
        return [yp[0] + a * b * y[0]]

    runs = [{"data": {"t": T, "double": 2.0 * start * np.exp(-T)}, "y0": [start]}
            for start in (1.0, 3.0)]
    result = fit(fun, runs, [1.0, 1.5], observe=lambda t, y: {"double": 2.0 * y[0]})
    figure = result.plot()
    axis, = figure.axes
    assert len(axis.lines) == 4
    assert len(axis.collections) == 0                    # no band: a and b are not determined
    assert [text.get_text() for text in axis.get_legend().get_texts()] == [
        "experiment 0", "experiment 1"
    ]
    matplotlib.pyplot.close("all")


# --- work ---------------------------------------------------------------------------------------


def by_differences(fun, y0, data, start, sigma, tolerance):
    """Fit with differences of SciPy's; return result and number of solves."""
    solves = 0
    times = data["t"]

    def misfit(logarithms):
        nonlocal solves
        solves += 1
        sol = solve_dae(fun, (0.0, times[-1]), y0, t_eval=times, start="quiet",
                        args=tuple(np.exp(logarithms)), rtol=tolerance, atol=1e-3 * tolerance)
        return np.concatenate([(sol[k] - data[k]) / sigma for k in data if k != "t"])

    ended = least_squares(misfit, np.log(list(start.values())), x_scale="jac", diff_step=1e-5)
    return np.exp(ended.x), solves


@pytest.mark.parametrize("case", ["enzyme", "pendulum"])
def test_half_the_solves_of_differences_and_the_same_result(case):
    if case == "enzyme":
        fun, y0, data, sigma = enzyme, ENZYME_START, enzyme_data(T, 0.02), 0.02
        start = {name: 1.2 * value for name, value in ENZYME.items()}
    else:
        times, sigma = np.linspace(0.0, 4.0, 41)[1:], 0.02
        sol = exact(pendulum, times, BEGIN, TRUE.values())
        rng = np.random.default_rng(2)
        data = {"t": times} | {
            name: sol[name] + sigma * rng.standard_normal(40) for name in ("x", "force")
        }
        fun, y0, start = pendulum, BEGIN, {name: 1.05 * value for name, value in TRUE.items()}
    result = fit(fun, data, start, y0=y0, t_span=(0.0, data["t"][-1]), sigma=sigma, log=True)
    x, solves = by_differences(fun, y0, data, start, sigma, 1e-9)
    assert result.solves < solves / 2
    assert result.solves == result.nfev <= (15 if case == "enzyme" else 5)
    assert np.all(np.abs(result.x - x) < 0.03 * result.stderr)
