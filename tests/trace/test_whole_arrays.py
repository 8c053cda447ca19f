"""Functions of whole arrays: values and Jacobians of every idiom, against the function itself."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array, random_array

from tether._core.rows import Rows
from tether.structure.switch_times import SwitchTimes
from tether.trace.array_tracer import trace_arrays
from tether.trace.element_rates import rates
from tether.trace.refusal import Untraceable
from tether.trace.templates import fold
from tether.trace.tracer import TraceFailure

N = 24
WEIGHTS = np.linspace(0.5, 2.0, N)
PLACES = np.random.default_rng(1).permutation(N)
EVERY = np.array([3, 3, 7, 0, 23])
DENSE = np.random.default_rng(2).normal(size=(N, N))
SPARSE = random_array((N, N), density=0.2, random_state=3, format="csr")
TRIDIAGONAL = diags_array([np.ones(N - 1), -2.0 * np.ones(N), np.ones(N - 1)], offsets=(-1, 0, 1))
MASK = np.arange(N) % 3 == 0


def grid(values):
    return values.reshape(4, 6)


def padded(y, mode, **options):
    u = np.pad(grid(y), 1, mode=mode, **options)
    return (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]).ravel()


def in_place(y, yp):
    r = np.zeros(N)
    r[1:-1] = y[2:] - 2 * y[1:-1] + y[:-2]
    r[0] = y[0] - 1.0
    r[-1] = y[-1]
    r += yp
    r[3:6] *= y[:3]
    return r


def written_to_a_view(y, yp):
    r = np.empty((4, 6))
    r[:, 0] = 1.0
    r[:, 1:] = grid(y)[:, 1:]
    inner = r[1:3, 2:4]
    inner[...] = inner**2
    r.T[2] -= 3.0
    return r.ravel() + yp


def fluxes(y, yp):
    mid = 0.5 * (y[1:] + y[:-1])
    flux = np.exp(-mid) * np.diff(y)
    return yp - np.diff(np.concatenate([[0.0], flux, [0.0]]))


def with_closure_list(y, yp):
    parts = [y[:8], y[8:16] * 2, y[16:] ** 3]
    return np.hstack(parts) + yp


def broadcast(y, yp):
    u = grid(y)
    return (u * u[:, :1] + u[0] * np.arange(4.0)[:, None] + u.mean(axis=0)).ravel() + yp


def of_lists(y, yp):
    return np.array([y[i] * y[i - 1] for i in range(N)]) + yp


FROM, TO = np.random.default_rng(4).integers(0, N, (2, 3 * N))


def network(y, yp):
    current = np.sinh(y[FROM] - y[TO])
    r = yp.copy()
    np.add.at(r, FROM, current)
    np.subtract.at(r, TO, current)
    r[0] = y[0] - 1.0
    return r


def scattered_on_a_grid(y, yp):
    r = np.zeros((4, 6))
    np.add.at(r, (FROM % 4, TO % 6), y[FROM] ** 2)
    np.add.at(r, (slice(None), 2), 3.0)
    return r.ravel() + yp


def chosen(y, yp):
    return yp + np.where(y > 1.0, y**2, 2 * y - 1) + np.where(MASK, y, -y)


def assigned_where(y, yp):
    r = y * 3.0
    r[y > 1.0] = 7.0
    r[MASK] = y[MASK] ** 2
    return r + yp


IDIOMS = {
    "slices": lambda t, y, yp: yp + y[::-1] * np.roll(y, 1) - y[PLACES],
    "strides": lambda t, y, yp: yp + np.concatenate([y[::2], y[1::2]]) ** 2,
    "gather": lambda t, y, yp: yp + np.concatenate([y[EVERY], y[5:]]),
    "take": lambda t, y, yp: yp * y.take(PLACES) + np.take(y, PLACES),
    "time": lambda t, y, yp: yp + np.sin(t) * y + t**2,
    "math of time": lambda t, y, yp: yp + math.exp(-t) * y + math.atan2(t, 2.0),
    "constants": lambda t, y, yp: yp * WEIGHTS + WEIGHTS**2 * y - 3.0,
    "constants with zeros": lambda t, y, yp: yp + MASK * np.sqrt(y) * WEIGHTS,
    "in place": lambda t, y, yp: in_place(y, yp),
    "views": lambda t, y, yp: written_to_a_view(y, yp),
    "fluxes": lambda t, y, yp: fluxes(y, yp),
    "lists": lambda t, y, yp: of_lists(y, yp),
    "list of parts": lambda t, y, yp: with_closure_list(y, yp),
    "lists beside arrays": lambda t, y, yp: yp + np.concatenate([[y[0] ** 2], y[1:-1], [3.0]]),
    "lists alone": lambda t, y, yp: yp * np.concatenate([[y[0]], [2.0], np.ones(N - 2)])
    + np.sin([y[0], y[1]])[1] + np.hstack([[t, y[3]], [1.0] * (N - 2)]),
    "broadcasting": lambda t, y, yp: broadcast(y, yp),
    "edge": lambda t, y, yp: yp - padded(y, "edge"),
    "wrap": lambda t, y, yp: yp - padded(y, "wrap"),
    "reflect": lambda t, y, yp: yp - padded(y, "reflect"),
    "constant padding": lambda t, y, yp: yp - padded(y, "constant", constant_values=2.0),
    "stack": lambda t, y, yp: np.stack([y[:12], y[12:] ** 2], axis=1).ravel() + yp,
    "columns": lambda t, y, yp: np.column_stack([y[:12], yp[12:]]).ravel() - yp,
    "blocks": lambda t, y, yp: np.block([[grid(y)[:2] ** 2], [grid(yp)[2:]]]).ravel() - yp,
    "transpose": lambda t, y, yp: grid(y).T.reshape(-1) * grid(y).ravel() + yp,
    "axes": lambda t, y, yp: np.moveaxis(y.reshape(2, 3, 4), 0, 2).ravel() ** 2 + yp,
    "tile": lambda t, y, yp: np.tile(y[:6], 4) * np.repeat(y[:12], 2) + yp,
    "flip": lambda t, y, yp: np.flip(grid(y), axis=1).ravel() * np.rot90(grid(y)).ravel() + yp,
    "diff": lambda t, y, yp: np.append(np.diff(y, n=2), [y[0], y[-1]]) + yp,
    "gradient": lambda t, y, yp: np.gradient(y, 0.1) * y + yp,
    "gradient of a grid": lambda t, y, yp: np.gradient(grid(y))[1].ravel() + yp,
    "sum": lambda t, y, yp: yp + y * y.sum(),
    "sums along an axis": lambda t, y, yp: yp + np.tile(grid(y).sum(axis=1), 6),
    "mean": lambda t, y, yp: yp + y - np.mean(y**2),
    "dot": lambda t, y, yp: yp + y * np.dot(WEIGHTS, y) + y @ y,
    "norm": lambda t, y, yp: yp + y / np.linalg.norm(y),
    "cumsum": lambda t, y, yp: yp + np.cumsum(y) ** 2,
    "trapezoid": lambda t, y, yp: yp + y * np.trapezoid(y, dx=0.1),
    "dense product": lambda t, y, yp: DENSE @ y**2 + yp,
    "product from the left": lambda t, y, yp: y @ DENSE + yp,
    "product of a grid": lambda t, y, yp: (DENSE[:4, :4] @ grid(y)).ravel() + yp,
    "sparse product": lambda t, y, yp: SPARSE @ np.exp(y) + yp,
    "sparse product twice": lambda t, y, yp: SPARSE @ (y * (TRIDIAGONAL @ y)) + yp,
    "dot of a sparse matrix": lambda t, y, yp: SPARSE.dot(y) + yp,
    "convolve": lambda t, y, yp: np.convolve(y**2, [1.0, -2.0, 0.5], mode="same") + yp,
    "einsum": lambda t, y, yp: np.einsum("ij,j->i", DENSE, y) + yp,
    "einsum of a grid": lambda t, y, yp: np.einsum(
        "ij,ik->jk", grid(y), DENSE[:4, :4]).ravel() + yp,
    "outer": lambda t, y, yp: np.outer(y[:4], y[4:10]).ravel() + yp,
    "add.at": lambda t, y, yp: network(y, yp),
    "add.at on a grid": lambda t, y, yp: scattered_on_a_grid(y, yp),
    "bincount": lambda t, y, yp: yp + np.bincount(FROM, weights=y[TO] ** 2, minlength=N),
    "where": lambda t, y, yp: chosen(y, yp),
    "assigned where": lambda t, y, yp: assigned_where(y, yp),
    "clip": lambda t, y, yp: np.clip(y, 0.8, 1.2) * y + yp,
    "min and max": lambda t, y, yp: np.minimum(y, y[::-1]) + np.maximum(y, 1.0) + yp,
    "maximum of a row": lambda t, y, yp: yp + np.repeat(grid(y).max(axis=1), 6),
    "abs": lambda t, y, yp: np.abs(y - 1.0) * y + np.sign(y - 1.0) + yp,
    "interp": lambda t, y, yp: np.interp(y, [0.0, 0.7, 1.1, 3.0], [0.0, 2.0, 1.0, 4.0]) + yp,
    "functions": lambda t, y, yp: yp + sum(
        f(y) for f in (np.exp, np.log, np.sin, np.cos, np.tan, np.tanh, np.sqrt, np.arctan,
                       np.sinh, np.cosh, np.log1p, np.expm1, np.cbrt, np.square, np.log10)
    ),
    "functions of two": lambda t, y, yp: yp + np.arctan2(y, y[::-1]) + np.hypot(y, 2.0) + y % 0.3,
    "powers": lambda t, y, yp: yp + y**3 + y**-1 + y**0.5 + y**2.5 + 2.0**y + y**y[::-1],
    "shared and dear": lambda t, y, yp: yp + sum(np.roll(np.exp(y * y), k) for k in range(5)),
    "deep": lambda t, y, yp: yp + fluxes(fluxes(fluxes(y, yp), yp), yp),
    "scalars": lambda t, y, yp: yp + y[3] * y + np.exp(y[-1]),
    "meshgrid": lambda t, y, yp: yp + (np.meshgrid(y[:6], y[:4])[0] * grid(y)).ravel(),
    "tril": lambda t, y, yp: yp + np.triu(grid(y)).ravel() ** 2,
    "sum with numbers": lambda t, y, yp: yp + np.cumsum(np.concatenate([[2.0], y[1:] ** 2])),
    "like": lambda t, y, yp: yp + np.full_like(y, y[0]) * np.ones_like(y) + np.zeros_like(y),
    "number times a condition": lambda t, y, yp: yp + (y > 1.0) * y + ~(y > 1.0) * 2.0,
    "decides by time": lambda t, y, yp: yp + y if t > 1.0 else yp - y * y[::-1],
    "decides twice": lambda t, y, yp: yp + (y if t > 2.0 else y**2) + (1.0 if t > 1.0 else yp),
    "and, or": lambda t, y, yp: yp + np.where((y > 0.9) & (y < 1.1) | (y > 1.4), y, 0.0),
    "sum of conditions": lambda t, y, yp: yp + ((y > 1.0) + (y > 0.5)) * 1.0,
    "copy": lambda t, y, yp: np.array(y) + np.asarray(yp) + np.copy(y).flatten(),
}  # fmt: skip


def point(seed):
    draw = np.random.default_rng(seed)
    return draw.uniform(0.3, 1.7, N), draw.normal(size=N)


def jacobians(rows, t, y, yp):
    table = rows.table
    size = max(len(table.fy[0]), len(table.fyp[0]), 1)
    fy, fyp = np.zeros(size), np.zeros(size)
    rows.entries_into(t, y, yp, fy, fyp)
    shape = (N, N)
    return (
        csr_array((fy[: len(table.fy[0])], table.fy), shape=shape).toarray(),
        csr_array((fyp[: len(table.fyp[0])], table.fyp), shape=shape).toarray(),
    )


def differences(fun, t, y, yp):
    """Both Jacobians by central differences."""
    step = 1e-6
    found = []
    for dy, dyp in ((step, 0.0), (0.0, step)):
        columns = []
        for j in range(N):
            way = np.zeros(N)
            way[j] = 1.0
            up = np.asarray(fun(t, y + dy * way, yp + dyp * way))
            down = np.asarray(fun(t, y - dy * way, yp - dyp * way))
            columns.append((up - down) / (2 * step))
        found.append(np.array(columns).T)
    return found


@pytest.mark.parametrize("name", IDIOMS)
def test_values_and_jacobian_of_an_idiom(name):
    fun = IDIOMS[name]
    rows = Rows(trace_arrays(fun, N).table)
    for seed in range(3):
        t, (y, yp) = 0.3 + seed, point(seed)
        np.testing.assert_allclose(rows.values(t, y, yp), fun(t, y, yp), rtol=1e-12, atol=1e-12)
        f_y, f_yp = jacobians(rows, t, y, yp)
        known = differences(fun, t, y, yp)
        np.testing.assert_allclose(f_y, known[0], rtol=1e-6, atol=1e-6 * (1 + abs(known[0]).max()))
        np.testing.assert_allclose(f_yp, known[1], rtol=1e-6, atol=1e-6 * (1 + abs(known[1]).max()))


@pytest.mark.parametrize("name", IDIOMS)
def test_rates_of_an_idiom(name):
    """Differentiated with respect to time along y' = v, with other numbers in the place of y'."""
    def fun(t, y, yp):
        return IDIOMS[name](t, y, WEIGHTS + 0.0 * y)

    batches, outputs = trace_arrays(fun, N).source
    rows = Rows(fold(batches, rates(batches, outputs)))
    for seed in range(3):
        t, (y, v), step = 0.3 + seed, point(seed), 1e-6
        up, down = (np.asarray(fun(t + h, y + h * v, v)) for h in (step, -step))
        known = (up - down) / (2 * step)
        near = 1e-6 * (1 + abs(known).max())
        np.testing.assert_allclose(rows.values(t, y, v), known, rtol=1e-6, atol=near)


def test_what_depends_on_slopes_has_no_rate():
    batches, outputs = trace_arrays(lambda t, y, yp: y + yp**2, N).source
    with pytest.raises(Untraceable, match="depends on y'"):
        rates(batches, outputs)


LONG = 150
REDUCTIONS = {
    "max": lambda t, y, yp: [np.max(y * y[::-1]) * yp[0]],
    "min": lambda t, y, yp: [np.min(y) + y.max() * t],
    "fmax": lambda t, y, yp: [np.fmax.reduce(y[:101]) - np.fmin.reduce(np.exp(y))],
    "columns": lambda t, y, yp: np.reshape(y * yp, (-1, 2)).max(axis=0),
    "all and any": lambda t, y, yp: [np.where(np.all(y > -9.0), y[0] ** 2, 0.0),
                                     np.where(np.any(y > 9.0), 0.0, y[1] * yp[2])],
    "nested": lambda t, y, yp: [np.max(np.sqrt(y**2 + 1.0) - np.mean(y))],
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_many_elements(name):
    """They are combined by halves, and no template writes all of them out."""
    fun = REDUCTIONS[name]
    size = len(fun(0.0, np.ones(LONG), np.ones(LONG)))
    table = trace_arrays(fun, LONG, size=size).table
    assert table.templates < 40
    rows, room = Rows(table), max(len(table.fy[0]), len(table.fyp[0]))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        t, y, yp, step = 0.3 + seed, *rng.normal(size=(2, LONG)), 1e-6
        np.testing.assert_allclose(rows.values(t, y, yp), fun(t, y, yp), rtol=1e-12)
        entries, way = np.zeros((2, room)), rng.normal(size=(2, LONG))
        rows.entries_into(t, y, yp, *entries)
        slope = np.zeros(size)
        for places, values, v in zip((table.fy, table.fyp), entries, way, strict=True):
            np.add.at(slope, places[0], values[: len(places[0])] * v[places[1]])
        up, down = (np.asarray(fun(t, y + h * way[0], yp + h * way[1])) for h in (step, -step))
        np.testing.assert_allclose(slope, (up - down) / (2 * step), rtol=1e-6, atol=1e-6)
    assert np.isnan(rows.values(0.0, np.full(LONG, np.nan), np.ones(LONG))).any() == np.isnan(
        fun(0.0, np.full(LONG, np.nan), np.ones(LONG))).any()


REFUSED = {
    "product of many": lambda t, y, yp: yp + np.prod(np.tile(y, 4)),
    "decides": lambda t, y, yp: yp + y if y[0] > 1.0 else yp - y,
    "value": lambda t, y, yp: yp + float(y[0]) * y,
    "index": lambda t, y, yp: yp + y[int(y[0])],
    "text": lambda t, y, yp: yp + len(str(y)) * y,
    "sort": lambda t, y, yp: yp + np.sort(y),
    "argmax": lambda t, y, yp: yp + y.argmax(),
    "where without values": lambda t, y, yp: yp + len(np.where(y > 1.0)[0]),
    "picks": lambda t, y, yp: yp + y[y > 0.0].sum(),
    "integers": lambda t, y, yp: yp + y.astype(int),
    "view of bits": lambda t, y, yp: yp + y.view(np.int64),
    "single precision": lambda t, y, yp: yp + y.astype(np.float32),
    "counts": lambda t, y, yp: yp + (y > 1.0).sum(),
    "bytes": lambda t, y, yp: yp + len(y.tobytes()),
    "fft": lambda t, y, yp: yp + np.fft.fft(y).real,
    "kind of number": lambda t, y, yp: yp + y * isinstance(y[0], float),
    "rounds": lambda t, y, yp: yp + np.round(y, 1),
    "pad with means": lambda t, y, yp: yp + np.pad(y, 1, mode="mean")[1:-1],
    "nan to num": lambda t, y, yp: yp + np.nan_to_num(y),
    "too few": lambda t, y, yp: yp[1:],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_is_refused(name):
    with pytest.raises(TraceFailure):
        trace_arrays(REFUSED[name], N)


def test_writing_to_y_is_refused():
    def fun(t, y, yp):
        y[0] = 1.0
        return yp + y

    with pytest.raises(TraceFailure, match="writes to y"):
        trace_arrays(fun, N)


def test_programs_do_not_grow_with_the_unknowns():
    def heat(t, y, yp):
        u = np.pad(y, 1)
        return yp - (u[2:] - 2 * u[1:-1] + u[:-2])

    small, large = (trace_arrays(heat, n).table for n in (50, 5000))
    assert small.templates == large.templates == 3
    assert len(small.code) == len(large.code)


def test_arguments_are_inputs():
    def fun(t, y, yp, k, widths, pair):
        return yp + k * y * widths + pair[0]

    args = (2.0, WEIGHTS, (0.5, 1))
    found = trace_arrays(fun, N, args)
    y, yp = point(0)
    for args in ((2.0, WEIGHTS, (0.5, 1)), (3.0, WEIGHTS[::-1].copy(), (0.7, 1))):
        rows = Rows(found.table, found.args.flatten(args))
        np.testing.assert_allclose(rows.values(0.0, y, yp), fun(0.0, y, yp, *args), rtol=1e-13)


def test_out_is_filled():
    def fun(t, y, yp, out):
        out[:] = yp
        out[1:] += y[:-1]

    y, yp = point(0)
    expected = np.zeros(N)
    fun(0.0, y, yp, expected)
    rows = Rows(trace_arrays(fun, N, fills=True).table)
    np.testing.assert_allclose(rows.values(0.0, y, yp), expected)


def test_a_twin_has_memory_of_its_own():
    def fun(t, y, yp, k):
        return yp + k * np.cumsum(y)

    first = Rows(trace_arrays(fun, N, (1.0,)).table, [1.0])
    second = first.twin([2.0])
    y, yp = point(0)
    np.testing.assert_allclose(first.values(0.0, y, yp), fun(0.0, y, yp, 1.0))
    np.testing.assert_allclose(second.values(0.0, y, yp), fun(0.0, y, yp, 2.0))
    np.testing.assert_allclose(first.values(0.0, y, yp), fun(0.0, y, yp, 1.0))


def test_what_turns_with_time_alone_is_told():
    def fun(t, y, yp):
        heat = 2.0 if 0.5 < t < 0.7 else 0.0
        return yp + np.where(t > 0.2, y, -y) - heat + np.interp(t, [0.0, 0.3, 2.0], [0.0, 1.0, 1.0])

    found = trace_arrays(fun, N)
    assert not found.turns
    times, t = [], 0.0
    table = SwitchTimes.of(found.timed).timetable(np.zeros(0), 0.0, 1.0)
    while (t := table.next(t)) is not None:
        times.append(t)
    np.testing.assert_allclose(times, [0.2, 0.3, 0.5, 0.7])
    assert trace_arrays(lambda t, y, yp: yp + np.abs(y), N).turns
    assert trace_arrays(lambda t, y, yp: yp + np.where(y > t, y, 0.0), N).turns
    assert not trace_arrays(lambda t, y, yp: yp + np.sin(y), N).turns


def test_branches_share_what_is_the_same():
    def fun(t, y, yp):
        r = yp + np.exp(y)
        if t > 0.5:
            r[0] = y[0]
        return r

    table = trace_arrays(fun, N).table
    assert table.templates < 5
