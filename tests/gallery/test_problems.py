"""All problems of the gallery: what they say about themselves, their references, their runs."""

import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import gallery_references

from tether import analyze, gallery
from tether.gallery.page import draw, pages

ROOT = Path(__file__).parents[2]
NAMES = gallery.names()
FURTHER = [name for name in NAMES if name not in gallery.names("classic")]

# Units are products and quotients of these, with powers.
UNITS = {"m", "s", "kg", "N", "V", "A", "K", "Pa", "bar", "rad", "°C", "kmol", "mol", "l", "min"}


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_met(name):
    """With default options, warnings about the start being failures as well."""
    problem = gallery.get(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = problem.solve(rtol=1e-6)
    assert sol.success, sol.message
    assert problem.digits(sol.y[:, -1]) >= problem.expected_digits
    assert problem.reference_digits >= problem.expected_digits


@pytest.mark.parametrize("seed", [0, 1])
def test_starts_of_the_adding_unit_do_not_depend_on_round_off(seed):
    """At the start or a break one of four such runs found no consistent values, to the last bit."""
    problem = gallery.get("adding-unit")
    noise = 2e-15 * np.random.default_rng(seed).standard_normal(problem.n)
    sol = replace(problem, y0=problem.y0 * (1 + noise)).solve(rtol=1e-6, max_seconds=60)
    assert sol.success, sol.message
    assert problem.digits(sol.y[:, -1]) >= problem.expected_digits


def recomputable():
    """Problems and sizes that have a reference of their own, from a computation without tether."""
    others = ("wheelset", "ring-modulator", "heat2d", "water-tubes", "adding-unit")
    yield from ((name, {}) for name in FURTHER if name not in others)
    yield pytest.param("water-tubes", {}, marks=pytest.mark.slow)
    yield from (("chain", {"links": links}) for links in (2, 12))
    yield "battery", {"shells": 20}
    yield "brusselator", {"m": 39}
    yield "clamped-line", {"sections": 16}


@pytest.mark.parametrize(("name", "size"), list(recomputable()))
def test_the_reference_is_that_of_a_computation_without_tether(name, size):
    problem = gallery.get(name, **size)
    computed = getattr(gallery_references, name.replace("-", "_"))(**size)
    scale = problem.atol_scale[list(problem.compare)] + np.abs(problem.reference)
    error = np.max(np.abs(computed - problem.reference) / scale)
    # two digits of room for other versions of SciPy
    assert error < 10.0 ** (2 - problem.reference_digits)


@pytest.mark.parametrize(
    ("name", "size"),
    [("chain", {"links": 2}), ("chain", {"links": 12}), ("battery", {"shells": 20}),
     ("brusselator", {"m": 39}), ("heat2d", {"m": 7}), ("wheelset", {"index": 2}),
     ("clamped-line", {"sections": 16})],
)  # fmt: skip
def test_other_sizes_meet_theirs(name, size):
    problem = gallery.get(name, **size)
    sol = problem.solve(rtol=1e-6)
    assert sol.success, sol.message
    assert problem.digits(sol.y[:, -1]) >= problem.expected_digits


@pytest.mark.parametrize(
    ("name", "size"),
    [("chain", {"links": 3}), ("distillation", {"trays": 8}), ("battery", {"shells": 5}),
     ("brusselator", {"m": 9}), ("brusselator2d", {"m": 5}), ("driven-cavity", {"m": 4})],
)  # fmt: skip
def test_sizes_without_a_reference_say_so(name, size):
    problem = gallery.get(name, **size)
    assert not problem.has_reference
    sol = problem.solve(rtol=1e-4)
    assert sol.success, sol.message
    assert math.isnan(problem.digits(sol.y[:, -1]))


@pytest.mark.parametrize("name", FURTHER)
def test_index_and_algebraic_unknowns(name):
    problem = gallery.get(name)
    report = analyze(problem.fun, problem.t_span[0], problem.y0, names=problem.names)
    assert report.traced
    assert max(report.index, 1) == max(problem.index, 1)


@pytest.mark.parametrize("name", FURTHER)
def test_algebraic_unknowns_have_no_slope_in_the_equations(name):
    problem = gallery.get(name)
    rng = np.random.default_rng(3)
    t = 0.3 * problem.t_span[1]
    y = problem.y0 + 1e-3 * problem.atol_scale * rng.uniform(1, 2, problem.n)
    yp = rng.uniform(-1, 1, problem.n)

    def residual(slopes):
        return np.asarray(problem.fun(t, y, slopes), dtype=float)

    unused = []
    for k in range(problem.n):
        other = yp.copy()
        other[k] += 1.0
        if np.array_equal(residual(other), residual(yp)):
            unused.append(k)
    assert tuple(unused) == problem.algebraic


@pytest.mark.parametrize("name", NAMES)
def test_what_a_problem_says_about_itself(name):
    problem = gallery.get(name)
    assert problem.title
    assert problem.description.endswith(".")
    assert problem.source
    assert problem.has_reference
    assert len(set(problem.names)) == problem.n
    assert problem.picture
    assert set(problem.picture) <= set(problem.names)


@pytest.mark.parametrize("name", NAMES)
def test_units_are_units(name):
    for unit in set(gallery.get(name).units) - {""}:
        parts = unit.removeprefix("1e4 ").removeprefix("1/").replace("/", " ").split()
        assert {part.rstrip("23") for part in parts} <= UNITS


def test_groups_have_every_problem_once():
    assert sum((gallery.names(group) for group in gallery.groups()), ()) == NAMES
    with pytest.raises(ValueError, match="unknown group 'nonsense'"):
        gallery.names("nonsense")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gallery.chain(links=0), "links must be at least 1"),
        (lambda: gallery.distillation(trays=2), "trays must be at least 3"),
        (lambda: gallery.battery(shells=2), "shells must be at least 3"),
        (lambda: gallery.heat2d(m=4), "m must be at least 5"),
        (lambda: gallery.brusselator(m=2), "m must be at least 3"),
        (lambda: gallery.brusselator2d(m=2), "m must be at least 3"),
        (lambda: gallery.driven_cavity(m=2), "m must be at least 3"),
        (lambda: gallery.wheelset(index=1), "index must be 2 or 3"),
    ],
)
def test_wrong_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_pages_of_the_gallery_are_up_to_date():
    """Run ``python -m tether.gallery.page docs`` if not."""
    files = (ROOT / "docs/gallery").glob("*.md")
    written = {file.name: file.read_text(encoding="utf-8") for file in files}
    assert written == pages()


def test_every_problem_has_a_picture_in_the_documentation():
    """Run ``python -m tether.gallery.page docs`` if not."""
    assert {file.stem for file in (ROOT / "docs/images/gallery").glob("*.png")} == set(NAMES)


def test_readme_and_changelog_count_the_problems():
    for file in ("README.md", "CHANGELOG.md"):
        assert f"{len(NAMES)} problems" in (ROOT / file).read_text(encoding="utf-8")


def test_pictures_are_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    names = ("robertson", "sallen-key", "chain")
    monkeypatch.setattr(gallery, "names", lambda: names)
    draw(tmp_path)
    assert {file.stem for file in tmp_path.glob("*.png")} == set(names)
    assert min(file.stat().st_size for file in tmp_path.glob("*.png")) > 1_000
