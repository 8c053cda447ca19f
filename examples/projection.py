"""A Kepler orbit over a hundred revolutions, with and without its invariants.

    python examples/projection.py [picture.png]

The equations of motion keep energy and angular momentum; their numerical solution does not, and
the orbit slowly shrinks or grows. Named as invariants, both are kept at every step. After whole
revolutions the planet must be back where it started.
"""

import math
import sys

import numpy as np

from tether import solve_dae

ECCENTRICITY = 0.5
REVOLUTIONS = 100
# at the point closest to the sun; the semi-axis is 1 and the period 2 pi
START = [1 - ECCENTRICITY, 0.0, 0.0, math.sqrt((1 + ECCENTRICITY) / (1 - ECCENTRICITY))]


def orbit(t, y, yp):
    """Newton's equations for a planet at (x, z) with the velocity (u, w)."""
    x, z, u, w = y
    cube = math.hypot(x, z) ** 3
    return [yp[0] - u, yp[1] - w, yp[2] + x / cube, yp[3] + z / cube]


def energy(t, y):
    """Kinetic and potential energy."""
    x, z, u, w = y
    return 0.5 * (u * u + w * w) - 1 / math.hypot(x, z)


def momentum(t, y):
    """Angular momentum."""
    x, z, u, w = y
    return x * w - z * u


def solve(invariants):
    """Solve over all revolutions; print summary and distance from the start."""
    sol = solve_dae(orbit, (0.0, 2 * math.pi * REVOLUTIONS), START, rtol=1e-4, atol=1e-4,
                    invariants=invariants)
    print(sol)
    change = [quantity(0.0, sol.y[:, -1]) - quantity(0.0, START) for quantity in (energy, momentum)]
    print(f"  change   energy {change[0]:.1e}, angular momentum {change[1]:.1e}")
    print(f"  missed   the start by {np.hypot(*(sol.y[:2, -1] - START[:2])):.1e}\n")
    return sol


def draw(free, kept, picture):
    """Draw both orbits."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, sharex=True, sharey=True, layout="constrained",
                                   figsize=(9, 4))
    for axis, sol, title in zip(axes, (free, kept), ("no invariants", "energy and momentum kept"),
                                strict=True):
        axis.plot(sol.y[0], sol.y[1], linewidth=0.3)
        axis.plot(0, 0, "yo")
        axis.set(title=title, aspect="equal")
    figure.suptitle(f"Kepler orbit, {REVOLUTIONS} revolutions")
    figure.savefig(picture)
    print(f"  picture  {picture}")


def main(picture):
    """Solve twice and draw."""
    print("Without invariants")
    free = solve(None)
    print("With energy and angular momentum as invariants")
    kept = solve([energy, momentum])
    draw(free, kept, picture)


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    main(sys.argv[1] if len(sys.argv) > 1 else "projection.png")
