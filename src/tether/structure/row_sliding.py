"""Solutions that stay on surfaces of whole arrays, each held there by one equation.

The same as `sliding.py` for conditions on the elements of arrays, where every condition decides in
one equation only, as the friction of each of many blocks does. On the surface the equation is a
mixture of its two sides. As the share of a side is unknown, and occurs nowhere else, the equation
says nothing but the share. The height's rate, which is zero, takes its place. So it can be done
by one more input for each condition, without other unknowns or another plan.
"""

from __future__ import annotations

import numpy as np

from tether.trace import opcodes as op
from tether.trace.batches import LINEAR, Batch, Batches, as_index

__all__ = ["equations_decided", "layers_of"]

_NONE = -1


def equations_decided(
    batches: Batches, answers: np.ndarray, operands: np.ndarray, outputs: np.ndarray
) -> np.ndarray:
    """Find the equation in which each of some conditions decides; -1 if there is not just one.

    Parameters
    ----------
    batches : Batches
        The batches of the elements.
    answers : ndarray
        Elements that depend on the answers, one for each condition.
    operands : ndarray
        What conditions compare: it must not depend on the answers.
    outputs : ndarray
        The equations.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.row_sliding import equations_decided
    >>> from tether.trace import opcodes as op
    >>> from tether.trace.batches import Batches
    >>> batches = Batches(3)
    >>> signs = batches.add(op.SIGN, np.arange(3))
    >>> sums = batches.add(op.ADD, signs[[0, 1, 1]], np.arange(3))
    >>> equations_decided(batches, signs, np.arange(3), sums)
    array([ 0, -1, -1])
    """
    owner = np.full(batches.size, _NONE)
    owner[answers] = np.arange(len(answers))
    refused = np.zeros(len(answers), bool)
    for batch in batches.batches:
        found = _owners(batch, owner, refused)
        part = owner[batch.start : batch.stop]
        part[:] = np.where(part == _NONE, found, part)
    decided = owner[outputs]
    counts = np.bincount(decided[decided != _NONE], minlength=len(answers))
    refused[owner[operands][owner[operands] != _NONE]] = True
    rows = np.full(len(answers), -1)
    rows[decided[decided != _NONE]] = np.flatnonzero(decided != _NONE)
    return np.where((counts == 1) & ~refused, rows, -1)


def _owners(batch: Batch, owner: np.ndarray, refused: np.ndarray) -> np.ndarray:
    """Return the condition on which each element of a batch depends; refuse two of them."""
    found = np.full(batch.size, _NONE)
    if batch.code == op.CONST:
        return found
    if batch.code == LINEAR:
        assert batch.ends is not None
        terms = owner[as_index(batch.operands[0])]
        sums = np.repeat(np.arange(batch.size), np.diff(batch.ends, prepend=0))
        known = terms != _NONE
        found[sums[known]] = terms[known]
        others = known & (found[sums] != terms)
        refused[terms[others]] = refused[found[sums[others]]] = True
        return found
    for operand in batch.operands:
        of_operand = np.broadcast_to(owner[as_index(operand)], batch.size)
        both = (found != _NONE) & (of_operand != _NONE) & (found != of_operand)
        refused[found[both]] = refused[of_operand[both]] = True
        found = np.where(found == _NONE, of_operand, found)
    return found


def layers_of(rows: np.ndarray) -> np.ndarray:
    """Count the conditions that decide in the same equation, from 0; -1 for all others."""
    layers, left = np.full(len(rows), -1), np.flatnonzero(rows >= 0)
    layer = 0
    while len(left):
        first = np.unique(rows[left], return_index=True)[1]
        layers[left[first]] = layer
        left, layer = np.delete(left, first), layer + 1
    return layers
