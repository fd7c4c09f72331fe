"""The processes below an init, by /proc: found, stopped, let go on, CPU counted."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_CPUCLOCK_SCHED = 2
"""The kernel's number for the scheduler clock of a whole process (clock id ~pid << 3 | 2)."""
NO_PROCESSES_TIMEOUT_S = 2.0
STOPPED_S = 10.0
"""Seconds within which SIGSTOP must stop all threads. A thread first ends its call of the kernel.
On a busy machine it waits for a core before that: 2 s were too few at a load of 11."""
SPINNING_S, PAUSE_S = 1e-3, 5e-5
"""Seconds for which the caller looks without a pause, and seconds between two looks after that. A
thread that has a core stops within 50 us. Another one may need the caller's own core. The scheduler
may leave that core to a caller that spins, for more than 10 s (docs/lab)."""
_STOPPED, _ENDED = b"TtZX", b"ZX"
"""States of a thread in /proc/PID/stat."""
_FLAGS, _REAPED_USER, _REAPED_SYSTEM, _THREADS, _PENDING = 6, 13, 14, 17, 28
"""Places of fields behind the name in /proc/PID/stat (proc(5))."""
_EXITING = 0x4
"""`PF_EXITING` of <linux/sched.h>: the thread is in its exit, which can last for a second while the
driver of a GPU frees what its process held."""
_KILLED = 1 << (signal.SIGKILL - 1)
"""The bit of SIGKILL among pending signals, which other threads get when their process ends."""


class _Process:
    """A process's open files in /proc: quicker to read, and never another's of its number."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            path = f"/proc/{pid}/task/{pid}/children"
            self._children = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(self._stat)
            raise

    def look(self) -> tuple[list[int], float]:
        """Return its living children, and the CPU seconds of those that it has waited for."""
        fields = os.pread(self._stat, 4096, 0).rpartition(b")")[2].split()
        reaped = (int(fields[_REAPED_USER]) + int(fields[_REAPED_SYSTEM])) / _TICKS
        found = _read_whole(self._children)
        if int(fields[_THREADS]) > 1:
            found += b" " + _children_of_threads(self.pid)
        return [int(pid) for pid in found.split()], reaped

    def close(self) -> None:
        os.close(self._stat)
        os.close(self._children)


class ProcessTree:
    """The processes below an init, as of the last `refresh`. Lifetime: the init's."""

    def __init__(self, init: int) -> None:
        self._init = init
        self._held: dict[int, _Process] = {}
        """The init and its payload, whose state is read around every timed call."""
        self._reaped_s = 0.0
        self.pids: list[int] = []
        """The processes, the payload first."""
        self.single_process = False
        """Whether the payload is the only process, now and until this is set to `False`."""

    def refresh(self) -> None:
        """Find out which processes there are; the other methods act on these."""
        self.pids, self._reaped_s = [], 0.0
        self._walk(self._init)

    def _walk(self, pid: int) -> None:
        children, reaped = self._ask(pid)
        self._reaped_s += reaped
        for child in children:
            self.pids.append(child)
            self._walk(child)

    def _ask(self, pid: int) -> tuple[list[int], float]:
        held = self._held.get(pid)
        if held is not None:
            try:
                return held.look()
            except OSError:
                # It is gone; its number may be another's by now.
                self._held.pop(pid).close()
        try:
            process = _Process(pid)
        except OSError:
            return [], 0.0
        kept = pid == self._init or self.pids == [pid]
        try:
            found = process.look()
        except OSError:
            # It ended between the two calls.
            process.close()
            return [], 0.0
        if kept:
            self._held[pid] = process
        else:
            process.close()
        return found

    def cpu_s(self) -> float:
        """Return the CPU seconds that they have used, the init not, with what has ended."""
        # Of what was reaped the kernel tells steps of 10 ms, which nobody can work in any more.
        total = 0.0 if self.single_process else self._reaped_s
        for pid in self.pids[:1] if self.single_process else self.pids:
            with suppress(OSError):
                total += time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
        return total

    def waited_s(self) -> float:
        """Return the seconds in which the payload's first thread could have run and did not.

        Other programs had its core. Some kernels do not count this; then it is 0.
        """
        return sum(waited_s(f"/proc/{pid}/schedstat") for pid in self.pids[:1])

    def freeze(self) -> bool:
        """Stop every process, the payload first; wait for that, and tell whether all are stopped.

        Until then a process may go on in a call of the kernel. Another process reads its CPU clock
        as of the last tick, so that reading lacks up to some milliseconds.
        """
        for pid in self.pids[:1]:
            _signal(pid, signal.SIGSTOP)
        if not self.single_process:
            self.refresh()
            for pid in self.pids[1:]:
                _signal(pid, signal.SIGSTOP)
        begun = time.monotonic()
        while not self.is_stopped():
            elapsed_s = time.monotonic() - begun
            if elapsed_s > STOPPED_S:
                return False
            if elapsed_s > SPINNING_S:
                time.sleep(PAUSE_S)
        return True

    def pin_main_thread(self, cores: tuple[int, ...]) -> None:
        """Have the payload's first thread alone run on these cores, where that is allowed."""
        for pid in self.pids[:1]:
            with suppress(OSError):
                os.sched_setaffinity(pid, cores)

    def is_stopped(self) -> bool:
        """Tell whether no thread of them runs, or can."""
        return all(_all_in(pid, _STOPPED) for pid in self.pids)

    def payload_is_runnable(self) -> bool:
        """Tell whether a thread of the payload runs, or would run if it had a core."""
        return any(b"R" in _thread_states(pid) for pid in self.pids[:1])

    def payload_hides(self) -> bool:
        """Tell whether the payload's first thread has ended and others live on.

        The kernel then shows none of the payload's memory in its own files. Where a whole process
        ends, its first thread may end first too, so that a single look may be too early.
        """
        return any(_first_thread_ended(pid) for pid in self.pids[:1])

    def resume(self) -> None:
        """Let them run on."""
        for pid in self.pids:
            _signal(pid, signal.SIGCONT)

    def forbid_processes(self) -> bool:
        """Kill every process but the payload, which is stopped meanwhile; tell whether it worked.

        The payload may start no new process any more, but one may be on its way. So this refreshes
        until all threads of the payload are stopped and no other process lives.
        """
        limit = time.monotonic() + NO_PROCESSES_TIMEOUT_S
        self.refresh()
        while self.pids and time.monotonic() < limit:
            _signal(self.pids[0], signal.SIGSTOP)
            stopped = _all_in(self.pids[0], _STOPPED)
            self.refresh()
            others = [pid for pid in self.pids[1:] if not _all_in(pid, _ENDED)]
            for pid in others:
                _signal(pid, signal.SIGKILL)
            if stopped and not others:
                self.pids, self.single_process = self.pids[:1], True
                break
            time.sleep(1e-4)
        for pid in self.pids[:1]:
            _signal(pid, signal.SIGCONT)
        # Where the payload is gone too, nobody is left who could hide anything.
        return self.single_process or not self.pids

    def close(self) -> None:
        """Look no more."""
        while self._held:
            self._held.popitem()[1].close()


def waited_s(schedstat: str = "/proc/thread-self/schedstat") -> float:
    """Return the seconds in which a thread, by default the caller's, waited for a core."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(schedstat).read_text("ascii").split()[1]) / 1e9
    return 0.0


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time ones have none but the first and the last."""
    names = {int(known): known.name for known in signal.Signals}
    return names.get(number, f"signal {number}")


def _all_in(pid: int, states: bytes) -> bool:
    """Tell whether each thread of a process is in one of these states, or gone."""
    return all(state in states for state in _thread_states(pid))


def _thread_states(pid: int) -> Iterator[bytes]:
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            yield _state(f"/proc/{pid}/task/{thread}/stat")


def _first_thread_ended(pid: int) -> bool:
    """Tell whether a process lives on in other threads, which neither end nor have been killed."""
    if _state(f"/proc/{pid}/stat") != b"Z":
        return False
    with suppress(OSError):
        threads = [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]
        return any(_lives_on(f"/proc/{pid}/task/{each}/stat") for each in threads if each != pid)
    return False


def _lives_on(path: str) -> bool:
    try:
        with open(path, "rb", 0) as file:
            fields = file.read(4096).rpartition(b") ")[2].split()
    except OSError:
        return False
    ends = int(fields[_FLAGS]) & _EXITING or int(fields[_PENDING]) & _KILLED
    return fields[0] not in (b"Z", b"X") and not ends


def _state(path: str) -> bytes:
    try:
        with open(path, "rb", 0) as file:
            return file.read(512).rpartition(b") ")[2][:1]
    except OSError:
        return b"X"


def _read_whole(fd: int) -> bytes:
    data = b""
    while part := os.pread(fd, 1 << 16, len(data)):
        data += part
    return data


def _children_of_threads(pid: int) -> bytes:
    """Return the children of every thread but the first."""
    found = b""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            if int(thread) == pid:
                continue
            # A thread that has ended hides none of the others.
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += b" " + file.read()
    return found
