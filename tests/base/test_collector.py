"""The collector of garbage is held off for a while, and is then as it was."""

import gc
import threading

import pytest

from tether import solve_dae
from tether.base.collector import collection_paused
from tether.plan import choose
from tether.plan.shelf import shelf


def test_the_collector_is_as_it_was(monkeypatch):
    shelf.empty()
    seen = []

    def fun(t, y, yp):
        return [yp[0] + y[0]]

    verify = choose.verify
    monkeypatch.setattr(
        choose, "verify", lambda *args: seen.append(gc.isenabled()) or verify(*args)
    )
    solve_dae(fun, (0, 1), [1.0])
    assert seen == [False]
    assert gc.isenabled()
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
    with pytest.raises(KeyError), collection_paused():
        raise KeyError
    assert gc.isenabled()


def test_several_may_hold_the_collector_off():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with collection_paused():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    with collection_paused():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()
