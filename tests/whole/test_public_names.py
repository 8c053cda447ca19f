"""The public names: documented, with examples that run."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import tether

MODULES = sorted(
    name
    for _, name, _ in pkgutil.walk_packages(tether.__path__, "tether.")
    if "._" not in name
)


def run_examples(thing, name):
    """Run the examples of a docstring as a reader would, with nothing imported beforehand."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    finder = doctest.DocTestFinder(recurse=False)
    report = []
    with np.printoptions(precision=8):         # whatever a test before has left behind
        for test in finder.find(thing, name, globs={}):
            runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
    return runner.tries


def test_modules_are_found():
    assert {"tether.solve", "tether.problem.problem", "tether.start.consistent"} <= set(MODULES)


def test_all_is_sorted_and_complete():
    assert list(tether.__all__) == sorted(tether.__all__)
    assert len(set(tether.__all__)) == len(tether.__all__)
    for name in tether.__all__:
        assert hasattr(tether, name)


@pytest.mark.parametrize("name", tether.__all__)
def test_public_name_has_a_docstring_with_an_example(name):
    thing = getattr(tether, name)
    assert inspect.getdoc(thing), name
    if callable(thing):
        assert thing.__doc__ not in (None, "")
        assert ">>>" in thing.__doc__, f"{name} has no example"
        assert run_examples(thing, name) > 0


@pytest.mark.parametrize(
    "name", [name for name in tether.__all__ if inspect.isclass(getattr(tether, name))]
)
def test_public_members_have_docstrings(name):
    thing = getattr(tether, name)
    for member, value in vars(thing).items():
        is_method = inspect.isfunction(value) or isinstance(value, (classmethod, property))
        if is_method and not member.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{member}"


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_every_module_run(name):
    if name in ("tether.jax", "tether.torch"):
        pytest.importorskip(name.removeprefix("tether."))
    module = importlib.import_module(name)
    assert inspect.getdoc(module), name
    run_examples(module, name)
    for member, thing in vars(module).items():
        if getattr(thing, "__module__", None) != name:
            continue
        run_examples(thing, f"{name}.{member}")
        if inspect.isclass(thing):
            for part, value in vars(thing).items():
                function = value.__func__ if isinstance(value, classmethod) else value
                if inspect.isfunction(function):
                    run_examples(function, f"{name}.{member}.{part}")


def test_version_is_that_of_the_package():
    from importlib import metadata

    try:
        installed = metadata.version("tether")
    except metadata.PackageNotFoundError:
        pytest.skip("not installed")
    assert tether.__version__ == installed
