"""Results bit for bit: what a change of the house must not change.

    python -m benchmarks.bitwise before.json      # at the commit before
    python -m benchmarks.bitwise after.json before.json

Solves the gallery, mechanisms as first written down and a few systems that switch, each in several
ways, and writes a digest of every result, or what was raised. With a second file it lists the
differences.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tether import solve_dae
from tether.gallery import get, names, raw_mechanisms

WAYS: dict[str, dict[str, Any]] = {
    "auto": {},
    "dense": {"dense_output": True, "rtol": 1e-4},
    "given": {"form": "given"},
    "called": {"trace": "never"},
    "form2": {"form": 2},
}
MOST_STEPS = 3000


def cases() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield name, arguments and options of `solve_dae`."""
    for name in names():
        problem = get(name)
        yield name, (problem.fun, problem.t_span, problem.y0), {"atol": problem.atol(1e-6)}
    builders = (
        raw_mechanisms.double_pendulum, raw_mechanisms.slider_crank, raw_mechanisms.closed_chain,
        raw_mechanisms.duplicated_pendulum, raw_mechanisms.parallel_cranks,
        raw_mechanisms.prescribed,
    )
    for build in builders:
        mechanism = build()
        yield mechanism.name, (mechanism.fun, (0.0, mechanism.t_end), mechanism.y0), {}
        yield f"{mechanism.name}, rough", (
            mechanism.fun, (0.0, mechanism.t_end), mechanism.rough
        ), {}
    yield from switching()


def switching() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield systems with events, breaks, stops and modes."""

    def ball(t, y, yp):
        return [yp[0] - y[1], yp[1] + 9.81]

    def floor(t, y, yp):
        return y[0]

    def bounce(t, y, yp):
        return [0.0, -0.8 * y[1]]

    floor.apply, floor.direction = bounce, -1

    def rectifier(t, y, yp):
        return [yp[0] + y[0] - y[1], min(y[1], y[1] - math.sin(5 * t))]

    def bob(t, y, yp):
        x, z, u, w, tension = y
        return [yp[0] - u, yp[1] - w, yp[2] + tension * x, yp[3] + tension * z + 9.81,
                min(tension, 1 - x * x - z * z)]

    def relay(t, y, yp):
        return [yp[0] + (y[0] if t < 0.5 else 2 * y[0] - 1)]

    yield "ball", (ball, (0.0, 2.0), [1.0, 0.0]), {"events": floor}
    yield "rectifier", (rectifier, (0.0, 3.0), [1.0, 0.0]), {}
    yield "bob", (bob, (0.0, 0.5), [0.6, 0.0, 0.0, 0.0, 0.0]), {}
    yield "relay", (relay, (0.0, 1.0), [1.0]), {"t_breaks": [0.5]}


def digest(arguments: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
    """Solve and return a digest, with the number of steps, the status and all messages."""
    try:
        sol = solve_dae(*arguments, max_steps=MOST_STEPS, **options)
    except Exception as error:
        return [type(error).__name__, str(error)]
    content = hashlib.sha256()
    for part in (sol.t, sol.y, sol.yp, sol.drift, sol.start.y, sol.start.yp):
        if part is not None:
            content.update(np.ascontiguousarray(part, float).tobytes())
    if sol.sol is not None:
        for t in np.linspace(sol.t[0], sol.t[-1], 17):
            content.update(np.ascontiguousarray(sol.sol(t)[0]).tobytes())
    counts = [sol.stats.steps, sol.stats.nfev, sol.stats.njev, sol.stats.nlu]
    words = [sol.message, sol.how, str(sol.start), *sol.warnings]
    return [content.hexdigest()[:16], sol.status.name, counts, words]


def main() -> None:
    """Write the digests and list the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("before", type=Path, nargs="?")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {
        f"{name} [{way}]": digest(arguments, {**extra, **more})
        for name, arguments, extra in cases() for way, more in WAYS.items()
    }
    options.output.write_text(json.dumps(found, indent=1))
    if options.before is None:
        return
    before = json.loads(options.before.read_text())
    different = [name for name in found if found[name] != before.get(name)]
    for name in different:
        print(f"{name}:\n  {before.get(name)}\n  {found[name]}")
    print(f"{len(found)} results, {len(different)} different")


if __name__ == "__main__":
    main()
