"""Finished members on disk: nothing is lost and nothing repeated."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from support.ensembles import ball, decay, ground, rates, robertson

from tether import solve_ensemble
from tether.ensemble import store as stores
from tether.ensemble.store import StoreError
from tether.ensemble.worker import Worker

K = np.linspace(0.5, 2.5, 40)


def solve(path, k=K, fun=decay, **more):
    return solve_ensemble(fun, (0.0, 1.0), [1.0], args=(k,), store=path, **more)


def count_members(monkeypatch):
    """Note the numbers of all members that are solved."""
    solved = []
    original = Worker.solve

    def noting(self, members, first=0, *rest):
        solved.extend(range(first, first + members.count))
        return original(self, members, first, *rest)

    monkeypatch.setattr(Worker, "solve", noting)
    return solved


def test_a_second_run_solves_nothing(tmp_path, monkeypatch):
    first = solve(tmp_path / "store")
    solved = count_members(monkeypatch)
    second = solve(tmp_path / "store")
    assert solved == []
    np.testing.assert_array_equal(first.y, second.y)
    np.testing.assert_array_equal(first.stats["steps"], second.stats["steps"])
    assert second.success.all()
    assert second.in_core == 40


def test_missing_members_are_solved(tmp_path, monkeypatch):
    first = solve(tmp_path)
    files = sorted(tmp_path.glob("chunk-*.npz"))
    lost = [int(files[2].stem.split("-")[1]), int(files[2].stem.split("-")[2])]
    files[2].unlink()
    files[0].write_bytes(b"not what was written")
    solved = count_members(monkeypatch)
    second = solve(tmp_path)
    assert sorted(solved) == [0, *range(*lost)]
    np.testing.assert_array_equal(first.y, second.y)


def test_interrupted_runs_go_on(tmp_path, monkeypatch):
    def press(done, total, seconds_left):
        if done >= 10:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(RuntimeWarning, match="interrupted"):
        part = solve(tmp_path, progress=press)
    done = set(np.flatnonzero(part.success).tolist())
    solved = count_members(monkeypatch)
    whole = solve(tmp_path)
    assert whole.success.all()
    np.testing.assert_array_equal(whole.y[part.success], part.y[part.success])
    kept = done - set(solved)
    assert len(kept) >= 10 - 1                     # all but the chunk that was being written


def test_failures_and_events_are_kept(tmp_path):
    g = np.array([1.0, 9.81, np.nan])
    for _ in range(2):
        result = solve_ensemble(ball, (0.0, 2.0), [4.0, 0.0], args=(g,), events=ground,
                                store=tmp_path)
        assert result.failed().tolist() == [2]
        assert len(result.t_events[1][0]) == 1
        assert result.message(2)
        assert result.t_final[1] == pytest.approx(np.sqrt(8 / 9.81))


def other_decay(t, y, yp, rate):
    return [yp[0] + rate * y[0] + 0.0]


@pytest.mark.parametrize("change", [
    {"k": K + 1e-12}, {"rtol": 1e-7}, {"fun": other_decay}, {"t_eval": [0.5]}, {"k": K[:-1]},
    {"events": ground}, {"keep": "full"},
])
def test_another_problem_is_refused(tmp_path, change):
    solve(tmp_path)
    with pytest.raises(StoreError, match="another problem"):
        solve(tmp_path, **change)


def test_closures_and_helpers_count(tmp_path):
    def make(factor):
        def fun(t, y, yp, rate):
            return [yp[0] + factor * rate * y[0]]

        return fun

    solve(tmp_path, fun=make(1.0))
    solve(tmp_path, fun=make(1.0))
    with pytest.raises(StoreError, match="another problem"):
        solve(tmp_path, fun=make(2.0))


def test_folders_of_somebody_else_are_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear all")
    with pytest.raises(StoreError, match="not empty"):
        solve(tmp_path)
    with pytest.raises(StoreError, match="is a file"):
        solve(tmp_path / "letter.txt")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "ensemble.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        solve(tmp_path / "broken")
    (tmp_path / "broken" / "ensemble.json").write_text(json.dumps({"format": 99, "problem": ""}))
    with pytest.raises(StoreError, match="another version"):
        solve(tmp_path / "broken")


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stores.np, "savez", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        result = solve(tmp_path)
    monkeypatch.undo()
    assert result.success.all()
    assert list(tmp_path.glob("chunk-*")) == list(tmp_path.glob(".writing-*")) == []
    assert solve(tmp_path).success.all()


def test_what_does_not_fit_into_memory_is_on_disk(tmp_path, monkeypatch):
    from tether.ensemble import collected

    times = np.linspace(0.0, 1.0, 5)
    plain = solve(None, t_eval=times)
    monkeypatch.setattr(collected, "fits", lambda needed: False)
    with pytest.raises(MemoryError, match="store="):
        solve(None, t_eval=times)
    result = solve(tmp_path, t_eval=times)
    assert isinstance(result.y.base, np.memmap) or isinstance(result.y, np.memmap)
    np.testing.assert_array_equal(plain.y, result.y)
    again = solve(tmp_path, t_eval=times)
    np.testing.assert_array_equal(plain.y, again.y)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system has no such call")
def test_no_room_on_disk_for_what_does_not_fit_into_memory(tmp_path, monkeypatch):
    from tether.ensemble import collected

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(collected, "fits", lambda needed: False)
    monkeypatch.setattr(stores.os, "posix_fallocate", full)
    with pytest.raises(OSError, match="store has no room for y of all members"):
        solve(tmp_path, t_eval=np.linspace(0.0, 1.0, 5))
    assert not (tmp_path / "y.npy").exists()


SCRIPT = """
import sys, numpy as np
sys.path.insert(0, {tests!r})
from support.ensembles import robertson, rates
from tether import solve_ensemble
solve_ensemble(robertson, (0.0, 1e8), [1.0, 0.0, 0.0], args=rates(3000), store={store!r}, workers=1)
"""


def test_a_run_that_was_killed_goes_on(tmp_path, monkeypatch):
    store = tmp_path / "store"
    tests = os.path.dirname(os.path.dirname(__file__))
    script = SCRIPT.format(tests=tests, store=str(store))
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        until = time.monotonic() + 60
        while len(list(store.glob("chunk-*"))) < 4 and time.monotonic() < until:
            time.sleep(0.005)
        process.kill()
    kept = [tuple(int(v) for v in p.stem.split("-")[1:]) for p in store.glob("chunk-*.npz")]
    there = {i for first, last in kept for i in range(first, last)}
    assert len(kept) >= 4
    if len(there) == 3000:
        pytest.skip("it was finished before it could be killed")
    solved = count_members(monkeypatch)
    result = solve_ensemble(robertson, (0.0, 1e8), [1.0, 0.0, 0.0], args=rates(3000), store=store)
    assert result.success.all()
    assert not there & set(solved)
    assert len(solved) == 3000 - len(there)
