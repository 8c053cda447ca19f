"""LAPACK for the core, taken from SciPy without the rest of it."""

import subprocess
import sys

import numpy as np

from tether import solve_dae
from tether.base import lapack as routines

SCRIPT = """
import sys
import numpy as np
from tether import solve_dae

n = 25
rates = np.linspace(1.0, 2.0, n)
sol = solve_dae(lambda t, y, yp: [yp[i] + rates[i] * y[i] for i in range(n)], (0, 1), np.ones(n))
assert sol.success and abs(sol.y[:, -1] - np.exp(-rates)).max() < 1e-5
assert "tether._core.lapack" in sys.modules
print("scipy.linalg" in sys.modules)

import scipy.linalg.cython_lapack
assert scipy.linalg.cython_lapack is sys.modules["scipy.linalg.cython_lapack"]
assert np.allclose(scipy.linalg.lu_solve(scipy.linalg.lu_factor(2 * np.eye(3)), np.ones(3)), 0.5)
"""


def test_a_large_system_is_solved_without_importing_the_whole_of_scipy_linalg():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"


def test_the_routines_are_found_by_an_ordinary_import_where_there_is_no_file(monkeypatch):
    monkeypatch.setattr(routines, "_alone", lambda: None)
    assert "int *" in repr(routines.capsules(("dgetrs",))[0])


def test_lapack_and_the_core_s_own_factors_agree():
    # 20 unknowns are factored by the core itself, 21 by LAPACK
    for n in (20, 21):
        matrix = np.random.default_rng(n).uniform(-1, 1, (n, n)) - 3.0 * np.eye(n)
        sol = solve_dae(lambda t, y, yp, m=matrix: yp - m @ y, (0, 1), np.ones(n), rtol=1e-8)
        values, vectors = np.linalg.eig(matrix)
        exact = (vectors * np.exp(values)) @ np.linalg.solve(vectors, np.ones(n))
        assert np.abs(sol.y[:, -1] - exact).max() < 1e-6
