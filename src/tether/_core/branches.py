"""Notice when the solution comes to a branch of the user's function that it was not on before.

A traced function has all of its branches in one program. The program is compared with the function
(`tether.run.trust`) on each branch that a run meets: its conditions, evaluated at every accepted
step, make a number, and one that was not seen before is for somebody outside to look at.
"""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.machine import Machine, values_at
    from tether._core.state import State, doubles, long_integers

MOST_BRANCHES = 64                 # that are told apart in one run
# A hash of the conditions: Lehmer's generator stirs them well, in 64 bits.
FACTOR = cython.declare(cython.longlong, 48271)
MODULUS = cython.declare(cython.longlong, 2147483647)


def on_new_branch(s):
    """Tell whether the accepted point lies on a branch for the first time, and remember it."""
    i: cython.int
    branch: cython.longlong = 1
    values_at(cython.cast(Machine, s.conditions_adapter), s.t, s.phi, s.yp_n, s.answers)
    for i in range(s.n_conditions):
        branch = (branch * FACTOR + (1 if s.answers[i] != 0.0 else 2)) % MODULUS
    if branch == s.branch:
        return False
    s.branch = branch
    for i in range(s.n_branches):
        if s.branches[i] == branch:
            return False
    if s.n_branches == s.most_branches:
        return False
    s.branches[s.n_branches] = branch
    s.n_branches += 1
    return True


def watch_branches(s: State, machine: Machine, known):
    """Look at the conditions that a machine computes after every step; `known` are no news."""
    s.conditions_adapter = machine
    s.answers = doubles(s, "answers", np.zeros(machine.n_values))
    s.branches = long_integers(s, "branches", np.zeros(MOST_BRANCHES, np.int64))
    s.array("branches")[: len(known)] = known
    s.n_branches, s.most_branches, s.branch = len(known), MOST_BRANCHES, 0
    s.n_conditions = machine.n_values
