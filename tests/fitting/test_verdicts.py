"""What a fit says about the model: directions without data, and patterns in differences."""

import numpy as np
import pytest
from support.fits import ENZYME, ENZYME_START, decay, enzyme, enzyme_data, exact, line

from tether import fit

T = np.linspace(0.0, 4.0, 41)


def noise(size, seed=1):
    return size * np.random.default_rng(seed).standard_normal(len(T))


# --- parameters that the data do not determine --------------------------------------------------


def in_words(fun, true, p0, **options):
    y0 = options.pop("y0", [1.0])
    values = exact(fun, T, y0, true).y
    found = fit(fun, (T, values + noise(0.01)), p0, y0=y0, sigma=0.01, **options)
    assert found.success
    return found, [str(one) for one in found.unidentifiable]


def test_only_a_product():
    found, words = in_words(lambda t, y, yp, a, b: [yp[0] + a * b * y[0]], (0.5, 2.0), [1.0, 1.5])
    assert words == ["The data determine only the product of a and b."]
    assert found.x[0] * found.x[1] == pytest.approx(1.0, abs=0.02)
    assert np.all(np.isinf(found.stderr))
    assert np.all(np.isnan(found.correlation))
    assert found.dof == 40
    assert found.doubts == ()
    direction = found.unidentifiable[0]
    assert direction.parameters == ("a", "b")
    assert direction.changes[0] == pytest.approx(-direction.changes[1])
    assert np.isinf(direction.error)


@pytest.mark.parametrize(("fun", "p0", "text"), [
    (lambda t, y, yp, a, b: [yp[0] + a / b * y[0]], [1.0, 1.5], "the ratio of a and b"),
    (lambda t, y, yp, a, b: [yp[0] + (a + b) * y[0]], [0.4, 0.8], "the sum of a and b"),
    (lambda t, y, yp, a, b: [yp[0] + (a - b) * y[0]], [1.9, 0.8], "the difference of a and b"),
    (lambda t, y, yp, a, b: [yp[0] + a * b**2 * y[0]], [1.0, 1.1], "a * b**2"),
    (lambda t, y, yp, a, b: [yp[0] + a * a / b * y[0]], [1.0, 1.1], "a**2 / b"),
])
def test_only_a_combination(fun, p0, text):
    _, words = in_words(fun, (1.0, 1.0) if "difference" not in text else (2.0, 1.0), p0)
    assert words == [f"The data determine only {text}."]


def test_a_negative_factor_is_part_of_a_product():
    _, words = in_words(lambda t, y, yp, a, b: [yp[0] - a * b * y[0]], (-1.0, 1.0), [-0.7, 1.2])
    assert words == ["The data determine only the product of a and b."]


def test_a_parameter_without_influence():
    found, words = in_words(lambda t, y, yp, a, idle: [yp[0] + a * y[0] + 0.0 * idle], (1.0, 5.0),
                            [0.8, 5.0])
    assert words == ["The data say nothing about idle."]
    assert np.isfinite(found.stderr[0])
    assert np.isinf(found.stderr[1])


def test_two_products_are_told_apart():
    def fun(t, y, yp, a, b, c, d):
        return [yp[0] + a * b * y[0], yp[1] + c * d * y[1] - y[0]]

    _, words = in_words(fun, (1.0, 1.0, 0.5, 1.0), [0.8, 1.1, 0.7, 0.9], y0=[1.0, 0.5])
    assert sorted(words) == [
        "The data determine only the product of a and b.",
        "The data determine only the product of c and d.",
    ]


def test_three_parameters_that_go_together():
    _, words = in_words(lambda t, y, yp, a, b, c: [yp[0] + (a + b * c) * y[0]], (0.5, 0.5, 1.0),
                        [0.4, 0.6, 0.9])
    assert len(words) == 2
    assert all("determine only" in text or "change nothing" in text for text in words)


def test_hardly_more_than_a_ratio():
    # substrate far below saturation: the rate is almost top / half * s
    def saturating(t, y, yp, top, half):
        return [yp[0] + top * y[0] / (half + y[0])]

    true = (100.0, 100.0)
    values = exact(saturating, T, [1.0], true).y + noise(0.01)
    found = fit(saturating, (T, values), {"top": 80.0, "half": 90.0}, y0=[1.0], sigma=0.01,
                log=True)
    words = [str(one) for one in found.unidentifiable]
    assert words == ["The data hardly determine more than the ratio of top and half."]
    assert 1.0 < found.unidentifiable[0].error < np.inf
    assert found.x[0] / found.x[1] == pytest.approx(1.0, abs=0.1)
    assert np.isinf(found.profile("half").interval[1])


def test_parameters_near_zero_are_determined():
    def offsets(t, y, yp, a, b):
        return [yp[0] - a, yp[1] - b * t]

    rng = np.random.default_rng(1)
    values = 0.1 * rng.standard_normal((2, len(T)))
    found = fit(offsets, (T, values), {"a": 0.1, "b": 0.1}, y0=[0.0, 0.0], sigma=0.1)
    assert np.all(np.abs(found.x) < 3.0 * found.stderr)
    assert found.unidentifiable == ()


# --- the model is wrong, or right ---------------------------------------------------------------


def test_a_right_model_raises_no_doubts():
    quiet = 0
    for seed in range(20):
        data = enzyme_data(T, 0.02, seed)
        found = fit(enzyme, data, ENZYME, y0=ENZYME_START, sigma=0.02, log=True)
        quiet += found.doubts == ()
    assert quiet == 20


def two_rates(t, rate=2.0):
    return 0.6 * np.exp(-rate * t) + 0.4 * np.exp(-0.2 * t)


@pytest.mark.parametrize("options", [{"sigma": 0.02}, {}])
def test_a_wrong_model_is_named(options):
    values = two_rates(T) + noise(0.02)
    found = fit(decay, (T, values), {"rate": 1.0, "y0[0]": 1.0}, y0=[1.0], **options)
    assert found.success
    assert any(
        "differences of y[0] form" in text and "The model, not the fit, is at fault." in text
        for text in found.doubts
    )
    too_large = any("does not follow the data within their standard" in t for t in found.doubts)
    assert too_large == ("sigma" in options)


def test_the_experiment_and_unknown_at_fault_are_named():
    good, bad = np.exp(-0.7 * T) + noise(0.02, 2), two_rates(T, 4.0) + noise(0.02, 3)
    found = fit(decay, [{"data": (T, good), "name": "in glass"}, {"data": (T, bad)}],
                {"rate": 1.0}, y0=[1.0], sigma=0.02)
    assert any("y[0] in experiment 1" in text for text in found.doubts)


def test_a_constant_error_is_named():
    def both(t, y, yp, rate):
        return [yp[0] + rate * y[0], y[1] - y[0]]

    y = np.exp(-0.7 * T)
    values = np.stack([y + noise(0.01, 4), y + 0.05 + noise(0.01, 5)])
    found = fit(both, (T, values), {"rate": 1.0}, y0=[1.0, 1.0], sigma=[0.01, 0.05])
    assert any("below the data of y[1] on average" in text for text in found.doubts)


def test_standard_errors_that_are_too_large():
    found = fit(decay, (T, np.exp(-0.7 * T) + noise(0.01)), {"rate": 1.0}, y0=[1.0], sigma=0.1)
    assert any("sigma is too large" in text for text in found.doubts)


def test_one_value_far_away():
    values = np.exp(-0.7 * T) + noise(0.01)
    values[20] += 0.3
    found = fit(decay, (T, values), {"rate": 1.0}, y0=[1.0])
    assert any("at t = 2, is" in text and "outlier" in text for text in found.doubts)


def test_errors_of_the_solver_are_no_pattern():
    found = fit(decay, (T, np.exp(-0.7 * T)), {"rate": 1.0}, y0=[1.0], rtol=1e-5)
    assert found.chi2 > 0.0
    assert found.doubts == ()


def test_a_search_that_was_cut_short():
    found = fit(enzyme, enzyme_data(T), {"catalysis": 9.0}, args={**ENZYME}, y0=ENZYME_START,
                max_nfev=2)
    assert not found.success
    assert "max_nfev" in found.message
    assert any("has not converged" in text for text in found.doubts)
    assert "NOT CONVERGED" in str(found)


def test_a_line_has_no_doubts_either():
    found = fit(line, (T, 2.0 * T + noise(0.1)), {"slope": 1.0, "y0[0]": 0.0}, y0=[0.0], sigma=0.1)
    assert found.doubts == ()
    assert found.unidentifiable == ()
