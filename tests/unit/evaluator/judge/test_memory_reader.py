"""Reading a runner's memory through a descriptor gives its bytes or nothing, and never fails."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.judge.memory_reader import differs, read_tensor

PAGE = mmap.PAGESIZE
UNREADABLE_ADDRESSES = [
    *(0, 8, -1, -PAGE, -(1 << 63), -(1 << 64)),
    *((1 << 56), (1 << 57) - 1, (1 << 63) - 8, 1 << 63, (1 << 64) - 1, 1 << 64, 1 << 200),
]
"""Addresses that no process has mapped."""
libc = ctypes.CDLL(None, use_errno=True)
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


@pytest.fixture(scope="module")
def memory() -> Iterator[int]:
    """Yield a descriptor of this process's own memory, as a runner hands it over."""
    fd = os.open("/proc/self/mem", os.O_RDONLY)
    yield fd
    os.close(fd)


@dataclass(frozen=True)
class Torn:
    """Three pages whose middle one is not there."""

    address: int
    hole: int
    behind: int


@pytest.fixture
def torn() -> Iterator[Torn]:
    """Yield memory with a hole; its pages are full of 0x01 and 0x03."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = libc.mmap(None, 3 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    made = Torn(address, address + PAGE, address + 2 * PAGE)
    ctypes.memset(made.address, 1, PAGE)
    ctypes.memset(made.behind, 3, PAGE)
    assert libc.munmap(made.hole, PAGE) == 0
    yield made
    libc.munmap(made.address, PAGE)
    libc.munmap(made.behind, PAGE)


def test_a_tensor_is_read_with_its_exact_values(memory):
    for value in (
        torch.randn(3, 5),
        torch.randn(7, dtype=torch.float64),
        torch.randn(2, 2, 2).to(torch.bfloat16),
        torch.randn(3) > 0,
        torch.arange(5),
        torch.randn(4, dtype=torch.complex64),
        torch.tensor(2.5),
        torch.randn(1 << 20),
    ):
        there = read_tensor(memory, value.data_ptr(), value)
        assert there is not None
        assert (there.dtype, there.shape) == (value.dtype, value.shape)
        assert torch.equal(there, value)


def test_a_tensor_that_was_read_is_a_copy(memory):
    value = torch.ones(8)
    there = read_tensor(memory, value.data_ptr(), value)
    value.zero_()

    assert torch.equal(there, torch.ones(8))


def test_an_address_need_not_be_aligned(memory):
    raw = torch.arange(64, dtype=torch.uint8)
    there = read_tensor(memory, raw.data_ptr() + 3, torch.empty(4, dtype=torch.int32))

    assert there.view(torch.uint8).tolist() == list(range(3, 19))


def test_a_read_uses_shape_and_dtype_but_no_strides_of_the_expected_tensor(memory):
    value = torch.arange(6.0)
    there = read_tensor(memory, value.data_ptr(), torch.empty(3, 2).T)

    assert there.is_contiguous()
    assert there.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize("address", UNREADABLE_ADDRESSES)
def test_an_unmapped_address_gives_no_tensor(memory, address):
    assert read_tensor(memory, address, torch.empty(4)) is None


@pytest.mark.parametrize("address", UNREADABLE_ADDRESSES)
def test_an_empty_tensor_is_read_from_any_address(memory, address):
    there = read_tensor(memory, address, torch.empty(3, 0, 2, dtype=torch.float16))

    assert (there.shape, there.dtype) == ((3, 0, 2), torch.float16)


def test_a_tensor_across_an_unmapped_page_is_not_read(memory, torn):
    def byte_count(count: int) -> torch.Tensor:
        return torch.empty(count, dtype=torch.uint8)

    # Up to the hole and behind it all is there; one byte into it, or beyond it, nothing is.
    assert read_tensor(memory, torn.address, byte_count(PAGE)).unique().tolist() == [1]
    assert read_tensor(memory, torn.behind, byte_count(PAGE)).unique().tolist() == [3]
    assert read_tensor(memory, torn.address, byte_count(PAGE + 1)) is None
    assert read_tensor(memory, torn.address, byte_count(3 * PAGE)) is None
    assert read_tensor(memory, torn.hole, byte_count(1)) is None
    assert read_tensor(memory, torn.behind - 1, byte_count(2)) is None


def test_memory_of_an_ended_process_gives_no_tensor():
    # At its end such a descriptor reads as empty, as this file does.
    gone = os.memfd_create("gone")
    assert read_tensor(gone, 0, torch.empty(4)) is None
    os.truncate(gone, 15)
    assert read_tensor(gone, 0, torch.empty(4)) is None
    os.truncate(gone, 16)
    assert read_tensor(gone, 0, torch.empty(4)).tolist() == [0.0] * 4
    os.close(gone)
    assert read_tensor(gone, 0, torch.empty(4)) is None


# Windows ------------------------------------------------------------------------------------------


def image_of(data: bytes) -> mmap.mmap:
    image = mmap.mmap(-1, len(data))
    image[:] = data
    return image


def flipped(data: bytes, place: int) -> tuple[ctypes.Array[ctypes.c_char], int]:
    """Return memory that holds `data` but for one byte, and its address."""
    there = ctypes.create_string_buffer(data, len(data))
    there[place] = data[place] ^ 1
    return there, ctypes.addressof(there)


@pytest.mark.parametrize(
    ("place", "found"), [(99, False), (100, True), (150, True), (199, True), (200, False)]
)
def test_a_changed_byte_is_found_inside_a_window_and_not_outside(memory, place, found):
    data = bytes(number % 251 for number in range(600))
    _there, address = flipped(data, place)

    assert differs(memory, address, image_of(data), [[100, 200]]) is found
    # The other windows hide nothing, in whatever order.
    assert differs(memory, address, image_of(data), [[300, 400], [100, 200]]) is found
    assert differs(memory, address, image_of(data), [[100, 200], [300, 400]]) is found


@given(
    place=st.integers(0, 299),
    windows=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=4),
)
def test_a_changed_byte_is_found_exactly_where_a_window_covers_it(memory, place, windows):
    data = bytes(number % 251 for number in range(300))
    _there, address = flipped(data, place)
    spans = [[start, min(start + size, 300)] for start, size in windows]
    looked_at = any(start <= place < stop for start, stop in spans)

    assert differs(memory, address, image_of(data), spans) is looked_at


def test_without_windows_nothing_is_read(memory):
    image = image_of(b"abc")

    assert not differs(memory, -1, image, [])
    assert not differs(memory, -1, image, [[2, 2]])


@pytest.mark.parametrize("address", UNREADABLE_ADDRESSES)
def test_unreadable_memory_counts_as_different(memory, address):
    assert differs(memory, address, image_of(bytes(8)), [[0, 8]])


def test_a_window_across_an_unmapped_page_counts_as_different(memory, torn):
    image = image_of(b"\1" * (2 * PAGE) + b"\3" * PAGE)

    assert not differs(memory, torn.address, image, [[0, PAGE], [2 * PAGE, 3 * PAGE]])
    assert differs(memory, torn.address, image, [[PAGE - 1, PAGE + 1]])
