"""Memory that a process holds without mapping it is found, and shared memory counts once."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tilewright.evaluator.processes import memory_use
from tilewright.evaluator.processes.memory_use import MemoryMeter, count, machine_memory
from tilewright.evaluator.processes.process_tree import ProcessTree

pytestmark = pytest.mark.alone

MIB = 1 << 20
HELD = 192 * MIB
"""Bytes that each process of these tests holds."""
SLACK = 48 * MIB
"""The need of a tree's interpreters, and the use of others on the machine meanwhile."""
START = "import array, ctypes, mmap, os, socket, sys\nn = int(sys.argv[1])\n"
MEMFD = START + "a = os.memfd_create('a')\nos.write(a, bytes(n))\n"
FILLED = START + "m = mmap.mmap(-1, n)\nfor at in range(0, n, 4096): m[at] = 1\n"
SENT = (
    MEMFD + "one, two = socket.socketpair()\nsocket.send_fds(one, [b'.'], [a])\nos.close(a)\n"
    "del one\n"
)
WAYS = {
    "a file without a name": MEMFD,
    "one that a thread holds in a table of its own": START + "import threading, time\n"
    "def hold():\n"
    "    ctypes.CDLL(None).syscall(436, 0x7ffffff0, 0x7fffffff, 2)\n"
    "    a = os.memfd_create('a'); os.write(a, bytes(n)); done.set(); time.sleep(99)\n"
    "done = threading.Event()\n"
    "threading.Thread(target=hold, daemon=True).start(); done.wait()\n",
    "one of which a page is mapped": MEMFD + "m = mmap.mmap(a, 4096)\nos.close(a)\n",
    "shared memory that is not resident": FILLED + "m.madvise(mmap.MADV_DONTNEED)\n",
    "shared memory that was unmapped but for a page": FILLED
    + "s = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
    "ctypes.CDLL(None).munmap(ctypes.c_void_p(s + 4096), ctypes.c_size_t(n - 4096))\n",
    "a descriptor in a socket": SENT,
    "a socket in a socket, with a descriptor in it": SENT
    + "three, four = socket.socketpair()\nsocket.send_fds(three, [b'.'], [two.fileno()])\n"
    "two.close(); del three\n",
    "a descriptor behind another, in a socket": SENT.replace(
        "[a])", "[0]); one.send(b'.'); socket.send_fds(one, [b'.'], [a])"
    ),
    "tables of pages that were only read": START + "size = (n >> 12) << 21\n"
    "c = ctypes.CDLL(None); c.mmap.restype = ctypes.c_void_p\n"
    "flags = 0x4022\n"
    "p = c.mmap(None, ctypes.c_size_t(size), 1, flags, -1, ctypes.c_long(0))\n"
    "c.madvise(ctypes.c_void_p(p), ctypes.c_size_t(size), 15)\n"
    "for at in range(p, p + size, 1 << 21): ctypes.string_at(at, 1)\n",
}
"""Ways to hold memory: programs that hold as many bytes as their argument says."""


class Holder:
    """A process, and what measures it. Lifetime: until `close`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory_use, "LIBRARY_BYTES", 0)
        monkeypatch.setattr(memory_use, "POLL_INTERVAL_S", 0.0)
        self.process: subprocess.Popen[str] | None = None
        self.tree = ProcessTree(os.getpid())
        self.meter = MemoryMeter(self.tree, lambda: ())

    def run(self, program: str) -> int:
        """Run a program that then sleeps; return its process id when it holds its memory."""
        self.meter.start()
        lines = f"{program}\nprint('held', flush=True)\nimport time; time.sleep(99)\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", lines, str(HELD)], stdout=subprocess.PIPE, text=True
        )
        pipe = self.process.stdout
        assert pipe is not None
        while not select.select([pipe], [], [], 0.02)[0]:
            # As the supervisor does, which needs no moment without other programs.
            self.meter.excess(1 << 40)
        assert pipe.readline() == "held\n"
        return self.process.pid

    def close(self) -> None:
        """End the processes."""
        if self.process is not None:
            self.tree.refresh()
            for pid in self.tree.pids:
                os.kill(pid, signal.SIGKILL)
            self.process.communicate()
        self.tree.close()


@pytest.fixture
def holder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Holder]:
    made = Holder(monkeypatch)
    yield made
    made.close()


def found(holder: Holder, limit: int, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Return what two full counts find."""
    monkeypatch.setattr(memory_use, "FULL_COUNT_S", 0.0)
    holder.meter.start()
    holder.meter.excess(limit)
    return holder.meter.excess(limit)


@pytest.mark.parametrize("way", WAYS)
def test_memory_that_is_not_resident_is_counted(holder, way, monkeypatch):
    holder.run(WAYS[way])

    assert found(holder, HELD - SLACK, monkeypatch) is not None


@pytest.mark.parametrize("way", WAYS)
def test_no_less_memory_than_is_held_is_refused(holder, way, monkeypatch):
    holder.run(WAYS[way])

    assert found(holder, HELD + SLACK, monkeypatch) is None


def test_one_look_is_not_enough(holder, monkeypatch):
    monkeypatch.setattr(memory_use, "FULL_COUNT_S", 0.0)
    holder.run(MEMFD)

    assert holder.meter.excess(HELD // 2) is None
    assert holder.meter.excess(HELD // 2) is not None


def test_forked_processes_share_their_memory(holder, monkeypatch):
    fork = "k = bytearray(os.urandom(1)) * n\nif os.fork() == 0:\n    import time; time.sleep(99)\n"
    holder.run(START + fork)

    holder.tree.refresh()
    assert memory_use.resident_bytes(holder.tree.pids) > 2 * HELD
    assert found(holder, HELD + SLACK, monkeypatch) is None


def test_one_file_in_two_processes_counts_once(holder, monkeypatch):
    holder.run(MEMFD + "b = os.dup(a)\nif os.fork() == 0:\n    import time; time.sleep(99)\n")

    assert found(holder, HELD + SLACK, monkeypatch) is None
    holder.tree.refresh()
    assert count(holder.tree.pids, (), 1 << 40).objects == HELD


def test_memory_of_another_program_is_not_a_candidates(holder, monkeypatch):
    """A neighbour takes memory while a process has no way to hold any out of sight."""
    pid = holder.run("import os, socket; k = socket.socketpair(), os.pipe()")
    # Both are children of this process; the count is of one of them.
    other = Holder(monkeypatch)
    before = machine_memory()
    other.run(MEMFD)
    assert before.less(machine_memory()) > HELD // 2
    used = count([pid], (), HELD)
    other.close()

    assert used.total(bound=HELD * 4) < SLACK


def test_descriptors_that_were_sent_to_the_supervisor_count(holder):
    pid = holder.run("")
    fd = os.memfd_create("sent")
    os.write(fd, bytes(8 * MIB))

    assert count([pid], (fd,), HELD).objects == 8 * MIB
    os.close(fd)


def test_a_look_costs_little(holder):
    holder.run("")
    start = time.perf_counter()
    for _ in range(100):
        holder.meter.excess(1 << 40)
    # 5 ms is a hundred times what a look costs on an idle core.
    assert (time.perf_counter() - start) / 100 < 5e-3
