"""A wait for a descriptor, also one that `select.select` refuses."""

from __future__ import annotations

import fcntl
import math
import os
import resource
import time
from collections.abc import Iterator

import pytest

from tilewright.wire.readiness import is_readable

BEYOND_SELECT = 1024


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_a_pipe_is_readable_once_it_holds_a_byte(ends):
    reader, writer = ends
    assert not is_readable(reader)
    os.write(writer, b"x")
    assert is_readable(reader, math.inf)


def test_a_wait_ends_after_its_time_and_a_time_in_the_past_is_none(ends):
    begin = time.monotonic()
    assert not is_readable(ends[0], 0.02)
    assert not is_readable(ends[0], -1.0)
    assert 0.02 <= time.monotonic() - begin < 10


def test_a_pipe_whose_writer_has_gone_is_readable():
    reader, writer = os.pipe()
    os.close(writer)
    assert is_readable(reader)
    os.close(reader)


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= BEYOND_SELECT,
    reason="this process may not hold so many descriptors",
)
def test_a_descriptor_beyond_those_of_select_is_waited_for(ends):
    high = fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, BEYOND_SELECT)
    assert not is_readable(high)
    os.write(ends[1], b"x")
    assert is_readable(high)
    os.close(high)
