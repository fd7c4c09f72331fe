"""The supervisor freezes, resumes and measures a real process tree.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilewright.evaluator.processes.forkserver_client import Child, ChildOutput
from tilewright.evaluator.processes.memory_use import resident_bytes
from tilewright.wire.frames import Channel

pytestmark = pytest.mark.alone

COUNT = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    words = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
while True:
    words[int(sys.argv[2])] += 1
"""
INIT = """
import subprocess, sys
children = [subprocess.Popen([sys.executable, "-c", *sys.argv[1:3], n]) for n in "012"]
children[0].wait()
"""


class Tree:
    """A `Child` whose init runs three processes that count upwards in shared memory."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(4096))
        self._file = path.open("r+b")
        self._words = memoryview(mmap.mmap(self._file.fileno(), 4096)).cast("Q")
        self._init = subprocess.Popen([sys.executable, "-c", INIT, COUNT, str(path)])
        ours, self._theirs = socket.socketpair()
        reader, self._writer = os.pipe()
        output = ChildOutput(100)
        os.close(output.writer)
        self.child = Child(Channel(ours), self._init.pid, reader, output, "runner")
        within(20.0, lambda: all(self.counts()))
        Channel(self._theirs).send("ready", {"applied": {}})
        self.child.wait_ready()

    def counts(self) -> list[int]:
        return list(self._words[:3])

    def close(self) -> None:
        self.child.tree.refresh()
        for pid in self.child.tree.pids:
            os.kill(pid, signal.SIGKILL)
        self.child.kill()
        self._init.wait()
        self._theirs.close()
        os.close(self._writer)
        self._words.release()
        self._file.close()


def within(seconds: float, condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = Tree(tmp_path / "counts")
    yield made
    made.close()


def test_a_frozen_process_tree_does_nothing_until_it_resumes(tree):
    tree.child.tree.freeze()
    time.sleep(0.05)
    before = tree.counts()
    time.sleep(0.2)
    assert tree.counts() == before

    tree.child.tree.resume()
    within(20.0, lambda: all(new > old for new, old in zip(tree.counts(), before, strict=True)))


def test_a_process_tree_is_stopped_as_soon_as_it_is_frozen(tree):
    # Three that count on fewer cores: one that waits for a core has not stopped yet.
    for _ in range(50):
        assert tree.child.tree.freeze()
        assert tree.child.tree.is_stopped()
        tree.child.tree.resume()
        assert not tree.child.tree.is_stopped()
    within(20.0, lambda: not tree.child.tree.is_stopped())


def test_the_cpu_time_of_every_process_is_counted(tree):
    before = tree.child.tree.cpu_s()
    # Long enough that two of the three are far more than what the last line forgives.
    within(20.0, lambda: tree.child.tree.cpu_s() - before > 1.2)

    pids = tree.child.tree.pids
    assert len(pids) == 3
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    assert tree.child.tree.cpu_s() == pytest.approx(ticks / os.sysconf("SC_CLK_TCK"), abs=0.3)


def test_the_memory_of_every_process_is_counted(tree):
    tree.child.tree.refresh()

    assert resident_bytes(tree.child.tree.pids) > 3 * (4 << 20)
