"""The studies as commands."""

import numpy as np
import pytest

from tether.studies import conditioning, estimates, formulations, nilpotency, orders, steep

COMMANDS = {
    conditioning: ("Slopes of the condition number", True),
    orders: ("Observed orders", False),
    steep: ("Steep curves", True),
    nilpotency: ("What solve_dae says", False),
    formulations: ("double pendulum on", True),
    estimates: ("Share of the tolerance", False),
}


@pytest.mark.parametrize("study", COMMANDS, ids=lambda study: study.__name__.split(".")[-1])
def test_command(study, capsys, monkeypatch, tmp_path):
    heading, draws = COMMANDS[study]
    picture = tmp_path / "pictures" / "study.png"
    if draws:
        pytest.importorskip("matplotlib")
        monkeypatch.setattr(formulations, "RTOLS", np.array([1e-3, 1e-4]))
    monkeypatch.setattr(steep, "MAX_STEPS", 2000)
    monkeypatch.setattr(orders, "ORDERS", (1, 2))
    study.main(["--plot", str(picture)] if draws else [])
    printed = capsys.readouterr()
    assert heading in printed.out
    assert "| ---: |" in printed.out
    assert printed.err == ""
    assert picture.exists() == draws
