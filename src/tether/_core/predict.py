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
    j: cython.int = 1
    n: cython.longlong = s.n
    for i in range(first, last):
        s.y_predicted[i] = s.phi[i]
        s.yp_predicted[i] = 0.0
    if s.k % 2 == 1:
        add_term(s, s.beta[1], s.gamma[1], n, first, last)
        j = 2
    while j < s.k:
        add_terms(
            s, s.beta[j], s.gamma[j], j * n, s.beta[j + 1], s.gamma[j + 1], first, last
        )
        j += 2


def add_term(s, beta, gamma, column, first, last):
    """Add the term of one order; `column` is where its differences begin."""
    i: cython.longlong
    difference: cython.double
    for i in range(first, last):
        difference = beta * s.phi[column + i]
        s.y_predicted[i] += difference
        s.yp_predicted[i] += gamma * difference


def add_terms(s, beta, gamma, column, next_beta, next_gamma, first, last):
    """Add the terms of two orders at once: sums are read and written half as often."""
    i: cython.longlong
    following: cython.longlong = column + s.n
    difference: cython.double
    another: cython.double
    for i in range(first, last):
        difference = beta * s.phi[column + i]
        another = next_beta * s.phi[following + i]
        s.y_predicted[i] = (s.y_predicted[i] + difference) + another
        s.yp_predicted[i] = (s.yp_predicted[i] + gamma * difference) + next_gamma * another


def start_from_prediction(s, first, last):
    """Set the unknowns `first` to `last` to their predicted values."""
    i: cython.int
    for i in range(first, last):
        s.y[i] = s.y_predicted[i]
        s.yp[i] = s.yp_predicted[i]
        s.correction[i] = 0.0
