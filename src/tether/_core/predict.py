"""The predictor: the polynomial through the last k + 1 points, at the new time."""

import cython


def predict(s):
    """Evaluate the predictor polynomial and its derivative at t_new, math (5)."""
    i: cython.int
    j: cython.int
    n: cython.int = s.n
    difference: cython.double
    for i in range(n):
        s.y_predicted[i] = s.phi[i]
        s.yp_predicted[i] = 0.0
    for j in range(1, s.k + 1):
        for i in range(n):
            difference = s.beta[j] * s.phi[j * n + i]
            s.y_predicted[i] += difference
            s.yp_predicted[i] += s.gamma[j] * difference
    start_from_prediction(s)


def start_from_prediction(s):
    """Let the iteration begin at the predicted values."""
    i: cython.int
    for i in range(s.n):
        s.y[i] = s.y_predicted[i]
        s.yp[i] = s.yp_predicted[i]
        s.correction[i] = 0.0
