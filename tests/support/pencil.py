"""Index of a linearised DAE."""

import numpy as np


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
