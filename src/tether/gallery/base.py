"""GalleryProblem: a problem with a reference value, and what is known about it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

FloatArray = NDArray[np.float64]
Vector = Sequence[float]
Residual = Callable[[float, Any, Any], Any]
Jacobian = Callable[[float, Any, Any], tuple[FloatArray, FloatArray]]
Solution = Callable[[float], FloatArray]

_MAX_DIGITS = 16.0


@dataclass(frozen=True, eq=False, kw_only=True)
class GalleryProblem:
    """A differential-algebraic problem F(t, y, y') = 0 with a trusted end value.

    Attributes
    ----------
    name : str
        Name under which `tether.gallery.get` finds it.
    fun : callable
        Residual ``fun(t, y, yp)``, written as a user would write it.
    t_span : tuple of float
        Start and end.
    y0 : ndarray
        Values at the start: consistent, or guesses for unknowns that the solver finds.
    yp0 : ndarray, optional
        Slopes at the start. The residual does not depend on those of algebraic unknowns, which are
        zero unless they are known. None leaves all of them to the solver.
    reference : ndarray
        Solution at the end in the components `compare`; NaN for a size without a reference.
    source : str
        Where the reference comes from.
    title : str
        The problem in a few words.
    description : str
        What happens and what is hard about it, in a sentence or two.
    names, units : tuple of str
        Names and units of the unknowns; "" is the unit of a pure number.
    picture : tuple of str
        Names of the unknowns shown in its picture.
    reference_digits : float
        Number of correct digits of the reference.
    expected_digits : float
        Digits to which a run with ``rtol=1e-6`` and otherwise default options agrees with the
        reference, as counted by `digits`.
    events : tuple of callable
        Events to be passed to `solve_dae`; they are part of the problem.
    compare : tuple of int
        Components whose error counts; all of them when left empty.
    atol_scale : ndarray
        Size below which a component is noise: `atol` is rtol times this.
    algebraic : tuple of int
        Unknowns whose derivative does not occur.
    index : int
        Differentiation index.
    jac : callable, optional
        ``jac(t, y, yp)`` gives the dense pair (dF/dy, dF/dy').
    exact : callable, optional
        ``exact(t)`` gives all of y.
    c_source : str, optional
        C source of ``void residual(double t, const double *y, const double *yp, double *out)``.
    vectorised : bool
        Whether the residual computes with whole arrays instead of single numbers.
    bandwidth : int, optional
        Half bandwidth of both Jacobians, where it is small.
    """

    name: str
    fun: Residual
    t_span: tuple[float, float]
    y0: FloatArray
    yp0: FloatArray | None = None
    reference: FloatArray
    source: str
    atol_scale: FloatArray
    title: str
    description: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    picture: tuple[str, ...]
    reference_digits: float
    expected_digits: float
    events: tuple[Callable[..., Any], ...] = ()
    compare: tuple[int, ...] = ()
    algebraic: tuple[int, ...] = ()
    index: int = 1
    jac: Jacobian | None = None
    exact: Solution | None = None
    c_source: str | None = None
    vectorised: bool = False
    bandwidth: int | None = None

    def __post_init__(self) -> None:
        if not self.compare:
            object.__setattr__(self, "compare", tuple(range(self.n)))
        sizes = {"atol_scale": self.n, "reference": len(self.compare)}
        if self.yp0 is not None:
            sizes["yp0"] = self.n
        for field, size in {**sizes, "names": self.n, "units": self.n}.items():
            if len(getattr(self, field)) != size:
                raise ValueError(f"{self.name}: {field} must have {size} entries")
        for field in ("y0", *sizes):
            getattr(self, field).flags.writeable = False

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.y0.size

    @property
    def has_reference(self) -> bool:
        """Whether the end value is known for these parameters."""
        return bool(np.isfinite(self.reference).all())

    def solve(self, **options: Any) -> "DaeResult":
        """Solve the problem by `tether.solve_dae`.

        Parameters
        ----------
        **options
            Further arguments of `solve_dae`, such as ``rtol``.

        Examples
        --------
        >>> from tether import gallery
        >>> sol = gallery.get("sallen-key").solve(rtol=1e-6)
        >>> sol.success
        True
        """
        # imported here, so that problems can be inspected without loading the solver
        from tether.solve import solve_dae

        given: dict[str, Any] = {
            "names": self.names, "units": self.units, "events": self.events or None, **options,
        }
        return solve_dae(self.fun, self.t_span, self.y0, self.yp0, **given)

    def atol(self, rtol: float) -> FloatArray:
        """Absolute tolerance of each component for a given relative tolerance.

        Examples
        --------
        >>> from tether import gallery
        >>> gallery.get("akzo").atol(1e-6)[0]
        np.float64(1e-09)
        """
        return rtol * self.atol_scale

    def digits(self, y_end: Any) -> float:
        """Count the correct digits at the end, by the mixed absolute and relative error.

        This is the mescd of the Test Set for IVP Solvers, ``-log10 max |y - ref| / (atol_scale +
        |ref|)`` over the components `compare`: at most 16, and minus infinity if a value is not
        finite.

        Parameters
        ----------
        y_end : array_like, shape (n,)
            Computed solution at the end of `t_span`.

        Examples
        --------
        >>> from tether import gallery
        >>> problem = gallery.get("trivial")
        >>> problem.digits(problem.exact(problem.t_span[1]) * (1 + 1e-6)) > 6
        True
        """
        selected = list(self.compare)
        y = np.asarray(y_end, dtype=float)[selected]
        if not np.isfinite(y).all():
            return -math.inf
        scale = self.atol_scale[selected] + np.abs(self.reference)
        error = float(np.max(np.abs(y - self.reference) / scale))
        return _MAX_DIGITS if error <= 10**-_MAX_DIGITS else -math.log10(error)
