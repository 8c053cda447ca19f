"""Names of variables and equations for messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tether.problem.units import check_units, separated, with_unit

if TYPE_CHECKING:
    from tether.problem.problem import Problem

__all__ = ["NO_NAMES", "Names", "check_names", "counted", "listed", "listed_equations"]

MAX_LISTED = 6


def check_names(argument: str, names: Any, n: int) -> list[str] | None:
    """Return the names as a list of n different strings, or raise with the argument's name."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be a list of {n} strings, got {names!r}")
    listed = list(names)
    if not all(isinstance(name, str) for name in listed):
        raise TypeError(f"{argument} must be a list of strings, got {names!r}")
    if len(listed) != n:
        raise ValueError(f"{argument} must be {n} strings, as many as y0, got {len(listed)}")
    if len(set(listed)) != n:
        raise ValueError(f"{argument} must be different from each other, got {listed!r}")
    for i, name in enumerate(listed):
        if not name.isprintable():     # it would garble the messages that contain it
            raise ValueError(f"{argument}[{i}] must be text on one line, got {name!r}")
    return listed


@dataclass(frozen=True)
class Names:
    """Names of the variables, ``y[0]`` where there are none, and of the equations.

    Examples
    --------
    >>> from tether.problem.names import Names
    >>> names = Names(("x", "y[1]"), ("balance", ""))
    >>> names.equation(0), names.equation(1), names.variable(0), names.entry("y0", 0)
    ("equation 0 'balance'", 'equation 1', 'x', 'y0[0] (x)')
    """

    variables: tuple[str, ...]
    equations: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, problem: Problem, n: int, variables: Any = None, equations: Any = None,
        units: Any = None,
    ) -> Names:
        """Take the names given; read those of the variables off the function otherwise."""
        given = check_names("names", variables, n)
        titles = check_names("equation_names", equations, n) or problem.titles(n)
        if given is None:
            given = problem.guessed_names(n)
        names, found = separated(given)
        return cls(names, tuple(titles), _merged(names, found, check_units(units, n)))

    def restricted(self, n: int) -> Names:
        """Return the names of the first n variables and equations."""
        if n == len(self.variables):
            return self
        return Names(self.variables[:n], self.equations[:n], self.units[:n])

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the variables with their units, as in ``speed [m/s]``."""
        if not any(self.units):
            return self.variables
        return tuple(map(with_unit, self.variables, self.units))

    def equation(self, i: int) -> str:
        """Name of one equation."""
        return f"equation {self.number(i)}"

    def variable(self, j: int) -> str:
        """Name of one variable."""
        return self.variables[j] if j < len(self.variables) else f"y[{j}]"

    def number(self, i: int) -> str:
        """Return the number of one equation, with its name if it has one."""
        title = self.equations[i] if i < len(self.equations) else ""
        return f"{i} '{title}'" if title else str(i)

    def entry(self, argument: str, j: int) -> str:
        """Name one value of an argument, as in ``y0[2] (pressure)``."""
        name = self.variable(j)
        return f"{argument}[{j}]" + ("" if name == f"y[{j}]" else f" ({name})")


NO_NAMES = Names(())


def _merged(
    names: Sequence[str], found: tuple[str, ...], given: list[str] | dict[str, str] | None
) -> tuple[str, ...]:
    """Return the units given, or those found in the names where none is given."""
    if isinstance(given, dict):
        given = dict(given)
        in_order = [given.pop(name, "") for name in names]
        if given:
            raise ValueError(
                f"units names {next(iter(given))!r}, which is not an unknown; the unknowns are "
                f"{list(names)}"
            )
        given = in_order
    return found if given is None else tuple([a or b for a, b in zip(given, found, strict=True)])


def listed(words: Sequence[str]) -> str:
    """Join a few words; say how many more there are."""
    shown = ", ".join(words[:MAX_LISTED])
    return shown + (f" and {len(words) - MAX_LISTED} more" if len(words) > MAX_LISTED else "")


def listed_equations(names: Sequence[str]) -> str:
    """Join names of equations, as in "equations 0, 1"."""
    if len(names) < 2:
        return listed(names)
    return "equations " + listed([name.removeprefix("equation ") for name in names])


def counted(count: int, noun: str) -> str:
    """Say how many there are.

    Examples
    --------
    >>> from tether.problem.names import counted
    >>> counted(1, "constraint"), counted(2, "constraint")
    ('1 constraint', '2 constraints')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
