"""What varies, what is shared, and what is refused."""

import numpy as np
import pytest
from support.ensembles import decay, oscillator, pendulum

from tether import Problem, solve_ensemble
from tether.ensemble import latin_hypercube, product, shared, sobol
from tether.ensemble.members import read_members

K = np.array([1.0, 2.0, 3.0])


def solve(args, y0=(1.0,), fun=decay, **more):
    return solve_ensemble(fun, (0.0, 1.0), y0, args=args, **more)


@pytest.mark.parametrize(("args", "y0", "words"), [
    ((1.0,), [1.0], "nothing varies"),
    ((), [1.0], "nothing varies"),
    (([1.0, 2.0, 3.0], np.ones(3)), [1.0], "list of 3 numbers"),
    ((np.ones(3), np.ones(4)), [1.0], r"of the same length, got a: 3, b: 4"),
    ((np.ones(3), 1.0), np.ones((2, 1)), r"a: 3, y0: 2"),
    ((np.ones(3), 1.0), np.ones((2, 2, 1)), r"y0 must have shape"),
    ((np.ones(3), 1.0), [], r"y0 must have shape"),
])
def test_what_does_not_fit_is_refused(args, y0, words):
    def fun(t, y, yp, a, b):
        return [yp[0] + a * b * y[0]]

    with pytest.raises(ValueError, match=words):
        solve_ensemble(fun, (0.0, 1.0), y0, args=args)


@pytest.mark.parametrize(("args", "y0", "words"), [
    (5.0, [1.0], "args must be a sequence"),
    ("k", [1.0], "args must be a sequence"),
    ((k for k in K), [1.0], "args must be a sequence"),
    (((k for k in K),), [1.0], "rate is a generator"),
    ((range(3),), [1.0], "rate is a range"),
    ((K + 1j,), [1.0], "rate must be real"),
    ((K,), ["one"], "y0 must be real"),
    ((K,), (x for x in [1.0]), "y0 must be real"),
    ({"speed": K}, [1.0], "'speed', which is not a parameter"),
    ({}, [1.0], "lacks 'rate'"),
])
def test_wrong_types_are_named(args, y0, words):
    with pytest.raises(TypeError, match=words):
        solve_ensemble(decay, (0.0, 1.0), y0, args=args)


@pytest.mark.parametrize(("more", "words"), [
    ({"engine": "rockets"}, "engine must be"), ({"keep": "everything"}, "keep must be"),
    ({"keep": "t_eval"}, "keep='t_eval' needs t_eval"), ({"workers": 0}, "workers must be"),
    ({"t_eval": [0.0, 2.0]}, "t_eval must lie within"), ({"rtol": -1.0}, "rtol must be"),
    ({"quantiles": [2.0]}, "quantiles must be"), ({"t_eval": [0.5], "keep": "final"}, "t_eval has"),
    ({"names": ["a", "b"]}, "names must"), ({"first_step": 5.0}, "first_step must not be longer"),
    ({"units": {"speed": "m"}}, "units names 'speed'"), ({"atol": [1.0, 2.0]}, "atol must be"),
    ({"equation_names": ["a", "b"]}, "equation_names must"),
    ({"yp0": [1.0, 2.0]}, "yp0 must have"), ({"max_order": 9}, "max_order must be"),
])
def test_wrong_values_are_named(more, words):
    with pytest.raises(ValueError, match=words):
        solve((K,), **more)


@pytest.mark.parametrize(("more", "words"), [
    ({"engine": 5}, "engine must be"), ({"progress": 3}, "progress must be"),
    ({"dense_output": True}, "dense_output is not an argument"), ({"callback": print}, "callback"),
    ({"tolerance": 1.0}, "no argument 'tolerance'"), ({"events": 3}, "events must be"),
    ({"options": 3}, "options must be"),
])
def test_arguments_that_are_none(more, words):
    with pytest.raises(TypeError, match=words):
        solve((K,), **more)


def test_span_is_checked():
    with pytest.raises(ValueError, match="t_span"):
        solve_ensemble(decay, (0.0, 0.0), [1.0], args=(K,))


def test_a_wrong_number_of_arguments_raises():
    with pytest.raises(TypeError):
        solve_ensemble(decay, (0.0, 1.0), [1.0], args=(K, K, K))


def test_arguments_of_a_problem_belong_to_it():
    with pytest.raises(ValueError, match="args belong to the Problem"):
        solve_ensemble(Problem(decay, args=(1.0,)), (0.0, 1.0), [1.0], args=(K,))
    result = solve_ensemble(Problem(decay, args=(1.0,)), (0.0, 1.0), [[1.0], [2.0]])
    np.testing.assert_allclose(result.y[:, 0, 0], [np.exp(-1), 2 * np.exp(-1)], rtol=1e-5)


def test_by_name():
    by_name = solve_ensemble(pendulum, (0.0, 0.1), [1.0, 0.0, 0.0, 0.0, 0.0],
                             args={"length": 1.0, "g": K})
    in_order = solve_ensemble(pendulum, (0.0, 0.1), [1.0, 0.0, 0.0, 0.0, 0.0], args=(K, 1.0))
    np.testing.assert_array_equal(by_name.y, in_order.y)
    assert list(by_name.parameters) == ["g"]


def test_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"length": np.ones(3), "g": K})
    found = solve_ensemble(pendulum, (0.0, 0.1), [1.0, 0.0, 0.0, 0.0, 0.0], args=frame)
    in_order = solve_ensemble(pendulum, (0.0, 0.1), [1.0, 0.0, 0.0, 0.0, 0.0], args=(K, 1.0))
    np.testing.assert_array_equal(found.y, in_order.y)
    series = solve((pandas.Series(K),))
    np.testing.assert_array_equal(series.y, solve((K,)).y)
    with pytest.raises(TypeError, match="'mass', which is not a parameter"):
        solve_ensemble(decay, (0.0, 1.0), [1.0], args=pandas.DataFrame({"mass": K}))


def test_shared_vectors_and_lists():
    def fun(t, y, yp, k, weights):
        return [yp[0] + k * sum(weights) * y[0]]

    vector, entries = np.array([0.5, 0.25, 0.25]), [0.5, 0.5]
    plain = solve((K,)).y
    for weights in (shared(vector), shared([0.5, 0.25, 0.25]), entries, (1.0,)):
        found = solve((K, weights), fun=fun)
        np.testing.assert_allclose(found.y, plain, rtol=1e-8)
    assert solve((K, shared(vector)), fun=fun).in_core == 3


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("times", [None, [0.0, 0.5, 1.0]])
@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_few_members(count, times, engine):
    result = solve((K[:count],), t_eval=times, engine=engine)
    assert len(result) == count
    assert result.y.shape == (count, 1, 1 if times is None else 3)
    assert result.success.shape == (count,)
    assert result.failed().tolist() == []
    assert result.quantiles([0.5]).shape == (1, *result.y.shape[1:])
    assert "members" in repr(result) or count == 1
    str(result)


def test_other_types_of_numbers():
    for k in (K.astype(np.float32), np.array([1.0, 2.0, 3.0], ">f8"), np.asfortranarray(K)):
        np.testing.assert_allclose(solve((k,)).y[:, 0, 0], np.exp(-K), rtol=1e-5)
    strided = np.arange(1.0, 7.0)[::2]
    np.testing.assert_allclose(solve((strided,)).y[:, 0, 0], np.exp(-strided), rtol=1e-4)


def test_objects_vary_too():
    def fun(t, y, yp, settings):
        return [yp[0] + settings["k"] * y[0]]

    settings = np.array([{"k": 1.0}, {"k": 2.0}], dtype=object)
    result = solve((settings,), fun=fun)
    np.testing.assert_allclose(result.y[:, 0, 0], np.exp([-1.0, -2.0]), rtol=1e-5)


def test_parts():
    members = read_members(oscillator, (K,), np.arange(6.0).reshape(3, 2), [0.0, 1.0])
    part = members.part(1, 3)
    assert part.count == 2
    assert part.args_of(0) == (2.0,)
    np.testing.assert_array_equal(part.y0_of(1), [4.0, 5.0])
    np.testing.assert_array_equal(part.yp0_of(1), [0.0, 1.0])


def test_grids_and_samples():
    grid = product(a=[1, 2], b=[0.5, 1.0, 1.5], c=3.0)
    assert {len(values) for values in grid.values()} == {6}
    assert len({tuple(row) for row in zip(*grid.values(), strict=True)}) == 6
    for sample in (latin_hypercube, sobol):
        one, other = (sample(32, seed=3, a=(1.0, 2.0), b=(-1.0, 0.0)) for _ in range(2))
        np.testing.assert_array_equal(one["a"], other["a"])
        assert 1.0 <= one["a"].min() <= one["a"].max() <= 2.0
        # every parameter is spread evenly: one in each of 32 parts
        assert sorted((32 * (one["b"] + 1.0)).astype(int)) == list(range(32))
        with pytest.raises(ValueError, match="a must be a pair"):
            sample(4, a=(2.0, 1.0))
        with pytest.raises(TypeError, match="a must be a pair"):
            sample(4, a=2.0)
        with pytest.raises(ValueError, match="count"):
            sample(0, a=(1.0, 2.0))
        with pytest.raises(ValueError, match="one parameter"):
            sample(4)
    with pytest.raises(ValueError, match="vector"):
        product(a=np.ones((2, 2)))
    with pytest.raises(ValueError, match="one parameter"):
        product()
