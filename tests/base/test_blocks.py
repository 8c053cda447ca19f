"""Large blocks of memory go from one run to the next, and never while somebody looks at them."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tether.base import blocks

LARGE = 2 * blocks.SMALLEST


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(blocks, "_spare", {})


def address(array):
    return array.__array_interface__["data"][0]


def test_a_block_is_handed_on_and_is_zero_again():
    first = blocks.zeros(LARGE)
    first[:] = 1.0
    place = address(first)
    del first
    second = blocks.zeros(LARGE - 5)
    assert address(second) == place
    assert second.shape == (LARGE - 5,)
    assert not second.any()


def test_a_view_keeps_its_block():
    first = blocks.zeros(LARGE)
    part = first.reshape(2, -1)[1, 3:7][::2]
    part[:] = 5.0
    del first
    second = blocks.zeros(LARGE)
    second[:] = 2.0
    assert np.array_equal(part, [5.0, 5.0])
    del part
    assert len(blocks._spare) == 1


def test_small_and_much_larger_blocks_are_not_handed_on():
    small = blocks.zeros(5)
    del small
    assert not blocks._spare
    large = blocks.zeros(5 * LARGE)
    del large
    medium = blocks.zeros(LARGE)
    assert len(medium) == LARGE
    assert len(blocks._spare) == 1


def test_not_more_than_so_much_is_kept(monkeypatch):
    monkeypatch.setattr(blocks, "MOST", 2 * LARGE)
    several = [blocks.zeros(LARGE) for _ in range(4)]
    del several
    assert sum(map(len, blocks._spare.values())) == 2 * LARGE


def test_threads_never_share_a_block():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def use(mark):
        for _ in range(300):
            block = blocks.zeros(LARGE)
            if block[7] != 0.0:
                return False
            block[7] = mark
            time.sleep(0)
            if block[7] != mark:
                return False
            del block
        return True

    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(use, range(1, 5)))
    finally:
        sys.setswitchinterval(before)
