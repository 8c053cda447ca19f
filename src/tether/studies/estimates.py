"""The error estimates for index 2 and 3 compared, and the share of the tolerance.

    python -m tether.studies.estimates [--full]

Solves the gallery's problems of index 2 and 3 at rtol = 1e-6 and prints correct digits, steps and
residuals: with the default estimate and several shares of the tolerance to which it holds ordinary
unknowns, with other estimates, and with other scalings and tests of convergence. ("mechanical" is
the default with a share of 1.) ``--full`` adds a larger problem and the residuals at equal digits,
which takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from tether import gallery, solve_dae
from tether.base.status import Status
from tether.result.solution import Statistics
from tether.run import kinds
from tether.studies.command import parse
from tether.studies.hanson_krogh import markdown

PROBLEMS = (
    "pend-i2", "pend-ggl", "caraxis-i2", "andrews-i2", "fekete", "pend-i3", "caraxis-i3",
    "andrews-i3",
)
QUICK = tuple(name for name in PROBLEMS if name != "fekete")
SHARES = (1.0, 1 / 16, 1 / 128)
ESTIMATES = ("classical", "exclude", "scaled", "local", "auto")
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "scaling rows": {"scaling": "rows"},
    "scaling kinds": {"scaling": "kinds"},
    "newton_test yp": {"newton_test": "yp"},
}
MAX_STEPS = 5_000
RTOLS = 10.0 ** -np.arange(4.0, 9.1)             # for the residuals at equal digits


@dataclass(frozen=True)
class Run:
    """One run; `digits` is None if it did not reach the end."""

    problem: str
    status: Status
    digits: float | None
    stats: Statistics


@contextmanager
def share_of_tolerance(share: float) -> Iterator[None]:
    """Let ``estimate="auto"`` hold ordinary unknowns to another share of the tolerance."""
    usual = kinds.HIGH_INDEX_SHARE
    kinds.HIGH_INDEX_SHARE = share
    try:
        yield
    finally:
        kinds.HIGH_INDEX_SHARE = usual


@cache
def residual(name: str) -> Any:
    """Return the residual of a problem, in C where there is a compiler."""
    problem = gallery.get(name)
    if problem.c_source is None or gallery.find_compiler() is None:
        return problem.fun
    return gallery.compile_residual(problem, _folder())


@cache
def _folder() -> Path:
    return Path(mkdtemp(prefix="tether-"))


def run(
    name: str,
    estimate: str = "auto",
    share: float | None = None,
    rtol: float = 1e-6,
    max_steps: int = MAX_STEPS,
    **options: Any,
) -> Run:
    """Solve one problem of the gallery.

    Parameters
    ----------
    name : str
        One of `PROBLEMS`.
    estimate : str
        As in `tether.Options`.
    share : float, optional
        Share of the tolerance, for ``estimate="auto"``; the usual one by default.
    rtol : float
        Relative tolerance; the absolute ones belong to the problem.
    max_steps : int
        The run is given up after this many steps.
    **options
        Further options of the integration.

    Examples
    --------
    >>> from tether.studies.estimates import run
    >>> run("pend-i3").digits > 4
    True
    """
    problem = gallery.get(name)
    with share_of_tolerance(kinds.HIGH_INDEX_SHARE if share is None else share):
        sol = solve_dae(
            residual(name), problem.t_span, problem.y0, problem.yp0, rtol=rtol,
            atol=problem.atol(rtol), max_steps=max_steps, form="given",
            options={"estimate": estimate, **options},
        )
    digits = problem.digits(sol.y[:, -1]) if sol.success else None
    return Run(name, sol.status, digits, sol.stats)


def compare_shares(names: Sequence[str] = PROBLEMS) -> dict[tuple[str, float], Run]:
    """Every problem with every share."""
    return {(name, share): run(name, share=share) for name in names for share in SHARES}


def compare_estimates(names: Sequence[str] = PROBLEMS) -> dict[tuple[str, str], Run]:
    """Every problem with every estimate."""
    return {(name, estimate): run(name, estimate) for name in names for estimate in ESTIMATES}


def compare_options(names: Sequence[str] = PROBLEMS) -> dict[tuple[str, str], Run]:
    """Every problem with the default, other scalings, and the other test of convergence."""
    return {
        (name, choice): run(name, **options)
        for name in names
        for choice, options in OPTIONS.items()
    }


def residuals_at_digits(
    name: str, digits: float, rtols: Sequence[float] | np.ndarray = RTOLS, **choice: Any
) -> float | None:
    """Residuals needed for a number of digits, from a line through runs at many tolerances.

    None if fewer than half of the runs reach the end.
    """
    runs = [run(name, rtol=rtol, max_steps=20_000, **choice) for rtol in rtols]
    finished = [(r.digits, np.log(r.stats.nfev)) for r in runs if r.digits is not None]
    if 2 * len(finished) < len(runs):
        return None
    reached, logarithms = np.transpose(finished)
    return float(np.exp(np.polyval(np.polyfit(reached, logarithms, 1), digits)))


CHOICES: dict[str, dict[str, Any]] = {
    "auto": {},
    **{f"share 1/{1 / share:g}": {"share": share} for share in SHARES[:-1]},
    **{estimate: {"estimate": estimate} for estimate in ("exclude", "scaled", "local")},
}


def compare_at_digits(names: Sequence[str] = PROBLEMS) -> dict[tuple[str, str], float | None]:
    """Residuals at equal digits of every choice, as a multiple of those of the default.

    The digits are those that the default reaches at rtol = 1e-6.
    """
    table: dict[tuple[str, str], float | None] = {}
    for name in names:
        digits = run(name).digits
        assert digits is not None
        usual = residuals_at_digits(name, digits)
        for choice, arguments in CHOICES.items():
            count = residuals_at_digits(name, digits, **arguments)
            table[name, choice] = None if count is None or usual is None else count / usual
    return table


# --- tables ---------------------------------------------------------------------------------------


def run_table(runs: dict[tuple[str, Any], Run], heads: Sequence[str]) -> str:
    """Return digits / steps / residuals, one row per problem and one column per choice."""
    rows: dict[str, list[str]] = {}
    for (name, _), r in runs.items():
        cell = (
            f"{r.status.name} ({r.stats.steps:,})" if r.digits is None
            else f"{r.digits:.1f} / {r.stats.steps:,} / {r.stats.nfev:,}"
        )
        rows.setdefault(name, [name]).append(cell)
    return markdown(["", *heads], list(rows.values()))


def ratio_table(ratios: dict[tuple[str, str], float | None]) -> str:
    """Residuals at equal digits over those of the default, with their geometric means."""
    rows: dict[str, list[str]] = {}
    columns: dict[str, list[float]] = {choice: [] for choice in CHOICES}
    for (name, choice), ratio in ratios.items():
        rows.setdefault(name, [name]).append("failed" if ratio is None else f"{ratio:.2f}")
        if ratio is not None:
            columns[choice].append(ratio)
    means = [f"{np.exp(np.mean(np.log(column))):.2f}" for column in columns.values()]
    return markdown(["", *CHOICES], [*rows.values(), ["geometric mean", *means]])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    options = parse(
        "estimates", "Error estimates for index 2 and 3 compared.", arguments,
        full="a larger problem, and residuals at equal digits",
    )
    names = PROBLEMS if options.full else QUICK
    print("# Share of the tolerance, rtol = 1e-6: digits / steps / residuals\n")
    print(run_table(compare_shares(names), [f"1/{1 / share:g}" for share in SHARES]))
    print("\n# Estimates, rtol = 1e-6: digits / steps / residuals, or how it ended (steps)\n")
    print(run_table(compare_estimates(names), ESTIMATES))
    print("\n# Other options, rtol = 1e-6: digits / steps / residuals\n")
    print(run_table(compare_options(names), list(OPTIONS)))
    if options.full:
        print("\n# Residuals at equal digits, over those of the default\n")
        print(ratio_table(compare_at_digits(names)))


if __name__ == "__main__":
    main()
