"""IndexReport: what kind of DAE a system is."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tether._core.plain import Plain
from tether.explain.picture import plot_incidence
from tether.explain.tidy import tidy_formula
from tether.trace import Graph, Program, emit
from tether.trace import opcodes as op
from tether.trace.arguments import ArgumentLayout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tether.explain.diagnosis import Diagnosis

__all__ = ["HiddenConstraint", "Incidence", "IndexReport"]

# A report fits one screen.
WIDTH = 79
MOST_HIDDEN = 8
MOST_NOTES = 5
MOST_NAMES = 8


@dataclass(frozen=True, eq=False)
class HiddenConstraint:
    """An equation that the given ones imply; call it as ``constraint(t, y)`` for its value.

    Attributes
    ----------
    equation : int
        Equation that it is made from.
    order : int
        How often this equation is differentiated.
    graph, node : Graph, int
        The expression.
    names : tuple of str
        Names of all unknowns in it.
    n : int
        Number of the user's variables.
    layout, values : ArgumentLayout, ndarray
        Arguments of the residual and their values.
    """

    equation: int
    order: int
    graph: Graph = field(repr=False)
    node: int = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    n: int = field(repr=False)
    layout: ArgumentLayout = field(repr=False)
    values: np.ndarray = field(repr=False)

    def __str__(self) -> str:
        return f"{self.formula} = 0"

    @cached_property
    def formula(self) -> str:
        """Left-hand side in the user's names."""
        return tidy_formula(self.graph, self.node, self.names, self.layout.names)

    @cached_property
    def of_y(self) -> bool:
        """Tell whether it is a function of t and the user's y alone, without slopes."""
        leaves = [self.graph.nodes[leaf] for leaf in self.graph.inputs([self.node])]
        return all(code != op.Y or (k == 0 and j < self.n) for code, j, k, _ in leaves)

    @cached_property
    def _program(self) -> Program:
        if not self.of_y:
            raise TypeError(f"{self} is not a function of t and y alone")
        return emit(self.graph, [self.node], self.n, len(self.values), opaque=True)

    def __call__(self, t: float, y: Any, *args: Any) -> float:
        """Value at a point."""
        inputs = self.layout.flatten(args) if args else self.values
        return float(Plain(self._program, inputs).values(t, y, y)[0])


@dataclass(frozen=True)
class Incidence:
    """Which variables occur in which equations.

    Attributes
    ----------
    entries : tuple of (int, int, int)
        Equation, variable, order of its highest derivative.
    match : tuple of int
        Variable assigned to each equation; () if that is impossible.
    """

    entries: tuple[tuple[int, int, int], ...] = ()
    match: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class IndexReport:
    """What kind of DAE a system is; ``print`` it.

    Attributes
    ----------
    n : int
        Number of equations and variables.
    index : int or None
        Differentiation index; None where it could not be found.
    structural_index : int or None
        Index by the pattern of the equations as written (Pryce); None if they could not be
        traced or are structurally singular.
    local_index : int or None
        Index of the linearised system at a point near the start; None if that is singular.
    agree : bool
        Whether the local index is the index.
    dof : int or None
        Number of free initial values.
    free : tuple of str
        One set of variables whose initial values may be chosen.
    hidden : list of HiddenConstraint
        Equations that y must satisfy besides those given.
    n_hidden : int or None
        Their number, also if the derivative array has only counted them; None if it is not known.
    repair : {"none", "combinations", "varying combinations", "derivative array"}
        What was needed because leading derivatives cancel: nothing, combinations of equations
        with constant factors or with factors that depend on the solution, or, as a last resort,
        the ranks of the derivative array.
    singular : bool
        There is not exactly one solution: equations repeat or contradict each other, or leave
        variables open.
    dependent : tuple of int
        Equations that repeat or cancel each other.
    undetermined : tuple of str
        Variables that are left open.
    constraints : list of callable
        Functions (t, y) for the argument `constraints` of `solve_dae`: everything that position
        and velocity have to satisfy, given or hidden.
    traced : bool
        The equations are known as expressions; otherwise the report is about the linearised
        system at one point.
    notes : tuple of str
        Further remarks.
    how : str
        How `solve_dae` integrates the system.
    names : tuple of str
        Names of the variables.
    why_singular : tuple of str
        The notes that name equations with too few variables.

    Examples
    --------
    >>> from tether import analyze
    >>> print(analyze(lambda t, y, yp: [yp[0] - y[1], y[0] - t**2], 0.0, [0.0, 0.0]))
    index 2 (structural 2, local 2): 2 equations
    no initial value is free
    hidden constraints, by equation (' for each differentiation)
      1'  y[1] - 2*t = 0
    run: reduced to index 1, projected onto 1 constraint in every step
    """

    n: int
    index: int | None
    structural_index: int | None
    local_index: int | None
    agree: bool
    dof: int | None
    free: tuple[str, ...]
    hidden: list[HiddenConstraint]
    n_hidden: int | None
    repair: str
    singular: bool
    dependent: tuple[int, ...]
    undetermined: tuple[str, ...]
    constraints: list[Callable[..., Any]]
    traced: bool
    notes: tuple[str, ...]
    how: str
    names: tuple[str, ...]
    incidence: Incidence = field(default_factory=Incidence, repr=False)
    examine: Callable[[], Diagnosis] | None = field(default=None, repr=False)
    why_singular: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Why a run from here would fail at once; computed when it is first read."""
        return None if self.examine is None else self.examine()

    def __str__(self) -> str:
        lines = [self._headline(), *self._freedom()]
        if self.dependent:
            lines += _wrapped("equations that repeat or cancel: ", map(str, self.dependent))
        if self.undetermined:
            lines += _wrapped("not determined: ", self.undetermined)
        if self.hidden:
            lines += ["hidden constraints, by equation (' for each differentiation)"]
            lines += self._hidden_lines()
        if self.how:
            lines += textwrap.wrap(f"run: {self.how}", WIDTH, subsequent_indent="  ")
        for note in self.notes[:MOST_NOTES]:
            lines += textwrap.wrap(f"note: {note}", WIDTH, subsequent_indent="  ")
        return "\n".join(lines)

    def _headline(self) -> str:
        index = "index unknown" if self.index is None else f"index {self.index}"
        kinds = []
        if self.traced:
            kinds.append(f"structural {_or_none(self.structural_index)}")
        kinds.append(f"local {_or_none(self.local_index)}")
        singular = ", singular" if self.singular else ""
        return f"{index} ({', '.join(kinds)}){singular}: {self.n} equations"

    def _freedom(self) -> list[str]:
        if self.dof is None:
            return []
        if not self.dof:
            return ["no initial value is free"]
        plural = "s" if self.dof > 1 else ""
        text = f"{self.dof} free initial value{plural}"
        return _wrapped(f"{text}, for example ", self.free) if self.free else [text]

    def _hidden_lines(self) -> list[str]:
        shown = self.hidden[:MOST_HIDDEN]
        labels = [str(entry.equation) + "'" * entry.order for entry in shown]
        width = max(map(len, labels))
        room = WIDTH - width - 4
        lines = []
        for label, entry in zip(labels, shown, strict=True):
            text = str(entry)
            if len(text) > room:
                text = text[: room - 7].rstrip() + "... = 0"
            lines.append(f"  {label:<{width}}  {text}")
        if len(self.hidden) > MOST_HIDDEN:
            lines.append(f"  and {len(self.hidden) - MOST_HIDDEN} more, in report.hidden")
        return lines

    def plot(self) -> Figure:
        """Draw which variables occur in which equations; needs matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            Not shown; call ``figure.show()`` or ``figure.savefig(...)``.
        """
        return plot_incidence(self)


def _or_none(value: int | None) -> str:
    return "none" if value is None else str(value)


def _wrapped(start: str, words: Any) -> list[str]:
    words = list(words)
    text = ", ".join(words[:MOST_NAMES])
    if len(words) > MOST_NAMES:
        text += f" and {len(words) - MOST_NAMES} more"
    return textwrap.wrap(start + text, WIDTH, subsequent_indent="  ")

