"""The result of a run: the solution, the polynomial through it, and the work it took."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.status import Status
from tether.problem.names import NO_NAMES, Names
from tether.result.access import FIELDS, field_or_unknown, is_unknown
from tether.run.jumps import Jumped
from tether.run.method import DenseOutput
from tether.run.statistics import Statistics
from tether.structure.start import Start

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

    from tether.explain.diagnosis import Diagnosis
    from tether.explain.report import IndexReport
    from tether.sensitivity.collect import Sensitivities

__all__ = ["DaeResult"]


@dataclass(frozen=True, eq=False, repr=False)
class DaeResult:
    """Solution of a DAE, with SciPy's names and shapes.

    Unknowns can be accessed by name or by number: ``sol["voltage"]`` and ``sol[0]`` are rows of
    ``sol.y``, and ``sol["voltage'"]`` is the row of ``sol.yp``. The names are those passed as
    ``names=``, or read off the function where it unpacks its unknowns, as in
    ``voltage, current = y``; otherwise they are ``y[0]``, ``y[1]`` and so on. Units, given as
    ``units=`` or in the names, are ``sol.units``.

    The fields can be accessed by name too, as those of SciPy's results: ``sol["t"]``,
    ``sol.keys()``, ``"t" in sol``. They take precedence: if an unknown has the name of a field, say
    ``y``, ``sol["y"]`` is the whole solution and warns about it, and ``sol.unknowns["y"]`` is the
    unknown.

    Attributes
    ----------
    t : ndarray, shape (nt,)
        Times: every accepted step, or `t_eval`.
    y, yp : ndarray, shape (n, nt)
        Solution and derivative.
    sol : Interpolant or None
        ``sol(t) -> (y, yp)``, with ``dense_output=True``.
    t_events, y_events, yp_events : list of ndarray or None
        Times of each event and the values there.
    event_names : tuple of str
        Names of the events in summaries and plots: their functions' names, or "event 0", ...
    nfev, njev, nlu : int
        Residuals (those for differences included), Jacobians, factorisations.
    status : Status
        How the run ended; negative is a failure.
    message : str
        The same in words, with a remedy.
    success : bool
        Whether the run reached its goal.
    start : Start
        Starting values and what was changed to get them.
    stats : Statistics
        Work of the run.
    how : str
        How the equations were run: traced or called, as written or reduced.
    warnings : tuple of str
        What to check in a result; entries that a sparsity pattern passed by the user lacks; and
        where a trace turned out to differ from its function, so that the run was repeated. Empty
        for almost all runs.
    jumps : tuple of Jumped
        Where unknowns with a derivative jumped, at the start or during the run: when, by how much,
        and with which impulses.
    drift : ndarray, shape (m, nt) or None
        Residual of the constraints, and of the invariants less their starting values, at `t`. First
        those found in the equations, then those given. If the structure of the equations changed
        during the run, rows of found constraints are NaN at times when they did not exist.
    quadratures : ndarray, shape (m, nt) or None
        Integrals of the functions passed as ``quadratures=``, from the start up to `t`.
    integrals_between : Interpolant or None
        The same between the points, with ``dense_output=True``; see `quadratures_at`.

    Examples
    --------
    >>> from tether import solve_dae
    >>> sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], t_eval=[0, 0.5, 1])
    >>> sol.success, sol.status
    (True, <Status.REACHED_END: 0>)
    >>> sol.y.round(4).tolist()
    [[1.0, 0.6065, 0.3679]]

    Unknowns by name:

    >>> def circuit(t, y, yp):
    ...     voltage, current = y
    ...     return [yp[0] + current, voltage - 2.0 * current]
    >>> sol = solve_dae(circuit, (0, 2), [1.0, 0.5], t_eval=[0, 1, 2], names=["voltage", "current"])
    >>> sol["current"].round(4).tolist()
    [0.5, 0.3033, 0.1839]
    >>> sol
    <DaeResult: success, t = 0 to 2, 3 points, 2 unknowns (voltage, current)>
    """

    t: np.ndarray
    y: np.ndarray
    yp: np.ndarray
    sol: DenseOutput | None
    t_events: list[np.ndarray] | None
    y_events: list[np.ndarray] | None
    yp_events: list[np.ndarray] | None
    status: Status
    message: str
    start: Start
    stats: Statistics
    drift: np.ndarray | None = None
    how: str = ""
    analysis: Callable[[], IndexReport] | None = None
    verdict: Diagnosis | Callable[[], Diagnosis] | None = None
    warnings: tuple[str, ...] = ()
    jumps: tuple[Jumped, ...] = ()
    event_names: tuple[str, ...] = ()
    naming: Names | Callable[[], Names] = NO_NAMES
    sensitivities: Sensitivities | None = None
    quadratures: np.ndarray | None = None
    integrals_between: DenseOutput | None = None

    @cached_property
    def _names(self) -> Names:
        given = self.naming() if callable(self.naming) else self.naming
        return given if given.variables else Names(tuple(f"y[{j}]" for j in range(len(self.y))))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns, all different; determined when first needed."""
        return self._names.variables

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the unknowns; empty where there is none."""
        return self._names.units or ("",) * len(self.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names with units, as in ``speed [m/s]``, which are also the columns of tables."""
        return self._names.labels

    @property
    def unknowns(self) -> dict[str, np.ndarray]:
        """Values over time of every unknown, by name."""
        return dict(zip(self.names, self.y, strict=True))

    @property
    def sens(self) -> np.ndarray | None:
        """dy/dp at fixed times, (parameters, n, nt); None unless ``sensitivity=`` was passed."""
        return None if self.sensitivities is None else self.sensitivities.values

    def sens_at(self, t: ArrayLike) -> np.ndarray:
        """Return dy/dp at a time, (parameters, n), or at times, (parameters, n, times).

        Needs ``sensitivity=`` and ``dense_output=True``.

        Examples
        --------
        >>> from tether import solve_dae
        >>> sol = solve_dae(lambda t, y, yp, k: [yp[0] + k * y[0]], (0, 1), [1.0], args=(2.0,),
        ...                 sensitivity="args", dense_output=True)
        >>> sol.sens_at(0.5).round(4).tolist()         # -t exp(-k t)
        [[-0.1839]]
        """
        if self.sensitivities is None:
            raise ValueError("there are no derivatives: solve with sensitivity=")
        return self.sensitivities.at(t)

    def quadratures_at(self, t: ArrayLike) -> np.ndarray:
        """Return the integrals up to a time, (m,), or up to times, (m, times).

        Needs ``quadratures=`` and ``dense_output=True``.

        Examples
        --------
        >>> from tether import solve_dae
        >>> sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], dense_output=True,
        ...                 quadratures=lambda t, y: y[0])
        >>> sol.quadratures_at(0.5).round(4).tolist()          # 1 - exp(-t)
        [0.3935]
        """
        if self.quadratures is None:
            raise ValueError("there are no integrals: solve with quadratures=")
        if self.integrals_between is None:
            raise ValueError("there is no dense output: solve with dense_output=True")
        return self.integrals_between(t)[0]

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Why a run failed, where, and what to do next; ``print`` it."""
        return self.verdict() if callable(self.verdict) else self.verdict

    @cached_property
    def index(self) -> IndexReport | None:
        """What kind of DAE it is; determined when first needed."""
        return None if self.analysis is None else self.analysis()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the functions: a report that was not requested cannot be pickled."""
        left = {"analysis": None, "verdict": self.diagnosis, "naming": self._names}
        return self.__dict__ | left

    @property
    def success(self) -> bool:
        """Whether the run reached its goal."""
        return not self.status.failed

    @property
    def nfev(self) -> int:
        """Number of residuals."""
        return self.stats.nfev

    @property
    def njev(self) -> int:
        """Number of Jacobians."""
        return self.stats.njev

    @property
    def nlu(self) -> int:
        """Number of factorisations."""
        return self.stats.nlu

    def __call__(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y' between the steps; needs ``dense_output=True``."""
        if self.sol is None:
            raise ValueError(
                "there is no dense output: solve with dense_output=True, and past the first step"
            )
        return self.sol(t)

    def y_at(self, t: ArrayLike) -> np.ndarray:
        """Return y at a time, or at times as columns.

        Needs ``dense_output=True``, unless the times are among ``sol.t``. At a time where y jumps
        the value before the jump is returned.

        Parameters
        ----------
        t : float or array_like
            A time or a vector of times.

        Returns
        -------
        ndarray, shape (n,) or (n, len(t))

        Examples
        --------
        >>> from tether import solve_dae
        >>> sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], dense_output=True)
        >>> sol.y_at(0.5).round(4).tolist(), sol.y_at([0, 0.5]).round(4).tolist()
        ([0.6065], [[1.0, 0.6065]])
        """
        from tether.result.between import y_at  # late, to save time, like all imports here

        return y_at(self, t)

    def __getitem__(self, key: str | int) -> Any:
        """Return a field by name, or an unknown by name or number."""
        return field_or_unknown(self, key)

    def __contains__(self, key: object) -> bool:
        """Tell whether there is a field or an unknown of that name."""
        return key in FIELDS or is_unknown(self.labels, key)

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the fields."""
        return iter(FIELDS)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the fields."""
        return FIELDS

    def items(self) -> Iterator[tuple[str, Any]]:
        """Go through the fields with their names."""
        return ((name, getattr(self, name)) for name in FIELDS)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field or an unknown by name, or `default` if there is none."""
        try:
            return self[key]
        except KeyError:
            return default

    def to_dataframe(self, derivatives: bool = False) -> pandas.DataFrame:
        """Return a data frame: a row for every time, a column for every unknown; needs pandas.

        Parameters
        ----------
        derivatives : bool
            Whether to add a column ``x'`` for the derivative of every unknown ``x``.

        Returns
        -------
        pandas.DataFrame
            With ``t`` as its index. A time at which y jumps occurs twice, with the values before
            and after.
        """
        from tether.result.tables import to_dataframe

        return to_dataframe(self, derivatives)

    def to_xarray(self) -> xarray.Dataset:
        """Return y and yp over ``unknown`` and ``t``; needs xarray.

        Returns
        -------
        xarray.Dataset
            ``data.y.sel(unknown="voltage")`` is one unknown.
        """
        from tether.result.tables import to_xarray

        return to_xarray(self)

    def to_csv(
        self, path: str | os.PathLike[str] | IO[str], derivatives: bool = False
    ) -> None:
        """Write a table: ``t`` and the names, then a line for every time, with all digits.

        Parameters
        ----------
        path : str, path or file
            Where to write; a file must be open for text.
        derivatives : bool
            Whether to add a column ``x'`` for the derivative of every unknown ``x``.

        Examples
        --------
        >>> import sys
        >>> from tether import solve_dae
        >>> sol = solve_dae(lambda t, y, yp: [yp[0] - 2.0], (0, 1), [1.0], t_eval=[0, 1],
        ...                 names=["height"])
        >>> sol.to_csv(sys.stdout)
        t,height
        0.0,1.0
        1.0,3.0
        """
        from tether.result.tables import to_csv

        to_csv(self, path, derivatives)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file that `tether.load` reads.

        Parameters
        ----------
        path : str or path
            Its extension is the format: .npz (NumPy), .nc (NetCDF) or .h5 (HDF5; needs h5py).
        """
        from tether.result.files import save

        save(self, path)

    def __repr__(self) -> str:
        """Say in one line how the run ended; ``print(sol)`` has more."""
        from tether.result.brief import one_line

        return one_line(self)

    def __str__(self) -> str:
        """Summarise the run in a few lines."""
        from tether.result.summary import summary

        return summary(self)

    def _repr_html_(self) -> str:
        """Summarise the run for a notebook."""
        from tether.result.brief import page

        return page(self)

    def plot(
        self, unknowns: Sequence[str | int] | str | int | None = None, **options: Any
    ) -> Figure:
        """Plot unknowns over time or against each other; needs matplotlib.

        ``sol.plot()`` shows everything, ``sol.plot(["x", "v"])`` two unknowns and
        ``sol.plot("v", against="x")`` a phase portrait. The options are those of
        `tether.result.plot.plot_solution`.
        """
        from tether.result.plot import plot_solution

        return plot_solution(self, unknowns, **options)

    def animate(self, points: Any, **options: Any) -> FuncAnimation:
        """Show a planar mechanism move; needs matplotlib, and Pillow for a file.

        ``sol.animate([(0, 0), ("x", "z")], path="pendulum.gif")`` draws a rod from the origin to
        the bob. The options are those of `tether.result.animate.animate_solution`.
        """
        from tether.result.animate import animate_solution

        return animate_solution(self, points, **options)
