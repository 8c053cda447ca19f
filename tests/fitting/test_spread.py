"""How well parameters are known: against exact formulas, and against repetition."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from support.fits import decay, line

from tether import fit

T = np.linspace(0.0, 4.0, 12)
DESIGN = np.stack([T, np.ones_like(T)], axis=1)
VALUES = 0.5 + 2.0 * T + 0.1 * np.random.default_rng(5).standard_normal(len(T))
P0 = {"slope": 1.0, "y0[0]": 0.0}


def straight(p0=P0, **options):
    """Fit slope and start of a straight line, for which everything is known."""
    return fit(line, (T, VALUES), p0, y0=[0.0], **options)


@pytest.fixture(scope="module")
def plain():
    return straight()


def test_a_straight_line(plain):
    expected, loss, *_ = np.linalg.lstsq(DESIGN, VALUES, rcond=None)
    np.testing.assert_allclose(plain.x, expected, rtol=1e-8)
    assert plain.chi2 == pytest.approx(loss[0], rel=1e-8)
    assert plain.loss == pytest.approx(plain.chi2)
    assert plain.dof == 10
    np.testing.assert_allclose(plain.residuals, DESIGN @ expected - VALUES, atol=1e-8)
    np.testing.assert_allclose(plain.jac, DESIGN, atol=1e-9)


def test_errors_are_estimated_without_sigma(plain):
    expected = plain.chi2 / 10 * np.linalg.inv(DESIGN.T @ DESIGN)
    np.testing.assert_allclose(plain.covariance, expected, rtol=1e-7)
    np.testing.assert_allclose(plain.stderr, np.sqrt(np.diag(expected)), rtol=1e-7)
    half = student.ppf(0.95, 10) * plain.stderr
    np.testing.assert_allclose(
        plain.confidence(0.9), np.stack([plain.x - half, plain.x + half], axis=1), rtol=1e-7
    )
    assert plain.correlation[0, 0] == pytest.approx(1.0)
    assert plain.correlation[0, 1] == pytest.approx(
        expected[0, 1] / np.sqrt(expected[0, 0] * expected[1, 1])
    )


def test_errors_are_known_with_sigma():
    sigma = np.linspace(0.05, 0.2, len(T))
    found = straight(sigma=sigma)
    weighted = DESIGN / sigma[:, None]
    expected = np.linalg.inv(weighted.T @ weighted)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-7)
    half = norm.ppf(0.975) * found.stderr
    np.testing.assert_allclose(found.confidence()[:, 1], found.x + half, rtol=1e-7)


def test_weights_say_only_how_values_compare(plain):
    found = straight(weights=7.0)
    np.testing.assert_allclose(found.x, plain.x, rtol=1e-8)
    np.testing.assert_allclose(found.covariance, plain.covariance, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"sigma": 0.1}])
@pytest.mark.parametrize("name", ["slope", "y0[0]"])
def test_profiles_of_a_linear_model_are_parabolas(name, options):
    found = straight(**options)
    profile = found.profile(name, 0.9)
    k = found.names.index(name)
    np.testing.assert_allclose(profile.interval, found.confidence(0.9)[k], rtol=2e-3)
    variance = 1.0 if options else found.chi2 / found.dof
    parabola = found.chi2 + variance * ((profile.values - found.x[k]) / found.stderr[k]) ** 2
    np.testing.assert_allclose(profile.chi2, parabola, rtol=1e-5)
    assert np.all(np.diff(profile.values) > 0.0)
    np.testing.assert_array_equal(profile.p[:, k], profile.values)


def test_a_profile_knows_what_the_covariance_does_not():
    t = np.array([0.0, 1.0, 2.0])
    found = fit(decay, (t, np.array([1.0, 0.1, 0.02])), {"rate": 1.0}, y0=[1.0], sigma=0.05)
    low, high = found.profile("rate").interval
    limit = found.chi2 + norm.ppf(0.975) ** 2
    for rate in (low, high):
        chi2 = np.sum((np.exp(-rate * t) - [1.0, 0.1, 0.02]) ** 2) / 0.05**2
        assert chi2 == pytest.approx(limit, rel=0.01)
    assert high - found.x[0] > 1.3 * (found.x[0] - low)


def test_a_profile_ends_at_a_bound():
    found = straight({"slope": 2.1, "y0[0]": 0.0}, bounds={"slope": (1.9, 2.2)}, sigma=1.0)
    assert found.profile("slope").interval == pytest.approx((1.9, 2.2))


def test_a_profile_without_an_end():
    # the sum of squares stays below the limit however fast everything is gone
    t = np.array([1.0, 2.0, 3.0])
    found = fit(decay, (t, np.array([0.02, -0.01, 0.0])), {"rate": 3.0}, y0=[1.0], sigma=0.05,
                t_span=(0, 3))
    low, high = found.profile("rate").interval
    assert np.isinf(high)
    assert 1.5 < low < 3.5


def test_logarithms_make_intervals_that_stay_positive():
    t = np.linspace(0.0, 1.0, 5)
    values = np.exp(-0.05 * t) + np.array([0.0, 0.03, -0.02, 0.01, 0.02])
    plain, logarithmic = (
        fit(decay, (t, values), {"rate": 0.1}, y0=[1.0], log=log) for log in (False, "rate")
    )
    assert logarithmic.x == pytest.approx(plain.x, rel=1e-3)
    assert logarithmic.stderr == pytest.approx(plain.stderr, rel=1e-3)
    assert plain.confidence()[0, 0] < 0.0 < logarithmic.confidence()[0, 0]
    share = logarithmic.confidence()[0] / logarithmic.x[0]
    assert share[0] * share[1] == pytest.approx(1.0)


def test_estimates_scatter_as_the_covariance_says():
    t = np.linspace(0.0, 3.0, 15)
    exact = 2.0 * np.exp(-0.7 * t)
    rng = np.random.default_rng(11)
    found = [
        fit(decay, (t, exact + 0.05 * rng.standard_normal(len(t))), {"rate": 1.0, "y0[0]": 1.0},
            y0=[1.0], sigma=0.05)
        for _ in range(200)
    ]
    x = np.array([one.x for one in found])
    predicted = np.mean([one.covariance for one in found], axis=0)
    scatter = np.cov(x.T)
    assert np.diag(scatter) == pytest.approx(np.diag(predicted), rel=0.35)
    assert scatter[0, 1] == pytest.approx(predicted[0, 1], rel=0.5)
    inside = np.mean([
        (one.confidence(0.9)[:, 0] <= [0.7, 2.0]) & (one.confidence(0.9)[:, 1] >= [0.7, 2.0])
        for one in found
    ], axis=0)
    assert inside == pytest.approx([0.9, 0.9], abs=0.06)


def test_as_many_parameters_as_values():
    found = fit(line, ([0.0, 1.0], [1.0, 3.0]), P0, y0=[0.0])
    assert found.x == pytest.approx([2.0, 1.0])
    assert found.dof == 0
    assert np.all(np.isnan(found.stderr))
    assert "unknown" in str(found)
    with pytest.raises(ValueError, match="as many parameters as values; pass sigma"):
        found.profile("slope")
    known = fit(line, ([0.0, 1.0], [1.0, 3.0]), P0, y0=[0.0], sigma=0.1)
    assert known.stderr == pytest.approx([0.1 * np.sqrt(2), 0.1])


def test_a_robust_loss_forgives_an_outlier():
    values = VALUES.copy()
    values[3] += 20.0
    usual = fit(line, (T, values), P0, y0=[0.0])
    robust = fit(line, (T, values), P0, y0=[0.0], loss="soft_l1", f_scale=0.1)
    true = np.array([2.0, 0.5])
    assert np.all(np.abs(robust.x - true) < 0.1)
    assert np.all(np.abs(usual.x - true) > 0.2)
    assert robust.loss < robust.chi2
    low, high = robust.profile("slope").interval
    assert low < robust.x[0] < high


def test_profiles_of_one_parameter_with_a_robust_loss():
    t = np.linspace(0.0, 2.0, 9)
    found = fit(decay, (t, np.exp(-t)), {"rate": 0.5}, y0=[1.0], sigma=0.1, loss="cauchy")
    low, high = found.profile("rate").interval
    assert found.x == pytest.approx([1.0], rel=1e-4)
    for rate in (low, high):
        z = ((np.exp(-rate * t) - np.exp(-t)) / 0.1) ** 2
        assert np.sum(np.log1p(z)) == pytest.approx(norm.ppf(0.975) ** 2, rel=0.01)


def test_scales_of_steps_do_not_change_the_result(plain):
    found = straight(x_scale=[1.0, 0.1])
    np.testing.assert_allclose(found.x, plain.x, rtol=1e-7)
    assert found.profile("slope").interval == pytest.approx(plain.profile("slope").interval)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_levels_lie_between_0_and_1(plain, level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        plain.confidence(level)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        plain.profile("slope", level)


def test_profiles_are_asked_for_by_name(plain):
    with pytest.raises(ValueError, match=r"'steepness'; the parameters are slope, y0\[0\]"):
        plain.profile("steepness")
