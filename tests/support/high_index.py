"""Index 2 and 3 as written, without reduction."""

from functools import partial

import tether
from tether import Options, gallery

solve_dae = partial(tether.solve_dae, form="given")
GivenOptions = partial(Options, form="given")

# Correct digits at rtol 1e-6 of the best BDF code that finishes, with all its tricks, less 0.3.
DIGITS = {
    "pend-i2": 3.4,
    "pend-ggl": 4.3,
    "caraxis-i2": 4.8,
    "andrews-i2": 5.5,
    "fekete": 6.3,
    "pend-i3": 4.5,
    "caraxis-i3": 2.1,
    "andrews-i3": 3.2,
}
PENDULUM = gallery.get("pend-i3")


def solve(name, rtol, **arguments):
    problem = gallery.get(name)
    sol = solve_dae(
        problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol, atol=problem.atol(rtol),
        **arguments,
    )
    return problem, sol
