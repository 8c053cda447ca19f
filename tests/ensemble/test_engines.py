"""Executors, joblib and Dask: the same bits, and nothing lost with a worker."""

import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from multiprocessing import get_all_start_methods, get_context

import numpy as np
import pytest
from support.ensembles import decay, pendulum, rates, robertson

from tether import solve_ensemble
from tether.ensemble import engines
from tether.ensemble.members import read_members
from tether.ensemble.remote import pack
from tether.ensemble.task import read_task
from tether.ensemble.worker import Worker

K = np.linspace(0.5, 2.5, 30)


def same(one, other):
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.stats["nfev"], other.stats["nfev"])
    assert other.success.all()


def test_executors():
    near = solve_ensemble(robertson, (0.0, 1e3), [1.0, 0.0, 0.0], args=rates(30))
    with ThreadPoolExecutor(2) as pool:
        far = solve_ensemble(robertson, (0.0, 1e3), [1.0, 0.0, 0.0], args=rates(30), engine=pool)
        assert far.engine == "executor"
        same(near, far)
        assert pool.submit(abs, -1).result() == 1          # it is left open
    if "fork" in dir(os):
        with ProcessPoolExecutor(2, get_context("fork")) as pool:
            same(near, solve_ensemble(robertson, (0.0, 1e3), [1.0, 0.0, 0.0], args=rates(30),
                                      engine=pool))


def test_a_closed_executor_is_refused():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        solve_ensemble(decay, (0.0, 1.0), [1.0], args=(K,), engine=pool)


def test_an_executor_that_is_closed_on_the_way():
    pool = ThreadPoolExecutor(1)

    def close(done, total, seconds_left):
        pool.shutdown(wait=False)

    with pytest.warns(RuntimeWarning, match="were not solved"):
        result = solve_ensemble(decay, (0.0, 1.0), [1.0], args=(K,), engine=pool, progress=close)
    assert 0 < result.success.sum() < 30


def test_a_pool_that_has_lost_its_processes(tmp_path):
    def deadly(t, y, yp, rate):
        if rate == K[20]:
            os._exit(1)
        return [yp[0] + rate * y[0]]

    pytest.importorskip("cloudpickle")
    with (
        ProcessPoolExecutor(1, get_context("fork")) as pool,
        pytest.warns(RuntimeWarning, match="lost its workers"),
    ):
        result = solve_ensemble(deadly, (0.0, 1.0), [1.0], args=(K,), engine=pool, trace="never")
    assert not result.success[20]
    assert result.interrupted


def test_functions_that_cannot_be_sent():
    lock = __import__("threading").Lock()

    def locked(t, y, yp, rate):
        with lock:
            return [yp[0] + rate * y[0]]

    members = read_members(locked, (K,), [1.0], None)
    task = read_task(locked, (0.0, 1.0), None, None, members, {})
    with pytest.raises(TypeError, match="cannot be sent to another process"):
        pack(task)
    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError, match="engine='threads'"):
        solve_ensemble(locked, (0.0, 1.0), [1.0], args=(K,), engine=pool)
    # forked processes need nothing to be sent
    result = solve_ensemble(locked, (0.0, 1.0), [1.0], args=(K,), engine="processes")
    assert result.success.all()


def test_loky():
    pytest.importorskip("joblib")
    near = solve_ensemble(decay, (0.0, 1.0), [1.0], args=(K,))
    far = solve_ensemble(lambda t, y, yp, rate: [yp[0] + rate * y[0]], (0.0, 1.0), [1.0],
                         args=(K,), engine="loky", workers=2)
    assert far.engine == "loky"
    same(near, far)


def test_auto_takes_processes_for_what_is_called():
    def called(t, y, yp, rate):
        time.sleep(2e-4)
        return [yp[0] + rate * y[0]]

    result = solve_ensemble(called, (0.0, 1.0), [1.0], args=(np.linspace(0.5, 2.5, 200),),
                            workers=2)
    assert result.engine == "processes"
    assert result.in_core == 0
    assert solve_ensemble(decay, (0.0, 1.0), [1.0], args=(K,)).engine == "threads"


# --- Dask -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def test_dask(client):
    near = solve_ensemble(pendulum, (0.0, 1.0), [1.0, 0.0, 0.0, 0.0, 0.0], args=(K + 5.0, 1.0))
    far = solve_ensemble(pendulum, (0.0, 1.0), [1.0, 0.0, 0.0, 0.0, 0.0], args=(K + 5.0, 1.0),
                         engine=client)
    assert far.engine == "dask"
    same(near, far)


def test_dask_fails_member_by_member(client):
    def picky(t, y, yp, rate):
        if rate == K[3]:
            raise LookupError("no such rate")
        return [yp[0] + rate * y[0]]

    result = solve_ensemble(picky, (0.0, 1.0), [1.0], args=(K,), engine=client)
    assert result.failed().tolist() == [3]
    assert isinstance(result.errors[3], LookupError)


def test_a_worker_that_is_killed_loses_nothing(client, tmp_path):
    log = tmp_path / "solved"

    def noted(t, y, yp, rate, place):
        if t == 0.0 and yp[0] == 0.0:
            with open(place, "a") as file:
                file.write(f"{rate!r}\n")
        time.sleep(1e-4)
        return [yp[0] + rate * y[0]]

    rates = np.linspace(0.5, 2.5, 300)
    killed = []

    def kill(done, total, seconds_left):
        if done >= 60 and not killed:
            killed.append(client.run(os.getpid))
            worker = next(iter(killed[0].values()))
            os.kill(worker, 9)

    result = solve_ensemble(noted, (0.0, 1.0), [1.0], args=(rates, str(log)), engine=client,
                            progress=kill, trace="never")
    assert killed
    assert result.success.all()
    np.testing.assert_allclose(result.y[:, 0, 0], np.exp(-rates), rtol=1e-4)
    calls = Counter(float(line) for line in log.read_text().split())
    assert len(calls) == 300
    repeated = [i for i, rate in enumerate(rates) if calls[rate] > min(calls.values())]
    chunks = 1 + sum(b - a > 1 for a, b in pairwise(repeated))
    assert chunks <= 2                             # what it was at, and what waited for it


def test_members_in_the_core_leave_python_to_others():
    k = rates(400)
    members = read_members(robertson, k, [1.0, 0.0, 0.0], None)
    task = read_task(robertson, (0.0, 1e8), None, None, members, {})
    worker = Worker(task, members)
    assert worker.note == ""
    with ThreadPoolExecutor(1) as pool:
        future, turns = pool.submit(worker.solve, members), 0
        while not future.done():
            time.sleep(1e-4)
            turns += 1
        assert future.result().in_core == 400
    assert turns >= 10                             # with the lock held there would be next to none


def test_functions_with_arrays_of_their_own():
    """They are not called by two threads at once: one would find what the other has written."""
    kept = np.zeros(2)

    def careless(t, y, yp, rate):
        kept[0] = rate
        time.sleep(0.0)                            # let the other threads have their turn
        kept[1] = yp[0] + kept[0] * y[0]
        return kept[1:]

    k = np.linspace(0.5, 2.5, 24)
    one, many = (
        solve_ensemble(careless, (0.0, 1.0), [1.0], args=(k,), engine="threads", workers=workers,
                       trace="never")
        for workers in (1, 6)
    )
    same(one, many)
    np.testing.assert_allclose(many.y[:, 0, 0], np.exp(-k), rtol=1e-4)


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="processes are not forked here")
def test_processes_take_over_where_members_turn_out_to_need_python(monkeypatch):
    def relay(t, y, yp, level):
        return [yp[0] - (2.0 if y[0] < level else 0.5)]

    monkeypatch.setattr(engines, "PROCESSES_PAY_FROM", 0.0)
    levels = np.linspace(2.0, 3.0, 120)
    result = solve_ensemble(relay, (0.0, 3.0), [1.0], args=(levels,), workers=2)
    assert result.engine == "processes"
    assert result.success.all()
    np.testing.assert_allclose(
        result.y[:, 0, 0], levels + 0.5 * (3.0 - 0.5 * (levels - 1.0)), rtol=1e-6
    )
    here = solve_ensemble(relay, (0.0, 3.0), [1.0], args=(levels,), engine="threads")
    np.testing.assert_array_equal(result.y, here.y)
