"""Which pages of a process hold something that somebody wrote."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator

import pytest

from tilewright.evaluator.judge.written_pages import WrittenPages

PAGE = mmap.PAGESIZE
PAGES = 1024
"""Twice as many as have ranges in one scan, with a page between two written ones."""


@pytest.fixture(params=[True, False])
def pages(request) -> Iterator[WrittenPages]:
    made = WrittenPages(os.open("/proc/self/pagemap", os.O_RDONLY))
    made._can_scan = request.param
    yield made
    made.close()


@pytest.fixture
def memory() -> Iterator[tuple[mmap.mmap, int]]:
    held = mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.madvise(mmap.MADV_NOHUGEPAGE)
    first = ctypes.c_char.from_buffer(held)
    address = ctypes.addressof(first)
    del first
    yield held, address
    held.close()


def test_pages_that_nobody_wrote_are_counted(pages, memory):
    held, start = memory
    assert pages.unwritten_bytes(start, start + PAGES * PAGE) == PAGES * PAGE
    for page in range(0, PAGES, 2):
        held[page * PAGE] = 1
    assert pages.unwritten_bytes(start, start + PAGES * PAGE) == PAGES * PAGE // 2


def test_only_whole_pages_count(pages, memory):
    _, start = memory
    assert pages.unwritten_bytes(start + 1, start + 3 * PAGE - 1) == PAGE
    assert pages.unwritten_bytes(start + 1, start + PAGE) == 0


def test_pages_that_were_only_read_are_unwritten_where_the_kernel_tells(memory):
    held, start = memory
    release = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2]))
    made = WrittenPages(os.open("/proc/self/pagemap", os.O_RDONLY))
    assert held[5 * PAGE] == 0
    found = made.unwritten_bytes(start, start + PAGES * PAGE)
    assert made._can_scan or release < (6, 7)
    assert found == (PAGES if made._can_scan else PAGES - 1) * PAGE
    made.close()


def test_where_nothing_is_mapped_nothing_is_written(pages):
    assert pages.unwritten_bytes(PAGE, 3 * PAGE) == 2 * PAGE
    assert pages.unwritten_bytes((1 << 64) - 4 * PAGE, (1 << 64) - 2 * PAGE) == 2 * PAGE
    assert pages.unwritten_bytes((1 << 64) - PAGE, (1 << 64) + PAGE) == 2 * PAGE
    assert pages.unwritten_bytes((1 << 56) - PAGE, 1 << 57) >= 1 << 56
