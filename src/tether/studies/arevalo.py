"""Arévalo (2008) retold: the first step of implicit Euler in index 3.

    python -m tether.studies.arevalo

Prints Tables 5.1 and 5.2, our numbers next to the published ones, as Markdown: errors of the
multiplier λ from exact starting values and from values consistent with the difference equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.fixed import solve_fixed
from tether.result.solution import DaeResult
from tether.studies.command import parse
from tether.studies.hanson_krogh import markdown

STEPS = (0.0005, 0.001)
STARTS = ("exact", "discrete")
LENGTH = 0.002                        # length of the interval that the tables cover
ROOT_3 = np.sqrt(3.0)


# --- the two problems ---------------------------------------------------------------------------


def circle(t: float, y: np.ndarray, yp: np.ndarray) -> list[float]:
    """Evaluate problem 5.1: x'' = 2y + xλ, y'' = -2x + yλ on the unit circle."""
    x, z, u, w, lam = y
    return [
        yp[0] - u,
        yp[1] - w,
        yp[2] - 2.0 * z - x * lam,
        yp[3] + 2.0 * x - z * lam,
        x * x + z * z - 1.0,
    ]


def circle_exact(t: Any) -> np.ndarray:
    """Return the solution of problem 5.1, one column per time."""
    s = 1.0 + np.asarray(t, float)
    sine, cosine = np.sin(s * s), np.cos(s * s)
    return np.array([sine, cosine, 2 * s * cosine, -2 * s * sine, -4 * s * s])


def sphere(t: float, y: np.ndarray, yp: np.ndarray) -> list[float]:
    """Evaluate problem 5.2: on a sphere and in a plane, with two multipliers.

    The second component of F has -4 y t^2; with the printed -4 y t the published solution does
    not satisfy the equations.
    """
    x, z, s, u, v, w, lam, beta = y
    sine = np.sin(t * t)
    return [
        yp[0] - 2.0 * u,
        yp[1] - v,
        yp[2] - (w - 1.0),
        yp[3] + z - x * lam,
        yp[4] - (2.0 * x + z * sine - 4.0 * z * t * t) - 2.0 * z * beta,
        yp[5] - (4.0 * s * t * t + 0.5 * sine) - 2.0 * s * lam - beta,
        x * x + z * z + s * s - 1.0,
        s - 0.5,
    ]


def sphere_exact(t: Any) -> np.ndarray:
    """Return the solution of problem 5.2, one column per time."""
    t = np.asarray(t, float)
    sine, cosine, one = np.sin(t * t), np.cos(t * t), np.ones_like(t)
    return np.array([
        ROOT_3 / 2 * cosine, ROOT_3 / 2 * sine, 0.5 * one,
        -ROOT_3 / 2 * t * sine, ROOT_3 * t * cosine, one,
        -2.0 * t * t, -0.5 * sine,
    ])


@dataclass(frozen=True)
class Example:
    """A problem of A08 and its table.

    `published` has the errors of λ as printed, by step size and kind of start, and
    `published_velocities` the corrected start by step size.
    """

    name: str
    residual: Callable[..., list[float]]
    exact: Callable[[Any], np.ndarray]
    t0: float
    velocities: tuple[int, ...]
    multiplier: int
    published: dict[tuple[float, str], tuple[str, ...]]
    published_velocities: dict[float, tuple[str, ...]]


EXAMPLES = (
    Example("5.1", circle, circle_exact, 0.0, (2, 3), 4, {
        (0.0005, "exact"): ("2.0040", "0.0040085", "0.0040185", "0.0040286"),
        # printed 0.004030: a zero was dropped
        (0.0005, "discrete"): ("0.0040030", "0.0040085", "0.0040185", "0.0040286"),
        (0.001, "exact"): ("2.0080", "0.0080341"),
        (0.001, "discrete"): ("0.0080120", "0.0080341"),
    }, {0.0005: ("1.0814", "-1.6824"), 0.001: ("1.0823", "-1.6819")}),
    Example("5.2", sphere, sphere_exact, 1.0, (3, 4, 5), 6, {
        (0.0005, "exact"): ("2.3973", "0.0056125", "0.0055573", "0.0055028"),
        (0.0005, "discrete"): ("0.0047995", "0.0056125", "0.0055573", "0.0055028"),
        (0.001, "exact"): ("2.3917", "0.011062"),
        (0.001, "discrete"): ("0.009586", "0.011062"),
    }, {0.001: ("-0.72985", "0.93931", "1")}),
)


# --- measurements -------------------------------------------------------------------------------


def solve_example(example: Example, step: float, start: str) -> DaeResult:
    """Solve over the interval of the tables by implicit Euler."""
    t0 = example.t0
    return solve_fixed(
        example.residual, (t0, t0 + LENGTH), example.exact(t0), order=1, step=step, start=start
    )


def multiplier_errors(example: Example, step: float, start: str) -> np.ndarray:
    """Return the absolute errors of λ after each step.

    Examples
    --------
    >>> from tether.studies.arevalo import EXAMPLES, multiplier_errors
    >>> multiplier_errors(EXAMPLES[0], 0.001, "exact").round(4).tolist()
    [2.008, 0.008]
    >>> multiplier_errors(EXAMPLES[0], 0.001, "discrete").round(4).tolist()
    [0.008, 0.008]
    """
    sol = solve_example(example, step, start)
    return np.abs(sol.y - example.exact(sol.t))[example.multiplier, 1:]


def corrected_velocities(example: Example, step: float) -> np.ndarray:
    """Return the starting velocities that are consistent with the difference equations."""
    return solve_example(example, step, "discrete").start.y[list(example.velocities)]


# --- tables -------------------------------------------------------------------------------------


def error_table(example: Example) -> str:
    """Return Table 5.1 or 5.2 with the published numbers beside ours."""
    head = ["t_j"]
    columns: list[dict[str, str]] = []
    for step in STEPS:
        for start in STARTS:
            head += [f"h = {step:g}, {start}", "A08"]
            values = multiplier_errors(example, step, start)
            printed = example.published[step, start]
            times = [f"{step * (j + 1):.4f}" for j in range(len(values))]
            columns += [
                dict(zip(times, _five_digits(values), strict=True)),
                dict(zip(times, printed, strict=True)),
            ]
    rows = [[t, *(column.get(t, "") for column in columns)] for t in columns[0]]
    return markdown(head, rows)


def velocity_table(example: Example) -> str:
    """Return the starting velocities, exact and corrected, and the published ones."""
    exact = example.exact(example.t0)[list(example.velocities)]
    rows = [["exact", *_five_digits(exact)]]
    for step in STEPS:
        rows.append([f"h = {step:g}", *_five_digits(corrected_velocities(example, step))])
        if step in example.published_velocities:
            rows.append([f"A08, h = {step:g}", *example.published_velocities[step]])
    return markdown(["start", *(f"q[{i}]" for i in range(len(exact)))], rows)


def _five_digits(values: np.ndarray) -> list[str]:
    return [f"{value:#.5g}" for value in values]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parse("arevalo", "The first step of implicit Euler in index 3.", arguments)
    print("# Errors of λ in the first steps of implicit Euler (A08)")
    for example in EXAMPLES:
        print(f"\n## Table {example.name}\n")
        print(error_table(example))
        print(f"\nStarting velocities of problem {example.name}:\n")
        print(velocity_table(example))
    print("\nTable 5.1 has 0.004030 for 0.0040030 in print: a zero was dropped.")


if __name__ == "__main__":
    main()
