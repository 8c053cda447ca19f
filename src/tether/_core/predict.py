"""The predictor: the polynomial through the last k + 1 points, at the new time."""

import cython

if not cython.compiled:
    from tether._core.codes import BLOCK


def predict(s):
    """Evaluate the predictor polynomial and its derivative at t_new, math (5)."""
    first: cython.int = 0
    last: cython.int
    while first < s.n:
        last = min(first + BLOCK, s.n)
        predict_some(s, first, last)
        start_from_prediction(s, first, last)
        first = last


def predict_some(s, first, last):
    """Predict the unknowns `first` to `last`: as many as fit into the processor's cache."""
    i: cython.longlong
    j: cython.int
    column: cython.longlong
    beta: cython.double
    gamma: cython.double
    difference: cython.double
    for i in range(first, last):
        s.y_predicted[i] = s.phi[i]
        s.yp_predicted[i] = 0.0
    for j in range(1, s.k + 1):
        column = j
        column *= s.n
        beta = s.beta[j]
        gamma = s.gamma[j]
        for i in range(first, last):
            difference = beta * s.phi[column + i]
            s.y_predicted[i] += difference
            s.yp_predicted[i] += gamma * difference


def start_from_prediction(s, first, last):
    """Set the unknowns `first` to `last` to their predicted values."""
    i: cython.int
    for i in range(first, last):
        s.y[i] = s.y_predicted[i]
        s.yp[i] = s.yp_predicted[i]
        s.correction[i] = 0.0
