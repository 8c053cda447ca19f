"""gradient and vjp: derivatives of scalars that depend on a solution, by a sweep backwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether.problem.problem import Problem, as_problem
from tether.result.solution import DaeResult
from tether.sensitivity.backward import Seeds, backwards
from tether.sensitivity.collect import occurrences
from tether.sensitivity.differences import central
from tether.sensitivity.forward import forwards
from tether.sensitivity.later import Later
from tether.sensitivity.loss import LossSlopes, slopes_of_loss
from tether.sensitivity.outputs import Outputs, RowOutputs, outputs_at
from tether.sensitivity.parameters import find_parameters
from tether.sensitivity.sweep import Along, Sweep
from tether.solve import solve_dae

__all__ = ["Gradient", "Pullback", "gradient", "hessian_product", "vjp"]


@dataclass(frozen=True, eq=False)
class Gradient:
    """A loss and its derivatives.

    Attributes
    ----------
    value : float
        The loss.
    grad : ndarray, shape (parameters,)
        Its derivatives.
    names : tuple of str
        The parameters.
    sol : DaeResult
        The solution from which the loss was computed.

    Examples
    --------
    >>> from tether import gradient
    >>> found = gradient(lambda sol: sol.y[0, -1], lambda t, y, yp, k: [yp[0] - k], (0, 2), [1.0],
    ...                  args=(3.0,))
    >>> found
    loss 7
      d/d k = 2
    >>> round(found["k"], 6)
    2.0
    """

    value: float
    grad: np.ndarray
    names: tuple[str, ...]
    sol: DaeResult

    def __getitem__(self, name: str) -> float:
        """Return the derivative with respect to the parameter of this name."""
        return float(self.grad[self.names.index(name)])

    def __repr__(self) -> str:
        """Show the loss and its derivatives, one per line."""
        lines = [f"loss {self.value:.10g}"]
        lines += [f"  d/d {name} = {x:.10g}" for name, x in zip(self.names, self.grad, strict=True)]
        return "\n".join(lines)


class Pullback:
    """Turns derivatives with respect to a solution into derivatives with respect to parameters.

    Attributes
    ----------
    names : tuple of str
        The parameters.
    """

    def __init__(self, sweep: Sweep | None, sol: DaeResult) -> None:
        self._taped, self._sol = sweep, sol    # no sweep if the run never began
        self.names = () if sweep is None else sweep.parameters.names

    @property
    def _sweep(self) -> Sweep:
        if self._taped is None:
            raise ValueError(f"the run never began, so it has no derivatives: {self._sol.message}")
        return self._taped

    @cached_property
    def _outputs(self) -> Outputs | RowOutputs:
        sweep = self._sweep
        if sweep.record.t_eval is None:
            return RowOutputs(sweep)
        return outputs_at(sweep, self._sol.t)

    def __call__(
        self, y_bar: ArrayLike, quadratures_bar: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the derivative of a scalar with respect to the parameters.

        Parameters
        ----------
        y_bar : array_like, shape (n, nt) or (scalars, n, nt)
            Its derivative with respect to ``sol.y``.
        quadratures_bar : array_like, shape (m, nt) or (scalars, m, nt), optional
            Its derivative with respect to ``sol.quadratures``.

        Returns
        -------
        ndarray, shape (parameters,) or (scalars, parameters)
        """
        lines = given = _weights("y_bar", y_bar, "sol.y", self._sol.y)
        if quadratures_bar is not None:
            if self._sol.quadratures is None:
                raise ValueError("quadratures_bar needs integrals: pass quadratures=")
            more = _weights(
                "quadratures_bar", quadratures_bar, "sol.quadratures", self._sol.quadratures
            )
            lines = np.concatenate([given, more], axis=-2)
        lines = lines.reshape(-1, *lines.shape[-2:])
        found = np.zeros((len(lines), len(self.names)))
        backwards(self._sweep, [self._seeds(lines)], found)
        return found[0] if given.ndim == 2 else found

    def push(self, direction: ArrayLike) -> np.ndarray:
        """Return how the solution changes along a direction in the space of the parameters.

        Parameters
        ----------
        direction : array_like, shape (parameters,)
            A change of each parameter.

        Returns
        -------
        ndarray, shape (n, nt)
            The change of ``sol.y`` to first order. It costs one forward sweep, however many
            parameters there are.
        """
        along = _direction(direction, len(self.names))
        every = self._outputs[np.arange(len(self._outputs))]
        found = forwards(Along(self._sweep, along), every)
        return found[:, : len(self._sol.y), 0].T

    def gauss_newton(self, direction: ArrayLike, weights: ArrayLike = 1.0) -> np.ndarray:
        """Return J^T W J v, with J = d sol.y / d parameters, the vector v and weights W.

        This is the second derivative of half a weighted sum of squares, without the terms that
        are small where the residuals are small.

        Parameters
        ----------
        direction : array_like, shape (parameters,)
            The vector v.
        weights : array_like
            Weights of the values, a number or as ``sol.y``.
        """
        change = self.push(direction)
        return self(np.broadcast_to(np.asarray(weights, float), change.shape) * change)

    def _seeds(self, weights: np.ndarray) -> Seeds:
        chosen = np.flatnonzero(weights.any(axis=(0, 1)))
        own = np.ascontiguousarray(weights[:, :, chosen].transpose(2, 0, 1))
        return Seeds(self._outputs[chosen], own)

    def of_loss(self, slopes: LossSlopes) -> np.ndarray:
        """Return the gradient of a loss from its derivatives with respect to what it uses."""
        sweep, found = self._sweep, np.zeros((1, len(self.names)))
        seeds = [self._seeds(slopes.by_y[None])]
        for event, by_t, by_y in zip(
            sweep.events, slopes.by_t_events, slopes.by_y_events, strict=True
        ):
            if not (by_t.any() or by_y.any()):
                continue
            for k, occurrence in enumerate(occurrences(sweep, event)):
                moment, crossing = occurrence.moment, occurrence.crossing
                seeds.append(Seeds(occurrence.output, by_y[k][None, None]))
                if moment is None:
                    continue
                if crossing is None:
                    raise ValueError(
                        f"loss depends on an event at t = {moment.t:.6g} whose function only "
                        "touches zero: its time has no derivative"
                    )
                bar = by_t[k] + by_y[k] @ occurrence.slope[: by_y.shape[1]]
                found[0] += bar * crossing.by_parameters
                there = Outputs.one(occurrence.leg, moment.row, moment.shares)
                seeds.append(Seeds(there, bar * crossing.by_values[None, None]))
        return backwards(sweep, seeds, found)[0]


def _direction(direction: ArrayLike, count: int) -> np.ndarray:
    """Check a change of the parameters."""
    along = np.asarray(direction, float)
    if along.shape != (count,):
        raise ValueError(
            f"direction must have one number for each of the {count} parameters, got shape "
            f"{along.shape}"
        )
    if not np.isfinite(along).all():
        raise ValueError(f"direction must be finite, got {along}")
    return along


def _weights(name: str, bar: ArrayLike, of: str, values: np.ndarray) -> np.ndarray:
    """Check derivatives with respect to `values`, one set of them or several."""
    given = np.asarray(bar, float)
    if given.shape[-2:] != values.shape or given.ndim not in (2, 3):
        raise ValueError(f"{name} must have the shape of {of}, {values.shape}, got {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(f"{name} must be finite")
    return given


def vjp(
    fun: Any,
    t_span: Sequence[float],
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    wrt: str | Sequence[str] = "args",
    **options: Any,
) -> tuple[DaeResult, Pullback]:
    """Solve F(t, y, y') = 0 and return the solution with its vector-Jacobian product.

    The accepted steps are run backwards, each by its own formula, so that a gradient costs about
    as much for a hundred parameters as for one.

    Parameters
    ----------
    fun, t_span, y0, yp0
        As in `solve_dae`.
    wrt : str or list of str
        The parameters, as `solve_dae` takes them for ``sensitivity=``.
    **options
        Further arguments of `solve_dae`, such as `args`, `t_eval`, `events` and `rtol`.

    Returns
    -------
    sol : DaeResult
        The solution.
    pullback : Pullback
        If `y_bar` is the derivative of a scalar with respect to ``sol.y``, ``pullback(y_bar)`` is
        its derivative with respect to the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from tether import vjp
    >>> sol, pullback = vjp(lambda t, y, yp, k: [yp[0] + k * y[0]], (0, 1), [1.0], args=(2.0,),
    ...                     t_eval=[0.5, 1.0], rtol=1e-8, atol=1e-10)
    >>> pullback(np.array([[1.0, 0.0]])).round(6)      # d exp(-k/2) / dk
    array([-0.18394])
    """
    later = Later(wrt)
    sol = solve_dae(fun, t_span, y0, yp0, sensitivity=later, **options)  # type: ignore[arg-type]
    return sol, Pullback(later.sweep, sol)


def gradient(
    loss: Callable[..., Any],
    fun: Any,
    t_span: Sequence[float],
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    wrt: str | Sequence[str] = "args",
    **options: Any,
) -> Gradient:
    """Differentiate a scalar that depends on a solution with respect to parameters.

    Parameters
    ----------
    loss : callable
        ``loss(sol)`` returns a number computed from ``sol.y`` (values at ``sol.t``),
        ``sol["name"]``, ``sol.quadratures``, ``sol.t_events`` and ``sol.y_events``. It is
        differentiated exactly if it can be traced, otherwise by differences; or it returns a pair,
        the number and its derivative with respect to ``sol.y``.
    fun, t_span, y0, yp0
        As in `solve_dae`.
    wrt : str or list of str
        The parameters, as `solve_dae` takes them for ``sensitivity=``.
    **options
        Further arguments of `solve_dae`, such as `args`, `t_eval`, `events` and `rtol`.

    Returns
    -------
    Gradient
        With ``value``, ``grad``, ``names`` and ``sol``.

    Raises
    ------
    ValueError
        The loss is not finite, or the run failed: the message says why.

    Examples
    --------
    >>> import numpy as np
    >>> from tether import gradient
    >>> measured = np.array([0.7, 0.5])
    >>> found = gradient(lambda sol: np.sum((sol.y[0] - measured) ** 2),
    ...                  lambda t, y, yp, k: [yp[0] + k * y[0]], (0, 1), [1.0], args=(0.5,),
    ...                  t_eval=[0.5, 1.0], rtol=1e-8, atol=1e-10)
    >>> round(found.value, 6), found.grad.round(6)
    (0.017558, array([-0.190598]))
    """
    if not callable(loss):
        raise TypeError(f"loss must be callable, got {type(loss).__name__}")
    sol, pullback = vjp(fun, t_span, y0, yp0, wrt=wrt, **options)
    if not sol.success:
        raise ValueError(f"the run failed, so there is nothing to differentiate: {sol.message}")
    slopes = slopes_of_loss(loss, sol)
    return Gradient(slopes.value, pullback.of_loss(slopes), pullback.names, sol)


def hessian_product(
    loss: Callable[..., Any],
    fun: Any,
    t_span: Sequence[float],
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    direction: ArrayLike,
    wrt: str | Sequence[str] = "args",
    args: Sequence[Any] = (),
    **options: Any,
) -> np.ndarray:
    """Return the second derivative of a loss times a vector, from gradients at four points.

    The gradients are exact derivatives of the computed numbers, which have errors of the size of
    the tolerances; the product has about three digits fewer than a gradient.

    Parameters
    ----------
    loss, fun, t_span, y0, yp0, wrt
        As in `gradient`; the parameters must be in `args` or `y0`.
    direction : array_like, shape (parameters,)
        The vector. The points lie along it, 3e-5 and 6e-5 of the parameters' sizes to either side.
    args, **options
        Further arguments of `solve_dae`.

    Returns
    -------
    ndarray, shape (parameters,)

    Examples
    --------
    >>> import numpy as np
    >>> from tether import hessian_product
    >>> found = hessian_product(
    ...     lambda sol: sol.y[0, -1], lambda t, y, yp, k: [yp[0] + k * y[0]], (0, 1), [1.0],
    ...     args=(2.0,), direction=[1.0], t_eval=[1.0], rtol=1e-9, atol=1e-12)
    >>> found.round(5)                                 # d^2 exp(-k) / dk^2
    array([0.13534])
    """
    if isinstance(fun, Problem):
        raise TypeError("fun must be a function, with its arguments in args, not a Problem")
    y = np.array(y0, float)
    problem = as_problem(fun, args=args)
    parameters = find_parameters(wrt, problem, len(y), options.get("names"))
    if parameters.hidden:
        raise ValueError(f"wrt: {parameters.hidden[0]} is not in args; pass it there")
    along = _direction(direction, len(parameters))
    starts = parameters.starts >= 0
    sizes = parameters.sizes.copy()
    own = np.abs(y[parameters.starts[starts]])
    sizes[starts] = np.where(own > 0.0, own, np.max(np.abs(y), initial=0.0) or 1.0)
    largest = np.max(np.abs(along) / sizes, initial=0.0)
    if largest == 0.0:
        return np.zeros(len(parameters))

    def gradient_at(change: float) -> np.ndarray:
        start, values = y.copy(), parameters.values
        for p, share in enumerate(change * along):
            if starts[p]:
                start[parameters.starts[p]] += share
            else:
                values[parameters.inputs[p]] += share
        changed = parameters.args_of(values)
        return gradient(
            loss, fun, t_span, start, yp0, wrt=wrt, args=changed, **options
        ).grad

    return central(gradient_at, 1.0 / largest)
