"""Fixtures shared by the tests."""

import pytest
from helpers import C_SOURCE, compile_c, has_compiler


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The C functions of `helpers.C_SOURCE`."""
    if not has_compiler():
        pytest.skip("no C compiler")
    return compile_c(C_SOURCE, tmp_path_factory.mktemp("library"))
