"""Shared by all that run a program: the machine, templates and compiled C programs."""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.arrays import integer_address
    from tether._core.state import State


def vector(values, n):
    """Return n numbers as a new array."""
    array = np.array(values, float)
    if array.shape != (n,):
        raise ValueError(f"expected {n} values, got an object of shape {array.shape}")
    return array


def reach_of(fy_positions, fyp_positions):
    """Return one more than the largest position."""
    positions = np.concatenate([np.asarray(fy_positions, int), np.asarray(fyp_positions, int)])
    if np.any(positions < 0):
        raise ValueError("a position of an entry is negative")
    return int(np.max(positions, initial=-1)) + 1


def check_reach(reach, fy, fyp):
    """Raise an error if entries would be written beyond the end of the memory."""
    if min(len(fy), len(fyp)) < reach:
        raise ValueError(f"the entries need room for {reach} numbers, got {len(fy)}, {len(fyp)}")


def check_fit(s: State, runner, n_values, writes_entries=True):
    """Raise an error if a program was made for another number of unknowns or values."""
    reach = runner.reach if writes_entries else 0
    if runner.n != s.n or runner.n_values != n_values or reach > s.matrix.room:
        raise ValueError(
            f"a program of {runner.n} unknowns and {runner.n_values} values does not fit a state "
            f"of {s.n} unknowns and {n_values} values"
        )


def addresses_of(function, jacobian, runner):
    """Addresses of the C functions of constraints and of their user data, as numbers.

    The user data is the runner, which the caller must keep alive. Uncompiled, there are no
    addresses.
    """
    if not cython.compiled:
        return 0, 0, -1
    return (
        cython.cast(cython.longlong, cython.cast(cython.p_void, function)),
        cython.cast(cython.longlong, cython.cast(cython.p_void, jacobian)),
        cython.cast(cython.longlong, cython.cast(cython.p_void, runner)),
    )


def keep(arrays, array):
    """Keep an array of C integers alive in a list; return the address of its first element."""
    array = np.ascontiguousarray(array if len(array) else [0], np.intc)
    arrays.append(array)
    return integer_address(array)
