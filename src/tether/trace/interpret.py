"""Reference interpreter of programs, in NumPy: slow and plain; it takes complex numbers too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tether.trace import opcodes as op
from tether.trace import special
from tether.trace.emit import Program
from tether.trace.operations import OPERATIONS
from tether.trace.piecewise import evaluate_piecewise

ARRAYS = {code: o.array for code, o in OPERATIONS.items() if o.array is not None}


def evaluate(program: Program, t: Any, y: Any, yp: Any, args: Any = ()) -> np.ndarray:
    """Run a program.

    Parameters
    ----------
    program : Program
        The program.
    t : float or array, shape (k,)
        Time, or one time per point.
    y, yp : array_like, shape (n,) or (n, k)
        Unknowns and their derivatives, for one point or for k of them. They may be complex: a
        tiny imaginary part then carries a derivative.
    args : array_like, shape (p,) or (p, k)
        Arguments.

    Returns
    -------
    ndarray, shape (outputs,) or (outputs, k)

    Examples
    --------
    >>> from tether.trace import evaluate, trace
    >>> program = trace(lambda t, y, yp: [yp[0] + y[0] ** 2], 1).program()
    >>> evaluate(program, 0.0, [3.0], [1.0])
    array([10.])
    """
    slots = list(program.constants)
    slots += [t, *np.asarray(y), *np.asarray(yp), *np.asarray(args, dtype=float)]
    with np.errstate(all="ignore"):
        for code, a, b, c in instructions(program):
            if code == op.POWI:
                slots.append(slots[a] ** b)
            elif code == op.SPECIAL:
                slots.append(special.value_of(b, np.real(slots[a])))
            elif code == op.OPAQUE:
                slots.append(np.vectorize(program.opaques[b], otypes=[float])(slots[a]))
            elif code == op.TABLE:
                slots.append(evaluate_piecewise(program.tables, b, slots[a]))
            elif c >= 0:
                slots.append(np.where(np.real(slots[a]) != 0.0, slots[b], slots[c])[()])
            elif b >= 0:
                slots.append(ARRAYS[code](slots[a], slots[b]))
            else:
                slots.append(ARRAYS[code](slots[a]))
    points = np.broadcast_shapes(np.shape(t), np.shape(y)[1:])
    results = [np.broadcast_to(slots[i], points) for i in program.outputs]
    return np.stack(results) if results else np.zeros((0, *points))


def instructions(program: Program) -> Iterator[tuple[int, int, int, int]]:
    """Opcode and operands of every instruction, as Python ints."""
    return zip(*(x.tolist() for x in (program.op, program.a, program.b, program.c)), strict=True)
