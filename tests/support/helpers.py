"""Small problems with exact solutions, and C functions, for the tests."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]

POINTER = ctypes.POINTER(ctypes.c_double)
C_ARGUMENTS = [ctypes.c_double, POINTER, POINTER, POINTER]

# One library for all tests: the same relaxation with every kind of signature.
C_SOURCE = """
#include <math.h>
#include <unistd.h>
void relax(double t, double *y, double *yp, double *out)
{
    out[0] = yp[0] + y[1];
    out[1] = y[0] - y[1] + sin(t);
}
int relax_status(double t, double *y, double *yp, double *out)
{
    relax(t, y, yp, out);
    return 0;
}
void relax_data(double t, double *y, double *yp, double *out, void *data)
{
    relax(t, y, yp, out);
    out[0] += (*(double *)data - 1.0) * y[1];
}
int relax_status_data(double t, double *y, double *yp, double *out, void *data)
{
    relax_data(t, y, yp, out, data);
    return 0;
}
/* refuses negative arguments by its status, with a finite value left in out */
int root(double t, double *y, double *yp, double *out)
{
    out[0] = 0.0;
    if (y[0] < 0.0)
        return 1;
    out[0] = yp[0] + sqrt(y[0]);
    return 0;
}
/* waits, once under way, until somebody else has counted to a thousand; gives up in the end */
volatile int counter = 0, gave_up = 0;
void waiting(double t, double *y, double *yp, double *out)
{
    int i;
    for (i = 0; t > 0.5 && counter < 1000 && !gave_up; i++) {
        usleep(1000);
        gave_up = i > 10000;
    }
    relax(t, y, yp, out);
}
volatile int spins = 0;
void spin(double t, double *y, double *yp, double *out)
{
    spins++;
    out[0] = yp[0] - 40.0 * y[1];
    out[1] = yp[1] + 40.0 * y[0];
}
"""


def decay(t, y, yp):
    """y' = -y."""
    return [yp[0] + y[0]]


def relax(t, y, yp):
    """x' = -z, 0 = x - z + sin t: index 1, the Python form of the C function of that name."""
    return [yp[0] + y[1], y[0] - y[1] + np.sin(t)]


def relax_exact(t):
    """x(t) and z(t) of `relax` from `RELAX_START`, one column per time."""
    t = np.asarray(t, float)
    x = np.exp(-t) + 0.5 * (np.cos(t) - np.sin(t))
    return np.array([x, x + np.sin(t)])


RELAX_START = relax_exact(0.0)


def circle(t, y, yp):
    """y'' = -y as a system: (cos t, -sin t) from (1, 0)."""
    return [yp[0] - y[1], yp[1] + y[0]]


def has_compiler():
    return shutil.which("cc") is not None


def compile_c(source, folder):
    """Compile C text into a library and load it."""
    text, library = folder / "functions.c", folder / "functions.so"
    text.write_text(source, encoding="utf-8")
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(text), "-lm"], check=True
    )
    return ctypes.CDLL(str(library))


def c_function(library, name, returns=None, data=False):
    """One function of the library with its types declared."""
    function = getattr(library, name)
    function.restype = returns
    function.argtypes = C_ARGUMENTS + ([ctypes.c_void_p] if data else [])
    return function


def error_at_steps(sol, exact):
    """Largest absolute error over all points of a solution."""
    return np.max(np.abs(sol.y - exact(sol.t)))


def start_python(code, *arguments):
    """Run a program in another process that finds tether and `support` as the tests do."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )


def count_entries(counts, run):
    """How often code that `counts` says yes to is entered in run(), and the result of that."""
    count = 0

    def profile(frame, event, _):
        nonlocal count
        count += event == "call" and counts(frame.f_code)

    sys.setprofile(profile)
    try:
        result = run()
    finally:
        sys.setprofile(None)
    return count, result


def count_calls(functions, run):
    """How often Python functions are called in run(), which may be on symbols; and the result."""
    codes = {getattr(fun, "__func__", fun).__code__ for fun in functions}
    return count_entries(codes.__contains__, run)
