"""What a call of `solve_dae` costs besides its steps, once its plan is known, in instructions.

    python -m benchmarks.call [TREE ...] [--cases NAME,...]

Counts the instructions of calls over a short interval (Valgrind's callgrind). With the folders of
other trees, built in place, it counts theirs as well, and gives the ratio to the first of them.
Counts vary by less than a hundredth from run to run, on a busy machine too, where times vary by a
tenth.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CALLS = 50
WARM = 30                              # calls before: plans, libraries and the trust in traces


def oscillator(t, y, yp):
    return [yp[0] - y[1], yp[1] + y[0]]


def robertson(t, y, yp):
    a, b, c = y
    return [yp[0] + 0.04 * a - 1e4 * b * c, yp[1] - 0.04 * a + 1e4 * b * c + 3e7 * b * b,
            a + b + c - 1.0]


def pendulum(t, y, yp):
    x, z, u, w, tension = y
    return [yp[0] - u, yp[1] - w, yp[2] + tension * x, yp[3] + tension * z + 9.81,
            x * x + z * z - 1.0]


def driven(t, y, yp, stiffness, damping):
    return [yp[0] - y[1], yp[1] + stiffness * y[0] + damping * y[1]]


def with_closure(stiffness):
    def spring(t, y, yp):
        return [yp[0] - y[1], yp[1] + stiffness * y[0]]

    return spring


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def residual(self, t, y, yp):
        return [yp[0] - y[1], yp[1] + self.stiffness * y[0]]


def crossing(t, y, yp):
    return y[0] + 2.0


def circle(t, y):
    return y[0] ** 2 + y[1] ** 2


# Arguments and options of `solve_dae` by the number of the call.
SPAN = (0.0, 0.01)
UP, DOWN = [1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]
CASES: dict[str, Callable[[int], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "oscillator": lambda i: ((oscillator, SPAN, UP), {}),
    "robertson": lambda i: ((robertson, SPAN, [1.0, 0.0, 0.0]), {}),
    "pendulum": lambda i: ((pendulum, SPAN, DOWN), {}),
    "yp0 given": lambda i: ((oscillator, SPAN, UP, [0.0, -1.0]), {}),
    "args": lambda i: ((driven, SPAN, UP), {"args": (1.0 + i * 1e-9, 0.1)}),
    "closure": lambda i: ((with_closure(2.0), SPAN, UP), {}),
    "attribute": lambda i: ((Spring(2.0).residual, SPAN, UP), {}),
    "other closure": lambda i: ((with_closure(1.0 + i * 1e-9), SPAN, UP), {}),
    "t_eval": lambda i: ((oscillator, SPAN, UP), {"t_eval": [0.0, 0.005, 0.01]}),
    "dense": lambda i: ((oscillator, SPAN, UP), {"dense_output": True}),
    "event": lambda i: ((oscillator, SPAN, UP), {"events": crossing}),
    "invariant": lambda i: ((oscillator, SPAN, UP), {"invariants": circle}),
    "called": lambda i: ((oscillator, SPAN, UP), {"trace": "never"}),
    "called with args": lambda i: ((driven, SPAN, UP), {"trace": "never", "args": (1.0, 0.1)}),
}


def solve_all(names: list[str]) -> None:
    """Make the calls of all cases; `getppid` marks where those begin and end that count."""
    from tether import solve_dae

    for name in names:
        steps = 0
        for i in range(WARM + CALLS):
            if i == WARM:
                os.getppid()
            arguments, options = CASES[name](i)
            steps = solve_dae(*arguments, **options).stats.steps
        os.getppid()
        print(steps)


def costs(tree: Path, names: list[str]) -> list[tuple[float, int]]:
    """Return the instructions of one call, and its steps, of every case."""
    places = os.pathsep.join([str(tree / "src"), str(ROOT)])
    settings = {**os.environ, "PYTHONPATH": places, "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as folder:
        counter = ["valgrind", "--tool=callgrind", "--dump-before=getppid",
                   f"--callgrind-out-file={folder}/out"]
        command = [*counter, sys.executable, __file__, "--solve", "--cases", ",".join(names)]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
        counts = [_total(Path(folder, f"out.{2 * k + 2}")) for k in range(len(names))]
    steps = map(int, done.stdout.split())
    return [(count / CALLS, number) for count, number in zip(counts, steps, strict=True)]


def _total(dump: Path) -> int:
    """Read the instructions since the dump before."""
    words = next(line for line in dump.read_text().splitlines() if line.startswith("totals:"))
    return int(words.split()[1])


def main() -> None:
    """Print a table, one line for a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path, help="others, built in place")
    parser.add_argument("--cases", default=",".join(CASES), help="names, with commas between them")
    parser.add_argument("--solve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.cases.split(",")
    if options.solve:
        solve_all(names)
        return
    found = [costs(tree.resolve(), names) for tree in [*options.trees, ROOT]]
    print("thousands of instructions of a call (steps of it)")
    logs = []
    for k, name in enumerate(names):
        words = "".join(f"{of_tree[k][0] / 1e3:9.1f} ({of_tree[k][1]:2d})" for of_tree in found)
        ratio = found[-1][k][0] / found[0][k][0]
        logs.append(math.log(ratio))
        print(f"{name:18s}{words}{ratio:9.3f}")
    print(f"geometric mean of the ratios {math.exp(sum(logs) / len(logs)):.3f}")


if __name__ == "__main__":
    main()
