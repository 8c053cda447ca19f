"""Problems that fail on the way; each returns a solution."""
# ruff: noqa: RUF059  (unknowns are unpacked for their names)

import math

import numpy as np
import pytest

from support.helpers import circle
from tether import solve_dae


def jump_in_a_forcing():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - x - (t > 0.37)]

    return solve_dae(fun, (0, 1), [1.0, 1.0], trace="never")


def jump_in_a_callback():
    def fun(t, y, yp):
        x, z = y
        return [yp[0] + x, z - x - math.floor(3 * t)]

    return solve_dae(fun, (0, 1), [1.0, 1.0], trace="never")


def jump_in_a_state():
    def fun(t, y, yp):
        position, force = y
        return [yp[0] - 2.0, force - np.where(position > 1.0, 5.0, 0.0)]

    return solve_dae(fun, (0, 1), [0.0, 0.0], trace="never")


def kink_that_is_differentiated():
    def fun(t, y, yp):
        slope, ramp = y
        return [yp[1] - slope, ramp - np.maximum(t - 0.6, 0.0)]

    return solve_dae(fun, (0, 1), [0.0, 0.0])


def kink_that_is_differentiated_as_written():
    def fun(t, y, yp):
        slope, ramp = y
        return [yp[1] - slope, ramp - abs(t - 0.52)]

    return solve_dae(fun, (0, 1), [-1.0, 0.52], trace="never")


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
        sign = 1.0 if t < 0.2 else -1.0
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

    return solve_dae(fun, (0, 1), [1.0, 0.0, 0.0, 0.0, 0.0], trace="never")


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

    return solve_dae(fun, (0, 10), [1.0], trace="never")


def dry_friction():
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + 10.0 * np.sign(v) - np.sin(t)]

    return solve_dae(fun, (0, 10), [0.0, 1.0], trace="never")


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
    assert any("doubling every 0.23" in text for text in sol.diagnosis.evidence)
    return sol


def growth_of_a_callback():
    return growth(trace="never")


def switch_at_an_event():
    """An event that changes nothing leaves the run on the switch."""
    def fun(t, y, yp):
        position, force = y
        return [yp[0] - 2.0, force - np.where(position > 1.0, 5.0, 0.0)]

    def touch(t, y, yp):
        return y[0] - 1.0

    touch.apply = lambda t, y, yp: y
    return solve_dae(fun, (0, 1), [0.0, 0.0], events=touch, rtol=1e-8, trace="never")


def no_tolerance_left():
    """Without atol the tolerance of b goes to zero together with it."""
    def fun(t, y, yp):
        a, b = y
        return [yp[0] + a, b - np.maximum(1.0 - t, 0.0)]

    return solve_dae(fun, (0, 10), [1.0, 1.0], atol=0.0, trace="never")


def preconditioner_that_is_none():
    """What it returns has nothing to do with the matrix, and is no number in the end."""
    class Nothing:
        calls = 0

        def factor(self, matrix):
            pass

        def solve(self, b):
            self.calls += 1
            return b if self.calls < 20 else np.full(len(b), np.nan)

    def fun(t, y, yp):
        return yp + y**3

    options = {"linear_solver": "krylov", "preconditioner": Nothing()}
    return solve_dae(fun, (0, 10), [1.0, 2.0], options=options)


def infinite_from_the_start():
    """What is not finite fits into any precision."""
    return solve_dae(lambda t, y, yp: [yp[0] / 0.0 * y[0]], (0, 1), [1.0])
