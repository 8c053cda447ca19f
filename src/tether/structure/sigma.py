"""Signature matrix and offsets of a system of equations (Pryce 2001).

sigma_ij is the order of the highest derivative of variable j in equation i. An assignment of
equations to variables with the largest sum of sigma_ij exists unless the system is structurally
singular; the smallest c_i >= 0 and d_j with

    d_j - c_i >= sigma_ij,    equality on the assignment                                   (S)

say how often each equation must be differentiated, c_i, to determine the derivative of order
d_j of every variable. The Jacobian of the differentiated equations, df_i^(c_i) / dy_j^(d_j), has
entries only where (S) is an equality, and there it is df_i / dy_j^(sigma_ij): the *system
Jacobian*. If it is regular the offsets are right, and its block triangular form is that of the
system.

The assignment is found as Pantelides does: where an equation finds no variable, all equations and
variables visited in the search are differentiated once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Block", "Signature", "Unmatched", "find_signature"]

Orders = Sequence[dict[int, int]]


@dataclass(frozen=True)
class Block:
    """Equations and variables that belong together, in the order in which they can be solved."""

    equations: tuple[int, ...]
    variables: tuple[int, ...]


@dataclass(frozen=True)
class Unmatched:
    """A structurally singular system.

    Attributes
    ----------
    equations : tuple of int
        Equations that have too few variables between them.
    variables : tuple of int
        Variables for which too few equations remain, or that appear nowhere.
    """

    equations: tuple[int, ...]
    variables: tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """Offsets of a system that is structurally regular.

    Attributes
    ----------
    orders : sequence of dict
        Per equation, the highest order of every variable in it.
    match : tuple of int
        Variable assigned to each equation.
    c : tuple of int
        How often each equation is differentiated.
    d : tuple of int
        Highest order of each variable after that.

    Examples
    --------
    >>> from tether.structure.sigma import find_signature
    >>> pendulum = [{0: 1, 2: 0}, {1: 1, 3: 0}, {2: 1, 0: 0, 4: 0}, {3: 1, 1: 0, 4: 0},
    ...             {0: 0, 1: 0}]
    >>> s = find_signature(pendulum)
    >>> s.c, s.d, s.structural_index, s.dof
    ((1, 1, 0, 0, 2), (2, 2, 1, 1, 0), 3, 2)
    """

    orders: Orders
    match: tuple[int, ...]
    c: tuple[int, ...]
    d: tuple[int, ...]

    @property
    def structural_index(self) -> int:
        """Number of differentiations until all first derivatives are determined."""
        return max(self.differentiations, default=0)

    @cached_property
    def differentiations(self) -> tuple[int, ...]:
        """How often each equation is differentiated to determine all first derivatives.

        These are offsets with d_j >= 1. Pryce adds 1 to the largest c_i where some d_j is 0, which
        is too much if other equations have that c_i.
        """
        return _smallest_offsets(self.orders, self.match, 1)[0]

    @property
    def dof(self) -> int:
        """Number of free initial values."""
        return sum(self.d) - sum(self.c)

    def tight(self, i: int) -> list[int]:
        """Variables whose derivative of order d_j occurs in the derivative c_i of equation i."""
        c, d = self.c[i], self.d
        return [j for j, order in self.orders[i].items() if order == d[j] - c]

    @cached_property
    def blocks(self) -> list[Block]:
        """Block triangular form of the system Jacobian; blocks depend on earlier ones alone."""
        variables_of = [self.tight(i) for i in range(len(self.c))]
        owner = {j: i for i, j in enumerate(self.match)}
        needs = [[owner[j] for j in variables if owner[j] != i]
                 for i, variables in enumerate(variables_of)]
        return [
            Block(tuple(sorted(part)), tuple(sorted(self.match[i] for i in part)))
            for part in _strong_components(needs)
        ]


def find_signature(orders: Orders) -> Signature | Unmatched:
    """Find the offsets of a system from the orders of its variables.

    Parameters
    ----------
    orders : sequence of dict
        Per equation, the highest order of every variable in it.

    Returns
    -------
    Signature or Unmatched

    Examples
    --------
    Two equations for one variable, and another that appears nowhere:

    >>> from tether.structure.sigma import find_signature
    >>> find_signature([{0: 1}, {0: 0}])
    Unmatched(equations=(0, 1), variables=(1,))
    """
    n = len(orders)
    everything = _Matching(orders, lambda i, j: True)
    if not everything.grow_all():
        return everything.unmatched()
    c, d = [0] * n, [0] * n
    for row in orders:
        for j, order in row.items():
            d[j] = max(d[j], order)
    matching = _Matching(orders, lambda i, j: orders[i][j] == d[j] - c[i])
    for i in range(n):
        while (seen := matching.grow(i)) is not None:
            equations, variables = seen
            for k in equations:
                c[k] += 1
            for j in variables:
                d[j] += 1
    match = tuple(matching.variable)
    return Signature(orders, match, *_smallest_offsets(orders, match))


def _smallest_offsets(
    orders: Orders, match: Sequence[int], least: int = 0
) -> tuple[tuple[int, ...], ...]:
    """Smallest offsets with d_j not below `least`; each that rises may raise others."""
    n = len(orders)
    c, d, owner = [0] * n, [least] * n, [0] * n
    for i, row in enumerate(orders):
        owner[match[i]] = i
        for j, order in row.items():
            d[j] = max(d[j], order)
    waiting = deque(range(n))
    waits = [True] * n
    while waiting:
        i = waiting.popleft()
        waits[i] = False
        offset = d[match[i]] - orders[i][match[i]]
        if offset == c[i]:
            continue
        c[i] = offset
        for j, order in orders[i].items():
            if order + offset > d[j]:
                d[j] = order + offset
                if not waits[owner[j]]:
                    waits[owner[j]] = True
                    waiting.append(owner[j])
    return tuple(c), tuple(d)


class _Matching:
    """Equations assigned to variables, with the pairs that are allowed at present."""

    def __init__(self, orders: Orders, allowed: Callable[[int, int], bool]) -> None:
        self.orders, self.allowed = orders, allowed
        self.variable = [-1] * len(orders)
        self.equation = [-1] * len(orders)

    def grow_all(self) -> bool:
        """Assign as many equations as possible; tell whether that is all of them."""
        for i in range(len(self.orders)):
            self.grow(i)
        return min(self.variable, default=0) >= 0

    def grow(self, start: int) -> tuple[list[int], list[int]] | None:
        """Assign one more equation along an alternating path.

        Returns
        -------
        None, or where there is no such path, the equations and variables seen in the search.
        """
        found = self._free_variable(start)
        if found is not None:
            self.variable[start], self.equation[found] = found, start
            return None
        came_from: dict[int, int] = {}  # variable: the equation it was reached from
        equations = [start]
        for i in equations:
            for j in self.orders[i]:
                if j in came_from or not self.allowed(i, j):
                    continue
                came_from[j] = i
                if self.equation[j] < 0:
                    self._turn(j, came_from)
                    return None
                equations.append(self.equation[j])
        return equations, list(came_from)

    def _free_variable(self, i: int) -> int | None:
        for j in self.orders[i]:
            if self.equation[j] < 0 and self.allowed(i, j):
                return j
        return None

    def _turn(self, j: int, came_from: dict[int, int]) -> None:
        """Exchange assigned and unassigned pairs on the path that ends in j."""
        while j >= 0:
            i = came_from[j]
            self.equation[j] = i
            self.variable[i], j = j, self.variable[i]

    def unmatched(self) -> Unmatched:
        """Find the overdetermined and underdetermined parts (Dulmage and Mendelsohn)."""
        equations = {i for i, j in enumerate(self.variable) if j < 0}
        stack = list(equations)
        while stack:
            for j in self.orders[stack.pop()]:
                other = self.equation[j]
                if other not in equations:
                    equations.add(other)
                    stack.append(other)
        containing: list[list[int]] = [[] for _ in self.orders]
        for i, row in enumerate(self.orders):
            for j in row:
                containing[j].append(i)
        variables = {j for j, i in enumerate(self.equation) if i < 0}
        stack = list(variables)
        while stack:
            for i in containing[stack.pop()]:
                j = self.variable[i]
                if j not in variables:
                    variables.add(j)
                    stack.append(j)
        return Unmatched(tuple(sorted(equations)), tuple(sorted(variables)))


def _strong_components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strong components of a graph, successors first (Tarjan 1972, without recursion)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    components: list[list[int]] = []
    for root in range(len(successors)):
        if root in number:
            continue
        work = [(root, iter(successors[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, remaining = work[-1]
            for other in remaining:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(successors[other])))
                    break
                if other in on_stack:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == number[node]:
                    part: list[int] = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                    on_stack.difference_update(part)
                    components.append(part)
    return components
