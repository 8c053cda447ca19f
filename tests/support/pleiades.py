"""Pleiades, from the Test Set for IVP Solvers: seven stars in a plane, 28 unknowns, an ODE."""

import numpy as np

START = np.array([
    3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0, 3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0,
    0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5, 0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0,
])
SPAN = (0.0, 3.0)
# positions at the end, as the Test Set gives them
END = np.array([
    0.3706139143970502, 3.237284092057233, -3.222559032418324, 0.6597091455775310,
    0.3425581707156584, 1.562172101400631, -0.7003092922212495, -3.943437585517392,
    -3.271380973972550, 5.225081843456543, -2.590612434977470, 1.198213693392275,
    -0.2429682344935824, 1.091449240428980,
])


def pleiades(t, z, zp):
    """Residual: positions x and y of the stars, and their velocities."""
    x, y = z[:7], z[7:14]
    result = [zp[i] - z[14 + i] for i in range(14)]
    for i in range(7):
        across = upwards = 0.0
        for j in range(7):
            if j != i:
                cubed = ((x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2) ** 1.5
                across += (j + 1) * (x[j] - x[i]) / cubed
                upwards += (j + 1) * (y[j] - y[i]) / cubed
        result += [zp[14 + i] - across, zp[21 + i] - upwards]
    return result
