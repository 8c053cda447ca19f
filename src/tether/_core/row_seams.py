"""Templates as residual, Jacobian and event functions of a state."""

import cython
import numpy as np

from tether._core.runner import check_fit

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK
    from tether._core.machine import check_finite
    from tether._core.rows import Rows, row_changing, row_constants, row_entries, row_values
    from tether._core.state import State


def rows_residual(s, t, y, yp, out):
    """Residual by the templates in `s.residual_adapter`."""
    row_values(cython.cast(Rows, s.residual_adapter), t, y, yp, out)
    return OK


def rows_jacobian(s, t, y, yp):
    """F_y and F_y' by the templates in `s.jacobian_adapter`."""
    write_jacobian(cython.cast(Rows, s.jacobian_adapter), s, t, y, yp)
    return OK


def write_jacobian(m, s, t, y, yp):
    """Write the entries into the matrices of a state; those that never change only once."""
    if m.constants_due:
        row_constants(m, s.matrix.fy, s.matrix.fyp)
        m.constants_due = False
    row_changing(m, t, y, yp, s.matrix.fy, s.matrix.fyp)


def rows_events(s, t, y, yp, g):
    """Event functions by the templates in `s.events_adapter`."""
    row_values(cython.cast(Rows, s.events_adapter), t, y, yp, g)
    return check_finite(g, s.n_events)


def use_rows(s: State, rows: Rows):
    """Let the state compute its residual and its Jacobian by templates."""
    check_fit(s, rows, s.n)
    s.residual_adapter = s.jacobian_adapter = rows
    s.residual = rows_residual
    s.jacobian = rows_jacobian
    s.python_residual = not cython.compiled
    s.matrix.clear()
    if rows.fyp_is_static:             # then it is the same everywhere
        anywhere = np.zeros(s.n)
        row_entries(rows, 0.0, address(anywhere), address(anywhere), s.matrix.fy, s.matrix.fyp)
    s.fyp_known = s.fyp_exists = s.fyp_constant = rows.fyp_is_static


def use_row_events(s: State, rows: Rows):
    """Let the state compute its event functions by templates."""
    check_fit(s, rows, s.n_events, writes_entries=False)
    s.events_adapter = rows
    s.events = rows_events
