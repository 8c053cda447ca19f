"""Problems that cannot begin, or are not what they should be; each returns a solution."""
# ruff: noqa: RUF059  (unknowns are unpacked for their names)

import math

import numpy as np

from tether import solve_dae


def written_twice():
    def fun(t, y, yp):
        a, b = y
        return [a + b - 2.0, 2.0 * a + 2.0 * b - 4.0]

    return solve_dae(fun, (0, 1), [1.0, 1.0])


def floating_circuit():
    """Two nodes over one resistor, without a ground."""
    def fun(t, y, yp):
        u, v = y
        return [(u - v) / 2.0, (v - u) / 2.0]

    return solve_dae(fun, (0, 1), [1.0, 1.0], trace="never")


def unknown_in_no_equation():
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] + x, x * x + v * v - 1.0]

    return solve_dae(fun, (0, 1), [1.0, 0.0, 0.0])


def unknown_in_no_equation_of_a_callback():
    def fun(t, y, yp):
        x, heat = y
        return [yp[0] + x, x - math.exp(-t)]

    return solve_dae(fun, (0, 1), [1.0, 0.0], trace="never")


def missing_equation():
    """Two balances for one level, none for the flow."""
    def fun(t, y, yp):
        level, inflow, outflow = y
        return [yp[0] + outflow, level - 1.0, 3.0 * level - 3.0]

    return solve_dae(fun, (0, 1), [1.0, 0.0, 0.0])


def index_4_as_written():
    def fun(t, y, yp):
        x, v, a, jerk = y
        return [x - np.sin(t), yp[0] - v, yp[1] - a, yp[2] - jerk]

    return solve_dae(fun, (0, 1), [0.0, 1.0, 0.0, -1.0], form="given")


def index_3_called_index_1():
    def fun(t, y, yp):
        x, v, a = y
        return [x - np.sin(t), yp[0] - v, yp[1] - a]

    return solve_dae(fun, (0, 1), [0.0, 1.0, 0.0], var_index=[0, 0, 0])


def index_3_of_a_callback():
    def fun(t, y, yp):
        x, v, a = y
        return [x - math.sin(t), yp[0] - v, yp[1] - a]

    return solve_dae(fun, (0, 1), [0.0, 1.0, 0.0], trace="never")


def no_real_root():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + z, z**2 + 1.0]

    return solve_dae(fun, (0, 1), [1.0, 1.0])


def start_off_its_equation():
    def fun(t, y, yp):
        x, y = y
        return [yp[0] + y, 3.0 * x - y]

    return solve_dae(fun, (0, 1), [3.0, 1.0], start="check")


def start_that_no_change_makes_consistent():
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1.0]

    return solve_dae(fun, (0, 1), [0.0, 0.0, 1.0, 0.0, 1.0], form="given")


def not_a_number_at_the_start():
    def fun(t, y, yp):
        x, logarithm = y
        return [yp[0] + x, np.log(logarithm)]

    with np.errstate(invalid="ignore"):
        return solve_dae(fun, (0, 1), [1.0, -1.0], start="check")


def too_many_digits():
    def fun(t, y, yp):
        x, large = y
        return [yp[0] + x, yp[1]]

    return solve_dae(fun, (0, 1), [1.0, 1e9], rtol=0.0, atol=1e-9)


def no_tolerance_at_zero():
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + x]

    return solve_dae(fun, (0, 1), [1.0, 0.0], atol=[1e-9, 0.0])


def noise_at_the_start():
    rng = np.random.default_rng(0)

    def fun(t, y, yp):
        x, = y
        return [yp[0] + x - 0.5 - 1e-6 * rng.standard_normal()]

    return solve_dae(fun, (0, 10), [0.0], trace="never")


def one_equation_forgotten():
    """The residual is made of zeros, and one is never filled in."""
    def fun(t, y, yp):
        level, temperature, heat = y
        r = np.zeros(3)
        r[0] = yp[0] + 0.1 * level
        r[1] = yp[1] - heat / level
        return r

    return solve_dae(fun, (0, 1), [1.0, 300.0, 1.0])


def one_place_never_filled():
    def fun(t, y, yp, out):
        level, temperature, heat = y
        out[0] = yp[0] + 0.1 * level
        out[1] = yp[1] - heat / level

    return solve_dae(fun, (0, 1), [1.0, 300.0, 1.0], trace="never")


def balance_written_twice_for_a_forgotten_one():
    """The pattern would blame equation 0 as well; the numbers know better."""
    def fun(t, y, yp):
        c, temperature, cooling = y
        k = 7e10 * np.exp(-8750.0 / temperature)
        balance = yp[1] - (350.0 - temperature) - 200.0 * k * c
        return [yp[0] - (1.0 - c) + k * c, balance, balance]

    return solve_dae(fun, (0, 1), [0.5, 350.0, 0.0])


def exponential_of_a_wild_guess():
    def fun(t, y, yp):
        v, diode, i = y
        return [1e-6 * yp[0] - i, i - 1e-14 * (np.exp(diode / 0.0259) - 1.0),
                np.sin(t) - v - diode - i]

    return solve_dae(fun, (0, 1), [0.0, 20.0, 0.0], start="check")


def quotient_of_zeros_at_the_start():
    def fun(t, y, yp):
        a, b = y
        return [yp[0] + b, b - a * np.sin(t) / t]

    with np.errstate(invalid="ignore"):
        return solve_dae(fun, (0, 1), [1.0, 1.0])


def root_that_begins_at_zero():
    """The residual is finite, its exact derivative is not."""
    def fun(t, y, yp):
        level, flow = y
        return [yp[0] + flow - 0.5, flow - np.sqrt(level)]

    return solve_dae(fun, (0, 1), [0.0, 0.0])


def single_precision():
    def fun(t, y, yp):
        y, yp = np.asarray(y, np.float32), np.asarray(yp, np.float32)
        return [yp[0] - y[1], yp[1] + y[0], y[2] - y[0] - y[1]]

    return solve_dae(fun, (0, 10), [1.0, 0.0, 1.0], trace="never")


def crank_at_dead_centre():
    """The piston of a crank is driven beyond its reach."""
    def fun(t, y, yp):
        angle, speed, force = y
        return [yp[0] - speed, yp[1] + force * np.sin(angle), np.cos(angle) - 1.0 + 0.3 * t]

    return solve_dae(fun, (1, 10), [math.acos(0.7), 0.42, 0.0],
                     options={"accept_projected_start": True})


def no_mass_and_no_spring():
    """At rest all values are zero, which single precision would be good enough for."""
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, 0.0 * yp[1] + 0.0 * x]

    return solve_dae(fun, (0, 1), [1.0, 0.0], trace="never")
