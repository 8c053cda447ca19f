"""Read solutions from files."""

from __future__ import annotations

import os

from tether.result.files import read
from tether.result.solution import DaeResult

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> DaeResult:
    """Read a solution that `DaeResult.save` wrote.

    Everything is restored except what needs the equations: ``sol.index`` is None,
    ``sol.start.reason`` has only its kind, and the last attempts of a failed run
    (``sol.diagnosis.steps``) are missing. The solution between the steps is there if the run had
    ``dense_output=True``.

    Parameters
    ----------
    path : str or path
        A file whose name ends in .npz, .nc or .h5.

    Returns
    -------
    DaeResult
        As `solve_dae` returned it.

    Raises
    ------
    ValueError
        The file was not written by `DaeResult.save`, or was by a later version of tether.
    ImportError
        An .h5 file needs h5py.

    Examples
    --------
    >>> import os, tempfile
    >>> import tether
    >>> def circuit(t, y, yp):
    ...     voltage, current = y
    ...     return [yp[0] + current, voltage - 2.0 * current]
    >>> sol = tether.solve_dae(circuit, (0, 2), [1.0, 0.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "circuit.npz")
    ...     sol.save(path)
    ...     again = tether.load(path)
    >>> again.names, bool((again["current"] == sol["current"]).all())
    (('voltage', 'current'), True)
    """
    return DaeResult(**read(path))
