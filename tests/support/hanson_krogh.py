"""The pendulum of Hanson and Krogh: in Python, in C, and its true position."""

import ctypes
import subprocess

import numpy as np
import pytest

from tether import Constraint, solve_dae
from tether.gallery.compiled import find_compiler

G, L = 9.80665, 1.1
START = [L, 0.0, 0.0, 0.0, 0.0]
# Position at t = 1000 by Jacobi elliptic functions (HK's pendulum)
TRUE_1000 = np.array([-1.054143946983521761325, -0.314293714601488749072])

HK_C = """
#define G 9.80665
#define L 1.1
void index1(double t, double *y, double *p, double *o) {
    o[0] = p[0] - y[2]; o[1] = p[1] - y[3]; o[2] = p[2] + y[4]*y[0]; o[3] = p[3] + y[4]*y[1] + G;
    o[4] = -y[4]*L*L + y[2]*y[2] + y[3]*y[3] - G*y[1]; }
void index0(double t, double *y, double *p, double *o) {
    o[0] = p[0] - y[2]; o[1] = p[1] - y[3]; o[2] = p[2] + y[4]*y[0]; o[3] = p[3] + y[4]*y[1] + G;
    o[4] = -p[4]*L*L - 3*G*y[3]; }
void rod(double t, double *y, double *g) {
    g[0] = 0.5*(y[0]*y[0] + y[1]*y[1] - L*L); g[1] = y[0]*y[2] + y[1]*y[3]; }
void rod_jac(double t, double *y, double *j) {
    j[0] = y[0]; j[1] = y[1]; j[2] = j[3] = j[4] = 0;
    j[5] = y[2]; j[6] = y[3]; j[7] = y[0]; j[8] = y[1]; j[9] = 0; }
void tension(double t, double *y, double *g) {
    g[0] = -y[4]*L*L + y[2]*y[2] + y[3]*y[3] - G*y[1]; }
void tension_jac(double t, double *y, double *j) {
    j[0] = 0; j[1] = -G; j[2] = 2*y[2]; j[3] = 2*y[3]; j[4] = -L*L; }
void energy(double t, double *y, double *g) { g[0] = 0.5*(y[2]*y[2] + y[3]*y[3]) + G*y[1]; }
void energy_jac(double t, double *y, double *j) {
    j[0] = 0; j[1] = G; j[2] = y[2]; j[3] = y[3]; j[4] = 0; }
int counted(double t, double *y, double *g) { g[0] = y[0]; return 0; }
void scaled_jac(double t, double *y, double *j) { j[0] = 2*y[0]; }
void scaled(double t, double *y, double *g, void *factor) {
    g[0] = *(double *)factor * (y[0]*y[0] + y[1]*y[1] - L*L); }
"""


class Library:
    """C functions of HK's pendulum."""

    def __init__(self, folder):
        source, library = folder / "hk.c", folder / "libhk.so"
        source.write_text(HK_C)
        subprocess.run([find_compiler(), "-O2", "-shared", "-fPIC", "-o", str(library),
                        str(source)], check=True)
        self.functions = ctypes.CDLL(str(library))

    def function(self, name, pointers, *more):
        function = getattr(self.functions, name)
        function.restype = None
        function.argtypes = [ctypes.c_double, *[ctypes.POINTER(ctypes.c_double)] * pointers, *more]
        return function

    def constraint(self, name, size, jac=True):
        return Constraint(self.function(name, 2), size=size,
                          jac=self.function(f"{name}_jac", 2) if jac else None)


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G,
            -lam * L * L + u * u + w * w - G * z]


def rod(t, y):
    return [0.5 * (y[0] ** 2 + y[1] ** 2 - L * L), y[0] * y[2] + y[1] * y[3]]


def energy(t, y):
    return 0.5 * (y[2] ** 2 + y[3] ** 2) + G * y[1]


def with_jacobian(fun, jac):
    def constraint(t, y):
        return fun(t, y)

    constraint.jac = jac
    return constraint


called_or_traced = pytest.mark.parametrize("trace", ["never", "auto"])


def solve_pendulum(t_end=5.0, tol=1e-7, **options):
    sol = solve_dae(pendulum, (0.0, t_end), START, rtol=tol, atol=tol, **options)
    assert sol.success, sol.message
    return sol


def hk(library, index, ndig, t_end, constrained=True, with_energy=False, **options):
    """HK's pendulum with compiled functions."""
    constraints = [library.constraint("rod", 2)]
    if index == 0:
        constraints.append(library.constraint("tension", 1))
    tol = 10.0 ** -ndig
    return solve_dae(
        library.function(f"index{index}", 3), (0.0, t_end), START, rtol=tol, atol=tol,
        t_eval=[t_end], constraints=constraints if constrained else None,
        invariants=library.constraint("energy", 1) if with_energy else None, **options,
    )


def position_error(sol):
    assert sol.success, sol.message
    return np.abs(sol.y[:2, -1] - TRUE_1000).max()
