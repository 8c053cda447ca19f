"""Memory: refused in words where it would not suffice, and nothing large is kept alive."""

import gc
import threading
import weakref

import numpy as np
import pytest

import tether
from tether import Problem, analyze, consistent_start, solve_dae, solve_fixed
from tether.base import capacity as memory
from tether.plan import shelf as shelves
from tether.plan.shelf import shelf


def decay(t, y, yp):
    return yp + y


@pytest.fixture
def little(monkeypatch):
    """A machine with little memory left."""
    monkeypatch.setattr(memory, "_of_machine", lambda: 2e8)


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_too_many_unknowns_are_refused_with_the_size_needed(little, trace):
    with pytest.raises(MemoryError, match=r"20000 unknowns need 12\.8 GB.*0?200 MB are free"):
        solve_dae(decay, (0, 1), np.ones(20_000), trace=trace, options={"linear_solver": "dense"})


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_sparse_matrices_of_as_many_fit(little, trace):
    sol = solve_dae(decay, (0, 1), np.ones(20_000), trace=trace, t_eval=[1.0], rtol=1e-3)
    assert sol.success
    assert abs(sol.y[:, -1] - np.exp(-1)).max() < 1e-2


def test_so_are_they_by_the_other_functions(little):
    with pytest.raises(MemoryError, match="unknowns need"):
        consistent_start(decay, 0.0, np.ones(4000))
    with pytest.raises(MemoryError, match="unknowns need"):
        solve_fixed(decay, (0, 1), np.ones(4000), step=0.1, order=2)


def test_output_times_that_do_not_fit_are_refused(little):
    with pytest.raises(MemoryError, match=r"t_eval has 3000000 times.*2\.4e\+02 MB|240 MB"):
        solve_dae(decay, (0, 1), np.ones(5), t_eval=np.linspace(0, 1, 3_000_000))


def test_a_run_whose_steps_no_longer_fit_ends_with_what_it_has(monkeypatch):
    monkeypatch.setattr(memory, "ALWAYS_FITS", 100_000)
    monkeypatch.setattr(memory, "_of_machine", lambda: 2e5)

    def swing(t, y, yp):
        return [yp[0] - y[1], yp[1] + y[0]]

    sol = solve_dae(swing, (0, 1e4), [1.0, 0.0])
    assert not sol.success
    assert sol.status == tether.Status.OUT_OF_MEMORY
    assert sol.diagnosis.cause.value == "memory"
    assert "t_eval" in sol.message
    assert len(sol.t) > 1000
    assert np.allclose(sol.y[0], np.cos(sol.t), atol=1e-2)
    assert solve_dae(swing, (0, 1e3), [1.0, 0.0], t_eval=[1e3]).success


def test_limits_of_process_and_container_count(monkeypatch):
    monkeypatch.setattr(memory, "_of_process", lambda: 1e6)
    assert memory.free_memory() <= 1e6
    monkeypatch.setattr(memory, "_read", lambda path: {
        "/sys/fs/cgroup/memory.max": "5000\n", "/sys/fs/cgroup/memory.current": "4000\n",
    }.get(path, ""))
    assert memory._of_container() == 1000.0
    monkeypatch.setattr(memory, "_read", lambda path: "max\n")
    assert memory._of_container() == np.inf


def test_plans_do_not_keep_the_data_of_functions_alive():
    class Data:
        def __init__(self, k):
            self.k = k
            self.large = np.zeros(1000)

    watched = []
    for k in range(3):
        data = Data(float(k))
        watched.append(weakref.ref(data))

        def fun(t, y, yp, data=data):
            return [yp[0] + data.k * y[0] + data.large[0]]

        def level(t, y, yp, data=data):
            return y[0] - 0.5 - data.large[1]

        def whole(t, y, data=data):
            return y[0] - y[0] + data.k

        sol = solve_dae(fun, (0, 1), [1.0], events=level, invariants=whole)
        assert sol.how.startswith("traced")
        del data, fun, level, whole, sol
    gc.collect()
    assert [ref() for ref in watched] == [None, None, None]


def test_plans_are_kept_within_a_budget(monkeypatch):
    shelf.empty()
    monkeypatch.setattr(shelves, "MAX_BYTES", 400 * 400)

    def chain(n):
        return lambda t, y, yp: [yp[0] + sum(np.sin(k * y[0]) for k in range(1, n))]

    for n in range(5, 15):
        assert solve_dae(chain(n), (0, 1), [1.0]).how.startswith("traced")
    plans = shelf._plans.values()
    assert 1 < len(plans) < 10
    assert shelves._size(plans) <= shelves.MAX_BYTES
    solve_dae(chain(600), (0, 1), [1.0])       # one that is larger than all stays for its run
    assert len(shelf._plans) == 1


def test_one_semi_explicit_problem_serves_threads_with_other_sizes():
    problem = Problem.semi_explicit(lambda t, x, z: -z, lambda t, x, z: x - z)
    failures = []

    def solve(n):
        for _ in range(20):
            try:
                sol = solve_dae(problem, (0, 1), np.ones(2 * n))
                assert np.allclose(sol.y[:, -1], np.exp(-1.0), rtol=1e-4)
            except Exception as error:
                failures.append((n, error))

    threads = [threading.Thread(target=solve, args=(n,)) for n in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert analyze(problem, 0.0, np.ones(6)).n == 6
