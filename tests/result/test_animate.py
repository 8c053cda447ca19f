"""Planar mechanisms in motion."""

import math

import numpy as np
import pytest

from tether import solve_dae


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1.0]


START = [1.0, 0.0, 0.0, 0.0, 0.0]
POINTS = [(0, 0), ("x", "z")]


def pictures(film):
    """Where rods and joints are in all pictures."""
    axis = film._fig.axes[0]
    for frame in film.new_frame_seq():
        film._func(frame)
        yield axis, [np.array(line.get_data()) for line in axis.lines]
    film._draw_was_started = True                    # it has been looked at


@pytest.mark.parametrize("options", [{"dense_output": True}, {}, {"t_eval": [0.0, 0.5, 1.0]}])
def test_a_rod_keeps_its_length(options):
    sol = solve_dae(pendulum, (0, 1), START, **options)
    film = sol.animate(POINTS, frames=12)
    seen = list(pictures(film))
    assert len(seen) == (3 if "t_eval" in options else 12)
    for _, (rod, joints, _) in seen:
        assert math.dist(*rod.T) == pytest.approx(1.0, abs=1e-5)
        np.testing.assert_array_equal(rod, joints)
    axis, (rod, _, trail) = seen[-1]
    assert rod[0, 1] == pytest.approx(sol["x"][-1], abs=1e-8)
    assert len(trail[0]) == len(sol.t) + 1
    assert axis.get_title(loc="left") == "t = 1"
    assert axis.get_aspect() == 1.0


def test_a_file(tmp_path):
    image = pytest.importorskip("PIL.Image")
    sol = solve_dae(pendulum, (0, 1), START, dense_output=True)
    sol.animate(POINTS, path=tmp_path / "swing.gif", frames=4, fps=10)
    with image.open(tmp_path / "swing.gif") as film:
        assert film.n_frames == 4
    with pytest.raises(ValueError, match=r"path must end in \.gif"):
        sol.animate(POINTS, path=tmp_path / "swing.mp4")


def test_links_and_functions():
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 1), [0.0], dense_output=True)

    def crank(t, y):
        return [(0.0, 0.0), (math.cos(y[0]), math.sin(y[0])), (2 * math.cos(y[0]), 0.0)]

    film = sol.animate(crank, links=[(2, 0)], frames=5, trail=False)
    for frame, (_, (bar, joints, trail)) in enumerate(pictures(film)):
        assert bar[0] == pytest.approx([2 * math.cos(frame / 4), 0.0])
        assert joints.shape == (2, 3)
        assert trail.size == 0


def test_a_single_point_backwards():
    sol = solve_dae(pendulum, (1, 0), START)
    seen = list(pictures(sol.animate([("x", "z")], frames=3)))
    assert all(len(lines) == 2 for _, lines in seen)
    assert len(seen[-1][1][1][0]) == len(sol.t) + 1


@pytest.mark.parametrize(("arguments", "error", "words"), [
    (([],), ValueError, "list of pairs"),
    ((["xz"],), ValueError, "list of pairs"),
    (([("x",)],), ValueError, "list of pairs"),
    (([("x", "q")],), KeyError, "no unknown called 'q'"),
    (([("x", None)],), TypeError, "names of unknowns and of fixed"),
    ((lambda t, y: [1.0],), ValueError, "list of pairs"),
])
def test_wrong_points_raise(arguments, error, words):
    sol = solve_dae(pendulum, (0, 0.1), START)
    with pytest.raises(error, match=words):
        sol.animate(*arguments)


@pytest.mark.parametrize(("options", "words"), [
    ({"links": [(0, 2)]}, "links must be pairs of points from 0 to 1"),
    ({"links": [(0,)]}, "links must be"), ({"frames": 0}, "frames"), ({"frames": 2.5}, "frames"),
    ({"fps": 0}, "fps"), ({"fps": math.inf}, "fps"),
])
def test_wrong_options_raise(options, words):
    sol = solve_dae(pendulum, (0, 0.1), START)
    with pytest.raises(ValueError, match=words):
        sol.animate(POINTS, **options)


def test_nothing_to_show():
    sol = solve_dae(pendulum, (0, 0.1), START, t_eval=[])
    with pytest.raises(ValueError, match="nothing to show"):
        sol.animate(POINTS)
