"""Judge a case: values, runs, second runs and the user's objects, traced against called."""

import contextlib
import io
import itertools
import linecache
import sys
import threading
import types
import warnings
from dataclasses import dataclass

import numpy as np

from fuzz.snapshot import differences, snapshot
from tether import solve_dae
from tether.trace import NoProgram, TraceFailure, evaluate, trace

N = 3
Y0 = [1.0, 0.6, 0.3]
T_END = 2.0
NEW = ("1.25", "1.5", "0.0", "2.0")            # numbers written to what a function reads
_numbers = itertools.count()

RNG = np.random.default_rng(12)
POINTS = [(float(t), RNG.uniform(0.05, 1.2, N), RNG.uniform(-1.0, 1.0, N))
          for t in np.linspace(0.0, 2.0, 9)]
POINTS += [(float(t), y0 * np.array([1.0, 1.0, 1.0]), np.zeros(N)) for t in (0.1, 1.7)
           for y0 in (np.array([3.5, 0.4, 0.7]), np.array([0.2, 0.9, 0.1]),
                      np.array([-0.7, -0.2, -1.4]), np.array([0.45, 0.45, 0.45]),
                      np.array([0.55, 0.8, 0.35]))]
ODD = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 1.5, -0.5, 3.0, 1e50, 1e-50, 0.2, 0.25, 0.4, 0.6]
SPECIAL = [(t, np.array([a, b, 0.3]), np.zeros(N)) for t, a, b in
           itertools.product((0.0, 0.5, 1.0), ODD, (0.5, 0.0, -0.0, 1.0))]


@dataclass(frozen=True)
class Finding:
    """A difference between what is traced and what is called."""

    kind: str
    words: str


@dataclass(frozen=True)
class Verdict:
    """What became of a case."""

    findings: list
    how: str          # "traced", "called", or why the case says nothing


def module_of(case):
    """Run the source of a case in a new module."""
    name = f"fuzzed_{next(_numbers)}"
    file = f"<{name}>"
    linecache.cache[file] = (len(case.source), None, case.source.splitlines(True), file)
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(case.source, file, "exec"), vars(module))
    return module


def arguments(case, module, text=None):
    """Further arguments, made new."""
    return eval(case.args if text is None else text, vars(module))


def forget(module):
    """Let a module go."""
    sys.modules.pop(module.__name__, None)
    linecache.cache.pop(f"<{module.__name__}>", None)


@contextlib.contextmanager
def fresh(case):
    """Give a new module of a case for a while."""
    module = module_of(case)
    try:
        yield module
    finally:
        forget(module)


@contextlib.contextmanager
def quiet():
    """Say nothing: functions may warn and print."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), \
            contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def call(fun, point, args):
    """Return the residual at a point as an array, or the exception."""
    t, y, yp = point
    try:
        values = np.asarray(fun(t, y.copy(), yp.copy(), *args))
        if values.shape != (N,) or values.dtype.kind not in "fib":
            return TypeError(f"shape {values.shape} of {values.dtype}")
        return values.astype(float)
    except Exception as error:
        return error


def same(a, b, rtol=1e-9, atol=1e-11):
    """Whether two arrays agree, with nan equal to nan."""
    return np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def judge(case, runs=True):
    """Compare what is traced of a case with what is called."""
    with quiet():
        try:
            with fresh(case) as module:
                start = call(module.fun, POINTS[0], arguments(case, module))
        except Exception as error:
            return Verdict([], f"broken: {error!r}")
        if isinstance(start, Exception):
            return Verdict([], f"raises: {start!r}")
        findings = values_alike(case)
        how = "not run"
        if runs:
            more, how = runs_alike(case)
            findings += more
            if case.changes and not case.memory:
                findings += second_runs_alike(case)
            if case.others and not case.memory:
                findings += other_arguments_alike(case)
    return Verdict(findings, how)


# --- values -----------------------------------------------------------------------------------


def values_alike(case):
    """Compare values on every branch, and look at the user's objects."""
    findings = []
    with fresh(case) as module, fresh(case) as other, fresh(case) as third:
        module.ARGS, other.ARGS, third.ARGS = (arguments(case, x) for x in (module, other, third))
        before = snapshot(module)
        program = None
        try:
            traced = trace(module.fun, N, module.ARGS)
            program = traced.program(opaque=True)
        except (TraceFailure, NoProgram):
            pass
        except Exception as error:
            findings.append(Finding("trace raises", repr(error)))
        for words in differences(before, snapshot(module))[:3]:
            findings.append(Finding("trace writes", words))
        del before
        for kind, points in (("value", POINTS), ("special value", SPECIAL)):
            for point in points:
                expected, again, thrice = (call(each.fun, point, each.ARGS)
                                           for each in (other, module, third))
                if not same_or_raises(expected, again) and same_or_raises(expected, thrice):
                    findings.append(Finding("changed by tracing", f"{point}: {expected} becomes "
                                            f"{again}"))
                    break
                if program is None or case.memory or isinstance(expected, Exception):
                    continue
                if case.zero and np.isnan(expected).any():
                    continue
                got = evaluate(program, *point, traced.args.flatten(module.ARGS))
                if not same(got, expected):
                    findings.append(Finding(kind, f"t={point[0]} y={point[1].tolist()}: traced "
                                            f"{got.tolist()}, called {expected.tolist()}"))
                    break
    return findings


def same_or_raises(a, b):
    """Whether two results agree or are both exceptions."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        return isinstance(a, Exception) and isinstance(b, Exception)
    return same(a, b)


# --- runs -------------------------------------------------------------------------------------


def run(fun, mode, args, events=None):
    """Solve, or return the exception."""
    try:
        return solve_dae(fun, (0.0, T_END), Y0, args=args, trace=mode, rtol=1e-6, atol=1e-8,
                         max_steps=5000, t_eval=[0.5, 1.2, T_END], events=events)
    except Exception as error:
        return error


def ends_alike(auto, called):
    """Return words if two runs differ."""
    if isinstance(called, Exception):
        return ""      # a program does not raise
    if isinstance(auto, Exception):
        return f"only the traced run raises {auto!r}"
    if not called.success or not auto.success:
        return ""
    if not np.allclose(auto.y, called.y, rtol=1e-3, atol=1e-4):
        return f"traced {auto.y[:, -1].tolist()}, called {called.y[:, -1].tolist()}; {auto.how}"
    return ""


def runs_alike(case):
    """Compare runs, and look at the user's objects."""
    findings = []
    with fresh(case) as module, fresh(case) as other:
        module.ARGS, other.ARGS = arguments(case, module), arguments(case, other)
        if not case.memory:      # what a call keeps for the next one
            call(module.fun, POINTS[0], module.ARGS)
        before = snapshot(module)
        auto = run(module.fun, "auto", module.ARGS)
        if isinstance(auto, Exception):
            called = run(other.fun, "never", arguments(case, other))
            words = ends_alike(auto, called)
            return ([Finding("run raises", words)] if words and not case.memory else []), "raises"
        traced = auto.how.startswith("traced")
        if traced:
            if case.memory:
                findings.append(Finding("memory traced", auto.how))
            for words in differences(before, snapshot(module))[: 0 if case.memory else 3]:
                findings.append(Finding("run writes", words))
        del before
        if case.ordinary and not traced:
            findings.append(Finding("refused", auto.how))
        if not case.memory:
            words = ends_alike(auto, run(other.fun, "never", arguments(case, other)))
            if words:
                findings.append(Finding("run", words))
    return findings, "traced" if traced else "called"


def second_runs_alike(case):
    """Change what a function reads, between runs and on the way, and compare."""
    findings = []
    for change in case.changes:
        values = NEW if "VAL" in change else NEW[:1]
        texts = [change.replace("VAL", value) for value in values]
        try:
            findings += changed_between_runs(case, texts) or changed_on_the_way(case, texts)
        except BadChangeError as error:
            findings.append(Finding("bad change", str(error)))
    return findings


class BadChangeError(Exception):
    """A change that cannot be made."""


def make_change(text, module):
    """Let a module become another one."""
    try:
        exec(text, vars(module))
    except Exception as error:
        raise BadChangeError(f"{text}: {error!r}") from error


def changed_between_runs(case, texts):
    """Solve again and again after changes."""
    with fresh(case) as module, fresh(case) as other:
        for _ in range(2):
            run(module.fun, "auto", arguments(case, module))
        run(other.fun, "never", arguments(case, other))
        for text in texts:
            make_change(text, module)
            make_change(text, other)
            auto = run(module.fun, "auto", arguments(case, module))
            words = ends_alike(auto, run(other.fun, "never", arguments(case, other)))
            if words:
                return [Finding("second run", f"after {text}: {words}")]
    return []


def changed_on_the_way(case, texts):
    """Let an event make the changes."""
    with fresh(case) as module, fresh(case) as other:
        ends = []
        for each, mode in ((module, "auto"), (other, "never")):
            left = list(texts)

            def strike(t, y, yp, *args):
                return (t - 0.3) * (t - 0.7) * (t - 1.1) * (t - 1.6)

            def apply(t, y, yp, *args, each=each, left=left):
                if left:
                    make_change(left.pop(0), each)
                return y

            strike.apply = apply
            ends.append(run(each.fun, mode, arguments(case, each), strike))
        words = ends_alike(*ends)
    return [Finding("changed on the way", f"{texts}: {words}")] if words else []


def other_arguments_alike(case):
    """Solve the same function with other arguments, one after the other and in threads."""
    findings = []
    texts = [case.args, *case.others]
    with fresh(case) as module, fresh(case) as other:
        for text in (*texts, *texts):
            auto = run(module.fun, "auto", arguments(case, module, text))
            words = ends_alike(auto, run(other.fun, "never", arguments(case, other, text)))
            if words:
                findings.append(Finding("other arguments", f"{text}: {words}"))
    results = {}
    with fresh(case) as module, fresh(case) as other:

        def work(text):
            for mode, place in (("auto", module), ("never", other)):
                results[mode, text] = run(place.fun, mode, arguments(case, place, text))

        threads = [threading.Thread(target=work, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    findings += [Finding("threads", words) for text in texts
                 if (words := ends_alike(results["auto", text], results["never", text]))]
    return findings
