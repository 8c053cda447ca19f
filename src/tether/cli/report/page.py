"""The page: one section after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import tether
from tether.cli.report.assets import SCRIPT, STYLE
from tether.cli.report.curves import drift_charts, history_charts, solution_charts
from tether.cli.report.equations import equations, hidden_constraints
from tether.cli.report.happenings import events_table, jumps_table, restarts
from tether.cli.report.incidence import incidence_picture
from tether.cli.report.markup import escape, number, paragraphs, preformatted, section, table

if TYPE_CHECKING:
    from tether.cli.source import Source
    from tether.explain.report import IndexReport
    from tether.result.solution import DaeResult

__all__ = ["Story", "write_page"]

# Nothing is loaded from outside, whatever a name may contain.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Story:
    """The contents of the page."""

    source: Source
    sol: DaeResult
    report: IndexReport
    names: list[str]
    units: list[str]


def write_page(story: Story) -> str:
    """Return the page as text."""
    source, sol, names = story.source, story.sol, story.names
    title = escape(source.title or source.name)
    body = [
        f"<header><h1>{title}</h1>", _opening(story), "</header>",
        section("States", _states(story)),
        section("Solution", solution_charts(sol, names, story.units)),
        section("Index", preformatted(str(story.report)),
                incidence_picture(story.report, names)),
        section("Equations", equations(source, names), hidden_constraints(story.report)),
        section("Steps", history_charts(sol)),
        section("Drift off the constraints", drift_charts(sol)),
        section("Switches, jumps and events", restarts(sol), jumps_table(sol, names),
                events_table(sol)),
        section("Start", _start(story)),
        section("Statistics", _statistics(sol)),
        f"<footer>Written by tether {escape(tether.__version__)}.</footer>",
    ]
    return "\n".join([
        "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>", f"<style>{STYLE}</style>", "</head>", "<body>",
        *(part for part in body if part), f"<script>{SCRIPT}</script>", "</body>", "</html>", "",
    ])


def _opening(story: Story) -> str:
    source, sol = story.source, story.sol
    state = "success" if sol.success else "failed"
    parts = [
        paragraphs(source.description.split("\n\n")[:1] if source.description else []),
        f'<p class="message {state}">{"Success" if sol.success else "Failed"}: '
        f"{escape(sol.message)}</p>",
        paragraphs(sol.warnings, "warning"),
        paragraphs([f"t from {number(source.t_span[0])} to {number(source.t_span[1])}; "
                    f"{len(story.names)} unknowns; {sol.how}."]),
    ]
    if not sol.success and sol.diagnosis is not None:
        parts.append(preformatted(str(sol.diagnosis)))
    return "\n".join(part for part in parts if part)


def _states(story: Story) -> str:
    sol = story.sol
    if not len(sol.t):
        return paragraphs(["The run has no points."])
    slopes = {j for _, j, order in story.report.incidence.entries if order}
    known = bool(story.report.incidence.entries)
    head = ["name", "start", "end", "smallest", "largest"]
    rows = [
        [name, float(y[0]), float(y[-1]), float(y.min()), float(y.max())]
        for name, y in zip(story.names, sol.y, strict=True)
    ]
    if known:
        head.insert(1, "kind")
        for j, row in enumerate(rows):
            row.insert(1, "differential" if j in slopes else "algebraic")
    if any(story.units):
        head.insert(1, "unit")
        for row, unit in zip(rows, story.units, strict=True):
            row.insert(1, unit)
    return table(head, rows)


def _start(story: Story) -> str:
    start = story.sol.start
    moved = [[story.names[j], change] for j, change in start.moved.items()
             if j < len(story.names)]
    changes = table(["unknown", "changed by"], moved) if moved else ""
    return paragraphs([f"{start.message[:1].upper()}{start.message[1:]}."]) + changes


def _statistics(sol: DaeResult) -> str:
    stats = sol.stats
    rows: list[list[str | float]] = [
        ["steps", stats.steps], ["residuals", stats.nfev], ["Jacobians", stats.njev],
        ["factorisations", stats.nlu], ["Newton iterations", stats.iterations],
        ["error test failures", stats.error_test_failures],
        ["convergence failures", stats.convergence_failures],
        ["projections", stats.projections], ["largest drift", stats.worst_drift],
        ["points at which the trace was checked", stats.checks],
        ["seconds", stats.seconds],
    ]
    return table([], rows)
