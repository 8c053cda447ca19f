"""A pendulum in Cartesian coordinates, solved, summarised and drawn.

    python examples/pendulum.py [picture.png]

The rod keeps x^2 + z^2 = L^2. Differentiated twice, this becomes an equation for the tension
lambda: an index-1 system of four differential equations and one algebraic equation.
"""

import sys

from tether import solve_dae

G, L = 9.80665, 1.1


def pendulum(t, y, yp):
    """Equations of motion, and the second derivative of the rod's constraint."""
    x, z, u, w, lam = y
    return [
        yp[0] - u,
        yp[1] - w,
        yp[2] + lam * x,
        yp[3] + lam * z + G,
        u * u + w * w - lam * (x * x + z * z) - G * z,
    ]


def lowest_point(t, y, yp):
    """Zero when the pendulum hangs straight down."""
    return y[0]


def main(picture):
    """Solve, print, draw."""
    sol = solve_dae(pendulum, (0.0, 10.0), [L, 0.0, 0.0, 0.0, 0.0], events=lowest_point,
                    rtol=1e-8, atol=1e-8, dense_output=True)
    print(sol)
    x, z = sol.y[:2]
    print(f"  rod      length off by at most {abs((x**2 + z**2) ** 0.5 - L).max():.1e}")
    figure = sol.plot(labels=["x", "z", "x'", "z'", "tension"])
    figure.suptitle("Pendulum, released from the horizontal")
    figure.savefig(picture)
    print(f"  picture  {picture}")


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    main(sys.argv[1] if len(sys.argv) > 1 else "pendulum.png")
