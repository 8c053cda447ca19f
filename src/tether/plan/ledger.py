"""How often a plan is compared with the function from which it was made."""

from __future__ import annotations

__all__ = ["Ledger"]

# Share of the time of all runs that comparisons may take ...
SHARE = 0.01
# ... and in the first runs, which are compared in any case.
FIRST_SHARE = 0.02
FIRST_RUNS = 3
# Golden section: the fractional parts of its multiples fill an interval evenly.
GOLDEN = 0.6180339887498949


class Ledger:
    """The time that runs with one plan have taken, and the time that comparisons have.

    Comparisons may take a hundredth of the time of all runs together: of short runs only some are
    compared, and a long one is compared many times. The first three runs are always compared.

    Attributes
    ----------
    runs : int
        Runs so far.
    steps : int
        Steps of the last run.
    run_seconds, compare_seconds : float
        Time of all runs, and of the comparisons in them.
    branches : set of int
        Branches on which the program and the function have agreed.

    Examples
    --------
    >>> from tether.plan.ledger import Ledger
    >>> ledger = Ledger()
    >>> [ledger.begin_run() for _ in range(3)]
    [True, True, True]
    >>> ledger.run_seconds, ledger.compare_seconds = 1.0, 0.5
    >>> ledger.begin_run()
    False
    >>> ledger.run_seconds = 100.0
    >>> ledger.begin_run()
    True
    """

    def __init__(self) -> None:
        self.runs = self.steps = self._drawn = 0
        self.run_seconds = self.compare_seconds = 0.0
        self.branches: set[int] = set()

    def begin_run(self) -> bool:
        """Count a run; tell whether it is to be compared."""
        self.runs += 1
        return self.runs <= FIRST_RUNS or self.can_pay

    @property
    def can_pay(self) -> bool:
        """Whether the time of the runs so far allows another comparison."""
        share = FIRST_SHARE if self.runs <= FIRST_RUNS else SHARE
        return self.compare_seconds <= share * self.run_seconds

    def draw(self, below: int) -> int:
        """Return a number from 1 to `below`, a different one at every call."""
        self._drawn += 1
        return 1 + int(self._drawn * GOLDEN % 1.0 * below)
