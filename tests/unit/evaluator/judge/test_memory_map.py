"""The memory at an address: the kernel answers for it, or the printed map is read."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator

import pytest
import torch

from tilewright.evaluator.judge.memory_map import MemoryMap
from tilewright.wire.names import OutputMemory

PAGE = mmap.PAGESIZE
SHARED, FILE, UNMAPPED = OutputMemory.SHARED, OutputMemory.FILE, OutputMemory.UNMAPPED
libc = ctypes.CDLL(None, use_errno=True)
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


@pytest.fixture(params=["asked", "printed"])
def own_map(request: pytest.FixtureRequest) -> Iterator[MemoryMap]:
    """The memory map of this process, asked in either way."""
    made = MemoryMap(os.open("/proc/self/maps", os.O_RDONLY))
    if request.param == "printed":
        made._answers_queries = False
    yield made
    made.close()


def printed(*lines: str) -> MemoryMap:
    """Return a memory map that consists of these lines, in a file."""
    fd = os.memfd_create("maps")
    os.write(fd, "".join(f"{line}\n" for line in lines).encode())
    return MemoryMap(fd)


def area(flags: int, fd: int = -1, pages: int = 3) -> int:
    rights = mmap.PROT_READ | mmap.PROT_WRITE
    address: int = libc.mmap(None, pages * PAGE, rights, flags, fd, 0)
    assert address != ctypes.c_void_p(-1).value
    return address


def test_private_memory_is_nothing_else(own_map):
    value = torch.randn(1 << 20)
    start = value.data_ptr()

    assert own_map.kinds(start, start + value.nbytes) == set()
    assert own_map.kinds(start, start) == set()


@pytest.mark.parametrize(
    ("flags", "of_file", "kinds"),
    [
        (mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, False, set()),
        (mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, False, {SHARED}),
        (mmap.MAP_SHARED, True, {SHARED}),
        # A private mapping copies a page of the file when it is written.
        (mmap.MAP_PRIVATE, True, {FILE}),
    ],
)
def test_shared_memory_and_files_are_found(own_map, flags, of_file, kinds):
    fd = os.memfd_create("theirs") if of_file else -1
    if of_file:
        os.ftruncate(fd, 3 * PAGE)
    address = area(flags, fd)
    ctypes.memset(address, 1, 3 * PAGE)

    for start, stop in ((0, 3 * PAGE), (PAGE, 2 * PAGE), (5, 6), (3 * PAGE - 1, 3 * PAGE)):
        assert own_map.kinds(address + start, address + stop) == kinds
    libc.munmap(address, 3 * PAGE)
    if of_file:
        os.close(fd)


def test_a_hole_is_no_memory(own_map):
    address = area(mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    libc.munmap(address + PAGE, PAGE)

    assert own_map.kinds(address, address + PAGE) == set()
    assert own_map.kinds(address + 2 * PAGE, address + 3 * PAGE) == set()
    for start, stop in ((0, 3), (0, 2), (1, 3), (1, 2)):
        assert own_map.kinds(address + start * PAGE, address + stop * PAGE) == {UNMAPPED}
    libc.munmap(address, PAGE)
    libc.munmap(address + 2 * PAGE, PAGE)


@pytest.mark.parametrize("address", [0, 1 << 46, 1 << 56, (1 << 57) - 64, (1 << 64) - 64])
def test_an_address_that_no_process_has_mapped_is_no_memory(own_map, address):
    assert own_map.kinds(address, address + 8) == {UNMAPPED}


def test_a_range_of_several_kinds_has_all_of_them(own_map):
    address = area(mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    fixed = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x10
    rights = mmap.PROT_READ | mmap.PROT_WRITE
    assert libc.mmap(address + PAGE, PAGE, rights, fixed, -1, 0) == address + PAGE
    libc.munmap(address + 2 * PAGE, PAGE)

    assert own_map.kinds(address, address + PAGE) == set()
    assert own_map.kinds(address, address + 2 * PAGE) == {SHARED}
    assert own_map.kinds(address, address + 3 * PAGE) == {SHARED, UNMAPPED}
    libc.munmap(address, 2 * PAGE)


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        (["1000-9000 rw-p 00000000 00:00 0"], set()),
        (["1000-3000 rw-p 00000000 00:00 0", "3000-9000 rw-p 00000000 00:00 0 [anon: a]"], set()),
        (["1000-9000 rw-s 00000000 00:01 7 /memfd:inputs (deleted)"], {SHARED}),
        (["1000-9000 rw-p 00000000 00:01 7 /memfd:inputs (deleted)"], {FILE}),
        (["1000-3000 rw-p 00000000 00:00 0", "4000-9000 rw-p 00000000 00:00 0"], {UNMAPPED}),
        (["1000-3000 rw-p 00000000 00:00 0"], {UNMAPPED}),
        (["3000-9000 rw-p 00000000 00:00 0"], {UNMAPPED}),
        (
            ["1000-3000 rw-s 00000000 00:01 7 a", "3000-9000 rw-p 00000000 00:01 8 b"],
            {SHARED, FILE},
        ),
        # The names of files are the candidate's.
        (["0-1000 rw-s 00000000 00:01 7 /memfd:a\rb", "1000-9000 rw-p 00000000 00:00 0"], set()),
        (["1000-9000 rw-p 00000000 00:01 7 a\r1000-9000 rw-p 00000000 00:00 0"], {FILE}),
        (["1000-9000 rw-p 00000000 00:01 7 a\x0b\x0c\x1c\x85\u2028 b"], {FILE}),
        (["1000-9000 rw-p 00000000 00:01 7 00:00 0 rw-p"], {FILE}),
        (["0-2000 rw-s 00000000 00:01 7 x", "2000-4000 rw-p 00000000 00:00 0"], set()),
        (["2000-4000 rw-p 00000000 00:00 0", "4000-5000 rw-s 00000000 00:01 7 x"], set()),
        ([], {UNMAPPED}),
    ],
)
def test_the_printed_map_is_read_where_the_kernel_answers_no_question(lines, kinds):
    made = printed(*lines)
    # A file refuses the question. What it answers is read from its beginning each time.
    assert [made.kinds(0x2000, 0x4000) for _ in range(2)] == [kinds] * 2
    made.close()


def test_a_map_longer_than_one_read_is_read_whole():
    made = printed(
        *[f"{i << 16:x}-{i + 1 << 16:x} rw-s 00000000 00:01 7 {'x' * 200}" for i in range(1000)],
        f"{1000 << 16:x}-{1001 << 16:x} rw-p 00000000 00:00 0",
    )
    assert made.kinds(1000 << 16, 1001 << 16) == set()
    assert made.kinds(999 << 16, 1001 << 16) == {SHARED}
    made.close()
