"""The shelf: plans are made once, the oldest go first, and what was refused stays refused."""

import threading

import pytest

from tether.plan import shelf as shelves
from tether.plan.plan import Plan
from tether.plan.shelf import Shelf
from tether.trace import trace


def never():
    raise AssertionError("made twice")


def plan_of(size):
    """Plan of a function with many operations."""
    def fun(t, y, yp):
        x = y[0]
        for i in range(size):
            x = x * y[0] + float(i)
        return [yp[0] + x]

    return Plan(trace(fun, 1))


def test_a_plan_is_made_once():
    shelf, plan = Shelf(), Plan()
    assert shelf.find(("f", "auto"), lambda: plan) is plan
    assert shelf.find(("f", "auto"), never) is plan
    other = shelf.find(("f", "given"), Plan)
    assert other is not plan
    assert shelf.find(("f", "auto"), never) is plan
    shelf.empty()
    assert shelf.find(("f", "auto"), Plan) is not plan


def test_nothing_is_kept_of_a_plan_that_could_not_be_made():
    shelf = Shelf()
    with pytest.raises(AssertionError, match="made twice"):
        shelf.find(("f",), never)
    plan = Plan()
    assert shelf.find(("f",), lambda: plan) is plan


def test_what_was_refused_is_not_made_again_in_any_form():
    shelf = Shelf()
    shelf.find(("f", "auto"), Plan)
    shelf.find(("f", "given"), Plan)
    beside = shelf.find(("g", "auto"), Plan)
    shelf.refuse("f", "it lies")
    for form in ("auto", "given", 2):
        assert shelf.find(("f", form), never).note == "it lies"
    assert shelf.find(("g", "auto"), never) is beside
    shelf.empty()
    assert shelf.find(("f", "auto"), Plan).note == ""


def test_the_plans_used_longest_ago_go_first(monkeypatch):
    monkeypatch.setattr(shelves, "MAX_PLANS", 3)
    shelf = Shelf()
    plans = {name: shelf.find((name,), Plan) for name in "abc"}
    shelf.find(("a",), never)
    shelf.find(("d",), Plan)
    for name in "ac":
        assert shelf.find((name,), never) is plans[name]
    assert shelf.find(("b",), Plan) is not plans["b"]


def test_refusals_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(shelves, "MAX_REFUSED", 2)
    shelf = Shelf()
    for name in "abc":
        shelf.refuse(name, "no")
    assert shelf.find(("a",), Plan).note == ""
    assert shelf.find(("c",), never).note == "no"


def test_large_plans_make_room_but_for_the_last(monkeypatch):
    monkeypatch.setattr(shelves, "MAX_BYTES", 100 * shelves.BYTES_PER_NODE)
    shelf = Shelf()
    small, large = plan_of(20), plan_of(200)
    assert len(large.traced.graph.nodes) > 100 > len(small.traced.graph.nodes)
    shelf.find(("small",), lambda: small)
    shelf.find(("large",), lambda: large)
    assert shelf.find(("large",), never) is large
    assert shelf.find(("small",), lambda: small) is small
    with pytest.raises(AssertionError, match="made twice"):
        shelf.find(("large",), never)


def test_forms_of_one_function_share_their_expressions(monkeypatch):
    traced = plan_of(20).traced
    monkeypatch.setattr(shelves, "MAX_BYTES", shelves.BYTES_PER_NODE * len(traced.graph.nodes))
    shelf = Shelf()
    plans = [shelf.find(("f", form), lambda: Plan(traced)) for form in range(5)]
    assert [shelf.find(("f", form), never) for form in range(5)] == plans


def test_threads_may_make_plans_at_once():
    """Whoever is late finds a plan of the same key; nobody waits for another one's plan."""
    shelf, gate, found = Shelf(), threading.Barrier(2, timeout=30), []

    def make():
        gate.wait()                        # passes only if both threads are here
        return Plan()

    threads = [
        threading.Thread(target=lambda name=name: found.append(shelf.find((name,), make)))
        for name in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert {id(shelf.find((name,), never)) for name in "ab"} == {id(plan) for plan in found}
