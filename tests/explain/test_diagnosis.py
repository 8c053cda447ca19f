"""What is said about runs that cannot work, and that nothing is said about those that can."""
# ruff: noqa: RUF059  (unknowns are unpacked for their names)

import math
import re
from functools import partial

import numpy as np
import pytest
from support.helpers import ROOT, circle, decay, relax

from tether import Bdf, Cause, Problem, Status, analyze, gallery, solve_dae
from tether._core import codes
from tether.explain.causes import CAUSES
from tether.explain.examine import diagnose
from tether.explain.examine.discontinuity import find_break
from tether.explain.messages import page
from tether.problem.names import Names
from tether.run.attempts import COLUMNS, read_steps
from tether.run.integration import Integration

# --- broken problems --------------------------------------------------------------------------
# Each returns a solution; beside it stand cause, equations, variables and time (None: any).


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


def jump_in_a_forcing():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - x - (t > 0.37)]

    return solve_dae(fun, (0, 1), [1.0, 1.0])


def jump_in_a_callback():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - x - math.floor(3 * t)]

    return solve_dae(fun, (0, 1), [1.0, 1.0], trace="never")


def jump_in_a_state():
    def fun(t, y, yp):
        position, force = y
        return [yp[0] - 2.0, force - np.where(position > 1.0, 5.0, 0.0)]

    return solve_dae(fun, (0, 1), [0.0, 0.0])


def kink_that_is_differentiated():
    def fun(t, y, yp):
        slope, ramp = y
        return [yp[1] - slope, ramp - np.maximum(t - 0.6, 0.0)]

    return solve_dae(fun, (0, 1), [0.0, 0.0])


def kink_that_is_differentiated_as_written():
    def fun(t, y, yp):
        slope, ramp = y
        return [yp[1] - slope, ramp - abs(t - 0.25)]

    return solve_dae(fun, (0, 1), [-1.0, 0.25], form="given")


def kink_in_a_backward_run():
    def fun(t, y, yp):
        slope, ramp = y
        return [yp[1] - slope, ramp - np.maximum(-0.43 - t, 0.0)]

    return solve_dae(fun, (0, -1), [0.0, 0.0])


def pole():
    def fun(t, y, yp):
        mass, = y
        return [yp[0] - mass**2]

    return solve_dae(fun, (0, 2), [1.0])


def tangent():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] - 1.0 - z, z - x * x]

    return solve_dae(fun, (0, 3), [0.0, 0.0], trace="never")


def thermal_runaway():
    def fun(t, y, yp):
        heat, = y
        return [yp[0] - np.exp(heat)]

    return solve_dae(fun, (0, 2), [0.0])


def fold_of_a_root():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + 1.0, z**2 - x]

    return solve_dae(fun, (0, 2), [1.0, 1.0])


def impasse_of_a_circuit():
    """Van der Pol's oscillator without its small inductance stops where it should jump."""
    def fun(t, y, yp):
        x, current = y
        return [yp[0] - current, current**3 / 3.0 - current + x]

    return solve_dae(fun, (0, 5), [-2.0 / 3.0, 2.0])


def wrong_constant_jacobian():
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + x]

    return solve_dae(fun, (0, 10), [1.0, 0.0],
                     jac=(np.array([[0.0, -1.0], [1.0, 0.0]]), np.diag([1.0, -1.0])))


def wrong_sign_in_a_jacobian():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + z, z - x**3 - t]

    def jac(t, y, yp):
        sign = 1.0 if t < 0.5 else -1.0
        return np.array([[0.0, 1.0], [-3.0 * y[0] ** 2, sign]]), np.diag([1.0, 0.0])

    return solve_dae(fun, (0, 1), [1.0, 1.0], jac=jac)


def not_a_number_from_a_time_on():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - (x if t <= 0.7 else math.nan)]

    return solve_dae(fun, (0, 1), [1.0, 1.0], trace="never")


def root_of_a_negative():
    def fun(t, y, yp):
        level, flow = y
        return [yp[0] + 1.0, flow - np.sqrt(level) * level**2]

    with np.errstate(invalid="ignore"):
        return solve_dae(fun, (0, 2), [0.5, 0.5**2.5])


def root_of_a_negative_that_raises():
    def fun(t, y, yp):
        level, flow = y
        return [yp[0] + 1.0, flow - math.sqrt(level) * level**2]

    return solve_dae(fun, (0, 2), [0.5, 0.5**2.5], trace="never")


def not_a_number_at_the_start():
    def fun(t, y, yp):
        x, logarithm = y
        return [yp[0] + x, np.log(logarithm)]

    with np.errstate(invalid="ignore"):
        return solve_dae(fun, (0, 1), [1.0, -1.0])


def random_numbers():
    rng = np.random.default_rng(0)

    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - x - 1e-3 * rng.standard_normal()]

    return solve_dae(fun, (0, 1), [1.0, 1.0], trace="never")


def constraint_that_jumps():
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81,
                x * x + z * z - (1.1 if t > 0.4 else 1.0)]

    return solve_dae(fun, (0, 1), [1.0, 0.0, 0.0, 0.0, 0.0])


def thermal_runaway_without_steps():
    def fun(t, y, yp):
        heat, = y
        return [yp[0] - np.exp(heat)]

    return solve_dae(fun, (0, 2), [0.0], t_eval=[0.0, 0.5])


def force_that_jumps():
    """The multiplier of a pendulum has to follow a force."""
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x - (5.0 if t > 0.4 else 0.0),
                yp[3] + lam * z + 9.81, x * x + z * z - 1.0]

    return solve_dae(fun, (0, 1), [1.0, 0.0, 0.0, 0.0, 0.0])


def events_that_switch_back_and_forth():
    def low(t, y, yp):
        return y[0]

    def high(t, y, yp):
        return y[0] - 1e-9

    low.direction, low.apply = -1, lambda t, y, yp: [y[0], 1.0]
    high.direction, high.apply = 1, lambda t, y, yp: [y[0], -1.0]
    return solve_dae(lambda t, y, yp: [yp[0] - y[1], yp[1]], (0, 10), [1.0, -1.0],
                     events=[low, high])


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


def constraint_against_the_equations():
    return solve_dae(lambda t, y, yp: [yp[0] - 1.0, yp[1]], (0, 1), [1.0, 0.0],
                     constraints=lambda t, y: y[0] - 1.0)


def invariant_with_friction():
    def energy(t, y):
        return y[0] ** 2 + y[1] ** 2

    return solve_dae(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0] + 0.5 * y[1]], (0, 10),
                     [0.0, 1.0], invariants=[energy])


def bouncing(restitution, direction=-1):
    def floor(t, y, yp):
        return y[0]

    floor.direction = direction
    floor.apply = lambda t, y, yp: [0.0, -restitution * y[1]]
    return solve_dae(lambda t, y, yp: [yp[0] - y[1], yp[1] + 9.81], (0, 20), [1.0, 0.0],
                     events=floor)


def fall(height=1.0):
    return math.sqrt(2 * height / 9.81)


def bouncing_ball():
    return bouncing(0.5)


def lively_bouncing_ball():
    return bouncing(0.9, direction=0)


def relay_on_its_surface():
    def fun(t, y, yp):
        x, = y
        return [yp[0] + (1.0 if x > 0 else -1.0)]

    return solve_dae(fun, (0, 10), [1.0])


def dry_friction():
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + 10.0 * np.sign(v) - np.sin(t)]

    return solve_dae(fun, (0, 10), [0.0, 1.0])


def too_few_steps():
    return solve_dae(circle, (0, 1e4), [1.0, 0.0], max_steps=50)


def too_little_time():
    return solve_dae(circle, (0, 1e12), [1.0, 0.0], max_seconds=0.05)


def pole_with_a_sloppy_jacobian():
    """The Jacobian is a tenth off, which is not why the run fails."""
    def fun(t, y, yp):
        mass, = y
        return [yp[0] - mass**2]

    return solve_dae(fun, (0, 2), [1.0], jac=lambda t, y, yp: ([[-1.8 * y[0]]], [[1.0]]))


def pole_beside_a_solver_that_remembers():
    """The last bits depend on the calls before, which is not why the run fails."""
    last = [1.0]

    def fun(t, y, yp):
        mass, = y
        root = last[0]
        for _ in range(30):
            root = 0.5 * (root + mass**4 / root)
        last[0] = root
        return [yp[0] - root]

    return solve_dae(fun, (0, 2), [1.0], trace="never")


def pole_without_steps_backward():
    def fun(t, y, yp):
        mass, = y
        return [yp[0] + mass**2]

    return solve_dae(fun, (2, 0), [1.0], t_eval=[2.0, 1.5])


def pole_of_one_in_ten():
    def fun(t, y, yp):
        return [*(yp[i] + (i + 1) * y[i] for i in range(9)), yp[9] - y[9] ** 3 / 2]

    return solve_dae(fun, (0, 2), [1.0] * 10)


def pole_of_an_equation():
    """Across its pole the equation changes its sign, which is no jump."""
    def fun(t, y, yp):
        gap, force = y
        return [yp[0] + 1.0, force - 1.0 / gap]

    return solve_dae(fun, (0, 2), [1.0, 1.0])


def fold_of_a_root_without_steps():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + 1.0, z**2 - x]

    return solve_dae(fun, (0, 2), [1.0, 1.0], t_eval=[0.0, 0.5])


def fold_from_below_without_steps():
    """Here z grows towards its end at 2."""
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + 1.0, (2.0 - z) ** 2 - x]

    return solve_dae(fun, (0, 2), [1.0, 1.0], t_eval=[0.0, 0.5])


def fold_of_a_differential_equation():
    """y = 1 - sqrt(1 - 2 t)."""
    def fun(t, y, yp):
        angle, = y
        return [yp[0] * (1.0 - angle) - 1.0]

    return solve_dae(fun, (0, 2), [0.0], t_eval=[0.0, 0.1])


def arc_sine():
    def fun(t, y, yp):
        x, angle = y
        return [yp[0] - 1.0, np.sin(angle) - x]

    return solve_dae(fun, (0, 2), [0.0, 0.0])


def jump_of_a_constraint():
    def track(t, y):
        return y[0] - t - (0.1 if t > 0.5 else 0.0)

    return solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 1), [0.0], constraints=track,
                     max_step=1e-2)


def jump_of_a_called_constraint():
    def track(t, y):
        return [y[1], y[0] - t - (0.1 if t > 0.5 else 0.0)]

    return solve_dae(lambda t, y, yp: [yp[0] - 1.0, yp[1]], (0, 1), [0.0, 0.0],
                     constraints=track, max_step=1e-2, trace="never", t_eval=[0.0, 0.2])


def jump_in_a_table():
    values = [0.0, 1.0, 3.0, 2.0, 2.0]

    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - values[int(4 * t)]]

    return solve_dae(fun, (0, 1), [1.0, 0.0], trace="never")


def jump_in_large_units():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - 1e12 * x - (1e10 if t > 0.3 else 0.0)]

    return solve_dae(fun, (0, 1), [1.0, 1e12], trace="never")


def jump_within_a_nanosecond():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + 1e9 * x, z - x - (1.0 if t > 0.3e-9 else 0.0)]

    sol = solve_dae(fun, (0, 1e-9), [1.0, 1.0], trace="never")
    assert sol.diagnosis.where.t == pytest.approx(0.3e-9, rel=1e-3)
    return sol


def jump_at_a_late_time():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - x - (1.0 if t > 1e6 + 0.3 else 0.0)]

    return solve_dae(fun, (1e6, 1e6 + 1), [1.0, 1.0], trace="never")


def sparse_jacobian_with_a_hole():
    sparse = pytest.importorskip("scipy.sparse")

    def fun(t, y, yp):
        x, z, w = y
        return [yp[0] + x, z + w**3 - x, w + z**3 - 2.0 * x]

    def jac(t, y, yp):
        fy = sparse.csr_array(np.array([[1.0, 0, 0], [-1.0, 1.0, 0], [-2.0, 3.0 * y[1] ** 2, 1.0]]))
        return fy, sparse.csr_array(np.diag([1.0, 0.0, 0.0]))

    return solve_dae(fun, (0, 1), [2.0, 1.0, 1.0], jac=jac, start="assume", yp0=[-2.0, 0, 0],
                     max_seconds=5)


def root_that_differences_pass():
    """The last point is still in the domain, the one next to it is not."""
    def fun(t, y, yp):
        a, b = y
        return [yp[0] + 2.0 * a**0.5 + 0.1, yp[1] - 2.0 * a**0.5]

    with np.errstate(invalid="ignore"):
        return solve_dae(fun, (0, 10), [1.0, 0.0], trace="never")


def diffusion_with_the_wrong_sign():
    n, dx = 20, 1 / 19

    def fun(t, y, yp):
        r = np.empty(n)
        r[1:-1] = yp[1:-1] + (y[2:] - 2.0 * y[1:-1] + y[:-2]) / dx**2
        r[0], r[-1] = y[0] - 1.0, (y[-1] - y[-2]) / dx
        return r

    sol = solve_dae(fun, (0, 10), 1.0 + 1e-3 * np.sin(np.linspace(0, 9, n)),
                    options={"accept_projected_start": True})
    assert sol.stats.steps < 300_000
    return sol


def cooling_with_the_wrong_sign():
    def fun(t, y, yp):
        c, temperature = y
        k = 7.2e10 * np.exp(-8750.0 / temperature)
        return [yp[0] - (1.0 - c) + k * c,
                yp[1] - (350.0 - temperature) - 209.0 * k * c - 2.09 * (temperature - 300.0)]

    sol = solve_dae(fun, (0, 1000), [0.5, 350.0])
    assert sol.stats.steps < 400_000
    return sol


def growth(**options):
    def fun(t, y, yp):
        rabbits, = y
        return [yp[0] - 3.0 * rabbits]

    with np.errstate(over="ignore", invalid="ignore"):
        sol = solve_dae(fun, (0, 1000), [1.0], **options)
    assert any("doubles every 0.23" in text for text in sol.diagnosis.evidence)
    return sol


def growth_of_a_callback():
    return growth(trace="never")


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

    return solve_dae(fun, (0, 1), [0.0, 20.0, 0.0])


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
        return [yp[0] + flow - 0.5, flow - np.sqrt(np.maximum(level, 0.0))]

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


def switch_at_an_event():
    """An event that changes nothing leaves the run on the switch."""
    def fun(t, y, yp):
        position, force = y
        return [yp[0] - 2.0, force - np.where(position > 1.0, 5.0, 0.0)]

    def touch(t, y, yp):
        return y[0] - 1.0

    touch.apply = lambda t, y, yp: y
    return solve_dae(fun, (0, 1), [0.0, 0.0], events=touch)


def no_tolerance_left():
    """Without atol the tolerance of b goes to zero together with it."""
    def fun(t, y, yp):
        a, b = y
        return [yp[0] + a, b - np.maximum(1.0 - t, 0.0)]

    return solve_dae(fun, (0, 10), [1.0, 1.0], atol=0.0, trace="never")


def no_mass_and_no_spring():
    """At rest all values are zero, which single precision would be good enough for."""
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, 0.0 * yp[1] + 0.0 * x]

    return solve_dae(fun, (0, 1), [1.0, 0.0], trace="never")


BROKEN = [
    (no_tolerance_left, Cause.TOLERANCE, None, {"b"}, 1.0),
    (no_mass_and_no_spring, Cause.STRUCTURE, {1}, {"x", "v"}, 0.0),
    (one_equation_forgotten, Cause.STRUCTURE, {2}, {"temperature", "heat"}, 0.0),
    (one_place_never_filled, Cause.SINGULAR, {2}, {"temperature", "heat"}, 0.0),
    (balance_written_twice_for_a_forgotten_one, Cause.STRUCTURE, {1, 2}, {"cooling"}, 0.0),
    (exponential_of_a_wild_guess, Cause.NON_FINITE, {1}, {"diode", "i"}, 0.0),
    (quotient_of_zeros_at_the_start, Cause.NON_FINITE, {1}, {"a", "b"}, 0.0),
    (root_that_begins_at_zero, Cause.NON_FINITE, {1}, {"level"}, 0.0),
    (single_precision, Cause.NOISE, None, None, 0.0),
    (crank_at_dead_centre, Cause.SINGULAR, None, None, 2 / 0.3),
    (switch_at_an_event, Cause.DISCONTINUITY, {1}, {"force"}, 0.5),
    (root_that_differences_pass, Cause.NON_FINITE, {0}, {"a", "b"}, 0.84777),
    (diffusion_with_the_wrong_sign, Cause.BLOW_UP, None, None, None),
    (cooling_with_the_wrong_sign, Cause.BLOW_UP, None, {"temperature"}, None),
    (growth, Cause.BLOW_UP, None, {"rabbits"}, math.log(6e307) / 3),
    (growth_of_a_callback, Cause.BLOW_UP, None, {"rabbits"}, math.log(6e307) / 3),
    (noise_at_the_start, Cause.NOISE, {0}, None, 0.0),
    (written_twice, Cause.SINGULAR, {0, 1}, {"a", "b"}, 0.0),
    (floating_circuit, Cause.SINGULAR, {0, 1}, {"u", "v"}, 0.0),
    (unknown_in_no_equation, Cause.STRUCTURE, None, {"force"}, 0.0),
    (unknown_in_no_equation_of_a_callback, Cause.STRUCTURE, None, {"heat"}, 0.0),
    (missing_equation, Cause.STRUCTURE, {1, 2}, None, 0.0),
    (index_4_as_written, Cause.INDEX, None, {"a", "jerk"}, 0.0),
    (index_3_called_index_1, Cause.INDEX, None, {"a"}, None),
    (index_3_of_a_callback, Cause.INDEX, None, {"a"}, 0.0),
    (no_real_root, Cause.START, {1}, None, 0.0),
    (start_off_its_equation, Cause.START, {1}, None, 0.0),
    (start_that_no_change_makes_consistent, Cause.START, {4}, None, 0.0),
    (jump_in_a_forcing, Cause.DISCONTINUITY, {1}, {"z"}, 0.37),
    (jump_in_a_callback, Cause.DISCONTINUITY, {1}, {"z"}, 1 / 3),
    (jump_in_a_state, Cause.DISCONTINUITY, {1}, {"force"}, 0.5),
    (kink_that_is_differentiated_as_written, Cause.DISCONTINUITY, {1}, {"slope"}, 0.25),
    (pole, Cause.BLOW_UP, None, {"mass"}, 1.0),
    (tangent, Cause.BLOW_UP, None, None, math.pi / 2),
    (thermal_runaway, Cause.BLOW_UP, None, {"heat"}, 1.0),
    (fold_of_a_root, Cause.FOLD, None, {"z"}, 1.0),
    (impasse_of_a_circuit, Cause.FOLD, None, {"current"}, 1.5 - math.log(2)),
    (wrong_constant_jacobian, Cause.JACOBIAN, {1}, {"v"}, None),
    (wrong_sign_in_a_jacobian, Cause.JACOBIAN, {1}, {"z"}, None),
    (not_a_number_from_a_time_on, Cause.NON_FINITE, {1}, None, 0.7),
    (root_of_a_negative, Cause.NON_FINITE, {1}, {"level", "flow"}, 0.5),
    (root_of_a_negative_that_raises, Cause.EXCEPTION, None, None, 0.5),
    (not_a_number_at_the_start, Cause.NON_FINITE, {1}, {"logarithm"}, 0.0),
    (random_numbers, Cause.NOISE, {1}, None, None),
    (constraint_that_jumps, Cause.DISCONTINUITY, {4}, None, 0.4),
    (thermal_runaway_without_steps, Cause.BLOW_UP, None, {"heat"}, 1.0),
    (events_that_switch_back_and_forth, Cause.EVENT_STORM, None, None, 1.0),
    (too_many_digits, Cause.TOLERANCE, None, {"large"}, 0.0),
    (no_tolerance_at_zero, Cause.TOLERANCE, None, {"v"}, 0.0),
    (constraint_against_the_equations, Cause.CONTRADICTION, None, None, None),
    (invariant_with_friction, Cause.CONTRADICTION, None, None, None),
    (bouncing_ball, Cause.EVENT_STORM, None, None, 3 * fall()),
    (lively_bouncing_ball, Cause.EVENT_STORM, None, None, 19 * fall()),
    (relay_on_its_surface, Cause.CREEPING, {0}, {"x"}, 1.0),
    (dry_friction, Cause.CREEPING, {1}, {"v"}, None),
    (pole_with_a_sloppy_jacobian, Cause.BLOW_UP, None, {"mass"}, 1.0),
    (pole_beside_a_solver_that_remembers, Cause.BLOW_UP, None, {"mass"}, 1.0),
    (pole_without_steps_backward, Cause.BLOW_UP, None, {"mass"}, 1.0),
    (pole_of_one_in_ten, Cause.BLOW_UP, None, {"y[9]"}, 1.0),
    (pole_of_an_equation, Cause.BLOW_UP, None, {"force"}, 1.0),
    (fold_of_a_root_without_steps, Cause.FOLD, None, {"z"}, 1.0),
    (fold_from_below_without_steps, Cause.FOLD, None, {"z"}, 1.0),
    (fold_of_a_differential_equation, Cause.FOLD, None, {"angle"}, 0.5),
    (arc_sine, Cause.FOLD, None, {"angle"}, 1.0),
    (jump_of_a_constraint, Cause.DISCONTINUITY, None, None, 0.5),
    (jump_of_a_called_constraint, Cause.DISCONTINUITY, None, None, 0.5),
    (jump_in_a_table, Cause.DISCONTINUITY, {1}, {"z"}, 0.25),
    (jump_in_large_units, Cause.DISCONTINUITY, {1}, {"z"}, 0.3),
    (jump_within_a_nanosecond, Cause.DISCONTINUITY, {1}, {"z"}, 0.3e-9),
    (jump_at_a_late_time, Cause.DISCONTINUITY, {1}, {"z"}, 1e6 + 0.3),
    (sparse_jacobian_with_a_hole, Cause.JACOBIAN, {1}, {"w"}, None),
    (too_few_steps, Cause.LIMIT, None, None, None),
    (too_little_time, Cause.LIMIT, None, None, None),
]


@pytest.mark.parametrize(
    ("run", "cause", "rows", "variables", "t"), BROKEN, ids=[case[0].__name__ for case in BROKEN]
)
def test_broken(run, cause, rows, variables, t):
    sol = run()
    found = sol.diagnosis
    words = " ".join(str(found).split())
    assert not sol.success
    assert found.cause == cause, str(found)
    if rows is not None:
        assert set(found.where.rows) == rows
        assert found.where.equations == tuple(f"equation {i}" for i in found.where.rows)
        for i in found.where.rows:
            assert re.search(rf"equations? ([\d, ]*, )?{i}\b", words, re.IGNORECASE)
    if variables is not None:
        assert set(found.where.variables) == variables
    if t is not None:
        assert found.where.t == pytest.approx(t, abs=1e-3)
    assert found.summary in sol.message
    assert found.remedies
    assert "What to try" in words
    assert not re.search(r"{\w*}", words)
    assert words[0].isupper()


def test_every_cause_has_a_broken_problem():
    """But for some that take more than a few lines."""
    tested = {case[1] for case in BROKEN}
    rest = {
        Cause.NONE, Cause.CHANGED, Cause.STOPPED, Cause.DOUBTFUL, Cause.UNKNOWN, Cause.MEMORY,
        Cause.TRACE, Cause.CONDITION,
    }
    assert set(Cause) - tested == rest


# --- the first remedy is one that helps ---------------------------------------------------------


def first(sol):
    assert not sol.success
    assert f"Try: {sol.diagnosis.remedies[0]}" in sol.message
    return sol.diagnosis.remedies[0]


def test_an_equation_that_says_nothing_is_to_be_written_down():
    assert first(one_equation_forgotten()).startswith("write down as equation 2 what is missing")
    assert first(one_place_never_filled()).startswith("write down as equation 2 what is missing")


def test_a_floating_circuit_needs_a_ground():
    assert "replace one of equations 0, 1" in first(floating_circuit())
    assert solve_dae(lambda t, y, yp: [(y[0] - y[1]) / 2.0, y[1]], (0, 1), [1.0, 1.0],
                     options={"accept_projected_start": True}).success


def test_a_value_that_is_not_a_number_at_the_start_is_a_matter_of_the_start():
    assert first(exponential_of_a_wild_guess()).startswith("change y0 so that equation 1 is finite")
    assert first(quotient_of_zeros_at_the_start()).startswith("begin a little later than t = 0")
    assert first(root_that_begins_at_zero()) == "begin a little beside this value of level"


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_a_position_that_ends_a_motion_is_neither_a_missing_equation_nor_a_contradiction(
    rtol, monkeypatch
):
    monkeypatch.setitem(globals(), "solve_dae", partial(solve_dae, rtol=rtol, atol=1e-3 * rtol))
    sol = crank_at_dead_centre()
    assert sol.diagnosis.cause == Cause.SINGULAR
    assert first(sol).startswith("end the interval before t = 6.66")


@pytest.mark.parametrize(("run", "timed"), [
    (jump_in_a_forcing, True), (jump_in_a_callback, True), (jump_in_a_table, True),
    (jump_at_a_late_time, True), (kink_that_is_differentiated_as_written, True),
    (jump_in_a_state, False), (switch_at_an_event, False),
])
def test_breaks_are_for_switches_that_depend_on_the_time(run, timed):
    assert first(run()).startswith("pass t_breaks=[" if timed else "make the transition smooth")


def test_a_switch_may_be_made_smooth_or_left_to_an_event():
    """A jump of the force at position 1."""
    def smooth(t, y, yp):
        return [yp[0] - 2.0, y[1] - 2.5 * (1.0 + np.tanh((y[0] - 1.0) / 1e-3))]

    def by_event(t, y, yp):
        return [yp[0] - 2.0, y[1] - 5.0 * y[2], yp[2]]

    def touch(t, y, yp):
        return y[0] - 1.0

    touch.apply = lambda t, y, yp: [y[0], y[1], 1.0]
    for sol in (solve_dae(smooth, (0, 1), [0.0, 0.0]),
                solve_dae(by_event, (0, 1), [0.0, 0.0, 0.0], events=touch)):
        assert sol.success
        assert sol.y[1, -1] == pytest.approx(5.0)


def test_an_index_that_tracing_would_reduce():
    assert first(index_3_of_a_callback()).startswith("pass trace='auto'")


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize(("wrong", "words"), [
    (lambda fy, fyp: (fy.T.copy(), fyp.T.copy()), "transpose it"),
    (lambda fy, fyp: (fyp, fy), "return (F_y, F_yp) in this order"),
    (lambda fy, fyp: (-fy, fyp), "return derivatives of the residual F(t, y, y')"),
])
def test_mistakes_in_all_of_a_jacobian_are_recognised(wrong, words, trace):
    def jac(t, y, yp):
        return wrong(np.array([[1.0, 30.0, 2.0], [3.0 * y[0] ** 2, 5.0, 40.0], [7.0, 0.0, 1.0]]),
                     np.diag([1.0, 0.0, 0.0]))

    def fun(t, y, yp):
        a, b, c = y
        return [yp[0] + a + 30.0 * b + 2.0 * c, a**3 + 5.0 * b + 40.0 * c, 7.0 * a + c]

    found = solve_dae(fun, (0, 1), [1.0, 55.8, -7.0], jac=jac, trace=trace,
                      options={"accept_projected_start": True}, max_steps=10_000).diagnosis
    assert found.cause == Cause.JACOBIAN
    assert found.remedies[0].startswith(words)


def test_steps_that_max_step_holds_back():
    assert first(solve_dae(circle, (0, 10), [1.0, 0.0], max_step=1e-5, max_steps=500)).startswith(
        "raise max_step")
    assert first(too_few_steps()) == "raise the limit"


def test_events_at_equal_intervals_need_a_gap():
    def level(t, y, yp):
        return y[0] - 1.0

    level.apply = lambda t, y, yp: [1.0 - 1e-12]
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 10), [0.0], events=level)
    assert first(sol).startswith("leave a gap")
    assert first(bouncing_ball()).startswith("stop, or change to another model")


def test_the_least_tolerance_is_named():
    def run(rtol):
        return solve_dae(circle, (0, 1), [1.0, 0.0], rtol=rtol, atol=0.1 * rtol)

    assert "rtol = 2.2e-14, is the least" in run(3e-15).message
    assert run(2.3e-14).success


def test_a_late_time_is_to_be_counted_from_the_start():
    def run(late):
        return solve_dae(lambda t, y, yp: [yp[0] + 1e3 * (y[0] - np.cos(t - late))],
                         (late, late + 1.0), [0.0])

    sol = run(1.7e9)
    assert first(sol).startswith("count the time from the start of the run")
    assert any("differ by 2.4e-07" in text for text in sol.diagnosis.evidence)
    assert run(0.0).success


def test_a_hidden_constraint_names_the_unknown_that_has_to_change(monkeypatch):
    """Two inductors in series with a current source: the voltage between them is its slope."""
    def run(v):
        def fun(t, y, yp):
            i, j, voltage = y
            return [1e-3 * yp[0] - voltage, 2e-3 * yp[1] + voltage, i - j - np.sin(50.0 * t)]

        return solve_dae(fun, (0, 0.1), [0.0, 0.0, v], trace="never")

    moved = run(0.0)
    assert moved.success
    assert moved.start.moved == pytest.approx({2: 1 / 30})
    monkeypatch.setattr("tether.start.by_differences.MOST_ROWS", 0)      # as if it were too large
    assert first(run(0.0)).startswith("change voltage in y0")
    assert run(50.0 / 1500.0).success


def test_a_message_says_everything_once():
    for run in (written_twice, index_3_of_a_callback, no_real_root, not_a_number_at_the_start):
        sol = run()
        parts = [part.lower() for part in re.split(r"[:.;] ", sol.message)]
        assert len(set(parts)) == len(parts), sol.message
        assert sol.message.startswith(sol.diagnosis.summary)


# --- healthy but hard problems ------------------------------------------------------------------


def van_der_pol(mu):
    return solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] - mu * ((1 - y[0] ** 2) * y[1]) + mu * y[0] / 1.0],
        (0, 5), [2.0, -2.0 / 3.0],
    )


def switching(t, y, yp):
    """A right-hand side that jumps ten times a second."""
    return [yp[0] + y[0] - (1.0 if t % 0.2 < 0.1 else -1.0)]


def friction(t, y, yp):
    """Sliding that changes its direction but never sticks."""
    return [yp[0] - y[1], yp[1] + 0.1 * np.sign(y[1]) + y[0] - 5.0 * np.sin(1.3 * t)]


def thermostat():
    """A relay with a gap between its thresholds."""
    def cold(t, y, yp):
        return y[0] - 19.0

    def warm(t, y, yp):
        return y[0] - 21.0

    def turn(on):
        def apply(t, y, yp):
            return [y[0], on]
        return apply

    cold.direction, cold.apply = -1, turn(1.0)
    warm.direction, warm.apply = 1, turn(0.0)
    return solve_dae(
        lambda t, y, yp: [yp[0] + 0.1 * (y[0] - 10.0) - 3.0 * y[1], yp[1]], (0, 300), [15.0, 1.0],
        events=[cold, warm],
    )


def bounces_that_last():
    """A ball that does not come to rest before the end."""
    def floor(t, y, yp):
        return y[0]

    floor.direction = -1
    floor.apply = lambda t, y, yp: [0.0, -0.95 * y[1]]
    return solve_dae(lambda t, y, yp: [yp[0] - y[1], yp[1] + 9.81], (0, 8), [1.0, 0.0],
                     events=floor)


def robertson(scale=1.0):
    def fun(t, y, yp):
        a, b, c = y[0] / scale, y[1] / scale, y[2] / scale
        return [yp[0] / scale + 0.04 * a - 1e4 * b * c,
                yp[1] / scale - 0.04 * a + 1e4 * b * c + 3e7 * b * b, a + b + c - 1.0]

    return solve_dae(fun, (0, 1e8), [scale, 0.0, 0.0], atol=[1e-8 * scale, 1e-12 * scale,
                                                            1e-8 * scale])


def oscillator(frequency):
    w = 2 * math.pi * frequency
    return solve_dae(lambda t, y, yp: [yp[0] / w - y[1], yp[1] / w + y[0]], (0, 10 / frequency),
                     [1.0, 0.0])


def piecewise_by_events():
    """A rate that doubles and halves where the solution passes a threshold."""
    def threshold(t, y, yp):
        return y[0] - 0.5

    threshold.apply = lambda t, y, yp: [y[0], 2.0 if y[1] < 1.5 else 1.0]
    return solve_dae(lambda t, y, yp: [yp[0] + y[1] * y[0], yp[1]], (0, 5), [1.0, 1.0],
                     events=threshold)


def remembers_its_last_call():
    last = [0.0]

    def fun(t, y, yp):
        last[0] = 1.0 - last[0]
        return [yp[0] + y[0] * (1.0 + 1e-15 * last[0])]

    return solve_dae(fun, (0, 5), [1.0], trace="never")


def diode(t, y, yp):
    """A capacitor charged over a diode, whose current is an exponential."""
    voltage, current = y
    return [1e-6 * yp[0] + current,
            current - 1e-14 * (np.exp(voltage / 0.026) - 1.0) + 1e-3 * np.sin(300.0 * t)]


def heavy_pendulum():
    """Index 3 as written, with a mass of 1e9 and its multiplier."""
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, 1e9 * yp[2] + lam * x, 1e9 * yp[3] + lam * z + 9.81e9,
                x * x + z * z - 1.0]

    return solve_dae(fun, (0, 1), [0.6, -0.8, 0.0, 0.0, 0.8 * 9.81e9], form="given")


HEALTHY = {
    "stiff, with kinks": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + 1e4 * (y[0] - abs(np.sin(3 * t)))], (0, 5), [0.0]),
    "coefficients switched by events": piecewise_by_events,
    "unknowns forty decades apart": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + 1e-20 * y[1], y[1] - 1e20 * y[0]], (0, 5), [1.0, 1e20],
        atol=[1e-9, 1e11]),
    "fast beside slow": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1e4 * y[1], yp[1] + 1e4 * y[0], yp[2] + y[2]], (0, 0.05),
        [1.0, 0.0, 1.0], t_eval=[0.05]),
    "reaches zero in finite time": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + np.sqrt(abs(y[0])) * np.sign(y[0])], (0, 1.99), [1.0]),
    "spike of a slope": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1.0 / ((t - 0.5) ** 2 + 1e-6)], (0, 1), [0.0]),
    "spike of an algebraic unknown": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1.0, y[1] - 1.0 / ((y[0] - 0.5) ** 2 + 1e-8)], (0, 1),
        [0.0, 1.0 / (0.25 + 1e-8)]),
    "Brusselator": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1 - y[0] ** 2 * y[1] + 4 * y[0],
                          yp[1] - 3 * y[0] + y[0] ** 2 * y[1]], (0, 50), [1.5, 3.0]),
    "the only branch of a cubic": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1, y[1] ** 3 + y[1] - y[0]], (-5, 5),
        [-5.0, float(np.roots([1.0, 0.0, 1.0, 5.0])[np.argmin(
            abs(np.roots([1.0, 0.0, 1.0, 5.0]).imag))].real)]),
    "diode": lambda: solve_dae(diode, (0, 0.02), [0.0, 0.0]),
    "remembers its last call": remembers_its_last_call,
    "heavy pendulum": heavy_pendulum,
    "an event in every step": lambda: solve_dae(
        circle, (0, 10), [1.0, 0.0], events=lambda t, y, yp: math.sin(200 * t)),
    "tiny pendulum": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - y[2], yp[1] - y[3], yp[2] + y[4] * y[0],
                          yp[3] + y[4] * y[1] + 9.81e-6, y[0] ** 2 + y[1] ** 2 - 1e-12],
        (0, 1), [1e-6, 0.0, 0.0, 0.0, 0.0]),
    "van der Pol, mild": lambda: van_der_pol(1.0),
    "van der Pol, stiff": lambda: van_der_pol(1e3),
    "van der Pol, very stiff": lambda: van_der_pol(1e6),
    "switching forcing": lambda: solve_dae(switching, (0, 3), [0.0]),
    "dry friction without sticking": lambda: solve_dae(friction, (0, 20), [0.0, 1.0]),
    "thermostat": thermostat,
    "bounces that last": bounces_that_last,
    "Robertson": robertson,
    "Robertson in tiny units": lambda: robertson(1e-12),
    "Robertson in huge units": lambda: robertson(1e12),
    "1 GHz": lambda: oscillator(1e9),
    "1 nHz": lambda: oscillator(1e-9),
    "ten thousand periods": lambda: solve_dae(
        circle, (0, 6e4), [1.0, 0.0], rtol=1e-4, atol=1e-6, t_eval=[6e4]),
    "zero solution": lambda: solve_dae(decay, (0, 100), [0.0]),
    "constant solution": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + y[1], y[1]], (0, 1e6), [3.0, 0.0]),
    "at rest, then moved": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + y[0] - max(t - 1.0, 0.0) ** 2], (0, 3), [0.0]),
    "backward": lambda: solve_dae(circle, (0, -30), [1.0, 0.0]),
    "decay over sixty decades": lambda: solve_dae(decay, (0, 140), [1.0], atol=1e-30),
    "growth over forty decades": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - y[0]], (0, 100), [1.0]),
    "narrow layer": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1e4 / np.cosh(1e4 * (t - 0.5)) ** 2], (0, 1), [-1.0],
        max_step=1e-2),
    "nearly a pole": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - y[0] ** 2], (0, 0.999), [1.0]),
    "nearly a fold": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + 1.0, y[1] ** 2 - y[0]], (0, 0.9999), [1.0, 1.0]),
    "nearly singular": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + y[1], y[0] - y[1] + 1e-9 * (y[1] - 1)], (0, 5), [1.0, 1.0]),
    "algebraic loop": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + y[1], y[1] - np.tanh(y[0] + 0.9 * y[1])], (0, 5), [1.0, 1.0],
        options={"accept_projected_start": True}),
    "index 2": lambda: solve_dae(
        lambda t, y, yp: [yp[1] - y[0], y[1] - np.sin(t)], (0, 10), [1.0, 0.0]),
    "index 2 as written": lambda: solve_dae(
        lambda t, y, yp: [yp[1] - y[0], y[1] - np.sin(t)], (0, 10), [1.0, 0.0], form="given"),
    "loose tolerances": lambda: solve_dae(relax, (0, 50), [1.5, 1.5], rtol=1e-2, atol=1e-2),
    "tight tolerances": lambda: solve_dae(relax, (0, 5), [1.5, 1.5], rtol=1e-12, atol=1e-13),
    "order one": lambda: solve_dae(circle, (0, 1), [1.0, 0.0], max_order=1, rtol=1e-4),
    "late start": lambda: solve_dae(circle, (1e6, 1e6 + 20), [1.0, 0.0]),
    "wrong but harmless Jacobian": lambda: solve_dae(
        decay, (0, 1), [1.0], jac=(np.array([[1.1]]), np.array([[1.0]]))),
    "matched start, assumed": lambda: solve_dae(
        relax, (0, 5), [1.5, 1.5], [-1.5, -0.5], start="assume"),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy(name):
    sol = HEALTHY[name]()
    assert sol.success, sol.message
    assert sol.diagnosis.cause == Cause.NONE, str(sol.diagnosis)
    assert sol.warnings == ()
    assert str(sol.diagnosis) == "Nothing is wrong."


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
@pytest.mark.parametrize("name", gallery.names())
def test_gallery_is_healthy(name, rtol):
    problem = gallery.get(name)
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol,
                    atol=problem.atol(rtol), t_eval=problem.t_span)
    assert sol.success, sol.message
    assert sol.diagnosis.cause == Cause.NONE, str(sol.diagnosis)


# --- the verdicts in detail ----------------------------------------------------------------------


def test_a_start_that_violates_an_equation_is_shown_as_written():
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], 3.0 * y[0] - y[1]], (0, 1), [3.0, 1.0],
                    start="check", names=["x", "z"])
    assert "0 is not 8 = 3*x - z (equation 1)" in sol.message
    assert "y0[1] (z) would have to be 9 instead of 1" in sol.message


def test_a_jump_is_reported_with_its_size_and_its_remedy():
    found = jump_in_a_forcing().diagnosis
    assert "equation 1 jumps by 1 at t = 0.37" in found.summary.lower()
    assert any("t_breaks=[0.37]" in remedy for remedy in found.remedies)
    assert any("across" in text for text in found.evidence)


def test_a_wrong_jacobian_is_reported_by_its_entry():
    found = wrong_sign_in_a_jacobian().diagnosis
    assert "F_y for equation 1 and z is -1, differences give 1" in found.summary


def test_the_error_of_an_index_too_high_does_not_shrink():
    found = index_3_called_index_1().diagnosis
    assert any("index 3" in text for text in found.evidence)
    assert any("while the step shrank" in text for text in found.evidence)


def test_an_entry_missing_in_a_sparse_jacobian_is_named():
    found = sparse_jacobian_with_a_hole().diagnosis
    assert "F_y for equation 1 and w is not in the pattern, differences give" in found.summary
    assert any("in every iteration" in text for text in found.evidence)


def test_a_first_step_too_long_is_no_reason_to_look_at_the_equations(monkeypatch):
    looks = []
    monkeypatch.setattr(Integration, "_look_again", lambda run: looks.append(run.t))
    problem = gallery.get("trivial")
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0)
    assert sol.stats.error_test_failures >= 3
    assert not looks
    index_3_called_index_1()
    assert looks


def test_a_value_that_is_not_a_number_is_shown_with_its_arguments():
    found = not_a_number_at_the_start().diagnosis
    assert "nan with logarithm = -1" in found.summary
    assert found.evidence == ("it is log(logarithm)",)


@pytest.mark.parametrize("first_step", [1e-3, 1e-12, 1e-15])
def test_round_off_of_a_multiplier_is_measured_in_its_own_unit(first_step):
    """A pendulum of a micrometre, index 3 as written: the condition grows as h^-4."""
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81e-6,
                x * x + z * z - 1e-12]

    sol = solve_dae(fun, (0, 1), [1e-6, 0.0, 0.0, 0.0, 0.0], form="given", atol=1e-13,
                    first_step=first_step)
    assert sol.success, sol.message
    assert sol.y[:2, -1] == pytest.approx([-9.862917511e-07, -1.650108531e-07], abs=1e-11)


def test_round_off_at_index_3_is_not_taken_for_anything_else():
    problem = gallery.get("andrews-i3")
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, form="given",
                    first_step=1e-12, rtol=1e-12, atol=1e-14, max_seconds=20)
    assert not sol.success
    assert sol.diagnosis.cause in (Cause.TOLERANCE, Cause.CONDITION)


def test_a_classical_estimate_at_index_3():
    problem = gallery.get("pend-i3")
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, form="given",
                    options={"estimate": "classical"}, max_steps=20_000)
    assert sol.diagnosis.cause == Cause.INDEX
    assert any("classical" in text for text in sol.diagnosis.evidence)


def test_of_an_integrator_by_hand():
    bdf = Bdf(lambda t, y, yp: [yp[0] - y[0] ** 2], 0.0, [1.0], t_bound=2.0)
    while bdf.step() == Status.RUNNING:
        pass
    found = diagnose(bdf._integration)
    assert found.cause == Cause.BLOW_UP
    assert found.where.t == pytest.approx(1.0, abs=1e-3)


def test_a_diagnosis_leaves_the_run_as_it_is():
    bdf = Bdf(lambda t, y, yp: [yp[0] - y[0] ** 2], 0.0, [1.0], t_bound=2.0)
    while bdf.step() == Status.RUNNING:
        pass
    before = bdf.t, bdf.y.tolist(), bdf.stats.nfev, bdf.status
    diagnose(bdf._integration)
    assert (bdf.t, bdf.y.tolist(), bdf.stats.nfev, bdf.status) == before


def test_a_function_that_raises_when_asked_again_is_no_obstacle():
    calls = []

    def fun(t, y, yp):
        calls.append(t)
        if len(calls) > limit[0]:
            raise RuntimeError("enough")
        return [yp[0] - y[0] ** 2]

    limit = [10**9]
    bdf = Bdf(fun, 0.0, [1.0], t_bound=2.0, options={"trace": "never"})
    while bdf.step() == Status.RUNNING:
        pass
    limit[0] = len(calls)
    assert not diagnose(bdf._integration).summary.startswith("Nothing")


# --- post-checks --------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("t_end", [1e-6, 1.0])
def test_an_inconsistent_start_that_was_assumed_is_doubtful(t_end, trace):
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[1] - y[0] - np.cos(t)], (0, t_end),
                    [1.0, 7.0], [-7.0, 0.0], start="assume", trace=trace)
    assert sol.success
    assert sol.diagnosis.cause == Cause.DOUBTFUL
    assert sol.warnings == (
        "the start was assumed to be consistent, but equation 1 has the value 5 there",)
    assert sol.warnings[0] in sol.message
    assert "doubtful" in str(sol)


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_constraint_that_cannot_be_met_is_doubtful(trace):
    """So few steps follow the jump that they are no proof of a contradiction."""
    def impossible(t, y):
        return (y[0] - t) if t < 1 else y[0] ** 2 + 1.0

    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 2), [0.0], constraints=impossible,
                    trace=trace)
    assert sol.success
    assert sol.diagnosis.cause == Cause.DOUBTFUL
    text, = sol.warnings
    assert "at the end the largest is constraints[0], value 0, 5" in text
    assert "the function constraints[0], value 0, jumps by 2 at t = 1" in text
    assert "The result is doubtful: a constraint was left with 5" in sol.message


@pytest.mark.parametrize("max_step", [0.05, 1e-3])
def test_a_constraint_that_becomes_impossible_is_a_contradiction(max_step):
    """Without a jump: from t = 1 on the constraint has no solution."""
    def impossible(t, y):
        return max(t - 1.0, 0.0) * (y[0] ** 2 + 1.0)

    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 3), [0.0], constraints=impossible,
                    max_step=max_step)
    assert sol.diagnosis.cause == Cause.CONTRADICTION
    assert 1.0 < sol.diagnosis.where.t < 1.0 + 10 * max_step
    assert "constraints[0], value 0" in sol.message
    left = (sol.diagnosis.where.t - 1.0) * (sol.y[0, -1] ** 2 + 1.0)
    assert f"it is left with {left:.3g}" in sol.diagnosis.evidence


def test_equations_of_a_callback_that_do_not_hold_at_the_end_are_doubtful():
    """An event function changes what the residual reads, behind everybody's back."""
    rate = [1.0]

    def event(t, y, yp):
        rate[0] = 1.0 if t < 1.0 else 3.0
        return 1.0

    def fun(t, y, yp):
        return [yp[0] + rate[0] * y[0], y[1] - rate[0] * y[0]]

    sol = solve_dae(fun, (0, 1), [1.0, 1.0], events=event, trace="never")
    assert sol.success
    assert sol.diagnosis.cause == Cause.DOUBTFUL
    assert "at the end the equations do not hold: y[1] would have to change" in sol.warnings[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("size", [1e-4, 1e-2])
def test_a_noisy_function_whose_iteration_seems_to_converge_is_doubtful(size, seed):
    """Its Jacobian is a number without meaning, far too large, and every increment is small."""
    rng = np.random.default_rng(seed)

    def fun(t, y, yp):
        return [yp[0] + y[0] - 0.5 - size * rng.standard_normal()]

    sol = solve_dae(fun, (0, 10), [0.0], trace="never")
    text, = sol.warnings               # whether or not the result happens to be near 0.5
    assert "equation 0 is noisy" in text
    assert sol.diagnosis.cause == Cause.DOUBTFUL


def test_a_callback_that_changes_the_equations_at_the_end_is_no_doubt():
    rate = [1.0]

    def callback(t, y, yp):
        rate[0] = 3.0
        return True

    sol = solve_dae(lambda t, y, yp: [yp[0] + rate[0] * y[0]], (0, 1), [1.0], trace="never",
                    callback=callback)
    assert sol.status == Status.STOPPED
    assert sol.warnings == ()


def test_a_wrong_jacobian_that_only_costs_time_is_doubtful():
    def jac(t, y, yp):
        return np.array([[0.0, 50.0], [3.0 * y[0] ** 2, 1.0]]), np.diag([1.0, 0.0])

    sol = solve_dae(lambda t, y, yp: [yp[0] + 50.0 * y[1], y[1] - y[0] ** 3 - t], (0, 0.01),
                    [1.0, 1.0], jac=jac)
    assert sol.success
    assert any("jac is wrong" in text for text in sol.warnings)


# --- the ring -----------------------------------------------------------------------------------


def test_the_ring_keeps_the_last_attempts():
    bdf = Bdf(circle, 0.0, [1.0, 0.0], t_bound=100.0)
    t, h, k = [], [], []
    while bdf.step() == Status.RUNNING:
        t.append(bdf.t)
        h.append(bdf.step_size)
        k.append(bdf.order)
    steps = read_steps(bdf._integration.state)
    assert len(steps) == codes.RING_ROWS
    assert len(COLUMNS) == codes.RING_COLUMNS
    assert bdf._integration.state.attempts == bdf.stats.steps + bdf.stats.error_test_failures + (
        bdf.stats.convergence_failures)
    accepted = steps[steps["outcome"] == codes.OK]
    np.testing.assert_array_equal(accepted["t"][:-1], t[-len(accepted) + 1:])
    np.testing.assert_array_equal(accepted["h"][:-1], h[-len(accepted) + 1:])
    np.testing.assert_array_equal(accepted["order"][:-1], k[-len(accepted) + 1:])
    assert np.all(accepted["error"] <= 1.0)
    assert np.all(np.diff(steps["iterations"]) >= 1)


@pytest.mark.parametrize("n", [3, 25])
def test_the_ring_keeps_slopes_and_condition(n):
    """The matrix is diagonal, 1 + c or 1000 + c, in the core's own factors or LAPACK's."""
    rates = np.where(np.arange(n) == 1, 1000.0, 1.0)
    bdf = Bdf(lambda t, y, yp: [yp[i] + rates[i] * y[i] for i in range(n)], 0.0, [1.0] * n,
              t_bound=1.0)
    while bdf.step() == Status.RUNNING:
        pass
    last = read_steps(bdf._integration.state)[-1]
    np.testing.assert_array_equal(last["slopes"], bdf.yp)
    c = bdf._integration.state.cj_factored
    assert last["condition"] == pytest.approx((1000.0 + c) / (1.0 + c), rel=1e-6)
    assert last["condition"] <= bdf.condition() * (1 + 1e-6)


def test_the_ring_names_the_component_that_fails():
    bdf = Bdf(lambda t, y, yp: [yp[0] + y[0], y[1] - (t > 0.5)], 0.0, [1.0, 0.0], t_bound=1.0)
    while bdf.step() == Status.RUNNING:
        pass
    failed = read_steps(bdf._integration.state)
    failed = failed[failed["outcome"] == codes.ERROR_TEST]
    assert len(failed) > 3
    assert np.all(failed["component"] == 1)


# --- no hang ------------------------------------------------------------------------------------


def test_creeping_ends_after_about_a_hundred_thousand_steps():
    sol = relay_on_its_surface()
    assert sol.status == Status.NO_PROGRESS
    assert 1e5 <= sol.stats.steps <= 1e6


@pytest.mark.parametrize("run", [relay_on_its_surface, dry_friction])
def test_creeping_is_noticed_at_loose_tolerances_too(run, monkeypatch):
    """The steps are longer, but 1e7 of them would be needed still."""
    monkeypatch.setitem(globals(), "solve_dae", partial(solve_dae, rtol=1e-3, atol=1e-3))
    sol = run()
    assert sol.diagnosis.cause == Cause.CREEPING
    assert sol.stats.steps <= 1e6


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
@pytest.mark.parametrize("run", [
    pole, tangent, thermal_runaway, pole_of_an_equation, fold_of_a_root, impasse_of_a_circuit,
    fold_from_below_without_steps, fold_of_a_differential_equation, arc_sine,
])
def test_poles_and_folds_are_told_apart_at_every_tolerance(run, tolerance, monkeypatch):
    monkeypatch.setitem(
        globals(), "solve_dae", partial(solve_dae, rtol=tolerance, atol=1e-3 * tolerance))
    assert run().diagnosis.cause == {case[0]: case[1] for case in BROKEN}[run]


@pytest.mark.parametrize("watcher", ["event", "callback"])
def test_creeping_is_noticed_though_somebody_might_stop_the_run(watcher):
    """An event that never comes, at an end that may be far away, is no way out."""
    def boils(t, y, yp):
        return y[0] - 100.0

    boils.terminal = True
    who = {"events": boils} if watcher == "event" else {"callback": lambda t, y, yp: False}
    sol = solve_dae(lambda t, y, yp: [yp[0] + 0.1 * (y[0] - 10.0) - (3.0 if y[0] < 20.0 else 0.0)],
                    (0, 1e9), [15.0], **who)
    assert sol.diagnosis.cause == Cause.CREEPING
    assert sol.stats.steps <= 1e6


def test_a_far_end_is_no_reason_to_stop_before_a_terminal_event():
    def late(t, y, yp):
        return t - 2e5

    late.terminal = True
    sol = solve_dae(circle, (0, 1e15), [1.0, 0.0], events=late, max_order=1, max_step=1.0,
                    rtol=1e-2, atol=1e-2, t_eval=[0.0])
    assert sol.status == Status.EVENT
    assert sol.stats.steps >= 2e5


def test_limits_of_the_user_come_first():
    sol = solve_dae(lambda t, y, yp: [yp[0] + (1.0 if y[0] > 0 else -1.0)], (0, 10), [1.0],
                    max_steps=300_000)
    assert sol.status == Status.MAX_STEPS


# --- names --------------------------------------------------------------------------------------


def test_names_are_used_in_messages():
    sol = solve_dae(lambda t, y, yp: [y[0] + y[1] - 2.0] * 2, (0, 1), [1.0, 1.0],
                    names=["left", "right"], equation_names=["balance", "again"])
    assert "equations 0 'balance', 1 'again' depend on each other" in sol.message
    assert "leave left, right open" in sol.message
    assert "y[0]" not in sol.message


def test_names_are_used_in_what_is_said_about_the_start():
    def fun(t, y, yp):
        return [yp[0] + y[1], y[0] - y[1] ** 2]

    sol = solve_dae(fun, (0, 1), [-1.0, 1.0], names=["level", "flow"],
                    equation_names=["balance", "valve"])
    assert not sol.success
    assert "equation 1 'valve'" in sol.start.message
    sol = solve_dae(fun, (0, 1), [1.0, 3.0], names=["level", "flow"], start="check")
    assert "flow" in sol.start.message
    assert "y[1]" not in sol.start.message


def test_names_are_read_off_the_function():
    assert pole().diagnosis.where.variables == ("mass",)
    assert Names.of(Problem(circle), 2).variables == ("y[0]", "y[1]")


@pytest.mark.parametrize("argument", ["names", "equation_names"])
@pytest.mark.parametrize(("names", "error"), [
    ("xy", TypeError), (7, TypeError), ([1, 2], TypeError), (["x"], ValueError),
    (["x", "x"], ValueError),
])
def test_bad_names_are_refused(argument, names, error):
    with pytest.raises(error, match=argument):
        solve_dae(circle, (0, 1), [1.0, 0.0], **{argument: names})


# --- t_breaks -----------------------------------------------------------------------------------


def after(t, edge, inclusive):
    return 1.0 if (t >= edge if inclusive else t > edge) else 0.0


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_breaks_carry_a_run_over_jumps(inclusive, trace):
    """x' = -z, z = x + steps at 0.25 and 0.5: solved piece by piece."""
    def fun(t, y, yp):
        steps = after(t, 0.25, inclusive) + after(t, 0.5, inclusive)
        return [yp[0] + y[1], y[1] - y[0] - steps]

    sol = solve_dae(fun, (0, 1), [1.0, 1.0], t_breaks=[0.5, 0.25], dense_output=True, trace=trace)
    assert sol.success, sol.message
    assert sol.diagnosis.cause == Cause.NONE
    x, start = 1.0, 0.0
    for number, end in enumerate([0.25, 0.5, 1.0]):
        x = (x + number) * math.exp(-(end - start)) - number
        start = end
        assert sol.sol(end)[0][0] == pytest.approx(x, abs=1e-5)
        assert sol.sol(end)[0][1] == pytest.approx(x + number, abs=1e-5)
        assert np.count_nonzero(sol.t == end) == (2 if end < 1 else 1)
    assert np.all(np.diff(sol.t) >= 0)


def test_breaks_at_output_times_return_the_value_before():
    sol = solve_dae(lambda t, y, yp: [y[0] - (t > 0.5)], (0, 1), [0.0], t_breaks=[0.5],
                    t_eval=[0.0, 0.5, 0.75, 1.0])
    assert sol.success
    assert sol.y[0] == pytest.approx([0.0, 0.0, 1.0, 1.0])


def test_breaks_of_a_kink_that_is_differentiated():
    sol = solve_dae(lambda t, y, yp: [yp[1] - y[0], y[1] - np.maximum(t - 0.6, 0.0)], (0, 1),
                    [0.0, 0.0], t_breaks=[0.6])
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([1.0, 0.4])


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_break_at_the_end_keeps_the_jump_out(trace):
    def fun(t, y, yp):
        return [yp[0] + y[0], y[1] - y[0] - (t >= 1)]

    found = solve_dae(fun, (0, 1), [1.0, 1.0], trace=trace).diagnosis
    assert found.cause == Cause.DISCONTINUITY
    assert any("t_breaks=[1]" in remedy for remedy in found.remedies)
    assert "no step across it was accepted, however small" in found.evidence
    for t_eval in (None, [0.5, 1.0]):
        sol = solve_dae(fun, (0, 1), [1.0, 1.0], trace=trace, t_breaks=[1.0], t_eval=t_eval,
                        dense_output=True)
        assert sol.success
        assert sol.t[-1] == 1.0
        assert sol.y[1, -1] == pytest.approx(math.exp(-1), abs=1e-5)
        assert sol.sol(1.0)[0][1] == pytest.approx(math.exp(-1), abs=1e-5)


def test_breaks_backward_and_outside():
    sol = solve_dae(lambda t, y, yp: [y[0] - (t > -0.5)], (0, -1), [1.0],
                    t_breaks=[-0.5, 3.0, -1.0])
    assert sol.success
    assert sol.y[0, -1] == 0.0


def test_breaks_with_events():
    def event(t, y, yp):
        return y[0] - 0.3

    sol = solve_dae(lambda t, y, yp: [yp[0] - (1.0 if t < 0.5 else -1.0)], (0, 1), [0.0],
                    t_breaks=[0.5], events=event)
    assert sol.success
    assert sol.t_events[0] == pytest.approx([0.3, 0.7], abs=1e-6)


@pytest.mark.parametrize(("breaks", "error"), [
    ("0.5", TypeError), (0.5, TypeError), ([math.nan], ValueError), ([[0.1, 0.2]], TypeError),
])
def test_bad_breaks_are_refused(breaks, error):
    with pytest.raises(error, match="t_breaks"):
        solve_dae(decay, (0, 1), [1.0], t_breaks=breaks)


# --- before any step ------------------------------------------------------------------------------


@pytest.mark.parametrize(("fun", "y0", "cause"), [
    (lambda t, y, yp: [y[0] + y[1] - 2.0] * 2, [1.0, 1.0], Cause.SINGULAR),
    (lambda t, y, yp: [yp[0] + y[0], y[0] - 1.0], [1.0, 1.0], Cause.STRUCTURE),
    (lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 + 1.0], [1.0, 1.0], Cause.START),
    (lambda t, y, yp: [yp[0] + y[0], y[1] - y[0]], [1.0, 1.0], Cause.NONE),
    (lambda t, y, yp: [y[0] - np.sin(t), yp[0] - y[1], yp[1] - y[2]], [0.0, 1.0, 0.0], Cause.NONE),
])
def test_analyze_gives_the_same_findings(fun, y0, cause):
    assert analyze(fun, 0.0, y0).diagnosis.cause == cause


def test_analyze_checks_a_jacobian():
    problem = Problem(decay, jac=(np.array([[5.0]]), np.array([[1.0]])))
    assert analyze(problem, 0.0, [1.0]).diagnosis.cause == Cause.JACOBIAN


# --- the documentation ----------------------------------------------------------------------------


def test_the_page_of_messages_is_up_to_date():
    """Run ``python -m tether.explain.messages > docs/messages.md`` if not."""
    assert (ROOT / "docs/messages.md").read_text() == page()


def test_every_cause_and_status_is_explained():
    text = page()
    assert set(CAUSES) == set(Cause)
    for cause in Cause:
        assert f"`{cause.value}`" in text
    for status in Status:
        assert f"`{status.name}`" in text


def test_plot(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    for run in (jump_in_a_forcing, no_real_root, lambda: solve_dae(decay, (0, 1), [1.0])):
        figure = run().diagnosis.plot()
        assert len(figure.axes) == 3


# --- breaks of functions --------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0.1, 1 / 3, 0.5, 0.987654321])
def test_jumps_and_kinks_are_located(place):
    size = np.array([1e-6])
    jump = find_break(lambda t: np.array([np.cos(t) + (t > place)]), 0.0, 1.0, size)
    assert jump.t == pytest.approx(place, abs=1e-12)
    assert jump.jump == pytest.approx(1.0)
    kink = find_break(lambda t: np.array([np.cos(t) + 3 * abs(t - place)]), 0.0, 1.0, size)
    assert kink.t == pytest.approx(place, abs=1e-6)
    assert kink.jump == 0.0


@pytest.mark.parametrize("fun", [
    np.sin, np.exp, lambda t: np.tanh(1e4 * (t - 0.5)), lambda t: 1e8 * np.sin(30 * t),
    lambda t: 0.0 * t, lambda t: 1 / (1.001 - t), lambda t: np.abs(t - 0.5) ** 3,
])
def test_smooth_functions_have_no_break(fun):
    assert find_break(lambda t: np.array([fun(t)]), 0.0, 1.0, np.array([1e-9])) is None


@pytest.mark.parametrize(
    "run", [kink_that_is_differentiated, kink_in_a_backward_run, force_that_jumps]
)
def test_multipliers_follow_jumps_of_what_drives_them(run):
    """A reduced system determines them at every step, and no error test is in the way."""
    sol = run()
    assert sol.success
    assert sol.diagnosis.cause == Cause.NONE
    if run is not force_that_jumps:
        late = np.abs(sol.t) > 0.65
        np.testing.assert_allclose(np.abs(sol.y[0, late]), 1.0, atol=1e-9)
