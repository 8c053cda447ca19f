"""A pendulum as physics gives it: analysed, solved, summarised and drawn.

    python examples/pendulum.py [picture.png]

Newton's law for a bob at (x, z) with the velocity (u, w), the force of the rod as an unknown, and
the length of the rod as an equation: a system of index 3. Nothing in it says how large the force
is, except that the bob has to stay on its circle.
"""

import sys

from tether import analyze, solve_dae

G, L = 9.80665, 1.1
START = [L, 0.0, 0.0, 0.0, 0.0]


def pendulum(t, y, yp):
    """Equations of motion of a unit mass, and the rod."""
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G, x * x + z * z - L * L]


def energy(t, y):
    """Kinetic and potential energy: it keeps its starting value."""
    _, z, u, w, _ = y
    return (u * u + w * w) / 2 + G * z


def lowest_point(t, y, yp):
    """Zero when the pendulum hangs straight down."""
    return y[0]


def main(picture):
    """Analyse, solve, print, draw."""
    print(analyze(pendulum, 0.0, START), "\n")
    sol = solve_dae(pendulum, (0.0, 10.0), START, invariants=energy, events=lowest_point,
                    rtol=1e-6, atol=1e-6, units=["m", "m", "m/s", "m/s", "N/m"])
    print(sol)
    x, z = sol.y[:2]
    print(f"  rod      length off by at most {abs((x**2 + z**2) ** 0.5 - L).max():.1e}")
    figure = sol.plot(labels=["x [m]", "z [m]", "x' [m/s]", "z' [m/s]", "force/length [N/m]"])
    figure.suptitle("Pendulum, released from the horizontal")
    figure.savefig(picture)
    print(f"  picture  {picture}")


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    main(sys.argv[1] if len(sys.argv) > 1 else "pendulum.png")
