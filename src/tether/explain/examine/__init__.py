"""Why a run failed: from its last attempts, and by evaluating the residual.

Nothing here runs in a step. The user's function is called some hundred times at the point of
failure, through a state of its own, so that the run that failed stays as it was.
"""

from tether.explain.examine.verdict import diagnose

__all__ = ["diagnose"]
