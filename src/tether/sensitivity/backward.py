"""Sweep a taped run backwards: derivatives of scalars with respect to any number of parameters.

The transpose of every map in the run is applied in the opposite order, so that the result agrees
with that of `forward.py` up to round-off, math (38). A variable `of_x` or `x_bar` is the adjoint of
x: the derivative of the scalars with respect to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tether._core import point_shares
from tether.sensitivity.outputs import Outputs
from tether.sensitivity.route import PAST, Path
from tether.sensitivity.sweep import Sweep

__all__ = ["Seeds", "backwards"]


@dataclass(frozen=True, eq=False)
class Seeds:
    """Combinations of points of legs on which scalars depend, and their weights in them."""

    outputs: Outputs
    weights: np.ndarray                        # (outputs, scalars, unknowns that have a say)


@dataclass(eq=False)
class _Waiting:
    """Seeds of one leg in the order of their rows; the last ones are sown first."""

    rows: np.ndarray
    shares: np.ndarray
    weights: np.ndarray
    left: int                                  # how many are not sown yet


def backwards(sweep: Sweep, seeds: Sequence[Seeds], gradient: np.ndarray) -> np.ndarray:
    """Add to a gradient the part that comes from the solution.

    Parameters
    ----------
    sweep : Sweep
        The run.
    seeds : sequence of Seeds
        How the scalars depend on the solution.
    gradient : ndarray, shape (scalars, parameters)
        Their derivatives with respect to the parameters at a fixed solution.
    """
    lines = len(gradient)
    waiting: list[list[_Waiting]] = [[] for _ in sweep.paths]
    for some in seeds:
        outputs = some.outputs
        for leg, numbers in outputs.by_legs():
            waiting[leg].append(_Waiting(
                outputs.row[numbers], outputs.shares[numbers], some.weights[numbers], len(numbers),
            ))
    of_references, of_time = np.zeros((lines, 0)), np.zeros(lines)
    for number in range(len(sweep.paths) - 1, -1, -1):
        path = sweep.paths[number]
        count = path.linear.n_invariants
        if of_references.shape[1] != count:
            of_references = np.zeros((lines, count))
        bar = np.zeros((PAST, lines, path.linear.n))   # adjoints of the last points before a chunk
        for first, last in reversed(sweep.chunks(path)):
            part = sweep.slopes(path, first, last)
            whole = np.zeros((PAST + last - first, lines, path.linear.n))
            whole[-PAST:] += bar
            _add_seeds(waiting[number], whole, first, last)
            pull = np.zeros((last - first, lines, path.linear.m))
            sweep.engine(path).backwards(part, path.c[first:last], whole, PAST, gradient, pull)
            if count:
                of_references += pull[:, :, -count:].sum(axis=0)
            bar = whole[:PAST].copy()
        _add_seeds(waiting[number], bar, -1, 0)
        if sweep.takes_new_references(number):
            gy, gp = sweep.reference_rows(path)
            bar[-1] += of_references @ gy
            gradient += of_references @ gp.T
            of_references = np.zeros((lines, 0))
        of_time = _through_start(sweep, number, path, bar, of_time, waiting, gradient)
    return gradient


def _add_seeds(waiting: list[_Waiting], whole: np.ndarray, first: int, last: int) -> None:
    """Add the seeds of rows after `first` up to `last`, which is the last of `whole`."""
    for some in waiting:
        begin = int(np.searchsorted(some.rows, first, side="right"))
        now, some.left = slice(begin, some.left), begin
        places = some.rows[now] + np.intc(len(whole) - 1 - last)
        point_shares.scatter(some.weights[now], places, some.shares[now], whole)


def _through_start(
    sweep: Sweep, number: int, path: Path, bar: np.ndarray, of_time: np.ndarray,
    waiting: list[list[_Waiting]], gradient: np.ndarray,
) -> np.ndarray:
    """Take adjoints from the beginning of a leg back to the leg before, or to the start.

    `of_time` is the adjoint of the time at which the leg begins; that of the leg before is
    returned.
    """
    past, before = bar[: PAST - 1].copy(), waiting[number - 1]
    if number > 0:
        through = sweep.passages[number - 1]
        n = min(bar.shape[2], sweep.paths[number - 1].linear.n)
        for k, share in enumerate(through.past[: PAST - 1]):
            before.append(_at_row(through.row, share, past[PAST - 2 - k, :, :n].copy()))
            past[PAST - 2 - k] = 0.0
    distance = path.t[1:PAST] - path.t[PAST]
    of_values = bar[-1] + past.sum(axis=0)
    of_slopes = np.tensordot(distance, past, 1)
    if number == 0:
        of_start = of_values + sweep.starts[0][-1].take_slopes_back(of_slopes, gradient)
        for start in reversed(sweep.starts[0]):
            of_given, _ = start.take_back(of_start, gradient)
            of_start = np.zeros_like(of_values)
            of_start[:, : sweep.n] = of_given
        gradient += of_given @ sweep.seeds.T
        return np.zeros_like(of_time)
    between = [
        (-int(some.rows[k]), some.weights[k]) for some in waiting[number] for k in range(some.left)
    ]
    of_state, of_time = through.backwards(of_values, of_slopes, of_time, gradient, between)
    before.append(_at_row(through.row, through.shares, of_state))
    return of_time


def _at_row(row: int, shares: np.ndarray, weights: np.ndarray) -> _Waiting:
    return _Waiting(np.array([row], np.intc), shares[None], weights[None], 1)
