"""The solution between the steps: the polynomial of degree k through the last k + 1 points."""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.codes import COLUMNS
    from tether._core.state import State


def evaluate_polynomial(n, k, psi, phi, delta, y, yp):
    """Value and derivative at t_n + delta of the polynomial with the differences phi, math (14)."""
    i: cython.int
    j: cython.int
    c: cython.double = 1.0            # product of (delta + psi_(i-1)) / psi_i
    slope: cython.double = 0.0        # its derivative
    for i in range(n):
        y[i] = phi[i]
        yp[i] = 0.0
    for j in range(1, k + 1):
        slope = (slope * (delta + psi[j - 1]) + c) / psi[j]
        c = c * (delta + psi[j - 1]) / psi[j]
        for i in range(n):
            y[i] += c * phi[j * n + i]
            yp[i] += slope * phi[j * n + i]


def interpolate(s, t, y, yp):
    """Evaluate the solution at a time within the last step."""
    evaluate_polynomial(s.n, s.last_k, s.psi, s.phi, t - s.t, y, yp)


def difference_table(t, y, row, n, k, psi, phi):
    """Scaled divided differences of the k + 1 stored points that end at `row`."""
    i: cython.int
    j: cython.int
    m: cython.int
    scale: cython.double
    for j in range(k + 1):
        psi[j] = t[row] - t[row - j]
        for i in range(n):
            phi[j * n + i] = y[(row - j) * n + i]
    for m in range(1, k + 1):         # plain divided differences first, in place
        for j in range(k, m - 1, -1):
            for i in range(n):
                phi[j * n + i] = (phi[(j - 1) * n + i] - phi[j * n + i]) / (psi[j] - psi[j - m])
    scale = 1.0
    for j in range(1, k + 1):
        scale *= psi[j]
        for i in range(n):
            phi[j * n + i] *= scale


def last_step_polynomial(s: State):
    """Copy the polynomial of the last step: t, order, psi, phi."""
    k: cython.int = s.last_k
    psi = np.array([s.psi[j] for j in range(k + 1)])
    return s.t, k, psi, s.array("phi")[: (k + 1) * s.n].copy()


def evaluate_at(times, t, k, psi, phi, y, yp):
    """Evaluate one polynomial at many times into the rows of `y` and `yp`."""
    n: cython.int = y.shape[1]
    order: cython.int = k
    end: cython.double = t
    row: cython.Py_ssize_t
    if cython.compiled:
        times_view: cython.double[::1] = times
        psi_view: cython.double[::1] = psi
        phi_view: cython.double[::1] = phi
        y_view: cython.double[:, ::1] = y
        yp_view: cython.double[:, ::1] = yp
        for row in range(times_view.shape[0]):
            evaluate_polynomial(
                n, order, cython.address(psi_view[0]), cython.address(phi_view[0]),
                times_view[row] - end,
                cython.address(y_view[row, 0]), cython.address(yp_view[row, 0]),
            )
    else:
        for row in range(len(times)):
            evaluate_polynomial(n, order, psi, phi, times[row] - end, y[row], yp[row])


def polynomial_through(t, y, row, k):
    """Build psi and phi of the polynomial through the `k + 1` stored points ending at `row`."""
    n: cython.int = y.shape[1]
    psi = np.zeros(COLUMNS + 1)
    phi = np.zeros((k + 1) * n)
    if cython.compiled:
        t_view: cython.double[::1] = t
        y_view: cython.double[:, ::1] = y
        psi_view: cython.double[::1] = psi
        phi_view: cython.double[::1] = phi
        difference_table(
            cython.address(t_view[0]), cython.address(y_view[0, 0]), row, n, k,
            cython.address(psi_view[0]), cython.address(phi_view[0]),
        )
    else:
        difference_table(t, y.ravel(), row, n, k, psi, phi)
    return psi, phi
