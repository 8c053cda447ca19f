"""What `import tether` loads: NumPy, what a solve needs, and nothing else."""

import pytest
from support.helpers import start_python

import tether

# Modules that `import tether` loads beside NumPy's, tether's own included: 226, and a margin.
MOST_MODULES = 245
# Loaded when it is asked for.
LATE = {
    "PIL", "difflib", "h5py", "html", "json", "matplotlib", "numba", "pandas", "pathlib",
    "scipy", "subprocess", "tempfile", "xarray",
    "tether.bdf", "tether.cli", "tether.consistent", "tether.explain.describe",
    "tether.explain.diagnosis", "tether.explain.examine", "tether.fixed", "tether.gallery",
    "jax", "tether.bridge", "tether.jax", "tether.torch", "torch",
    "tether.problem.quadratures",
    "tether.result.animate", "tether.result.files", "tether.result.plot",
    "tether.start.high_index", "tether.start.rescue", "tether.start.search",
    "tether.structure.array", "tether.studies", "tether.trace.compile_c",
}


def loaded_by(statement):
    process = start_python(
        f"import sys, numpy\nbefore = set(sys.modules)\n{statement}\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    out, err = process.communicate()
    assert err == ""
    return set(out.split())


@pytest.mark.parametrize("statement", ["import tether", "from tether import solve_dae, analyze"])
def test_import_loads_what_a_solve_needs(statement):
    loaded = loaded_by(statement)
    assert "tether.solve" in loaded
    assert not loaded & LATE
    assert len(loaded) < MOST_MODULES


def test_public_names_do_not_need_scipy():
    assert "scipy" not in loaded_by("from tether import *\nassert Bdf and load and solve_fixed")


def test_public_names_are_listed_before_they_are_used():
    code = "import tether\nassert set(tether.__all__) <= set(dir(tether))\nassert tether.Bdf"
    assert "tether.bdf" in loaded_by(code)


def test_names_that_do_not_exist_are_refused_as_everywhere():
    with pytest.raises(AttributeError, match="module 'tether' has no attribute 'solve_ode'"):
        _ = tether.solve_ode


def test_analyze_stays_the_function_whatever_is_imported():
    loaded_by("import tether, tether.analyze, tether.cli.main\nassert callable(tether.analyze)")
