"""The page: well formed, escaped, complete."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from support.command_line import EVIL, EVIL_BALL

from tether import gallery, solve_dae
from tether.cli.report.axes import fit_axis
from tether.cli.report.charts import MAX_POINTS, Line, chart
from tether.cli.report.curves import by_decades, groups
from tether.cli.report.markup import as_formula, as_json

VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """Collects elements and text; every element must be closed in its order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.words, self.scripts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def count(self, tag):
        return sum(name == tag for name, _ in self.found)


def page_of(tether, *arguments, code=0):
    assert tether("report", *arguments, "-o", "out.html")[0] == code
    return Page((tether.folder / "out.html").read_text(encoding="utf-8"))


def test_names_and_texts_do_not_break_out(tether):
    page = page_of(tether, tether.write(EVIL_BALL))
    assert page.count("img") == page.count("b") == 0
    assert page.text.count(EVIL) > 5
    assert "<img src=x onerror=alert(1)>" in page.text
    # one script for every chart, and that of the page
    assert page.count("script") == page.count("figure") - 1 + 1
    assert not any("alert" in script for script in page.scripts)
    assert not any(name.startswith("on") for _, attrs in page.found for name in attrs)


def test_nothing_is_loaded_from_elsewhere(tether):
    page = page_of(tether, "pend-i3", "--t", "0:1")
    assert not any({"src", "href", "action"} & set(attrs) for _, attrs in page.found)
    text = (tether.folder / "out.html").read_text(encoding="utf-8")
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text


def test_the_whole_story_of_a_ball(tether):
    text = page_of(tether, tether.write(EVIL_BALL)).text
    for word in ("States", "Solution", "Index", "Equations", "Steps", "Jumps", "Events",
                 "Statistics", "differential", "algebraic", "m/s", "v1: -8; v2: 2", "0.4515",
                 "The run started again 4 times"):
        assert word in text
    assert "e-17" not in text.split("Jumps")[1].split("Events")[0]


def test_the_pendulum_has_hidden_constraints_and_drift(tether):
    text = page_of(tether, "pend-i3", "--t", "0:1").text
    for word in ("index 3", "x·u + z·v = 0", "Drift off the constraints", "x 2 + z 2 - 1 = 0",
                 "Hidden constraints"):
        assert word in text


def test_numbers_of_the_table(tether):
    text = page_of(tether, "trivial").text
    sol = solve_dae(*(lambda p: (p.fun, p.t_span, p.y0, p.yp0))(gallery.get("trivial")))
    assert f"{sol.y[0, 0]:.6g}" in text.split("States")[1].split("Solution")[0]


@pytest.mark.parametrize("name", gallery.names())
def test_every_problem_has_its_page(tether, name):
    problem = gallery.get(name)
    t0, t_end = problem.t_span
    page = page_of(tether, name, "--t", f"{t0!r}:{t0 + (t_end - t0) / 50!r}")
    assert page.count("h1") == 1
    assert page.count("figure") >= 3


def test_a_run_that_failed_has_a_page_too(tether):
    file = tether.write("def fun(t, y, yp):\n    return [yp[0] - y[0]**2]\n"
                        "y0, t_span = [1.0], (0, 2)\n")
    text = page_of(tether, file, code=1).text
    assert "Failed:" in text
    assert "Solution" in text


def test_a_run_without_a_step_has_a_page_too(tether):
    file = tether.write("def fun(t, y, yp):\n    return [yp[0] - y[0], y[1]**2 + 1]\n"
                        "y0, t_span = [1.0, 0.0], (0, 2)\n")
    assert "Failed:" in page_of(tether, file, code=1).text


def test_what_is_not_traced_is_shown_as_written(tether):
    file = tether.write("def fun(t, y, yp):\n    k = int(open(__file__).read()[0] == 'd')\n"
                        "    return [yp[0] + k * float(str(float(y[0])))]\n"
                        "y0, t_span = [1.0], (0, 1)\n")
    text = page_of(tether, file, "--trace", "never").text
    assert "not traced" in text
    assert "float(str(float(y[0])))" in text


def test_of_many_unknowns_some_are_drawn(tether):
    text = page_of(tether, "heat1d", "--args", "m=60", "--names",
                   ",".join(f"u{j}" for j in range(60))).text
    assert "40 of 60 unknowns are shown" in text
    curves = text.split("Solution")[1].split("Index")[0].split()
    assert {"u0", "u59"} <= set(curves)
    assert "u1" not in curves


def test_of_many_jumps_the_first_are_listed(tether):
    text = page_of(tether, "inverted-pendulum").text
    assert "Jumps (the first 20 of 80)" in text
    assert "_clock 81" in text


def test_backwards_in_time(tether):
    page = page_of(tether, "harmonic", "--t", "1:0")
    assert "t from 1 to 0" in page.text


def test_to_standard_output(tether):
    code, out, _ = tether("report", "rotor", "-o", "-")
    assert code == 0
    assert out.startswith("<!DOCTYPE html>")


def test_data_of_a_chart():
    t = np.linspace(0.0, 1.0, 5)
    drawn = chart("x < 1", t, [Line("a", t**2), Line("b", np.array([0, 1, np.nan, 1, 2.0]))])
    data = json.loads(re.search(r"json\">(.*?)</script>", drawn)[1])
    assert data["t"] == ["0", "0.25", "0.5", "0.75", "1"]
    assert data["y"][0][2] == "0.25"
    assert data["y"][1][2] == "nan"
    paths = re.findall(r'class="line" [^>]*d="(M[^"]*L[^"]*)"', drawn)
    assert paths[1].count("M") == 2            # interrupted where there is no value


def test_thinning_keeps_peaks():
    t = np.linspace(0.0, 1.0, 50_001)
    y = np.sin(3 * t)
    y[31_415] = 7.0
    drawn = chart("y", t, [Line("y", y)])
    data = json.loads(re.search(r"json\">(.*?)</script>", drawn)[1])
    assert "7" in data["y"][0]
    assert len(data["t"]) < MAX_POINTS
    assert (data["t"][0], data["t"][-1]) == ("0", "1")


@pytest.mark.parametrize("values", [
    [0.0, 0.0], [5.0, 5.0], [1e-300, 2e-300], [-1e300, 1e300], [1.0, 1.0 + 1e-9], [np.nan, 1.0],
    [np.nan, np.nan], [], [0.0, 0.03], [-7.0, 1e5],
])
@pytest.mark.parametrize("log", [False, True])
def test_axes_of_any_values(values, log):
    axis = fit_axis(np.array(values), 10.0, 100.0, log=log, pad=0.05)
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 12
    assert all(10.0 - 1e-6 <= place <= 100.0 + 1e-6 for place, _ in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


def test_groups_by_unit_and_size():
    y = np.array([[1.0], [2.0], [1e-5], [0.0], [3.0], [0.0]])
    assert groups(y, [""] * 6) == [[0, 1, 4], [2], [3, 5]]
    assert groups(y, ["m", "s", "m", "m", "m", "m"]) == [[0, 4], [1], [2], [3, 5]]


def test_time_by_decades():
    assert by_decades(np.geomspace(1e-6, 1e6, 50))
    assert not by_decades(np.linspace(0, 1, 50))
    assert not by_decades(np.array([]))


def test_markup():
    assert as_formula("a*b**2 < c**(-1)") == "a·b<sup>2</sup> &lt; c<sup>(-1)</sup>"
    assert as_formula("1.6350960000000001e-06*x") == "1.635096e-06·x"
    assert "<" not in as_json({"a": EVIL})
    assert json.loads(as_json({"a": EVIL})) == {"a": EVIL}
