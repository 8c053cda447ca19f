"""The seam of matrices: what fills it, and that nothing goes past it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import tether
from tether import Problem, solve_dae
from tether.plan.memory import OWN_LU_UP_TO, new_state
from tether.plan.model import AsWritten
from tether.problem.options import Options

# Another way to store and factor: NumPy's arrays and its inverse, patterns as sets. What it
# computes is rounded differently.
TOY = """
import json, sys
import numpy as np
from scipy.sparse import csr_array
import tether.plan.memory as memory
from tether import Problem, solve_dae
from tether._core import dense, lapack
from tether._core.codes import OF_Y, OF_YP, OK, ROWS, SINGULAR
from tether._core.matrix import Matrix
from tether._core.band import BandLU
from tether._core.sparse import Sparse
from tether.base.pattern import Pattern

def methods(cls):
    return {name for name, value in vars(cls).items() if callable(value) and name[0] != "_"}

class Toy(Matrix):
    made = 0

    def __init__(self, n):
        Toy.made += 1
        self.n, self.room, self.arrays = n, n * n, {}
        self.fy, self.fyp = np.zeros(n * n), np.zeros(n * n)
        self.whole = np.zeros((n, n))
        self.changing = np.ones((n, n), bool)

    def of(self, which):
        return self.get(which) if which in (OF_Y, OF_YP) else self.whole

    def clear(self):
        self.fy[:] = self.fyp[:] = 0.0

    def put(self, which, matrix):
        self.of(which)[:] = matrix.toarray() if hasattr(matrix, "toarray") else matrix

    def get(self, which):
        return (self.fy if which == OF_Y else self.fyp).reshape(self.n, self.n).T

    def put_column(self, which, j, rows, values, count):
        old = self.of(which)[:, j].copy()
        self.of(which)[:, j] = 0.0
        self.put_entries(which, j, rows, values, count)
        return np.abs(self.of(which)[:, j] - old).max()

    def put_entries(self, which, j, rows, values, count):
        self.of(which)[rows[:count], j] = values[:count]

    def column(self, which, j, rows, values):
        found = np.flatnonzero(self.of(which)[:, j])
        rows[: len(found)], values[: len(found)] = found, self.of(which)[found, j]
        return len(found)

    def add_product(self, which, x, out):
        out += self.of(which) @ x

    def add_linear(self, y, yp, out):
        out += self.get(OF_Y) @ y + self.get(OF_YP) @ yp

    def add_sizes(self, which, x, out):
        out += np.abs(self.of(which) * x).sum(axis=1)

    def largest_in_rows(self, which, x, out):
        out[:] = (np.abs(self.of(which)) * x).max(axis=1)

    def largest_in_column(self, which, j, rows):
        there = rows > 0
        return (np.abs(self.of(which)[there, j]) / rows[there]).max(initial=0.0)

    def forget_changes(self):
        self.changing[:] = True

    def keep_jacobian(self):
        self.whole = self.get(OF_Y).copy()

    def note_changes(self, first, size, noise):
        new = np.abs(self.get(OF_Y))
        old = np.abs(self.whole)
        changed = np.abs(self.get(OF_Y) - self.whole) > 1e-3 * np.maximum(new, old)
        changed &= np.abs(self.get(OF_Y) - self.whole) * size > noise[:, None]
        self.changing = changed if first else self.changing | changed

    def set_changes(self, x, share, remainder, product):
        product[:] = np.where(self.changing, self.get(OF_Y), 0.0) @ x
        remainder -= share * (self.get(OF_YP) @ x)

    def changing_in_row(self, i, x):
        return np.where(self.changing[i], self.get(OF_Y)[i], 0.0) @ x

    def size_of_row(self, i, y, yp, missing):
        left = np.where(self.changing[i], np.abs(1.0 - missing), 1.0)
        return (np.abs(self.get(OF_Y)[i] * y) * left + np.abs(self.get(OF_YP)[i] * yp)).sum()

    def open_patterns(self):
        self.patterns = [[set() for _ in range(self.n)] for _ in range(3)]

    def rows_of(self, pattern, j, rows):
        found = sorted(self.patterns[pattern][j])
        rows[: len(found)] = found
        return len(found)

    def set_rows(self, pattern, j, rows, count):
        self.patterns[pattern][j] = set(rows[:count].tolist())

    def mark_rows(self, pattern, j, rows, count):
        before = len(self.patterns[pattern][j])
        self.patterns[pattern][j] |= set(rows[:count].tolist())
        return len(self.patterns[pattern][j]) > before

    def meets(self, pattern, j, marks):
        return any(marks[i] != 0.0 for i in self.patterns[pattern][j])

    def assemble(self, c):
        self.whole = self.get(OF_Y) + c * self.get(OF_YP)

    def scale(self, mode, c, rows, columns):
        if mode == ROWS:
            size = np.abs(self.whole)
        else:
            size = np.where(self.get(OF_YP), c, np.where(self.get(OF_Y), 1.0, 0.0)) * columns
        rows[:] = 1.0 / size.max(axis=1)
        self.whole *= np.outer(rows, columns)

    def positions(self, rows, columns):
        return np.asarray(columns) * self.n + np.asarray(rows)

    def assemble_split(self, of_y, start, row, basis):
        for j in range(self.n):
            matrix = self.get(OF_Y) if of_y[j] else self.get(OF_YP)
            if not isinstance(start, np.ndarray):
                self.whole[:, j] = matrix[:, j]
            else:
                part = slice(start[j], start[j + 1])
                self.whole[:, j] = matrix[:, row[part]] @ basis[part]

    def divide(self, rows, columns):
        self.whole /= np.outer(rows, columns)
        return np.abs(self.whole).sum(axis=0).max()

    def factor(self):
        try:
            self.inverse = np.linalg.inv(self.whole)
        except np.linalg.LinAlgError:
            return SINGULAR
        return OK

    def solve(self, b):
        b[:] = self.inverse @ b

    def pivot_ratio(self):
        return 1.0

    def reciprocal_condition(self, norm):
        return 1.0 / (norm * np.linalg.norm(self.inverse, 1))

def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam*x, yp[3] + lam*z + 9.8, x*x + z*z - 1]

def rotated(t, y, yp):
    return [yp[0] + yp[1] + y[0], y[0] - 2*y[1] + np.sin(t)]

def jac(t, y, yp):
    return csr_array([[1.0, 0.0], [1.0, -2.0]]), csr_array([[1.0, 1.0], [0.0, 0.0]])

def heat(t, y, yp):
    return yp + 9*y - np.append(y[1:], t)**2

ways = [
    lambda: solve_dae(pendulum, (0, 0.3), [1, 0, 0, 0, 0]),
    lambda: solve_dae(pendulum, (0, 0.1), [1, 0, 0, 0, 0], form="given", trace="never",
                      options={"scaling": "kinds"}),
    lambda: solve_dae(rotated, (0, 1), [0, 0], options={"scaling": "rows"}, trace="never"),
    lambda: solve_dae(Problem(rotated, jac=jac), (0, 1), [0, 0]),
    lambda: solve_dae(Problem.mass_matrix(np.eye(24), lambda t, y: -np.arange(1.0, 25.0) * y),
                      (0, 0.1), np.ones(24)),
    lambda: solve_dae(heat, (0, 0.1), np.ones(44), trace="never", rtol=1e-4),
]
ours = [solve() for solve in ways]
memory.new_matrix = lambda model, *solver: Toy(model.size)
theirs = [solve() for solve in ways]
memory.new_matrix = lambda model, *solver: Sparse(model.pattern or Pattern(model.size))
sparse = [solve() for solve in ways]
memory.new_matrix = lambda model, *solver: Sparse(model.pattern or Pattern(model.size), BandLU)
band = [solve() for solve in ways]
print(json.dumps({
    "file": dense.__file__, "made": Toy.made,
    "missing": [
        sorted(methods(Matrix) - methods(cls)
               - {"forget_changes", "keep_jacobian", "open_split", "solve_well",
                  "take_difference", "weigh"})
        for cls in (Toy, dense.Dense, Sparse)
    ],
    "runs": [[s.success, t.success, s.y[:, -1].tolist(), t.y[:, -1].tolist(), s.nfev, t.nfev]
             for others in (theirs, sparse, band) for s, t in zip(ours, others)],
}))
"""


def test_another_kind_of_matrix_fills_the_seam(tmp_path):
    pytest.importorskip("Cython")
    shutil.copytree(Path(tether.__file__).parent, tmp_path / "tether",
                    ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__"))
    done = subprocess.run(
        [sys.executable, "-c", TOY], env={**os.environ, "PYTHONPATH": str(tmp_path), "PATH": ""},
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["file"].endswith(".py")
    assert found["missing"] == [[], [], []]
    assert 3 * found["made"] >= len(found["runs"])
    for success, toy_success, dense, toy, calls, toy_calls in found["runs"]:
        assert success
        assert toy_success
        np.testing.assert_allclose(toy, dense, rtol=1e-6, atol=1e-7)
        assert abs(toy_calls - calls) <= 0.1 * calls + 2


def decay(t, y, yp):
    return yp + np.arange(1, len(y) + 1) * y


@pytest.mark.parametrize("n", [OWN_LU_UP_TO // 2, OWN_LU_UP_TO, OWN_LU_UP_TO + 1, 300])
def test_nothing_but_the_matrix_has_memory_like_n_squared(n):
    state = new_state(AsWritten(Problem(decay), n), Options())
    parts = {name: state.array(name) for name in ("fy", "fyp", "lu")}
    assert all(part.shape == (n * n,) for part in parts.values())
    owned = {id(part.base) for part in parts.values()}
    others = [array[0] if type(array) is tuple else array for array in
              (state.array(name) for name in ("phi", "ring", "delta", "column_values", "kind"))]
    bases = {id(array if array.base is None else array.base): array for array in others}
    assert not owned & set(bases)
    if n == 300:
        for array in bases.values():
            assert (array if array.base is None else array.base).size < n * n / 2


@pytest.mark.parametrize("n", [3, OWN_LU_UP_TO + 2])
@pytest.mark.parametrize("form", [np.asarray, csr_array, lambda m: m.tolist()])
def test_a_jacobian_of_the_users_comes_in_any_form(n, form):
    rates = np.arange(1.0, n + 1)
    sol = solve_dae(
        Problem(decay, jac=lambda t, y, yp: (form(np.diag(rates)), form(np.eye(n)))), (0, 1),
        np.ones(n), rtol=1e-6,
    )
    assert sol.success
    np.testing.assert_allclose(sol.y[:, -1], np.exp(-rates), atol=1e-5)


def test_terms_with_slopes_that_change_are_taken_anew():
    problem = Problem.split(
        lambda t, y, yp: [(1 + y[0] ** 2) * yp[0], 0.0],
        lambda t, y: [1.0, y[1] - y[0] ** 2],
    )
    sol = solve_dae(problem, (0, 5), [0.0, 0.0], trace="never", rtol=1e-8, atol=1e-8)
    assert sol.success
    y = sol.y[0, -1]
    assert y + y**3 / 3 == pytest.approx(5.0, abs=1e-6)
    assert sol.y[1, -1] == pytest.approx(y**2, abs=1e-6)
