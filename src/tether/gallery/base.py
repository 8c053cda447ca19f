"""The shape of a gallery problem."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    y0, yp0 : ndarray
        Consistent start. The residual says nothing about the slopes of purely
        algebraic unknowns; they are zero unless they are known.
    reference : ndarray
        Solution at the end on the components `compare`.
    source : str
        Where the reference comes from.
    compare : tuple of int
        Components whose error counts; all of them when left empty.
    atol_scale : ndarray
        Size below which a component is noise: `atol` is this times rtol.
    algebraic : tuple of int
        Unknowns whose derivative does not occur.
    index : int
        Differentiation index.
    jac : callable, optional
        ``jac(t, y, yp)`` gives the dense pair (dF/dy, dF/dy').
    exact : callable, optional
        ``exact(t)`` gives all of y.
    c_source : str, optional
        C text of ``void residual(double t, const double *y, const double *yp, double *out)``.
    vectorised : bool
        The residual computes with whole arrays instead of single numbers.
    bandwidth : int, optional
        Half bandwidth of both Jacobians, where it is small.
    """

    name: str
    fun: Residual
    t_span: tuple[float, float]
    y0: FloatArray
    yp0: FloatArray
    reference: FloatArray
    source: str
    atol_scale: FloatArray
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
        sizes = {"yp0": self.n, "atol_scale": self.n, "reference": len(self.compare)}
        for field, size in sizes.items():
            if getattr(self, field).shape != (size,):
                raise ValueError(f"{self.name}: {field} must have {size} entries")
        for field in ("y0", *sizes):
            getattr(self, field).flags.writeable = False

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.y0.size

    def atol(self, rtol: float) -> FloatArray:
        """Absolute tolerance per component that belongs to a relative one.

        Examples
        --------
        >>> from tether import gallery
        >>> gallery.get("akzo").atol(1e-6)[0]
        np.float64(1e-09)
        """
        return rtol * self.atol_scale

    def digits(self, y_end: Any) -> float:
        """Correct digits of an end state in the mixed absolute and relative error.

        This is the mescd of the IVP test set, ``-log10 max |y - ref| / (atol_scale + |ref|)``
        over the components `compare`, at most 16 and minus infinity where a value is not finite.

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
