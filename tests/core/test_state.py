"""The core's memory: what the type checker knows of it is what it has."""

import subprocess
import sys

import numpy as np
import pytest
from support.helpers import ROOT

from tether._core.dense import Dense
from tether._core.state import State

STUB = ROOT / "src" / "tether" / "_core" / "state.pyi"


def test_the_stub_is_that_of_the_pxd():
    script = ROOT / ".ci" / "state_stub.py"
    if not (STUB.exists() and script.exists()):
        pytest.skip("not run in the repository")
    made = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    ).stdout
    kept = STUB.read_text(encoding="utf-8")
    assert made == kept, "run: python .ci/state_stub.py > src/tether/_core/state.pyi"


def test_views_are_the_memory_itself():
    state = State(Dense(3), 1e-3, [1e-6, 1e-5, 1e-4])
    state.y_now[:] = [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(state.array("phi")[:3], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(state.atols, [1e-6, 1e-5, 1e-4])
    assert state.kinds.tolist() == [0, 0, 0]


def test_a_run_goes_on_in_another_memory():
    old, new = State(Dense(3), 1e-3, 1e-6), State(Dense(2), 1e-3, 1e-6)
    old.steps, old.t_end, old.worst_drift = 17, 4.0, 1e-9
    new.take_over_from(old)
    assert (new.steps, new.t_end, new.worst_drift, new.n) == (17, 4.0, 1e-9, 2)
