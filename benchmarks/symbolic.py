"""Plain Python residuals for peers that want symbols or text instead."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tether.gallery import GalleryProblem


class NotApplicable(Exception):  # noqa: N818 - it is no error that a case does not exist
    """This solver has no way to take this problem."""


def with_math(fun: Callable[..., Any], namespace: Any) -> Callable[..., Any]:
    """Copy of a residual in which the global name `math` means another namespace."""
    names = fun.__globals__ | {"math": namespace}
    return types.FunctionType(fun.__code__, names, fun.__name__, fun.__defaults__, fun.__closure__)


def linear_matrices(problem: GalleryProblem) -> tuple[np.ndarray, np.ndarray]:
    """dF/dy and dF/dy' of a problem on whole arrays, which are all linear here."""
    if problem.jac is None:
        raise NotApplicable("no matrices")
    return problem.jac(0.0, problem.y0, problem.yp0)


def leading_diagonal(problem: GalleryProblem) -> np.ndarray:
    """Diagonal d of a residual d_i y_i' - f_i(t, y); a problem of another form is refused."""
    if problem.vectorised:
        return np.diag(linear_matrices(problem)[1])
    y0, zero = problem.y0.tolist(), [0.0] * problem.n
    base = np.array(problem.fun(0.0, y0, zero))
    columns = [np.array(problem.fun(0.0, y0, unit)) - base for unit in np.eye(problem.n).tolist()]
    matrix = np.array(columns).T
    if np.any(matrix - np.diag(np.diag(matrix))):
        raise NotApplicable("leading matrix is not diagonal")
    return np.diag(matrix)


class Term:
    """Arithmetic recorded as DiffSL text; a long term becomes a named scalar."""

    def __init__(self, text: str, definitions: list[str]) -> None:
        if len(text) > 60:
            name = "w" + letters(len(definitions))
            definitions.append(f"{name} {{ {text} }}")
            text = name
        self.text, self.definitions = text, definitions

    def record(self, form: str, other: Any = None) -> Term:
        text = other.text if isinstance(other, Term) else f"({other!r})"
        return Term(form.format(self.text, text), self.definitions)

    def __add__(self, other: Any) -> Term:
        return self.record("({0}+{1})", other)

    def __radd__(self, other: Any) -> Term:
        return self.record("({1}+{0})", other)

    def __sub__(self, other: Any) -> Term:
        return self.record("({0}-{1})", other)

    def __rsub__(self, other: Any) -> Term:
        return self.record("({1}-{0})", other)

    def __mul__(self, other: Any) -> Term:
        return self.record("({0}*{1})", other)

    def __rmul__(self, other: Any) -> Term:
        return self.record("({1}*{0})", other)

    def __truediv__(self, other: Any) -> Term:
        return self.record("({0}/{1})", other)

    def __rtruediv__(self, other: Any) -> Term:
        return self.record("({1}/{0})", other)

    def __neg__(self) -> Term:
        return self.record("(0.0-{0})")

    def __pow__(self, power: int) -> Term:
        # products, because the derivative of pow is undefined at zero
        return functools.reduce(operator.mul, [self] * power)


TERM_MATH = types.SimpleNamespace(
    **{
        name: functools.partial(lambda name, term: term.record(name + "({0})"), name)
        for name in ("sin", "cos", "exp", "sqrt")
    }
)


def letters(number: int) -> str:
    """A number spelt in letters, since DiffSL names hold no digits."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def diffsl(problem: GalleryProblem) -> str:
    """DiffSL text M(y') = F(t, y) of a problem."""
    return _linear_text(problem) if problem.vectorised else _scalar_text(problem)


def _scalar_text(problem: GalleryProblem) -> str:
    names = ["u" + letters(i) for i in range(problem.n)]
    definitions: list[str] = []
    unknowns = [Term(name, definitions) for name in names]
    fun = with_math(problem.fun, TERM_MATH)
    right = [-row for row in fun(Term("t", definitions), unknowns, [0.0] * problem.n)]
    left = [f"({d!r})*d{name}" for d, name in _pairs(leading_diagonal(problem), names)]
    return "\n".join(
        [
            _tensor("u_i", [f"{name} = {v!r}" for v, name in _pairs(problem.y0, names)]),
            _tensor("dudt_i", [f"d{name} = {v!r}" for v, name in _pairs(problem.yp0, names)]),
            *definitions,
            _tensor("M_i", left),
            _tensor("F_i", [row.text for row in right]),
        ]
    )


def _linear_text(problem: GalleryProblem) -> str:
    """The same for a linear problem, its matrices read off the Jacobian."""
    matrix = -linear_matrices(problem)[0]
    entries = [f"({i},{j}): {float(matrix[i, j])!r}" for i, j in np.argwhere(matrix)]
    vectors = {"u_i": problem.y0, "dudt_i": problem.yp0, "c_i": leading_diagonal(problem)}
    return "\n".join(
        [
            _tensor("A_ij", entries),
            *(
                _tensor(name, [f"({i}): {v!r}" for i, v in enumerate(values.tolist())])
                for name, values in vectors.items()
            ),
            "M_i { c_i * dudt_i }",
            "F_i { A_ij * u_j }",
        ]
    )


def _pairs(values: np.ndarray, names: list[str]) -> list[tuple[float, str]]:
    return list(zip(values.tolist(), names, strict=True))


def _tensor(head: str, rows: list[str]) -> str:
    return head + " {\n" + "".join(f"  {row},\n" for row in rows) + "}"
