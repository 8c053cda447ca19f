"""How values depend on the points of steps: weights in formulas and polynomials.

A step of order k has the slope y'_i = c_0 y_i + c_1 y_(i-1) + ..., math (33), and between the steps
a value is a sum of points times their shares, math (14).
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.codes import WIDTH


def coefficients(t, order, first, out, predictor):
    """Fill row i of `out` with c_0, c_1, ... of the step that ends at t[first + i].

    Row i of `predictor` receives the weights of the same points in the prediction for the step.
    """
    times: cython.double[::1] = t
    orders: cython.int[::1] = order
    c: cython.double[:, ::1] = out
    predicted: cython.double[:, ::1] = predictor
    end: cython.double
    per_step: cython.double            # products of times could overflow
    above: cython.double
    below: cython.double
    value: cython.double
    i: cython.Py_ssize_t
    row: cython.Py_ssize_t
    j: cython.int
    other: cython.int
    points: cython.int
    for i in range(c.shape[0]):
        row = first + i
        end = times[row]
        points = orders[i] + 1
        for j in range(WIDTH):
            predicted[i, j] = c[i, j] = 0.0
        per_step = 1.0 / (end - times[row - 1])
        above = end - times[row - points]
        for j in range(1, points):
            c[i, 0] += 1.0 / (end - times[row - j])
            above *= (end - times[row - j]) * per_step
        for j in range(1, points + 1):
            # the predictor is a sum of values at past points; so is its slope, and y' of the step
            below = end - times[row - j]
            for other in range(1, points + 1):
                if other != j:
                    below *= (times[row - j] - times[row - other]) * per_step
            value = predicted[i, j] = above / below
            c[i, j] = value * (1.0 / (end - times[row - points]) - 1.0 / (end - times[row - j]))


def quiet_time(t, y, order, predictor, rtol, atol, stride, quiet):
    """Time that passes in steps with negligible errors, of which every `stride`-th is looked at.

    The error of a step is the difference of y from the prediction, over k + 1, in tolerances.
    """
    times: cython.double[::1] = t
    values: cython.double[:, ::1] = y
    orders: cython.int[::1] = order
    predicted: cython.double[:, ::1] = predictor
    relative: cython.double[::1] = rtol
    absolute: cython.double[::1] = atol
    found: cython.double = 0.0
    miss: cython.double
    allowed: cython.double
    step: cython.Py_ssize_t
    before: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.int
    every: cython.Py_ssize_t = stride
    first: cython.Py_ssize_t = times.shape[0] - orders.shape[0]      # the end of the first step
    step = orders.shape[0] - 1
    while step >= WIDTH - 1:
        allowed = quiet * (orders[step] + 1.0)
        for i in range(relative.shape[0]):
            miss = values[step + 1, i]
            for j in range(1, orders[step] + 2):
                miss -= predicted[step, j] * values[step + 1 - j, i]
            if not fabs(miss) < allowed * (relative[i] * fabs(values[step + 1, i]) + absolute[i]):
                break
        else:
            before = first - 1 if step - every < WIDTH - 1 else first + step - every
            found += fabs(times[first + step] - times[before])
        step -= every
    return found


def shares_at(t, row, degree, at, out):
    """Weights of the last points in a polynomial through them, from `row` on backwards."""
    times: cython.double[::1] = t
    share: cython.double[::1] = out
    place: cython.Py_ssize_t = row
    points: cython.int = degree + 1
    end: cython.double = at
    j: cython.int
    for j in range(points):
        share[j] = share_of(times, place, j, points, end)


def locate(t, first, order, at, row, share):
    """Find the steps in which times lie, and how the values there depend on points.

    `t` has the times of the points, with the begin of the leg at `first`. Row i of `share` gets the
    shares of the points from row[i] on backwards, counted from the begin, in the value at at[i]:
    of the polynomial over the step, or of the begin itself up to there.
    """
    times: cython.double[::1] = t
    orders: cython.int[::1] = order
    wanted: cython.double[::1] = at
    rows: cython.int[::1] = row
    shares_of: cython.double[:, ::1] = share
    begin: cython.Py_ssize_t = first
    steps: cython.Py_ssize_t = orders.shape[0]
    way: cython.double = 1.0 if times[begin + steps] >= times[begin] else -1.0
    i: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    j: cython.int
    points: cython.int
    for i in range(wanted.shape[0]):
        low = 0                                # the end of the step is the first that is not before
        high = steps
        while low < high:
            middle = (low + high) // 2
            if way * times[begin + middle] < way * wanted[i]:
                low = middle + 1
            else:
                high = middle
        points = orders[low - 1] + 1 if low > 0 and times[begin + low] != wanted[i] else 1
        rows[i] = low
        for j in range(shares_of.shape[1]):
            shares_of[i, j] = share_of(times, begin + low, j, points, wanted[i])


def share_of(times, last, j, points, at):
    """Share of a point in the value of the polynomial through points from `last` on backwards."""
    other: cython.int
    value: cython.double = 1.0
    if j >= points:
        return 0.0
    for other in range(points):
        if other != j:
            value *= (at - times[last - other]) / (times[last - j] - times[last - other])
    return value


def gather(s, row, share, number, out):
    """Add to out[number[i]] the rows of `s` from row[i] on backwards, times their shares."""
    points: cython.double[:, :, ::1] = s
    rows: cython.int[::1] = row
    shares: cython.double[:, ::1] = share
    numbers: cython.int[::1] = number
    sums: cython.double[:, :, ::1] = out
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    p: cython.Py_ssize_t
    j: cython.int
    x: cython.double
    for i in range(shares.shape[0]):
        for j in range(shares.shape[1]):
            x = shares[i, j]
            if x != 0.0:
                for k in range(points.shape[1]):
                    for p in range(points.shape[2]):
                        sums[numbers[i], k, p] += x * points[rows[i] - j, k, p]


def scatter(weights, row, share, out):
    """Add weights[i] times its shares to the rows of `out` from row[i] on backwards."""
    given: cython.double[:, :, ::1] = weights
    rows: cython.int[::1] = row
    shares: cython.double[:, ::1] = share
    total: cython.double[:, :, ::1] = out
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    line: cython.Py_ssize_t
    j: cython.int
    x: cython.double
    for i in range(shares.shape[0]):
        for j in range(shares.shape[1]):
            x = shares[i, j]
            if x != 0.0:
                for line in range(given.shape[1]):
                    for k in range(given.shape[2]):
                        total[rows[i] - j, line, k] += x * given[i, line, k]
