"""Notice when the solution passes a surface where a condition of the traced function changes.

The conditions are frozen during a step. After it the heights of the solution above the surfaces
show whether it is still on the sides for which they were frozen (`tether.run.switching`).
"""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.machine import Machine, values_at
    from tether._core.rows import Rows, row_values
    from tether._core.state import State, doubles


def passed_surface(s):
    """Tell whether the accepted point is on another side of a surface, or has left one."""
    i: cython.int
    if s.heights_of_rows:
        row_values(cython.cast(Rows, s.heights_adapter), s.t, s.phi, s.yp_n, s.heights)
    else:
        values_at(cython.cast(Machine, s.heights_adapter), s.t, s.phi, s.yp_n, s.heights)
    for i in range(s.n_surfaces):
        if s.sides[i] == 0.0:
            if s.heights[i] > s.bands[i] or s.heights[i] < -s.bands[i]:
                return True
        elif s.heights[i] * s.sides[i] < -s.bands[i]:
            return True
    return False


def watch_surfaces(s: State, runner, sides, bands):
    """Evaluate the heights that a machine or templates compute after every step.

    `sides` are 1 above a surface, -1 below, 0 on it; heights within the band count as zero.
    """
    s.heights_adapter = runner
    s.heights_of_rows = isinstance(runner, Rows)
    s.heights = doubles(s, "heights", np.zeros(runner.n_values))
    s.sides = doubles(s, "sides", np.array(sides, float))
    s.bands = doubles(s, "bands", np.array(bands, float))
    s.n_surfaces = runner.n_values


def watch_no_surfaces(s: State):
    """Watch no surfaces from now on."""
    s.n_surfaces = 0
