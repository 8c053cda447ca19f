"""Pencils (E, A) whose structure is known, and the index of a pencil."""

import numpy as np


def orthogonal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def well_conditioned(rng, n, condition=10.0):
    """A dense matrix with singular values spread over `condition`."""
    values = condition ** rng.uniform(-0.5, 0.5, n)
    return orthogonal(rng, n) * values @ orthogonal(rng, n)


def transformed(rng, E, A):
    """Combine equations and variables at random."""
    P, Q = well_conditioned(rng, len(E)), well_conditioned(rng, len(E))
    return P @ E @ Q, P @ A @ Q


def noisy(rng, E, A, noise=1e-8):
    """Add what finite differences leave: everywhere, relative to the largest entry of the row."""
    size = np.maximum(np.abs(E), np.abs(A)).max(axis=1, keepdims=True)
    E = E + 1e-2 * noise * size * rng.standard_normal(E.shape)
    return E, A + noise * size * rng.standard_normal(A.shape)


def side_by_side(*pencils):
    """Block diagonal sum of pencils (E, A), square or not."""
    shape = np.sum([E.shape for E, _ in pencils], axis=0)
    sums = np.zeros(shape), np.zeros(shape)
    for whole, part in zip(sums, zip(*pencils, strict=True), strict=True):
        i = j = 0
        for block in part:
            m, n = block.shape
            whole[i : i + m, j : j + n] = block
            i, j = i + m, j + n
    return sums


def nilpotent(size):
    return np.eye(size, k=1), np.eye(size)


def states(rng, size):
    return np.eye(size), rng.standard_normal((size, size))


def wide(size):
    """L_k: k equations for k + 1 variables."""
    return np.eye(size, size + 1), np.eye(size, size + 1, k=1)


def tall(size):
    """The transpose of L_k."""
    return np.eye(size + 1, size), np.eye(size + 1, size, k=-1)


def random_kronecker(rng, index, largest=30):
    """Kronecker form of that index, blocks at random; returns E, A and the number of states."""
    left = int(rng.integers(index + 1, largest + 1)) - index
    blocks = [nilpotent(index)] if index else []
    while index and left > 1 and rng.random() < 0.5:
        size = int(rng.integers(1, min(index, left - 1) + 1))
        blocks.append(nilpotent(size))
        left -= size
    return *side_by_side(states(rng, left), *blocks), left


def hessenberg(rng, index, nx=6, m=3):
    """x' = a x + b z, 0 = c x + d z with d = 0 at index 2."""
    E = np.diag([1.0] * nx + [0.0] * m)
    A = rng.standard_normal((nx + m, nx + m))
    if index == 2:
        A[nx:, nx:] = 0.0
    return E, A


def multibody(rng, nq=5, m=2):
    """q' = v, M v' + D v + K q + G' lambda = 0, G q = 0 with dense random matrices."""
    root = rng.standard_normal((nq, nq))
    K, D, G = (rng.standard_normal(shape) for shape in [(nq, nq), (nq, nq), (m, nq)])
    E, A = np.zeros((2, 2 * nq + m, 2 * nq + m))
    q, v, multipliers = np.split(np.arange(2 * nq + m), [nq, 2 * nq])
    E[np.ix_(q, q)], E[np.ix_(v, v)] = np.eye(nq), root @ root.T + np.eye(nq)
    A[np.ix_(q, v)] = -np.eye(nq)
    A[np.ix_(v, q)], A[np.ix_(v, v)] = K, D
    A[np.ix_(v, multipliers)], A[np.ix_(multipliers, q)] = G.T, G
    return E, A


def pendulum(angle, speed=0.5):
    """x' = u, z' = v, u' = -lam x, v' = -lam z - g, 0 = x^2 + z^2 - 1 on the circle."""
    x, z = np.cos(angle), np.sin(angle)
    lam = speed**2 - 9.81 * z
    A = np.zeros((5, 5))
    A[0, 2] = A[1, 3] = -1.0
    A[2, 0] = A[3, 1] = lam
    A[2, 4], A[3, 4] = x, z
    A[4, :2] = 2 * x, 2 * z
    return np.diag([1.0, 1.0, 1.0, 1.0, 0.0]), A


def ggl_pendulum(angle, speed=0.5):
    """The pendulum with x' = u - mu x, z' = v - mu z and 0 = x u + z v besides, at mu = 0."""
    E, A = side_by_side(pendulum(angle, speed), (np.zeros((1, 1)), np.zeros((1, 1))))
    x, z = np.cos(angle), np.sin(angle)
    A[0, 5], A[1, 5] = x, z
    A[5, :4] = -speed * z, speed * x, x, z
    return E, A


def amplifier():
    """Three nodes, a capacitor between the first two and one to earth: E has no zero column."""
    E = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    return E, np.array([[1.0, 0.0, 0.5], [0.3, 2.0, 0.0], [0.0, 0.7, 1.0]])


def chain(size=3):
    """y2' = y1, y3' = y2, ..., 0 = y_n - g(t): P82's canonical form of that nilpotency."""
    E, A = np.eye(size, k=1), -np.eye(size)
    A[-1, -1] = 1.0
    return E, A


def chain_with_state():
    """The chain and x' = -x + y1."""
    E, A = side_by_side(chain(), (np.eye(1), np.eye(1)))
    A[3, 0] = -1.0
    return E, A


def jacobians(fun, t, y, yp):
    """F_y' and F_y by central differences."""
    pair = []
    for moves_yp in (True, False):
        columns = []
        for j in range(len(y)):
            step = np.zeros(len(y))
            step[j] = 6e-6 * max(1.0, abs(yp[j] if moves_yp else y[j]))
            ends = [
                np.array(fun(t, y, yp + s) if moves_yp else fun(t, y + s, yp), float)
                for s in (step, -step)
            ]
            columns.append((ends[0] - ends[1]) / (2 * step[j]))
        pair.append(np.column_stack(columns))
    return pair


def double_pendulum(t, y, yp):
    """Two unit masses on two unit rods, index 3."""
    q, v, lam = y[:4], y[4:8], y[8:]
    first, second = q[:2], q[2:] - q[:2]
    force = np.concatenate([lam[0] * first - lam[1] * second, lam[1] * second])
    weight = np.array([0.0, 9.81, 0.0, 9.81])
    constraints = [first @ first - 1.0, second @ second - 1.0]
    return np.concatenate([yp[:4] - v, yp[4:8] + force + weight, constraints])


def car_axis(t, y, yp):
    """The car axis of the test set, index 3, with the road at the height y_b."""
    k, y_b = 5e-4, 0.1 * np.sin(10 * t)
    x_b = np.sqrt(1.0 - y_b**2)
    left, right, lam = y[:2], y[2:4], y[8:]
    base = np.array([x_b, y_b])
    pull_left = (0.5 / np.linalg.norm(left) - 1.0) * left
    pull_right = (0.5 / np.linalg.norm(right - base) - 1.0) * (right - base)
    gap = left - right
    gravity = np.array([0.0, k])
    return np.concatenate([
        yp[:4] - y[4:8],
        k * yp[4:6] - pull_left - lam[0] * base - 2 * lam[1] * gap + gravity,
        k * yp[6:8] - pull_right + 2 * lam[1] * gap + gravity,
        [base @ left, gap @ gap - 1.0],
    ])


CAR_AXIS = np.array([0.0, 0.5, 1.0, 0.5, -0.5, 0.0, -0.5, 0.0, 0.0, 0.0])


def pencil_index(f_y, f_yp):
    """Index of the pencil (F_y, F_y'): the steps after which the powers' ranks stop falling.

    For equations in Hessenberg form, as those of mechanisms are, this is the differentiation
    index. The powers are those of N = (s F_y' + F_y)^-1 F_y', taken on the range of the previous
    one, and equations and unknowns are scaled first: both may be of any size.
    """
    f_y, f_yp = np.asarray(f_y, float), np.asarray(f_yp, float)
    matrix = np.abs(f_y) + np.abs(f_yp)
    rows = columns = np.ones(len(matrix))
    for _ in range(30):
        rows = 1 / np.sqrt((matrix * rows[:, None] * columns).max(axis=1)) * rows
        columns = 1 / np.sqrt((matrix * rows[:, None] * columns).max(axis=0)) * columns
    f_y, f_yp = (rows[:, None] * part * columns for part in (f_y, f_yp))
    power = np.linalg.solve(f_yp + f_y, f_yp)
    basis, index = np.eye(len(power)), 0
    while True:
        left, sizes, _ = np.linalg.svd(power @ basis)
        rank = int(np.sum(sizes > 1e-7 * max(1.0, sizes[0])))
        if rank == basis.shape[1]:
            return index
        basis, index = left[:, :rank], index + 1
