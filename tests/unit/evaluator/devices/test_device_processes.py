"""Memory of other programs is told from our own, with real processes in the driver's list."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tilewright.evaluator.devices.device_processes import strangers

GIB = 1 << 30
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
"""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """Return the numbers of a living process and of its child."""
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        yield parent.pid, int(parent.stdout.readline())
        parent.communicate(b"\n")


def ended() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_descendants_of_a_supervisor_hold_is_ours(family):
    parent, child = family
    found = strangers({parent: GIB, child: 2 * GIB}, 3 * GIB + 7, {parent})
    assert found is not None
    assert (found.held_bytes, found.seen) == (7, ())
    # A child is no ancestor of its parent.
    found = strangers({parent: GIB, child: 2 * GIB}, 3 * GIB, {child})
    assert found is not None
    assert found.held_bytes == GIB


def test_other_programs_are_named_the_largest_first(family):
    parent, child = family
    found = strangers({os.getpid(): 1, parent: GIB, child: 2 * GIB}, 3 * GIB + 1, {os.getpid()})
    assert found is not None
    assert found.held_bytes == 0, "both descend from this process"
    found = strangers({1: GIB, os.getppid(): 2 * GIB, child: 4}, 3 * GIB + 4, {parent})
    assert found is not None
    assert found.held_bytes == 3 * GIB
    assert [text.split(",")[0] for text in found.seen] == [f"process {os.getppid()}", "process 1"]


def test_memory_of_processes_that_have_ended_is_counted_and_not_named(family):
    parent, _ = family
    found = strangers({parent: GIB, ended(): 2 * GIB}, 4 * GIB, {parent})
    assert found is not None
    assert (found.held_bytes, found.seen) == (3 * GIB, ())


@pytest.mark.parametrize("held", [{}, {1: GIB}])
def test_a_list_without_a_process_of_ours_says_nothing(held, family):
    assert strangers(held, 2 * GIB, {family[0]}) is None
