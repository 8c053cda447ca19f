"""Parameters that are known are found again, however data and parameters are given."""

import numpy as np
import pytest
from support.fits import (
    ENZYME,
    ENZYME_START,
    PENDULUM,
    PENDULUM_START,
    decay,
    enzyme,
    enzyme_data,
    exact,
    pendulum,
)

from tether import Problem, fit

T = np.linspace(0.0, 8.0, 41)
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def off(true, factor=1.2):
    return {
        name: value * factor ** (1 if k % 2 else -1) for k, (name, value) in enumerate(true.items())
    }


@pytest.mark.parametrize("log", [False, True])
def test_five_parameters_of_an_enzyme(log):
    found = fit(
        enzyme, enzyme_data(T), off(ENZYME), y0=ENZYME_START, t_span=(0, 8), log=log, **TIGHT
    )
    assert found.success
    assert found.p == pytest.approx(ENZYME, rel=1e-6)
    assert found.doubts == ()
    assert found.unidentifiable == ()


def test_five_parameters_of_a_pendulum_of_index_3():
    t = np.linspace(0.0, 4.0, 41)
    sol = exact(pendulum, t, PENDULUM_START, PENDULUM.values())
    data = {"t": t[1:], "x": sol["x"][1:], "force": sol["force"][1:]}
    found = fit(
        pendulum, data, off(PENDULUM, 1.1), y0=PENDULUM_START, t_span=(0, 4), log=True, **TIGHT
    )
    assert found.success
    assert found.p == pytest.approx(PENDULUM, rel=1e-6)


def test_default_tolerances_are_good_for_five_digits():
    found = fit(enzyme, enzyme_data(T), off(ENZYME), y0=ENZYME_START, log=True)
    assert found.p == pytest.approx(ENZYME, rel=2e-5)


@pytest.mark.parametrize("name", ["y0[0]", "y0[substrate]"])
def test_starting_values_are_parameters_too(name):
    p0 = {"catalysis": 1.7, name: 8.0}
    args = {key: value for key, value in ENZYME.items() if key != "catalysis"}
    found = fit(enzyme, enzyme_data(T), p0, args=args, y0=[1.0, 0.0, 0.0, 1.0], **TIGHT)
    assert found.x == pytest.approx([2.0, 10.0], rel=1e-6)
    assert found.names == ("catalysis", name)


def test_parameters_not_in_p0_stay_as_they_are():
    by_name = {key: value for key, value in ENZYME.items() if key != "catalysis"}
    in_order = [value if key != "catalysis" else 99 for key, value in ENZYME.items()]
    for args in (by_name, in_order):
        found = fit(enzyme, enzyme_data(T), {"catalysis": 1.0}, args=args, y0=ENZYME_START, **TIGHT)
        assert found.x == pytest.approx([2.0], rel=1e-6)


def chain(t, y, yp, k, scale):
    return [yp[0] + k[0] * y[0], yp[1] - k[0] * y[0] + k[1] * y[1], y[2] - scale * y[1]]


def test_entries_of_arrays():
    t = np.linspace(0.0, 5.0, 21)
    y = exact(chain, t, [1.0, 0.0, 0.0], (np.array([1.5, 0.4]), 2.0)).y
    some = {"y0": [1.0, 0.0, 0.0], **TIGHT}
    whole = fit(chain, (t, y), {"k": [1.0, 1.0]}, args={"scale": 2.0}, **some)
    assert whole.p == pytest.approx({"k[0]": 1.5, "k[1]": 0.4}, rel=1e-6)
    one = fit(chain, (t, y), {"k[1]": 1.0}, args=(np.array([1.5, 9.0]), 2.0), **some)
    assert one.p == pytest.approx({"k[1]": 0.4}, rel=1e-6)
    all_of_them = fit(chain, (t, y), [np.array([1.0, 1.0]), 1.0], **some)
    assert all_of_them.p == pytest.approx({"k[0]": 1.5, "k[1]": 0.4, "scale": 2.0}, rel=1e-6)


def test_a_problem_object():
    problem = Problem.mass_matrix(np.eye(1), lambda t, y, rate: [-rate * y[0]], args=(1.0,))
    t = np.linspace(0.0, 2.0, 9)
    found = fit(problem, (t, 3.0 * np.exp(-0.7 * t)), {"args[0]": 1.0, "y0[0]": 1.0}, y0=[1.0],
                **TIGHT)
    assert found.x == pytest.approx([0.7, 3.0], rel=1e-6)


def ball(t, y, yp, gravity, bounce):
    return [yp[0] - y[1], yp[1] + gravity]


def ground(t, y, yp, gravity, bounce):
    return y[0]


ground.direction = -1
ground.apply = lambda t, y, yp, gravity, bounce: [0.0, -bounce * y[1]]


def test_parameters_that_act_in_events():
    t = np.linspace(0.0, 2.0, 41)
    height = exact(ball, t, [1.0, 0.0], (9.81, 0.8), events=ground).y[0]
    found = fit(ball, {"t": t, 0: height}, {"gravity": 9.0, "bounce": 0.75}, y0=[1.0, 0.0],
                events=ground, **TIGHT)
    assert found.x == pytest.approx([9.81, 0.8], rel=1e-6)
    assert found.solves <= 8


def test_a_function_that_cannot_be_traced():
    def hidden(t, y, yp, rate):
        return [yp[0] + float(rate) * float(y[0])]

    t = np.linspace(0.0, 2.0, 9)
    found = fit(hidden, (t, np.exp(-0.7 * t)), {"rate": 1.0}, y0=[1.0], **TIGHT)
    assert found.x == pytest.approx([0.7], rel=1e-6)


# --- data ---------------------------------------------------------------------------------------


def test_all_forms_of_data_give_the_same_fit():
    pandas = pytest.importorskip("pandas")
    data = enzyme_data(T, 0.01)
    missing = np.full(len(T), np.nan)
    forms = [
        data,
        {"t": T, 0: data["substrate"], 2: data["product"]},
        {"substrate": (T, data["substrate"]), "product": (T, data["product"])},
        (T, np.stack([data["substrate"], missing, data["product"], missing])),
        pandas.DataFrame(data).set_index("t"),
        pandas.DataFrame(data),
    ]
    found = [fit(enzyme, form, off(ENZYME), y0=ENZYME_START, sigma=0.01).x for form in forms]
    for x in found[1:]:
        np.testing.assert_array_equal(x, found[0])


def test_names_with_units():
    t = np.linspace(0.0, 2.0, 9)
    for key in ("speed", "speed [m/s]"):
        found = fit(decay, {"t": t, key: 3.0 * np.exp(-0.7 * t)}, {"rate": 1.0, "y0[speed]": 1.0},
                    y0=[1.0], names=["speed [m/s]"], **TIGHT)
        assert found.x == pytest.approx([0.7, 3.0], rel=1e-6)
        assert found.solutions[0].labels == ("speed [m/s]",)


def test_missing_values_count_for_nothing():
    data = enzyme_data(T, 0.01)
    holes = {name: values.copy() for name, values in data.items()}
    holes["substrate"][5:20] = np.nan
    holes["product"][::2] = np.nan
    some = fit(enzyme, holes, off(ENZYME), y0=ENZYME_START)
    pairs = {
        name: (T[~np.isnan(holes[name])], data[name][~np.isnan(holes[name])])
        for name in ("substrate", "product")
    }
    left_out = fit(enzyme, pairs, off(ENZYME), y0=ENZYME_START, t_span=(0, 8))
    np.testing.assert_allclose(some.x, left_out.x, rtol=1e-9)
    assert len(some.residuals) == 26 + 20
    full = fit(enzyme, data, off(ENZYME), y0=ENZYME_START)
    assert np.all(some.stderr > full.stderr * 0.9)
    assert np.any(np.abs(some.x - full.x) > 1e-6)


def test_repeated_and_unsorted_times():
    t = np.array([2.0, 0.0, 1.0, 1.0, 2.0])
    values = np.array([0.30, 1.0, 0.48, 0.52, 0.26])
    one = fit(decay, {"t": t, 0: values}, {"rate": 1.0}, y0=[1.0])
    order = np.argsort(t, kind="stable")
    other = fit(decay, {"t": t[order], 0: values[order]}, {"rate": 1.0}, y0=[1.0])
    np.testing.assert_array_equal(one.x, other.x)
    model = np.exp(-one.x[0] * t[order])
    np.testing.assert_allclose(one.residuals, model - values[order], atol=1e-6)


def test_backwards_in_time():
    t = np.linspace(0.0, 2.0, 9)
    found = fit(decay, (t, np.exp(-0.7 * t)), {"rate": 1.0}, y0=[np.exp(-1.4)], t_span=(2.0, 0.0),
                **TIGHT)
    assert found.x == pytest.approx([0.7], rel=1e-6)


@pytest.mark.parametrize("sigma", [
    {"substrate": 0.1, "product": 0.2}, {"substrate": np.full(41, 0.1), "product": 0.2},
])
def test_standard_errors_by_name(sigma):
    data = enzyme_data(T, 0.1)
    found = fit(enzyme, data, off(ENZYME), y0=ENZYME_START, sigma=sigma)
    weighed = fit(enzyme, data, off(ENZYME), y0=ENZYME_START,
                  weights={"substrate": 10.0, "product": 5.0})
    np.testing.assert_allclose(found.x, weighed.x, rtol=1e-6)
    np.testing.assert_allclose(
        weighed.covariance, found.covariance * weighed.chi2 / weighed.dof, rtol=1e-5
    )


def test_standard_errors_in_order_and_of_the_shape_of_the_data():
    t = np.linspace(0.0, 5.0, 21)
    y = exact(chain, t, [1.0, 0.0, 0.0], (np.array([1.5, 0.4]), 2.0)).y
    y = y + 0.01 * np.random.default_rng(3).standard_normal(y.shape)
    shapes = [[0.1, 0.2, 0.4], np.repeat([[0.1], [0.2], [0.4]], 21, axis=1)]
    found = [
        fit(chain, (t, y), {"k": [1.0, 1.0]}, args={"scale": 2.0}, y0=[1.0, 0.0, 0.0], sigma=shape)
        for shape in shapes
    ]
    np.testing.assert_array_equal(found[0].residuals, found[1].residuals)
    alike = fit(chain, (t, y), {"k": [1.0, 1.0]}, args={"scale": 2.0}, y0=[1.0, 0.0, 0.0])
    assert abs(alike.x[0] - found[0].x[0]) > 1e-5


# --- observables --------------------------------------------------------------------------------


def test_observables_by_name():
    data = enzyme_data(T, names=("substrate", "complex_", "product"))
    seen = {"t": T, "bound share": data["complex_"] / (data["complex_"] + data["substrate"]),
            "product": data["product"]}

    def observe(t, y):
        return {"bound share": y[1] / (y[0] + y[1])}

    found = fit(enzyme, seen, off(ENZYME), y0=ENZYME_START, observe=observe, log=True, **TIGHT)
    assert found.p == pytest.approx(ENZYME, rel=1e-5)


def test_observables_that_depend_on_parameters():
    def model(t, y, yp, rate, gain):
        return [yp[0] + rate * y[0]]

    t = np.linspace(0.0, 2.0, 9)
    found = fit(model, (t, 5.0 * np.exp(-1.4 * t)), [1.0, 1.0], y0=[1.0],
                observe=lambda t, y, rate, gain: gain * y[0] ** 2, **TIGHT)
    assert found.p == pytest.approx({"rate": 0.7, "gain": 5.0}, rel=1e-6)


def test_observables_by_a_matrix():
    t = np.linspace(0.0, 5.0, 21)
    y = exact(chain, t, [1.0, 0.0, 0.0], (np.array([1.5, 0.4]), 2.0)).y
    matrix = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]])
    # far from [0.4, 1.5], with which another scale explains the same data
    found = fit(chain, (t, matrix @ y), {"k": [2.0, 0.3], "scale": 1.0}, y0=[1.0, 0.0, 0.0],
                observe=lambda t, y: matrix @ y, **TIGHT)
    assert found.x == pytest.approx([1.5, 0.4, 2.0], rel=1e-6)


# --- several experiments ------------------------------------------------------------------------


def arrhenius(t, y, yp, rate, energy, temperature):
    return [yp[0] + rate * np.exp(-energy * (1.0 / temperature - 1.0)) * y[0]]


def experiments():
    found = []
    for temperature, start in ((0.9, 1.0), (1.0, 2.0), (1.1, 3.0)):
        t = np.linspace(0.0, 2.0 / temperature, 9)
        rate = 0.8 * np.exp(-5.0 * (1.0 / temperature - 1.0))
        found.append({
            "data": (t, start * np.exp(-rate * t)), "y0": [start],
            "args": {"temperature": temperature}, "name": f"{temperature:g}",
        })
    return found


@pytest.mark.parametrize("workers", [1, 3, None])
def test_several_experiments_share_parameters(workers):
    found = fit(arrhenius, experiments(), {"rate": 0.5, "energy": 3.0}, workers=workers, **TIGHT)
    assert found.x == pytest.approx([0.8, 5.0], rel=1e-6)
    assert found.solves == 3 * found.nfev
    assert len(found.solutions) == 3
    assert [sol.t[-1] for sol in found.solutions] == pytest.approx([2 / 0.9, 2.0, 2 / 1.1])


def test_one_experiment_of_several_is_not_enough():
    found = fit(arrhenius, experiments()[1:2], {"rate": 0.5, "energy": 3.0})
    assert [str(one) for one in found.unidentifiable] == ["The data say nothing about energy."]
    assert found.p["rate"] == pytest.approx(0.8, rel=1e-5)
    assert np.isinf(found.stderr[1])


def test_threads_give_the_same_bits():
    one, three = (
        fit(arrhenius, experiments(), {"rate": 0.5, "energy": 3.0}, workers=k) for k in (1, 3)
    )
    np.testing.assert_array_equal(one.x, three.x)


# --- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [
    {"rate": (0.1, 2.0)}, (0.1, 2.0), ([0.1], [2.0]), {"rate": (None, 2.0)},
])
def test_bounds_that_do_not_matter(bounds):
    t = np.linspace(0.0, 2.0, 9)
    found = fit(decay, (t, np.exp(-0.7 * t)), {"rate": 1.5}, y0=[1.0], bounds=bounds, **TIGHT)
    assert found.x == pytest.approx([0.7], rel=1e-6)


@pytest.mark.parametrize("log", [False, True])
def test_bounds_that_do(log):
    t = np.linspace(0.0, 2.0, 9)
    found = fit(decay, (t, np.exp(-0.7 * t)), {"rate": 1.5}, y0=[1.0], bounds={"rate": (1.0, 2.0)},
                log=log)
    assert found.x == pytest.approx([1.0], rel=1e-3)
    assert found.x[0] >= 1.0
    assert any("rate is at its lower bound, 1" in text for text in found.doubts)
