"""Arrays whose memory the core reads."""

import numpy as np
import pytest

from tether._core.begin import begin
from tether._core.dense import Dense
from tether._core.probe import weighted_size
from tether._core.state import State


def test_arrays_that_are_too_short_are_refused():
    """Otherwise whatever lies behind them would be read."""
    state = State(Dense(3), 1e-6, 1e-9)
    for y, yp in ((np.ones(2), np.ones(3)), (np.ones(3), np.ones(2))):
        with pytest.raises(ValueError, match="3 numbers are needed, got 2"):
            begin(state, 0.0, y, yp, 1e-3)
    begin(state, 0.0, np.ones(6)[::2], np.ones(3, int), 1e-3)      # copied where that is needed
    with pytest.raises(ValueError, match="3 numbers are needed, got 1"):
        weighted_size(state, np.ones(1))
