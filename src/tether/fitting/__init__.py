"""Fit parameters to measurements: least squares with exact derivatives, and judge the result."""

from tether.fitting.directions import Direction
from tether.fitting.fit import fit
from tether.fitting.profile import Profile
from tether.fitting.result import FitResult

__all__ = ["Direction", "FitResult", "Profile", "fit"]
