"""What tests of ensembles share."""

import signal

import pytest


@pytest.fixture(autouse=True)
def _keyboard():
    """Let Ctrl-C interrupt: programs that a shell runs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
