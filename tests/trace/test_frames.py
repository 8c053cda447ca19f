"""Numbers looked up in Series and data frames of pandas, and by keys of NumPy's text."""

import subprocess
import sys
import types

import numpy as np
import pytest

from tether import solve_dae
from tether.trace import trace
from tether.trace.tracer import TraceFailure


def rate(fun, args=(), trace="auto"):
    """Return k, where a function is y' = k."""
    sol = solve_dae(fun, (0.0, 1.0), [0.0], args=args, trace=trace)
    assert sol.how.startswith("traced" if trace == "auto" else "called")
    return sol.y[0, -1]


LOOK_UPS = {
    "item": lambda t, y, yp: [yp[0] - p["k"]],
    "attribute": lambda t, y, yp: [yp[0] - p.k],
    "loc": lambda t, y, yp: [yp[0] - p.loc["k"]],
    "at": lambda t, y, yp: [yp[0] - p.at["k"]],
    "iloc": lambda t, y, yp: [yp[0] - p.iloc[0]],
    "iat": lambda t, y, yp: [yp[0] - p.iat[-2]],
    "values": lambda t, y, yp: [yp[0] - p.values[0]],
    "to_numpy": lambda t, y, yp: [yp[0] - p.to_numpy()[:1].sum()],
    "to_dict": lambda t, y, yp: [yp[0] - p.to_dict()["k"]],
    "get": lambda t, y, yp: [yp[0] - p.get("k", 7.0) + p.get("nothing", 7.0) - 7.0],
    "in": lambda t, y, yp: [yp[0] - (p["k"] if "k" in p and len(p) == 2 else 0.0)],
    "iteration": lambda t, y, yp: [yp[0] - list(p)[-2]],
    "items": lambda t, y, yp: [yp[0] - dict(p.items())["k"]],
    "several": lambda t, y, yp: [yp[0] - p[["m", "k"]].iloc[1]],
    "part": lambda t, y, yp: [yp[0] - p.iloc[:1]["k"]],
    "frame.loc": lambda t, y, yp: [yp[0] - df.loc["a", "k"]],
    "frame.at": lambda t, y, yp: [yp[0] - df.at["a", "k"]],
    "frame.iloc": lambda t, y, yp: [yp[0] - df.iloc[0, 1]],
    "frame.iat": lambda t, y, yp: [yp[0] - df.iat[0, 1]],
    "column and row": lambda t, y, yp: [yp[0] - df["k"]["a"]],
    "row and column": lambda t, y, yp: [yp[0] - df.loc["a"]["k"]],
    "column by name": lambda t, y, yp: [yp[0] - df.k.a],
    "column values": lambda t, y, yp: [yp[0] - df["k"].values[0]],
    "frame values": lambda t, y, yp: [yp[0] - df.values[0, 1]],
    "frame.to_dict": lambda t, y, yp: [yp[0] - df.to_dict()["k"]["a"]],
    "columns": lambda t, y, yp: [yp[0] - df[["k", "n"]].loc["a", "k"]],
    "key of NumPy": lambda t, y, yp: [yp[0] - p[np.str_("k")]],
}
p = df = None


@pytest.mark.parametrize("name", LOOK_UPS)
def test_values_are_those_of_the_moment(name):
    """Constants at first, then inputs: between calls, and while a callback changes them."""
    global p, df
    pd = pytest.importorskip("pandas")
    fun = LOOK_UPS[name]
    for k in (2.0, 3.0, 4.5, 0.0, -1.0):
        p = pd.Series({"k": k, "m": 1.0})
        df = pd.DataFrame({"n": [1, 2], "k": [k, 5.0]}, index=["a", "b"])
        assert rate(fun) == pytest.approx(k)
    for k in (6.0, 7.0):
        p["k"] = k
        df.loc["a", "k"] = k
        assert rate(fun) == pytest.approx(k)

    def change(t, y):
        new = 1.0 if t < 0.5 else 2.0
        p["k"] = new
        df.loc["a", "k"] = new

    p["k"] = df.loc["a", "k"] = 1.0
    found = [solve_dae(fun, (0.0, 1.0), [0.0], trace=trace, max_step=0.04,
                       callback=lambda t, y, *_: change(t, y)).y[0, -1]
             for trace in ("auto", "never")]
    assert found[0] == pytest.approx(found[1], abs=0.09)
    assert found[0] == pytest.approx(1.5, abs=0.09)


def test_labels_count_too():
    pd = pytest.importorskip("pandas")

    def fun(t, y, yp, p):
        return [yp[0] - (p["k"] if "k" in p else p.iloc[0] * 10.0)]

    assert rate(fun, (pd.Series({"k": 2.0}),)) == pytest.approx(2.0)
    assert rate(fun, (pd.Series({"m": 2.0}),)) == pytest.approx(20.0)
    assert rate(fun, (pd.Series({"m": 3.0, "k": 4.0}),)) == pytest.approx(4.0)
    assert rate(fun, (pd.Series({"m": 3, "k": 4}),)) == pytest.approx(4.0)
    assert rate(fun, (pd.Series({"m": 3, "k": 5}),)) == pytest.approx(5.0)


def test_texts_and_integers_in_a_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"name": ["water", "oil"], "rho": [1000.0, 900.0], "n": [1, 2]})

    def fun(t, y, yp):
        total = 0.0
        for i in range(len(frame)):
            if frame.at[i, "name"] == "oil":
                total = total + frame["rho"].iloc[i] * frame.at[i, "n"] + frame.iloc[i]["rho"]
        return [yp[0] - total]

    for change in (lambda: None, lambda: frame.__setitem__("rho", [1.0, 2.0]),
                   lambda: frame.__setitem__("n", [1, 4]),
                   lambda: frame.__setitem__("name", ["oil", "oil"])):
        change()
        assert rate(fun) == pytest.approx(rate(fun, trace="never"))


def test_derivatives_by_numbers_of_a_frame():
    pd = pytest.importorskip("pandas")
    p = pd.Series({"k": 2.0, "m": 3.0})

    def fun(t, y, yp):
        return [p["m"] * yp[0] + p["k"] * y[0] ** 2]

    for k in (2.0, 5.0, 7.0):
        p["k"] = k
        sol = solve_dae(fun, (0.0, 1.0), [1.0], rtol=1e-9, atol=1e-12)
        assert sol.y[0, -1] == pytest.approx(1.0 / (1.0 + k / 3.0), rel=1e-7)


@pytest.mark.parametrize(
    ("use", "words"),
    [(lambda p, x: (p * x).sum(), r"p \* x does more with a Series"),
     (lambda p, x: p.mean() * x, "asks a Series for mean"),
     (lambda p, x: p.set_axis(["a"])["a"] * x, "asks a Series for set_axis"),
     (lambda p, x: p["k"] if p["k":].size else p[x], None),
     (lambda p, x: np.exp(p)["k"] * x, "does more with a Series")],
)
def test_what_is_not_known_is_said(use, words):
    pd = pytest.importorskip("pandas")
    p = pd.Series({"k": 2.0})

    def fun(t, y, yp):
        return [yp[0] - use(p, y[0])]

    sol = solve_dae(fun, (0.0, 1.0), [1.0])
    assert sol.success
    if words is None:
        assert sol.how.startswith("traced")
        return
    with pytest.raises(TraceFailure, match=r"test_frames.py, line \d+: .*" + words):
        trace(fun, 1)
    assert "called as it is: test_frames.py, line" in sol.how


def test_a_frame_is_not_written_to():
    pd = pytest.importorskip("pandas")
    p = pd.Series({"k": 2.0})

    def fun(t, y, yp):
        p["last"] = y[0]
        return [yp[0] - p["k"]]

    with pytest.raises(TraceFailure, match="does more with a Series"):
        trace(fun, 1)
    assert list(p.index) == ["k"]


@pytest.mark.parametrize("make", ["times", "many", "derived", "objects"])
def test_frames_that_are_not_read(make):
    pd = pytest.importorskip("pandas")

    class Own(pd.Series):
        pass

    p = {"times": lambda: pd.Series([2.0, 3.0], index=pd.date_range("2000", periods=2)),
         "many": lambda: pd.Series(np.full(10_000, 2.0)),
         "derived": lambda: Own([2.0]),
         "objects": lambda: pd.Series([2.0, object()])}[make]()

    def fun(t, y, yp):
        return [yp[0] - p.iloc[0]]

    for k in (2.0, 3.0):
        p.iloc[0] = k
        sol = solve_dae(fun, (0.0, 1.0), [0.0])
        assert sol.y[0, -1] == pytest.approx(k)
        assert "test_frames.py, line" in sol.how


def test_keys_of_numpys_text():
    held = {np.str_("k"): 2.0, "m": 1.0}
    name = np.str_("k")

    def fun(t, y, yp):
        return [yp[0] - held[name] * held[np.str_("m")]]

    for k in (2.0, 3.0, 4.0):
        held["k"] = k
        assert rate(fun) == pytest.approx(k)


def test_pandas_is_not_loaded():
    code = ("import sys, tether; tether.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0]); "
            "print('pandas' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- without pandas -------------------------------------------------------------------------------


class _Index(list):
    dtype, names = "str", (None,)

    def tolist(self):
        return list(self)


class _Column:
    """As much of a Series as is asked for here."""

    ndim = 1

    def __init__(self, values, index):
        self.held, self.index = np.array(values), _Index(index)

    shape = property(lambda self: self.held.shape)
    dtype = property(lambda self: self.held.dtype)
    axes = property(lambda self: [self.index])

    def to_numpy(self):
        return self.held

    def copy(self):
        return type(self)(self.held, self.index)

    def __getitem__(self, key):
        return self.held[self.index.index(key)]

    def __setitem__(self, key, value):
        self.held[self.index.index(key)] = value


def test_the_same_without_pandas(monkeypatch):
    module = types.ModuleType("pandas")
    module.Series = _Column
    monkeypatch.setitem(sys.modules, "pandas", module)
    monkeypatch.setattr(_Column, "__module__", "pandas")
    p = _Column([2.0, 1.0], ["k", "m"])

    def fun(t, y, yp):
        return [yp[0] - p["k"]]

    for k in (2.0, 3.0, 4.0):
        p["k"] = k
        assert rate(fun) == pytest.approx(k)
