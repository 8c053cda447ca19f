"""Petzold and Lötstedt (1986), part II, section 3 retold: scaling of the iteration matrix.

    python -m tether.studies.conditioning [--plot FILE]

Prints how the condition number of F_y + c F_y', c = 1/h, grows as h -> 0 for the pendulum of index
0 to 3, a flow (index 2) and a circuit (index 1): unscaled, and with the scalings of tether. The
numbers are slopes of log(condition number) over log(h).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tether import Bdf, Problem
from tether.studies import pendulum
from tether.studies.command import keep, new_figure, parse
from tether.studies.hanson_krogh import markdown
from tether.studies.orders import PROBLEMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 10.0 ** -np.arange(3.0, 4.51, 0.25)
TIME = 0.3                            # time at which no entry of the matrices vanishes
# "kinds, rows" is "kinds" without the scaling of columns.
SCALINGS = ("none", "rows", "kinds, rows", "kinds")


# --- the problems -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A system and a point of its solution."""

    index: int
    residual: Callable[..., Any]
    y: np.ndarray


def index3(t: float, y: np.ndarray, yp: np.ndarray) -> list[float]:
    """Evaluate the pendulum of HK with its length as the constraint."""
    return [*pendulum.index1(t, y, yp)[:4], pendulum.constraints1(t, y)[0]]


def index2(t: float, y: np.ndarray, yp: np.ndarray) -> list[float]:
    """Evaluate the pendulum of HK with the derivative of its length as the constraint."""
    return [*pendulum.index1(t, y, yp)[:4], pendulum.constraints1(t, y)[1]]


FORMS = {
    **{
        f"pendulum, index {index}": Form(index, residual, pendulum.exact(TIME))
        for index, residual in enumerate((pendulum.index0, pendulum.index1, index2, index3))
    },
    "flow, index 2": Form(2, PROBLEMS["flow"].residual, PROBLEMS["flow"].exact(TIME)),
    "circuit, index 1": Form(1, PROBLEMS["circuit"].residual, PROBLEMS["circuit"].exact(TIME)),
}
PENDULA = tuple(FORMS)[:4]


# --- measurements -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conditions:
    """Condition numbers (1-norm) by step size.

    `exact` is NumPy's, `estimate` that of `Bdf.condition` for the same matrix, or NaN if tether
    does not factor this matrix.
    """

    h: np.ndarray
    exact: np.ndarray
    estimate: np.ndarray

    @property
    def slope(self) -> float:
        """Exponent of h."""
        return float(np.polyfit(np.log(self.h), np.log(self.exact), 1)[0])


def one_step(form: Form, h: float, scaling: str) -> Bdf:
    """Take one step of size h at order 1; c is then 1/h in the matrix that was factored."""
    bdf = Bdf(
        Problem(form.residual), TIME, form.y, t_bound=TIME + 1.0, dense_output=False,
        options={"rtol": 1.0, "atol": 10.0, "first_step": h, "max_order": 1, "scaling": scaling,
                 "form": "given"},
    )
    bdf.step()
    factored = bdf._integration.state.cj_factored
    if not np.isclose(bdf.step_size, h) or not np.isclose(factored, 1 / h):
        raise RuntimeError(f"a step of {bdf.step_size} was made instead of {h}")
    return bdf


def scaled_matrix(form: Form, h: float, scaling: str) -> tuple[np.ndarray, float]:
    """Return the matrix with one of `SCALINGS`, and its condition by `Bdf.condition`."""
    option = scaling if scaling in ("none", "rows", "kinds") else "kinds"
    bdf = one_step(form, h, option)
    s = bdf._integration.state
    fy, fyp = (s.array(name).reshape(s.n, s.n).T for name in ("fy", "fyp"))
    matrix = fy + fyp / h
    if scaling != "none":
        matrix = s.array("row_scale")[:, None] * matrix
    if scaling in ("rows", "kinds"):
        matrix = matrix * s.array("column_scale")
    return matrix, bdf.condition() if scaling == option else np.nan


def measure(name: str, scaling: str, steps: Sequence[float] | np.ndarray = STEPS) -> Conditions:
    """Condition numbers of one problem with one scaling.

    Parameters
    ----------
    name : str
        One of `FORMS`.
    scaling : str
        One of `SCALINGS`.
    steps : sequence of float
        Step sizes.

    Examples
    --------
    >>> from tether.studies.conditioning import measure
    >>> [round(measure("pendulum, index 2", scaling).slope, 1) for scaling in ("none", "rows")]
    [-2.0, -1.0]
    """
    exact, estimate = [], []
    for h in steps:
        matrix, estimated = scaled_matrix(FORMS[name], h, scaling)
        exact.append(np.linalg.cond(matrix, 1))
        estimate.append(estimated)
    return Conditions(np.asarray(steps), np.array(exact), np.array(estimate))


def measure_all() -> dict[tuple[str, str], Conditions]:
    """Every problem with every scaling."""
    return {(name, scaling): measure(name, scaling) for name in FORMS for scaling in SCALINGS}


# --- tables and picture ---------------------------------------------------------------------------


def slope_table(found: dict[tuple[str, str], Conditions]) -> str:
    """Exponents of h."""
    rows = [
        [name, *(f"{round(found[name, scaling].slope, 2) + 0.0:.2f}" for scaling in SCALINGS)]
        for name in FORMS
    ]
    return markdown(["", *SCALINGS], rows)


def size_table(found: dict[tuple[str, str], Conditions]) -> str:
    """Condition numbers at the smallest step, NumPy's and, after a slash, those of tether."""
    rows = []
    for name in FORMS:
        cells = []
        for scaling in SCALINGS:
            exact, estimate = found[name, scaling].exact[-1], found[name, scaling].estimate[-1]
            cells.append(f"{exact:.1e}" + ("" if np.isnan(estimate) else f" / {estimate:.1e}"))
        rows.append([name, *cells])
    return markdown(["", *SCALINGS], rows)


def draw(found: dict[tuple[str, str], Conditions]) -> Figure:
    """Condition numbers over h for the pendulum, unscaled and scaled."""
    figure, axes = new_figure(3)
    titles = ("unscaled", "rows divided by their largest entry", "rows and columns by kind")
    for axis, scaling, title in zip(axes, ("none", "rows", "kinds"), titles, strict=True):
        for name in PENDULA:
            run = found[name, scaling]
            axis.loglog(run.h, run.exact, "o-", markersize=3, label=name)
        axis.set(xlabel="h", ylabel="condition number", title=title, ylim=(0.5, 1e15))
    axes[0].legend()
    return figure


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    options = parse(
        "conditioning", "Retell Petzold and Lötstedt (1986), section 3.", arguments, plot=True
    )
    found = measure_all()
    print(f"# Slopes of the condition number over h, {STEPS[0]:.0e} to {STEPS[-1]:.0e}\n")
    print(slope_table(found))
    print(f"\n# Condition numbers at h = {STEPS[-1]:.1e}, exact / by `Bdf.condition`\n")
    print(size_table(found))
    if options.plot:
        keep(draw(found), options.plot)


if __name__ == "__main__":
    main()
