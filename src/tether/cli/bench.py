"""``tether bench``: counts and times of the gallery."""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from tether.cli.errors import ExitCode
from tether.cli.files import STDOUT, check_writable, write_text
from tether.cli.run import tolerances
from tether.cli.source import Source
from tether.cli.target import load_source
from tether.solve import solve_dae

if TYPE_CHECKING:
    import argparse

__all__ = ["run"]

COLUMNS = ("name", "n", "steps", "nfev", "njev", "nlu", "digits", "first_ms", "warm_ms")


def run(options: argparse.Namespace) -> ExitCode:
    """Solve every problem once, then all of them in turn, round after round.

    They are solved in turn so that a machine that is busy for a while slows down all of them, not
    just one.
    """
    from tether import gallery  # slow to import

    if options.json is not None:
        check_writable(options.json, "--json")
    names = options.problems or gallery.names()
    sources = [load_source(name, {}) for name in names]
    rows = [_first(source, options.rtol, gallery.get(source.name)) for source in sources]
    times: list[list[float]] = [[] for _ in sources]
    for number in range(options.rounds):
        for source, measured in zip(sources, times, strict=True):
            measured.append(_timed(source, options.rtol)[0])
        _show_progress(number + 1, options.rounds)
    for row, measured in zip(rows, times, strict=True):
        row["warm_ms"] = 1e3 * median(measured)
    if options.json is not None:
        write_text(options.json, json.dumps(rows, indent=1) + "\n")
    if options.json != STDOUT:
        _print(rows)
    return ExitCode.SUCCESS if all(row["success"] for row in rows) else ExitCode.FAILED


def _timed(source: Source, rtol: float) -> tuple[float, Any]:
    source.rtol = rtol
    begin = time.perf_counter()
    sol = solve_dae(
        source.fun, source.t_span, source.y0, source.yp0, args=source.args,
        **tolerances(source), **source.more,
    )
    return time.perf_counter() - begin, sol


def _first(source: Source, rtol: float, problem: Any) -> dict[str, Any]:
    seconds, sol = _timed(source, rtol)
    reached = bool(sol.success and len(sol.t))
    return {
        "name": source.name, "success": sol.success, "n": len(source.y0),
        "steps": sol.stats.steps, "nfev": sol.nfev, "njev": sol.njev, "nlu": sol.nlu,
        "digits": problem.digits(sol.y[:, -1]) if reached else None,
        "first_ms": 1e3 * seconds,
    }


def _show_progress(done: int, rounds: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == rounds else ""
        print(f"\rround {done} of {rounds}", end=end, file=sys.stderr, flush=True)


def _print(rows: list[dict[str, Any]]) -> None:
    table = [list(COLUMNS)] + [[_cell(row[name]) for name in COLUMNS] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells))
    total = sum(row["warm_ms"] for row in rows)
    print(f"{len(rows)} problems, {total:.4g} ms for all of them when warm")


def _cell(value: Any) -> str:
    if value is None:
        return "failed"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
