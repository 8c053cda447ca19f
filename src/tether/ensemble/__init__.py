"""Ensembles: one problem solved for many parameters and starting values.

`tether.solve_ensemble` solves them; the functions here help to choose the members.
"""

from tether.ensemble.members import shared
from tether.ensemble.result import EnsembleResult
from tether.ensemble.sample import latin_hypercube, product, sobol
from tether.ensemble.solve import solve_ensemble

__all__ = [
    "EnsembleResult",
    "latin_hypercube",
    "product",
    "shared",
    "sobol",
    "solve_ensemble",
]
