"""Random hybrid and mechanical runs, compared with another integrator or exact solutions.

``python -m fuzz_runs --count 2000 --seed 1`` in the folder ``tests`` runs them;
``python -m fuzz_runs --show 17 --seed 1`` tells everything about one of them.
"""

import numpy as np

from fuzz_runs import circuits, hybrids, impulses, mechanisms, processes
from fuzz_runs.judge import Verdict, judge
from fuzz_runs.reference import Unusable

FAMILIES = [
    *mechanisms.FAMILIES,
    *circuits.FAMILIES,
    *hybrids.FAMILIES,
    *processes.FAMILIES,
    *impulses.FAMILIES,
]


def run(seed: int, number: int) -> Verdict:
    """Make the case of this number and judge it."""
    rng = np.random.default_rng([seed, number])
    family = FAMILIES[number % len(FAMILIES)]
    try:
        case = family(rng)
    except Unusable as reason:
        return Verdict("skipped", family.__name__, str(reason))
    return judge(case, rng)
