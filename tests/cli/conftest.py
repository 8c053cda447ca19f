import sys

import pytest
from support.command_line import CommandLine


@pytest.fixture
def tether(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path, capsys)
