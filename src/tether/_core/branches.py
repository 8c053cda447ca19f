"""Notice when the solution reaches a branch of the user's function for the first time.

A traced function has all of its branches in one program. The program is compared with the function
(`tether.run.trust`) on each branch that a run meets: the conditions, evaluated at every accepted
step, are hashed to a number, and at a new number the core returns so that they can be compared.
"""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.machine import Machine, values_at
    from tether._core.state import State, doubles, long_integers

MOST_BRANCHES = 64                 # most branches distinguished in one run
# Hash of the conditions by Lehmer's generator; its products fit into 64 bits.
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
    """Evaluate the machine's conditions after every step; branches in `known` are not new."""
    s.conditions_adapter = machine
    s.answers = doubles(s, "answers", np.zeros(machine.n_values))
    s.branches = long_integers(s, "branches", np.zeros(MOST_BRANCHES, np.int64))
    s.array("branches")[: len(known)] = known
    s.n_branches, s.most_branches, s.branch = len(known), MOST_BRANCHES, 0
    s.n_conditions = machine.n_values
