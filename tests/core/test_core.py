"""The compiled core itself: codes, the interpreted twin, and what the hot path may not do."""

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from support.helpers import ROOT

import tether
from tether import Constraint, Problem, Status, gallery
from tether._core import codes
from tether.gallery.compiled import compile_residual, find_compiler
from tether.run.integration import Integration

CORE = ROOT / "src" / "tether" / "_core"

# The functions that run in every step (or every residual) of a compiled problem.
HOT = {
    "adapters": ["evaluate", "c_residual", "c_residual_data", "c_status", "c_status_data"],
    "between": ["allowed_between", "weight_between", "only_between", "measure_round_off",
                "evaluate_beside", "note_round_off", "measure_again", "largest_difference",
                "passes_jump", "note_corrections", "follow_projection", "determine",
                "begin_after_jump", "check_between", "next_fraction", "is_due",
                "relative_difference", "evaluate_new_polynomial"],
    "coefficients": ["set_coefficients"],
    "controller": ["next_step", "h211b_ratio", "dassl_ratio", "recover", "smaller_is_worse",
                   "forget_jacobian", "fit_to_end"],
    "error": ["test_error", "judge_orders", "measure_differences", "accumulate"],
    "estimates": ["filters", "apply_estimate", "raise_error", "replace_error",
                  "set_test_weights", "set_weights_of_determined", "is_untestable",
                  "is_lost_in_round_off",
                  "round_off_dominates", "note_untested", "find_noise", "find_noise_of_kind",
                  "change_of_step", "filter_error", "propagate", "interpolation_error"],
    "begin": ["follow_parabola", "find_curvature"],
    "interpolate": ["evaluate_polynomial", "interpolate"],
    "jacobian": ["difference_jacobian", "choose_increments", "difference_fy", "move",
                 "difference_fyp", "choose_slope_increments", "difference_slopes", "move_slope",
                 "move_slope_farther", "take_slope", "largest"],
    "dense": ["storage", *(f"5Dense_{name}" for name in (
        "put_column", "put_entries", "column", "add_product", "add_linear",
        "add_sizes", "largest_in_rows", "largest_in_column", "rows_of", "set_rows", "mark_rows",
        "meets", "assemble", "scale", "assemble_split", "divide", "factor", "solve",
        "pivot_ratio"))],
    "lapack": ["6Lapack_factor", "6Lapack_solve"],
    "linear": ["assemble_and_factor", "scale_matrix", "solve_scaled"],
    "machine": ["run_segment", "powi", "modulo", "smaller", "larger", "sign", "piecewise",
                "take_point", "is_at", "fill", "values_at", "fill_entries", "write_static",
                "entries_at", "rows_at", "machine_residual", "machine_jacobian", "machine_events",
                "check_finite", "machine_constraint", "machine_constraint_jacobian"],
    "native": ["native_values", "native_entries", "native_rows", "native_residual",
               "native_jacobian", "native_events", "native_constraint",
               "native_constraint_jacobian"],
    "newton": ["correct", "needs_factor", "set_up", "iterate", "find_increment", "take_increment",
               "stagnated", "failure_of_solution", "correct_damped", "damped_length"],
    "norms": ["set_weights", "weighted_norm"],
    "order": ["lower_order", "decreasing", "next_order", "may_mislead", "best_neighbour"],
    "predict": ["predict", "start_from_prediction"],
    "colours": ["grouping_pays", "note_rows", "changed_rows", "group_columns", "fits",
                "difference_groups", "try_groups", "move_group", "move_farther", "is_empty",
                "is_lost_in_noise", "take_group", "take_column", "verify_matrix", "draw",
                "estimate_noise"],
    "constraints": ["evaluate_constraints", "call_c", "linearise_constraints",
                    "difference_constraints"],
    "project": ["project", "move_onto", "linearise", "set_scaling", "scaled_rows", "find_masks",
                "factor_orthogonal", "clean", "solve_orthogonal", "factor_cholesky",
                "solve_cholesky"],
    "ring": ["remember", "worst_component"],
    "sparsity": ["difference_sparse", "find_and_difference", "find_rows", "rule_out",
                 "changed_among", "look_for_absent"],
    "step": ["step", "project_all", "complete", "run"],
    "terms": ["set_terms", "filter_terms"],
    "store": ["store", "store_outputs", "project_output", "store_row"],
}
FORBIDDEN = re.compile(
    r"PyGILState|PyEval_|Py_INCREF|Py_DECREF|__Pyx_GetModuleGlobalName|PyObject|malloc|PyErr_"
)


def test_codes_have_the_same_values_compiled_and_interpreted():
    text = (CORE / "codes.pxd").read_text()
    names = dict(re.findall(r"^    (\w+) = ([^#\n]+)", text, flags=re.MULTILINE))
    values = {name: eval(value, dict(codes.__dict__)) for name, value in names.items()}
    interpreted = {name: value for name, value in vars(codes).items() if name.isupper()}
    assert values == interpreted
    assert len(values) > 10


def test_fatal_codes_are_statuses():
    for name, code in (
        ("ERROR_TEST_FAILED", -codes.ERROR_TEST),
        ("NO_CONVERGENCE", -codes.NO_CONVERGENCE),
        ("SINGULAR_MATRIX", -codes.SINGULAR),
        ("NON_FINITE", -codes.NON_FINITE),
        ("ZERO_WEIGHT", codes.ZERO_WEIGHT),
        ("TOO_ACCURATE", codes.TOO_ACCURATE),
        ("NOT_ON_CONSTRAINTS", -codes.NOT_ON_CONSTRAINTS),
        ("CONTRADICTION", -codes.CONTRADICTION),
    ):
        assert Status[name] == code


TWIN = """
import json, sys
import numpy as np
import tether._core.step
from tether import Problem, solve_dae

def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam*x, yp[3] + lam*z + 9.8,
            u*u + w*w - lam*(x*x + z*z) - 9.8*z]

def bottom(t, y, yp):
    return y[0]

def pushed(t, y, yp):
    x, v, force = y
    return [yp[0] - v, yp[1] + np.sin(30*t) + (3.0 if t > 0.05 else -1.0) - force, x - t]

runs = [
    solve_dae(pendulum, (0, 1), [1, 0, 0, 0, 0], events=bottom, dense_output=True,
              t_eval=np.linspace(0, 1, 7)),
    solve_dae(pendulum, (0, 0.3), [1, 0, 0, 0, 0],
              options={"controller": "dassl", "error_norm": "rms"}),
    solve_dae(pendulum, (0, 0.3), [1, 0, 0, 0, 0], t_eval=[0.1, 0.3],
              constraints=lambda t, y: [y[0]**2 + y[1]**2 - 1, y[0]*y[2] + y[1]*y[3]],
              invariants=lambda t, y: 0.5*(y[2]**2 + y[3]**2) + 9.8*y[1]),
    solve_dae(pushed, (0, 0.1), [0, 1, 0], t_eval=np.linspace(0, 0.1, 5), rtol=1e-4),
    solve_dae(pendulum, (0, 0.3), [1, 0, 0, 0, 0], options={"projection_solver": "cholesky"},
              constraints=lambda t, y: y[0]**2 + y[1]**2 - 1),
    solve_dae(Problem.mass_matrix(np.eye(24), lambda t, y: -np.arange(1.0, 25.0) * y), (0, 0.2),
              np.ones(24)),
    solve_dae(lambda t, y, yp: yp + 9*y - np.append(y[1:], t)**2, (0, 0.2), np.ones(44),
              trace="never", rtol=1e-4),
]
print(json.dumps({
    "file": tether._core.step.__file__,
    "runs": [[s.y[:, -1].tolist(), s.yp[:, -1].tolist(), s.stats.steps, s.nfev, s.njev, s.nlu,
              [list(map(float, t)) for t in s.t_events or []]] for s in runs],
}))
"""


def run_twin(path):
    done = subprocess.run(
        [sys.executable, "-c", TWIN], env={**os.environ, "PYTHONPATH": str(path), "PATH": ""},
        cwd=path, capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_compiled_core_equals_interpreted_core(tmp_path):
    pytest.importorskip("Cython")
    shutil.copytree(Path(tether.__file__).parent, tmp_path / "tether",
                    ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__"))
    interpreted = run_twin(tmp_path)
    compiled = run_twin(Path(tether.__file__).parent.parent)
    assert interpreted["file"].endswith(".py")
    assert not compiled["file"].endswith(".py")
    for ours, theirs in zip(compiled["runs"], interpreted["runs"], strict=True):
        assert ours[2:6] == theirs[2:6]
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ours[6], theirs[6], rtol=1e-10)


def function_bodies(c_source, module):
    """Bodies of the C functions that implement a module's cdef functions, by name."""
    prefix = re.escape(f"__pyx_f_6tether_5_core_{len(module)}{module}_")
    bodies = {}
    for match in re.finditer(rf"^[^\n;]*\b{prefix}(\w+)\([^;{{]*\) \{{$", c_source, re.MULTILINE):
        end = c_source.index("\n}\n", match.end())
        bodies[match.group(1)] = c_source[match.end():end]
    return bodies


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("module", sorted(HOT))
def test_hot_path_takes_no_gil_and_touches_no_objects(module, tmp_path):
    pytest.importorskip("Cython")
    target = tmp_path / f"{module}.c"
    directives = "boundscheck=False,wraparound=False,initializedcheck=False,cdivision=True"
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", "-X", directives, "-I", str(CORE.parent.parent),
         str(CORE / f"{module}.py"), "-o", str(target)],
        check=True, capture_output=True, cwd=CORE.parent.parent,
    )
    bodies = function_bodies(target.read_text(encoding="utf-8"), module)
    assert set(HOT[module]) <= set(bodies)
    for name in HOT[module]:
        found = FORBIDDEN.search(without_comments(bodies[name]))
        assert found is None, f"{module}.{name} uses {found.group()}"


@pytest.fixture
def long_run(tmp_path):
    """A compiled residual with thousands of steps ahead, already under way."""
    if find_compiler() is None:
        pytest.skip("no C compiler")
    problem = gallery.get("trivial")
    run = Integration(compile_residual(problem, tmp_path), 0.0, problem.y0, problem.yp0,
                      {"rtol": 1e-8, "atol": 1e-8}, t_bound=1e6)
    run.advance(1000)
    return run


CIRCLE_C = """
void circle(double t, double *y, double *g) { g[0] = y[0]*y[0] + y[1]*y[1] - 1.0; }
void oscillator(double t, double *y, double *p, double *o) {
    o[0] = p[0] + y[1]; o[1] = p[1] - y[0]; }
"""


@pytest.fixture
def long_projected_run(tmp_path):
    """The same with a compiled constraint."""
    if find_compiler() is None:
        pytest.skip("no C compiler")
    (tmp_path / "circle.c").write_text(CIRCLE_C)
    subprocess.run([find_compiler(), "-shared", "-fPIC", "-o", str(tmp_path / "libcircle.so"),
                    str(tmp_path / "circle.c")], check=True)
    library = ctypes.CDLL(str(tmp_path / "libcircle.so"))
    pointer = ctypes.POINTER(ctypes.c_double)
    for name, pointers in (("circle", 2), ("oscillator", 3)):
        function = getattr(library, name)
        function.restype, function.argtypes = None, [ctypes.c_double, *[pointer] * pointers]
    problem = Problem(library.oscillator, constraints=Constraint(library.circle, size=1))
    options = {"rtol": 1e-8, "atol": 1e-8}
    run = Integration(problem, 0.0, [1.0, 0.0], None, options, t_bound=1e6)
    run.advance(1000)
    return run


@pytest.mark.parametrize("run", ["long_run", "long_projected_run"])
def test_steps_allocate_no_python_memory(run, request):
    long_run = request.getfixturevalue(run)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        long_run.advance(20_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert long_run.state.steps == 21_000
    assert peak - before < 2_000           # the integers of the call itself


def test_steps_allocate_no_c_memory(long_run):
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        pytest.skip("no mallinfo2 in this C library")

    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                     "uordblks", "fordblks", "keepcost")]

    mallinfo.restype = Info
    long_run.advance(1)
    before = mallinfo().uordblks
    long_run.advance(20_000)
    assert mallinfo().uordblks - before < 2_000
