"""The allocator inside the judge's memory block: first fit, merged when freed."""

from __future__ import annotations

import ctypes
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.toolchain import pool_library

GRAIN, START, SIZE = 512, 1 << 40, 64 * 512

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    loaded = ctypes.CDLL(str(pool_library(tmp_path_factory.mktemp("home"))))
    loaded.tw_pool_open.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    loaded.tw_pool_allocate.restype = ctypes.c_void_p
    loaded.tw_pool_allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    loaded.tw_pool_release.argtypes = [
        *(ctypes.c_void_p, ctypes.c_ssize_t),
        *(ctypes.c_int, ctypes.c_void_p),
    ]
    return loaded


@pytest.fixture
def pool(library):
    library.tw_pool_open(START, SIZE)
    return library


def take(pool, size):
    return pool.tw_pool_allocate(size, 0, None)


def give(pool, address, size):
    pool.tw_pool_release(address, size, 0, None)


def test_allocations_lie_inside_the_block_and_do_not_overlap(pool):
    places = [take(pool, size) for size in (1, 512, 513)]
    assert places == [START, START + 512, START + 1024]
    assert take(pool, 1) == START + 2048


def test_freed_neighbours_are_merged(pool):
    whole = [take(pool, SIZE // 4) for _ in range(4)]
    for place in (whole[1], whole[3], whole[0], whole[2]):
        give(pool, place, SIZE // 4)
    assert take(pool, SIZE) == START


def test_an_allocation_that_does_not_fit_goes_to_the_device(pool):
    # There is none here, so nothing comes of it; nothing of the block is given away either.
    assert take(pool, SIZE + 1) is None
    assert take(pool, SIZE) == START
    assert take(pool, 1) is None


@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, 9 * GRAIN)), max_size=60),
    data=st.data(),
)
def test_allocations_never_overlap_and_all_memory_returns(library, steps, data):
    library.tw_pool_open(START, SIZE)
    held: dict[int, int] = {}
    for taking, size in steps:
        if taking:
            place = take(library, size)
            if place is not None:
                held[place] = size
        elif held:
            place = data.draw(st.sampled_from(sorted(held)))
            give(library, place, held.pop(place))
        spans = sorted((at, at + -(-size // GRAIN) * GRAIN) for at, size in held.items())
        edges = [edge for span in spans for edge in span]
        assert edges == sorted(edges)
        assert not edges or (edges[0] >= START and edges[-1] <= START + SIZE)
    for place, size in held.items():
        give(library, place, size)
    assert take(library, SIZE) == START


def test_the_allocator_library_is_built_once(tmp_path, monkeypatch):
    path = pool_library(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert pool_library(tmp_path) == path


def test_a_missing_compiler_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(InfrastructureError, match="needs g"):
        pool_library(tmp_path)


def test_a_compiler_that_fails_is_quoted(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/false")
    with pytest.raises(InfrastructureError, match="cannot be built"):
        pool_library(tmp_path)
