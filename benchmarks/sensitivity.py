"""Derivatives of solutions: what they cost, how exact they are, and how peers do.

    python -m benchmarks.sensitivity [--rounds 40] [--quick] [--parts cost,peers,accuracy]

Three tables: derivatives over a plain solution of the same problem, time against correct digits of
dy/dp for tether and its peers, and the errors where events, impacts, switches and friction are
differentiated as well. BLAS has one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import sensitivity_models as models
from benchmarks import sensitivity_peers as peers
from benchmarks.curves import common_levels, monotone_curve
from benchmarks.measure import conditions
from benchmarks.sensitivity_models import Model
from benchmarks.symbolic import NotApplicable
from tether import gradient, solve_dae, vjp

RESULTS = Path(__file__).parent / "results"
COST_TOLERANCES = (1e-4, 1e-6, 1e-8)
TOLERANCES = (1e-4, 1e-6, 1e-8)
TIGHT = 1e-11
BUDGET = 4.0               # seconds for one case over all rounds
SLOT = 0.005               # seconds in one round
WARM, LONG = 20, 0.5       # runs before, in which plans are made, and seconds of them
SHIFTS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)      # of a parameter, for differences
FORWARD_LIMIT, ADJOINT_LIMIT = 3.0, 5.0


@dataclass(eq=False)
class Case:
    """One way to compute something, and its best time."""

    call: Callable[[], Any]
    seconds: float = math.inf
    spent: float = 0.0

    def take_slot(self) -> None:
        """Run for a slot, once at least."""
        left = SLOT
        while left > 0.0 and self.spent < BUDGET:
            begin = time.process_time()
            self.call()
            elapsed = time.process_time() - begin
            self.seconds = min(self.seconds, elapsed)
            self.spent += elapsed
            left -= elapsed


def interleave(cases: list[Case], rounds: int) -> None:
    """Give every case a slot in each round."""
    for case in cases:
        begin = time.process_time()
        for _ in range(WARM):
            case.call()
            if time.process_time() - begin > LONG:
                break
    for _ in range(rounds):
        for case in cases:
            case.take_slot()


# --- what derivatives cost ----------------------------------------------------


def cost(rounds: int) -> list[str]:
    """Ratios to one solution."""
    rows, cases = [], []
    for make in models.COST:
        for rtol in COST_TOLERANCES:
            few, many = make(), make().many()
            calls = [
                _solve(few, rtol), _forward(few, rtol), _solve(many, rtol),
                _vjp(many, rtol), _gradient(many, rtol),
            ]
            row = [Case(call) for call in calls]
            rows.append((few.name, rtol, row, calls[0]()))
            cases += row
    interleave(cases, rounds)
    lines = [
        "| problem | rtol | steps | residuals | solution, ms | 10 forward, ms | ratio "
        "| 100 by `vjp`, ms | ratio | 100 by `gradient`, ms | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    beyond = []
    for name, rtol, (few, forward, many, pulled, whole), sol in rows:
        for label, ratio, limit in (
            ("forward", forward.seconds / few.seconds, FORWARD_LIMIT),
            ("`vjp`", pulled.seconds / many.seconds, ADJOINT_LIMIT),
            ("`gradient`", whole.seconds / many.seconds, ADJOINT_LIMIT),
        ):
            if ratio > limit:
                beyond.append(f"{name} at {rtol:g}, {label} ({ratio:.2f})")
        lines.append(
            f"| {name} | {rtol:g} | {sol.stats.steps} | {sol.nfev} | {1e3 * few.seconds:.3f} "
            f"| {1e3 * forward.seconds:.3f} | {forward.seconds / few.seconds:.2f} "
            f"| {1e3 * pulled.seconds:.3f} | {pulled.seconds / many.seconds:.2f} "
            f"| {1e3 * whole.seconds:.3f} | {whole.seconds / many.seconds:.2f} |"
        )
    return [*lines, "", f"Beyond the limits: {'; '.join(beyond) or 'none'}."]


def _solve(model: Model, rtol: float) -> Callable[[], Any]:
    keywords = peers.options(model, rtol)
    return lambda: solve_dae(model.fun, model.t_span, model.y0, model.yp0, **keywords)


def _forward(model: Model, rtol: float, **options: bool) -> Callable[[], Any]:
    keywords = peers.options(model, rtol) | {"sensitivity": "args"}
    keywords["options"] = keywords.get("options", {}) | options
    return lambda: solve_dae(model.fun, model.t_span, model.y0, model.yp0, **keywords)


def _vjp(model: Model, rtol: float) -> Callable[[], Any]:
    return peers.tether_adjoint(model, rtol)


def _gradient(model: Model, rtol: float) -> Callable[[], Any]:
    keywords = peers.options(model, rtol)

    def loss(sol: Any) -> Any:
        return sol.y[0, -1]

    return lambda: gradient(loss, model.fun, model.t_span, model.y0, model.yp0, **keywords)


# --- against peers ------------------------------------------------------------


def digits(found: np.ndarray, reference: np.ndarray, size: np.ndarray) -> float:
    """Correct digits of the worst derivative, on the scale of the largest of its unknown."""
    scale = np.abs(reference * size).max(axis=1, keepdims=True)
    error = np.abs((found - reference) * size) / scale
    worst = float(error.max())
    return -math.log10(worst) if worst > 0.0 else 16.0


def against_peers(rounds: int) -> list[str]:
    """Time against digits."""
    lines = []
    for make in (models.robertson, models.akzo, lambda: models.andrews(1)):
        model = make()
        size = peers.sizes(model.p)
        reference, tight = tightest(peers.casadi_forward, model)
        own, own_tight = tightest(peers.tether_forward, model)
        for kind, adapters in (("forward", peers.FORWARD), ("adjoint", peers.ADJOINT)):
            target = reference if kind == "forward" else reference[:1]
            if kind == "forward":
                agreed = digits(own, reference, size)
            lines += ["", f"### {model.name}, {len(model.p)} parameters, {kind}", ""]
            lines += _race(model, adapters, target, rounds)
        lines += [
            "", f"Reference: casadi at rtol {tight:g}; tether at {own_tight:g} agrees to "
            f"{agreed:.1f} digits.",
        ]
    return [*lines, "", *high_index()]


def high_index() -> list[str]:
    """What peers say to index 3."""
    lines = ["| index 3, forward at 1e-06 | andrews-i3 | pendulum |", "|---|---|---|"]
    for name, adapter in peers.FORWARD.items():
        cells = []
        for model in (models.andrews(3), models.pendulum()):
            with silence():
                try:
                    finite = bool(np.isfinite(adapter(model, 1e-6)()).all())
                    cells.append("solved" if finite else "not finite")
                except (NotApplicable, RuntimeError) as error:
                    cells.append(_reason(error))
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return lines


def tightest(adapter: peers.Adapter, model: Model) -> tuple[np.ndarray, float]:
    """Derivatives at the tightest tolerance at which a solver runs."""
    for rtol in (TIGHT, 1e-10, 1e-9):
        with silence(), contextlib.suppress(RuntimeError):
            return adapter(model, rtol)(), rtol
    raise RuntimeError(f"no reference for {model.name}")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keep what C libraries print out of sight."""
    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    try:
        yield
    finally:
        for place, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, place)
            os.close(copy)
        os.close(sink)


def _race(
    model: Model, adapters: dict[str, peers.Adapter], reference: np.ndarray, rounds: int
) -> list[str]:
    size = peers.sizes(model.p)
    found: dict[tuple[str, float], tuple[Case, float] | str] = {}
    for name, adapter in adapters.items():
        for rtol in TOLERANCES:
            try:
                with silence():
                    run = adapter(model, rtol)
                    found[name, rtol] = Case(run), digits(run(), reference, size)
            except NotApplicable as reason:
                found[name, rtol] = _reason(reason)
            except RuntimeError as error:
                found[name, rtol] = _reason(error)
    interleave([entry[0] for entry in found.values() if isinstance(entry, tuple)], rounds)
    lines = [
        "| | " + " | ".join(f"{rtol:g}: ms | digits" for rtol in TOLERANCES)
        + " | time over tether's at equal digits |",
        "|---|" + "---|---|" * len(TOLERANCES) + "---|",
    ]
    curves: dict[str, Any] = {}
    failures: dict[str, dict[str, None]] = {}
    for name in adapters:
        cells, runs = [], []
        for rtol in TOLERANCES:
            entry = found[name, rtol]
            if isinstance(entry, str):
                cells += ["-", "-"]
                failures.setdefault(name, {})[entry] = None      # each reason once, in order
                continue
            cells += [f"{1e3 * entry[0].seconds:.2f}", f"{entry[1]:.1f}"]
            runs.append((entry[1], entry[0].seconds))
        if len(runs) > 1:
            curves[name] = monotone_curve([a for a, _ in runs], [b for _, b in runs])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {_ratio(curves, name)} |")
    for name, reasons in failures.items():
        lines += ["", f"Without a result, {name}: {'; '.join(reasons)}."]
    return lines


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    text = next((line for line in lines if "returned" in line), lines[0])
    return text.rpartition(": ")[2].removesuffix(" Consult IDAS documentation.").rstrip(".")


def _ratio(curves: dict[str, Any], name: str) -> str:
    if name == "tether":
        return "1"
    if name not in curves or "tether" not in curves:
        return "-"
    one, own = curves[name], curves["tether"]
    levels = common_levels(one, own)
    if not levels:
        return "no digits in common"
    logs = [math.log(one.seconds_at(x) / own.seconds_at(x)) for x in levels]
    return f"{math.exp(sum(logs) / len(logs)):.1f}"


# --- accuracy -----------------------------------------------------------------


def accuracy() -> list[str]:
    """Errors of derivatives at 1e-8."""
    lines = [
        "| problem | parameters | steps | relative error at 1e-8, worst parameter | at 1e-10 "
        "| tested, at 1e-8 | its steps | differences doubtful by | adjoint minus forward |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for make in models.HARD:
        model = make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reference, doubt = difference_reference(model)
            runs = [_forward(model, rtol)() for rtol in (1e-8, 1e-10)]
            runs.append(_forward(model, 1e-8, sensitivity_test=True)())
            _, pullback = vjp(
                model.fun, model.t_span, model.y0, model.yp0, **peers.options(model, 1e-8)
            )
        ahead = runs[0].sens[:, :, -1]
        back = pullback(np.eye(len(model.y0))[:, :, None]).T
        gap = worst(back, ahead)
        errors = [worst(run.sens[:, :, -1], reference) for run in runs]
        lines.append(
            f"| {model.name} | {len(model.p)} | {runs[0].stats.steps} | "
            + " | ".join(f"{error:.1e}" for error in errors)
            + f" | {runs[-1].stats.steps} | {doubt:.0e} | {gap:.0e} |"
        )
    return lines


def worst(found: np.ndarray, reference: np.ndarray) -> float:
    """Largest error by a parameter, over the largest derivative by it."""
    error = np.abs(found - reference).max(axis=1) / np.abs(reference).max(axis=1)
    return float(error.max())


def difference_reference(model: Model) -> tuple[np.ndarray, float]:
    """Differences of fourth order of tight runs, and by how much two step sizes differ."""
    found = []
    doubts = []
    for j, size in enumerate(peers.sizes(model.p)):
        tries = [_differences(model, j, share * size) for share in SHIFTS]
        scale = np.abs(tries[-1]).max()
        gaps = [np.abs(a - b).max() / scale for a, b in itertools.pairwise(tries)]
        best = int(np.nanargmin(gaps))
        found.append(tries[best + 1])
        doubts.append(gaps[best])
    return np.array(found), max(doubts)


def _differences(model: Model, j: int, h: float) -> np.ndarray:
    keywords = peers.options(model, TIGHT)

    def end(shift: int) -> np.ndarray:
        p = model.p.copy()
        p[j] += shift * h
        keywords["args"] = (p,)
        sol = solve_dae(model.fun, model.t_span, model.y0, model.yp0, **keywords)
        return sol.y[:, -1] if sol.success else np.full(len(model.y0), np.nan)

    return (end(-2) - 8 * end(-1) + 8 * end(1) - end(2)) / (12 * h)


# --- the page -----------------------------------------------------------------

COST_WORDS = f"""\
Ten parameters forward (`sensitivity="args"`), and the gradient of one end value by a hundred
(`vjp`, `gradient`), each over a solution of the same equations with the same arguments. Limits:
{FORWARD_LIMIT:g} and {ADJOINT_LIMIT:g}. Derivatives take the steps of the solution. The hundred are
ten shares of each of the ten. Plans are known. All times here are the least processor times of
interleaved rounds."""

PEER_WORDS = """\
All ten derivatives of all differential unknowns at the end (forward), and the gradient of the first
unknown there (adjoint). Digits are those of the worst derivative, each taken times its parameter
and on the scale of the largest of the same unknown. The last column is the time over that of tether
at equal digits, the geometric mean over whole and half digits that both reach. casadi gets symbols
in semi-explicit form and consistent derivatives at the start; its forward method keeps the errors
of the derivatives within tolerances. pydiffsol gets the equations as text; scipy solves the
equations with the algebraic unknown put in, once more for each parameter, with steps of
sqrt(rtol). Set-up is not timed.

Peers take no index above 1: andrews stands here with its constraints differentiated by hand, and
what they answer to index 3 is in the last lines. casadi differentiates through `if_else` as if the
time of the switch were fixed: for x' = -x + (p0 if t < p1 else 0) its derivative by p1 is 0, where
tether's is right. casadi calls its events experimental; pydiffsol goes through events with resets
that are written in its text: for a ball that bounces twice, at 1e-8, to four digits."""

ACCURACY_WORDS = f"""\
Derivatives of all unknowns at the end, multipliers among them, by all parameters: place of a wall,
time of a switch, restitution, friction and masses. For each parameter the largest error over the
largest derivative; the worst parameter counts. atol is rtol times the scale of the unknowns.
Tested runs (`options={{"sensitivity_test": True}}`) are repeated with shorter steps where
derivatives need them, until all steps are within the tolerances or shorter ones are no use.
Reference: differences of fourth order of runs at {TIGHT:g}, and by how much two step sizes of
them differ. The last column compares the adjoint with the forward method at 1e-8, likewise."""


def main() -> None:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="interleaved rounds")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    parser.add_argument("--parts", default="cost,peers,accuracy", help="which tables")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder to write into")
    arguments = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":      # it is read when NumPy is loaded
        settings = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.sensitivity", *sys.argv[1:]]
        os.execve(sys.executable, command, settings)
    rounds = 3 if arguments.quick else arguments.rounds
    parts = arguments.parts.split(",")
    text = ["# Derivatives of solutions", "", conditions()]
    if "cost" in parts:
        text += ["", "## Cost", "", COST_WORDS, "", *cost(rounds)]
    if "peers" in parts:
        text += ["", "## Peers", "", PEER_WORDS, *against_peers(max(rounds // 4, 3))]
    if "accuracy" in parts:
        text += ["", "## Accuracy", "", ACCURACY_WORDS, "", *accuracy()]
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "sensitivity.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
