"""Orders of the BDF (LP1)."""

import pytest

from tether.studies import orders


def cells(table):
    """Rows of a Markdown table without head and rule."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_orders_table():
    """The orders themselves are asked for in test_fixed.py."""
    found = orders.measure((1, 2))
    rows = cells(orders.order_table(found))
    assert [row[0] for row in rows[:3]] == [
        "circuit, index 1", "flow, index 2", "mechanism, index 3"
    ]
    assert all(float(row[2]) >= orders.LEAST_ORDER[2] for row in rows[:3])
    assert float(rows[3][1]) == pytest.approx(0, abs=0.1)
    assert float(rows[3][2]) == pytest.approx(1, abs=0.1)
