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

from tilewright.evaluator.judge.memory_reader import HostMemory, read_tensor
from tilewright.evaluator.judge.output_memory import overwrite

MAP_FIXED = 0x10
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
    # A page beyond the end of a file: an unmapped one could be mapped again by another thread.
    empty = os.memfd_create("empty")
    rights, fixed = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | MAP_FIXED
    assert libc.mmap(made.hole, PAGE, rights, fixed, empty, 0) == made.hole
    os.close(empty)
    yield made
    libc.munmap(made.address, 3 * PAGE)


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


# Inputs -------------------------------------------------------------------------------------------


def seen(memory: int, address: int, size: int, windows: list[list[int]]) -> bytes:
    """Return what the judge sees of inputs at an address; zeros where it does not look."""
    there = HostMemory(memory, address, memory, memory)
    arena, base = there.inputs(0, size, windows)
    return bytes(arena[base : base + size])  # type: ignore[index]


@given(
    size=st.integers(1, 300),
    base=st.integers(0, 40),
    windows=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=4),
)
def test_inputs_are_seen_exactly_in_the_windows(memory, size, base, windows):
    data = bytes(1 + number % 251 for number in range(base + size))
    there = ctypes.create_string_buffer(data, len(data))
    spans = [[min(start, size), min(start + length, size)] for start, length in windows]
    reader = HostMemory(memory, ctypes.addressof(there), memory, memory)
    arena, first = reader.inputs(base, size, spans)

    for place in range(size):
        inside = any(start <= place < stop for start, stop in spans)
        assert arena[first + place] == (data[base + place] if inside else 0)


def test_without_windows_nothing_is_read(memory):
    assert seen(memory, -1, 3, []) == bytes(3)
    assert seen(memory, -1, 3, [[2, 2]]) == bytes(3)


@pytest.mark.parametrize("address", UNREADABLE_ADDRESSES)
def test_unreadable_inputs_are_never_what_they_were(memory, address):
    value = torch.arange(8, dtype=torch.uint8)
    reader = HostMemory(memory, value.data_ptr(), memory, memory)
    arena, _ = reader.inputs(0, 8, [[0, 8]])
    assert list(arena[:8]) == list(range(8))
    reader._address = address
    arena, _ = reader.inputs(0, 8, [[0, 8]])
    assert not set(enumerate(arena[:8])) & set(enumerate(range(8)))


def test_a_window_across_an_unmapped_page_is_not_seen(memory, torn):
    size = 3 * PAGE
    there = seen(memory, torn.address, size, [[0, PAGE], [2 * PAGE, size]])
    assert there == b"\1" * PAGE + bytes(PAGE) + b"\3" * PAGE
    assert 1 not in seen(memory, torn.address, size, [[PAGE - 1, PAGE + 1]])


def test_inputs_are_written_whole_or_that_is_reported(torn):
    memory = os.open("/proc/self/mem", os.O_RDWR)
    image = mmap.mmap(-1, 3 * PAGE)
    image[:] = b"\7" * (3 * PAGE)
    writer = HostMemory(memory, torn.address, memory, memory)
    assert writer.write_inputs(0, image, PAGE)
    assert ctypes.string_at(torn.address, PAGE) == b"\7" * PAGE
    assert writer.write_inputs(2 * PAGE + 8, image, 16)
    assert ctypes.string_at(torn.behind, 32) == b"\3" * 8 + b"\7" * 16 + b"\3" * 8
    assert not writer.write_inputs(PAGE - 8, image, 16)
    assert not writer.write_inputs(PAGE, image, 16)
    assert writer.write_inputs(PAGE, image, 0)
    os.close(memory)
    assert not writer.write_inputs(0, image, 16)


@pytest.mark.parametrize("address", UNREADABLE_ADDRESSES)
def test_an_output_that_lies_nowhere_is_given_back_without_an_error(address):
    rights = os.O_RDWR | os.O_CLOEXEC
    maps, pages = (os.open(f"/proc/self/{name}", os.O_RDONLY) for name in ("maps", "pagemap"))
    memory = HostMemory(os.open("/proc/self/mem", rights), 0, maps, pages)
    for size in (8, 4 << 20):
        overwrite(memory, [(address, address + size)])
    memory.close()
