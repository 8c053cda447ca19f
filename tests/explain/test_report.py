"""analyze and what it reports."""

import math

import numpy as np
import pytest

from tether import Problem, consistent_start, gallery, solve_dae
from tether.analyze import analyze
from tether.gallery import raw_mechanisms as raw

MECHANISMS = [
    raw.double_pendulum(), raw.slider_crank(), raw.closed_chain(5), raw.closed_chain(10),
    raw.fekete_index_3(), raw.duplicated_pendulum(), raw.parallel_cranks(), raw.prescribed(2),
    raw.prescribed(3), raw.prescribed(4), raw.prescribed(5),
]


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1]


@pytest.mark.parametrize("problem", MECHANISMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("which", ["y0", "rough"])
def test_raw_mechanisms(problem, which):
    report = analyze(problem.fun, 0.0, getattr(problem, which))
    assert report.index == problem.index == report.structural_index
    assert report.dof == problem.dof == len(report.free)
    assert report.traced
    if not report.singular:
        assert report.local_index == problem.index
        assert report.agree
        assert len(report.constraints) == problem.constraints


@pytest.mark.parametrize("name", gallery.names("classic"))
def test_the_gallery_has_the_index_it_says(name):
    problem = gallery.get(name)
    report = analyze(problem.fun, problem.t_span[0], problem.y0, problem.yp0)
    assert report.traced
    assert report.index == report.local_index
    assert not report.singular
    # index 0 and 1 need no distinction in the gallery
    assert max(report.index, 1) == max(problem.index, 1)


def test_the_report_of_a_pendulum():
    report = analyze(pendulum, 0.0, [1.0, 0.0, 0.0, 0.0, 0.0])
    assert (report.index, report.structural_index, report.local_index) == (3, 3, 3)
    assert report.free == ("z", "w")
    assert [str(entry) for entry in report.hidden] == [
        "x*u + z*w = 0",
        "u**2 - lam*x**2 + w**2 - lam*z**2 - 9.81*z = 0",
    ]
    assert [(entry.equation, entry.order) for entry in report.hidden] == [(4, 1), (4, 2)]
    assert report.notes == ()
    assert str(report) == (
        "index 3 (structural 3, local 3): 5 equations\n"
        "2 free initial values, for example z, w\n"
        "hidden constraints, by equation (' for each differentiation)\n"
        "  4'   x*u + z*w = 0\n"
        "  4''  u**2 - lam*x**2 + w**2 - lam*z**2 - 9.81*z = 0\n"
        "run: reduced to index 1, projected onto 2 constraints in every step"
    )


@pytest.mark.parametrize("y0", [[0, -1, 0, 0, 0], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0]])
def test_special_starts_do_not_hide_the_index(y0):
    report = analyze(pendulum, 0.0, np.array(y0, float))
    assert (report.index, report.local_index, report.dof) == (3, 3, 2)
    assert len(report.free) == 2


@pytest.mark.parametrize("problem", MECHANISMS, ids=lambda problem: problem.name)
def test_a_report_fits_one_screen(problem):
    lines = str(analyze(problem.fun, 0.0, problem.rough)).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 79


def test_suggested_constraints_can_be_used():
    report = analyze(pendulum, 0.0, [1.0, 0.0, 0.0, 0.0, 0.0])
    position, velocity = report.constraints
    y = np.array([0.6, -0.7, 2.0, 1.0, 0.0])
    assert position(0.0, y) == pytest.approx(0.36 + 0.49 - 1)
    assert velocity(0.0, y) == pytest.approx(2 * (1.2 - 0.7))
    start = consistent_start(
        pendulum, 0.0, [0.6, -0.8, 1.0, 0.0, 0.0], fixed=[0, 1],
        constraints=[velocity, report.hidden[1]],
    )
    assert start.success
    assert start.y[0] * start.y[2] + start.y[1] * start.y[3] == pytest.approx(0.0, abs=1e-12)


def test_suggested_constraints_keep_the_differentiated_pendulum_in_place():
    raw_form = analyze(gallery.get("pend-i3").fun, 0.0, [1.0, 0.0, 0.0, 0.0, 0.0])
    problem = gallery.get("pend-i1")
    sol = solve_dae(problem.fun, (0.0, 1.0), problem.y0, constraints=raw_form.constraints)
    assert sol.success
    assert np.abs(sol.drift).max() < 1e-12


def test_constraints_take_other_arguments():
    def fun(t, y, yp, mass, length):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, mass * yp[2] + lam * x, mass * (yp[3] + 9.81) + lam * z,
                x * x + z * z - length**2]

    report = analyze(fun, 0.0, [1.1, 0, 0, 0, 0], args=(2.0, 1.1))
    assert "mass" in str(report.hidden[1])
    assert "args" not in str(report)
    assert report.constraints[0](0.0, [1.0, 0, 0, 0, 0]) == pytest.approx(-0.21)
    assert report.constraints[0](0.0, [1.0, 0, 0, 0, 0], 2.0, 1.0) == 0.0


def test_a_constraint_with_slopes_is_no_function_of_y():
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, (1 + x * x) * yp[2] + lam * x, yp[3] + lam * z + 9.81,
                x * x + z * z - 1]

    report = analyze(fun, 0.0, [1.0, 0.0, 0.0, 0.0, 0.0])
    assert "u'" in str(report.hidden[1])
    with pytest.raises(TypeError, match="not a function of t and y alone"):
        report.hidden[1](0.0, np.zeros(5))


def test_the_transistor_amplifier():
    problem = gallery.get("transamp")
    report = analyze(problem.fun, 0.0, problem.y0, problem.yp0)
    assert (report.index, report.structural_index, report.local_index) == (1, 0, 1)
    assert report.dof == 5
    assert [entry.equation for entry in report.hidden] == [0, 3, 6]
    assert all(abs(entry(0.0, problem.y0)) < 1e-15 for entry in report.hidden)
    assert "leading derivatives cancel between equations 0, 1" in report.notes
    assert report.how == "as written"


def test_global_index_where_the_linearised_system_is_singular():
    def fun(t, y, yp):
        return [y[0] - t * y[1] - math.sin(t), yp[0] - t * yp[1]]

    report = analyze(fun, 0.0, [1.0, 1.0])
    assert (report.index, report.local_index, report.dof) == (2, None, 0)
    assert not report.singular
    assert [str(entry) for entry in report.hidden] == ["y[1] + cos(t) = 0"]
    assert "the system linearised near the start is singular" in report.notes


# --- singular systems ---------------------------------------------------------------------------


def test_structurally_singular_systems_are_explained():
    def fun(t, y, yp):
        a, _, c = y
        return [yp[0] - a, a - 1.0, c - a]

    report = analyze(fun, 0.0, [1.0, 0.0, 0.0])
    assert report.singular
    assert report.index is None
    assert report.dependent == (0, 1)
    assert report.undetermined == ("y[1]",)
    assert "in no equation: y[1]" in report.notes
    assert "structurally singular: 2 equations (0, 1) for 1 variable (a)" in report.notes
    assert report.how.startswith("not possible")


def test_contradicting_equations_are_named():
    def fun(t, y, yp):
        a, b, c = y
        return [yp[0] - a - c, b + a - 1.0, b + a - 2.0]

    report = analyze(fun, 0.0, [1.0, 0.0, 0.0])
    assert report.singular
    assert report.dependent == (1, 2)


def test_repeated_algebraic_equations_are_named():
    report = analyze(lambda t, y, yp: [yp[0] + y[1], y[1] + y[2], 2 * y[1] + 2 * y[2]], 0.0,
                     [1.0, 0.0, 0.0])
    assert report.singular
    assert report.dependent == (1, 2)
    assert report.index is None


def test_redundant_constraints_are_named():
    report = analyze(raw.duplicated_pendulum().fun, 0.0, raw.duplicated_pendulum().y0)
    assert report.singular
    assert report.dependent == (4, 5)
    assert report.undetermined == ("lam", "mu")
    assert any("not unique" in note for note in report.notes)
    assert report.how.startswith("reduced to index 1")


def test_an_inconsistent_start_is_reported():
    report = analyze(pendulum, 0.0, np.zeros(5))
    assert report.index == 3
    assert any("no consistent start: equation 4" in note for note in report.notes)


def test_kinks_in_what_is_differentiated_are_reported():
    report = analyze(lambda t, y, yp: [yp[0] - y[1], y[0] - abs(t - 1.0)], 0.0, [1.0, 0.0])
    assert any("kinks" in note for note in report.notes)


# --- black boxes --------------------------------------------------------------------------------


def test_a_black_box_gets_the_local_answer():
    import ctypes

    number = ctypes.c_double(1.0)

    def fun(t, y, yp):
        number.value = y[0]
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81,
                number.value * x + z * z - 1]

    report = analyze(fun, 0.0, [1.0, 0.0, 0.0, 0.0, 0.0])
    assert not report.traced
    assert (report.index, report.structural_index, report.local_index) == (3, None, 3)
    assert report.dof == 2
    assert report.notes[0].startswith("not traced")
    assert "local" in str(report)
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="no pattern"):
        report.plot()


def test_problems_and_filling_functions_are_accepted():
    def fills(t, y, yp, out):
        out[0] = yp[0] - y[1]
        out[1] = y[0] - math.sin(t)

    assert analyze(fills, 0.0, [0.0, 1.0]).index == 2
    problem = Problem.semi_explicit(lambda t, x, z: z, lambda t, x, z: x - t)
    assert analyze(problem, 0.0, [0.0, 1.0]).index == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"names": ["a"]}, "names must be 5 strings"),
        ({"y0": [1.0, math.nan, 0, 0, 0]}, "y0"),
        ({"t0": math.inf}, "t0"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error):
    given = {"t0": 0.0, "y0": [1.0, 0.0, 0.0, 0.0, 0.0]} | arguments
    with pytest.raises(ValueError, match=error):
        analyze(pendulum, given.pop("t0"), given.pop("y0"), **given)


def test_names_can_be_given():
    report = analyze(pendulum, 0.0, [1.0, 0, 0, 0, 0], names=["a", "b", "c", "d", "e"])
    assert str(report.hidden[0]) == "a*c + b*d = 0"


def test_the_picture():
    pytest.importorskip("matplotlib").use("Agg")
    figure = analyze(pendulum, 0.0, [1.0, 0, 0, 0, 0]).plot()
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["x", "z", "u", "w", "lam"]
