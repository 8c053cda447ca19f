"""Packages that are optional."""

import pytest

from tether.base.optional import as_label, load_optional


def test_what_is_there_is_imported():
    assert load_optional("os.path", "x").sep


def test_what_is_missing_is_named():
    with pytest.raises(ImportError, match=r"^that needs not_there: pip install not_there$"):
        load_optional("not_there.part", "that")


def test_labels_are_shown_as_they_are():
    assert as_label("$x$") == r"\$x\$"
    assert as_label("_x") == " _x"
