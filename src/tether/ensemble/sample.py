"""Grids and samples of parameters, as arguments of `tether.solve_ensemble`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["latin_hypercube", "product", "sobol"]


def product(**values: ArrayLike) -> dict[str, np.ndarray]:
    """Return all combinations of values, the last one changing fastest.

    Parameters
    ----------
    **values : array_like
        Values of every parameter, under its name in fun; a number is a single value.

    Returns
    -------
    dict of ndarray
        For `args`: arrays with one value for every combination.

    Examples
    --------
    >>> from tether.ensemble import product
    >>> grid = product(mass=[1.0, 2.0], length=[0.5, 1.0, 1.5])
    >>> grid["mass"].tolist(), grid["length"].tolist()
    ([1.0, 1.0, 1.0, 2.0, 2.0, 2.0], [0.5, 1.0, 1.5, 0.5, 1.0, 1.5])
    """
    arrays = {name: np.atleast_1d(np.asarray(value)) for name, value in values.items()}
    for name, array in arrays.items():
        if array.ndim != 1:
            raise ValueError(f"{name} must be a number or a vector, got shape {array.shape}")
    if not arrays:
        raise ValueError("product needs the values of at least one parameter")
    grids = np.meshgrid(*arrays.values(), indexing="ij")
    return {name: grid.ravel() for name, grid in zip(arrays, grids, strict=True)}


def latin_hypercube(
    count: int, *, seed: Any = None, **ranges: tuple[float, float]
) -> dict[str, np.ndarray]:
    """Return a Latin hypercube sample: every parameter is spread evenly over its range.

    Parameters
    ----------
    count : int
        Number of members.
    seed : int or numpy.random.Generator, optional
        For the same sample in every run.
    **ranges : pair of float
        Lowest and highest value of every parameter, under its name in fun.

    Returns
    -------
    dict of ndarray
        For `args`.

    Examples
    --------
    >>> from tether.ensemble import latin_hypercube
    >>> sample = latin_hypercube(100, seed=1, mass=(1.0, 2.0), length=(0.5, 1.5))
    >>> sample["mass"].shape, bool(sample["length"].min() >= 0.5)
    ((100,), True)
    """
    return _sample("LatinHypercube", count, seed, ranges)


def sobol(
    count: int, *, seed: Any = None, **ranges: tuple[float, float]
) -> dict[str, np.ndarray]:
    """Return a scrambled Sobol sample, which covers the ranges more evenly than random numbers.

    Parameters
    ----------
    count : int
        Number of members; a power of two is best.
    seed : int or numpy.random.Generator, optional
        For the same sample in every run.
    **ranges : pair of float
        Lowest and highest value of every parameter, under its name in fun.

    Returns
    -------
    dict of ndarray
        For `args`.

    Examples
    --------
    >>> from tether.ensemble import sobol
    >>> sample = sobol(64, seed=1, mass=(1.0, 2.0))
    >>> round(float(sample["mass"].mean()), 2)
    1.5
    """
    return _sample("Sobol", count, seed, ranges)


def _sample(
    kind: str, count: int, seed: Any, ranges: Mapping[str, tuple[float, float]]
) -> dict[str, np.ndarray]:
    from scipy.stats import qmc  # late, to save time

    if not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(f"count must be a positive integer, got {count!r}")
    if not ranges:
        raise ValueError("a sample needs the range of at least one parameter, as mass=(1.0, 2.0)")
    low, high = np.array([_range(name, pair) for name, pair in ranges.items()]).T
    make = getattr(qmc, kind)
    name = "rng" if "rng" in inspect.signature(make).parameters else "seed"    # SciPy before 1.15
    sampler = make(d=len(ranges), **{name: np.random.default_rng(seed)})
    with warnings.catch_warnings():            # that the count is not a power of two
        warnings.simplefilter("ignore", UserWarning)
        points = low + (high - low) * sampler.random(count)
    return {name: points[:, k].copy() for k, name in enumerate(ranges)}


def _range(name: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (lowest, highest), got {pair!r}") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"{name} must be a pair (lowest, highest) of finite numbers, got {pair!r}")
    return low, high
