"""Fixtures shared by the tests."""

from importlib.util import find_spec

import pytest
from support.front_door import SPAN
from support.helpers import C_SOURCE, RELAX_START, compile_c, has_compiler, relax

from tether import solve_dae
from tether.plan import choose, functions
from tether.plan.shelf import shelf

# Whole files need these; other tests that need something optional skip by themselves.
NEEDS = {
    "core/test_colours.py": "hypothesis", "core/test_machine.py": "hypothesis",
    "core/test_schedule.py": "hypothesis", "structure/test_sigma.py": "hypothesis",
    "trace/test_compile_c.py": "hypothesis", "trace/test_derive.py": "mpmath",
    "whole/test_properties.py": "hypothesis",
}
collect_ignore = [file for file, package in NEEDS.items() if find_spec(package) is None]


def pytest_report_header():
    return [f"{file} is left out: it needs {NEEDS[file]}" for file in collect_ignore]


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The C functions of `helpers.C_SOURCE`."""
    if not has_compiler():
        pytest.skip("no C compiler")
    return compile_c(C_SOURCE, tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="session", autouse=True)
def cache_of_libraries(tmp_path_factory):
    """No test finds a library that was compiled before, or leaves one behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TETHER_CACHE", str(tmp_path_factory.getbasetemp() / "tether-cache"))
        yield


@pytest.fixture
def nothing_is_known():
    """No test finds what another has left on the shelf."""
    shelf.empty()


@pytest.fixture
def traces(monkeypatch):
    """Functions that were traced, with nothing known before."""
    seen = []
    trace = choose.trace

    def counted(fun, *args, **options):
        seen.append(fun)
        return trace(fun, *args, **options)

    shelf.empty()
    for module in (choose, functions):
        monkeypatch.setattr(module, "trace", counted)
    return seen


@pytest.fixture(params=["traced", "called"])
def events_both_ways(request, monkeypatch):
    """Run a test with event functions as programs, where they can be, and with calls."""
    if request.param == "called":
        monkeypatch.setattr("tether.run.watch.traced_events", lambda *args: None)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A cache of libraries in which there is nothing."""
    monkeypatch.setenv("TETHER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def reference():
    """The relaxation from a residual that returns a list."""
    return solve_dae(relax, SPAN, RELAX_START)
