"""Draw the picture that README and home page begin with: four problems of the gallery.

    python tools/site/overview.py docs/images/overview.png
"""

import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

from tether import gallery


def circuit(ax):
    sol = gallery.get("charge-pump").solve(rtol=1e-6)
    for name in ("v1", "v2", "v3", "vo"):
        ax.plot(sol.t * 1e6, sol[name], linewidth=1, label=name)
    ax.set(title="Circuit: a charge pump", xlabel="time, µs", ylabel="V")


def plant(ax):
    sol = gallery.get("distillation").solve(rtol=1e-6)
    trays = [name for name in sol.names if name.startswith("x")]
    colours = pyplot.cm.viridis(np.linspace(0, 0.9, len(trays)))
    for name, colour in zip(trays, colours, strict=True):
        ax.plot(sol.t, sol[name], color=colour, linewidth=1)
    ax.set(title="Plant: a distillation column", xlabel="time, min", ylabel="light component")


def mechanism(ax):
    problem = gallery.get("chain", links=12)
    times = np.linspace(*problem.t_span, 13)
    sol = problem.solve(rtol=1e-6, t_eval=times)
    colours = pyplot.cm.viridis(np.linspace(0, 0.9, len(times)))
    xs = np.array([sol[name] for name in sol.names if name.startswith("x")])
    zs = np.array([sol[name] for name in sol.names if name.startswith("z")])
    for x, z, colour in zip(xs.T, zs.T, colours, strict=True):
        ax.plot([0, *x], [0, *z], color=colour, linewidth=1.2)
    ax.set(title="Mechanism: a falling chain", xlabel="m", ylabel="m", aspect="equal")


def field(ax):
    problem = gallery.get("brusselator")
    times = np.linspace(*problem.t_span, 200)
    sol = problem.solve(rtol=1e-6, t_eval=times)
    values = np.array([sol[name] for name in sol.names if name.startswith("u")])
    ax.imshow(values, aspect="auto", origin="lower", extent=(*problem.t_span, 0, 1))
    ax.set(title="PDE: the Brusselator", xlabel="time", ylabel="place")


def main(path):
    figure, axes = pyplot.subplots(1, 4, figsize=(13, 2.9))
    for draw, ax in zip((circuit, plant, mechanism, field), axes, strict=True):
        draw(ax)
        ax.title.set_fontsize(10)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(sys.argv[1])
