"""Runs a whole evaluation in one process: judge, runners and builders are threads.

Production starts a forkserver, which forks each judge, runner and builder into a sandbox of its
own. The supervisor talks to each of them over a socket pair and shares memory with them. This
module keeps the supervisor's code, the code of the children, the socket pairs and the shared
memory. It replaces only the processes.

The parts that replace those of production:

- `InProcessEvaluator` takes the place of `DeviceHost`. The pipeline calls its `spawn` for each
  child, and `spawn` returns a `ThreadChild` where production forks a process.
- `ThreadChild` runs the same `main` function that the forkserver runs in a child (`MAINS`), in a
  thread, on the other end of a socket pair. It is also its own process tree: the supervisor asks
  it to freeze, to resume, and for its CPU time. CPU time moves only where a test sets it (`cpu`,
  `burns`), so a test decides how much work a runner seems to do outside a timed call.
- A thread cannot be stopped by a signal. After a call a runner sleeps until the supervisor lets it
  go on (`SyncPage.go_on`), so it computes nothing while the judge reads the outputs. `kill` lets it
  go on too.
- `Recording` is the channel to a child. It keeps every frame that the supervisor sends, and
  `told` returns them as JSON. A test can so check that no secret ever reaches a runner.
- `shim` is a module that candidates import in the place of a GPU language. `shim.launch(kernel)`
  calls a Python function and counts as a kernel launch, which `Launches` can suppress. A launch by
  `shim.launch_unseen(kernel)` can be suppressed, and is not counted.
- `a_request` builds a request from source texts, under a fixed secret root (`ROOT`). `timed`
  returns the shortest timing plan.

A test makes an `InProcessEvaluator`, calls `judge(request)` and reads the report:

    with pytest.MonkeyPatch.context() as patch:
        evaluator = InProcessEvaluator(tmp_path, patch)
        report = evaluator.judge(a_request(PROBLEM, SOURCE))
        evaluator.close()

The constructor patches what a thread must not do: end the process, run exit handlers, write to
fixed folders. One evaluation takes about a tenth of a second.

Such a test shows which verdict the pipeline gives to a candidate, and why. It shows nothing about
isolation, since nothing is isolated, and nothing about the precision of the clock, since all
threads share one interpreter. `tests/processes` covers both with real processes.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import itertools
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tilewright.evaluator.devices.devices import CPU, Cores
from tilewright.evaluator.judge import process as judge
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost, lease_name
from tilewright.evaluator.processes.prefork import PreforkPool, lease_folder
from tilewright.evaluator.runners import cpu_runner
from tilewright.evaluator.runners import sync_page as runner_page
from tilewright.problems.loader import parse_problem
from tilewright.records import (
    Baseline,
    Candidate,
    EvalReport,
    EvalRequest,
    Limits,
    SourceFile,
    TimingPlan,
)
from tilewright.runner import build_main, main
from tilewright.runner.host_memory import HostCallMemory
from tilewright.wire.frames import Channel, ChannelClosed

MAINS: dict[str, Callable[[socket.socket, dict[str, str]], None]] = {
    "runner": main.main,
    "builder": build_main.main,
    "judge": judge.main,
}
write_files = main.write_files
PIDS = itertools.count(1)
STOPS_OF_A_CALL = 2
"""Once before the judge writes the inputs, once before it reads the outputs."""
NO_CORE = 10_000 + os.getpid()
"""A core number that no machine has, so that no other evaluation holds its lease.

Each process has its own, so that tests of two workers do not wait for each other.
"""
ROOT = "0123456789abcdef0123456789abcdef"
YIELD_S, SWITCH_INTERVAL_S = 5e-5, 5e-4
"""Both let the other thread work soon: a call has several hand-overs between two that spin."""


shim: Any = ModuleType("shim")
"""The module that candidates import to launch a kernel: `shim.launch(kernel)`."""


def _hook(launches: main.Launches) -> None:
    shim.launch = launches.wrap(lambda kernel: kernel())
    shim.launch_unseen = lambda kernel: None if launches.suppress else kernel()


def _yielding(watch: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return `watch`, which the supervisor calls as it spins, after a moment for other threads."""

    def yield_and_watch(runner: Any) -> None:
        time.sleep(YIELD_S)
        watch(runner)

    return yield_and_watch


class Silent:
    """The printed output of a child, which is empty."""

    def text(self) -> str:
        return ""


class Recording(Channel):
    """A channel that keeps every frame that the supervisor sends."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.stops = 0
        """How often the child was stopped since its last call began."""
        self.go_on = -1
        """Our own descriptor of the event by which a runner goes on after a call."""

    def send(self, kind, fields=None, body=b"", fds=(), timeout_s=30.0):
        if kind == "arm":
            self.stops = 0
        self.sent.append((kind, dict(fields or {})))
        if kind == "map" and fds and "inputs" in self.sent[-1][1]:
            # A runner gets the sync page and this event.
            self.go_on = os.dup(fds[1])
        super().send(kind, fields, body, fds, timeout_s)


class ThreadChild:
    """A child as the supervisor sees it, run by a thread. Lifetime: until `kill`."""

    def __init__(self, role: str, applied: dict[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Recording(ours)
        self.role = role
        self.output = Silent()
        self.applied: dict[str, str] = {}
        self.closed = False
        self.signals: list[str] = []
        self.waited = 0.0
        """Seconds in which other programs had its core."""
        self.cpu, self.burns = 0.0, 0.0
        """CPU seconds used so far, and those added from release to completion of each call."""
        self.companions = 0
        self.stoppable = self.stands_still = True
        self.pid = next(PIDS)
        self._thread = threading.Thread(target=self._play, args=(theirs, applied), daemon=True)
        self._thread.start()

    def _play(self, sock: socket.socket, applied: dict[str, str]) -> None:
        with sock, contextlib.suppress(SystemExit, ChannelClosed):
            MAINS[self.role](sock, applied)

    @property
    def tree(self) -> ThreadChild:
        """The child answers for its process tree."""
        return self

    def wait_ready(self, timeout_s: float = 20.0) -> None:
        self.applied = self.channel.receive(time.monotonic() + timeout_s).fields["applied"]

    def refresh(self) -> None:
        """A thread has no other processes to find."""

    def forbid_processes(self) -> bool:
        """Return whether no other process lives; a test can set `companions`."""
        return not self.companions

    def allow_processes(self) -> None:
        """A thread was never forbidden to start processes."""

    def cpu_s(self) -> float:
        return self.cpu

    @property
    def memory(self) -> ThreadChild:
        """The child answers for its memory."""
        return self

    def excess(self, allowed: int) -> int | None:  # noqa: ARG002
        """A thread shares this process's memory, which has no limit."""
        return None

    @property
    def pids(self) -> list[int]:
        """A thread has no process of its own."""
        return [self.pid]

    def gone(self, within_s: float) -> bool:
        """Tell whether the thread ends within these seconds."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def waited_s(self) -> float:
        return self.waited

    def freeze(self) -> bool:
        self.channel.stops += 1
        if self.channel.stops == STOPS_OF_A_CALL:
            self.cpu += self.burns
        self.signals.append("freeze")
        return self.stoppable

    def is_stopped(self) -> bool:
        return self.stands_still

    def payload_is_runnable(self) -> bool:
        return False

    def payload_hides(self) -> bool:
        return False

    def resume(self) -> None:
        self.signals.append("resume")

    def wait_status(self, timeout_s: float) -> int | None:
        self._thread.join(timeout_s)
        return None if self._thread.is_alive() else 0

    def alive(self) -> bool:
        return not self.closed and self._thread.is_alive()

    def kill_async(self) -> None:
        """A thread cannot be killed."""

    def kill(self) -> None:
        self.closed = True
        self.channel.close()
        if self.channel.go_on >= 0:
            writer = os.open(f"/proc/self/fd/{self.channel.go_on}", os.O_WRONLY)
            os.write(writer, b"\0")
            os.close(writer)
        self._thread.join(20)
        assert not self._thread.is_alive()
        if self.channel.go_on >= 0:
            os.close(self.channel.go_on)
            self.channel.go_on = -1


class InProcessEvaluator(DeviceHost):
    """A device host whose children are threads. Lifetime: until `close`."""

    def __init__(self, home: Path, monkeypatch: Any) -> None:
        self.home = home
        self.cores = Cores((NO_CORE,), (NO_CORE + 1,))
        self.device = CPU
        self.suspect, self.bad_probes = False, 0
        self.applied = {"ipc_uts_cgroup_namespaces": "", "landlock": "this kernel has none"}
        self.children: list[ThreadChild] = []
        self._memories: list[HostCallMemory] = []
        self.streams: list[str] = []
        """The roles of the children that may use several CUDA streams."""
        self.idle_judges, self.call_shapes, self._closing = {}, {}, []
        self.preforked = PreforkPool(self.spawn, None)
        self.ledger, self.leased, self.makes_room, self.prepared = None, False, False, None
        for module in (main, build_main):
            monkeypatch.setattr(module, "ROOT", str(home))
            monkeypatch.setattr(module, "write_files", self._write_files)
        monkeypatch.setattr(os, "_exit", sys.exit)
        monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: None)
        monkeypatch.setitem(sys.modules, "shim", shim)
        # The supervisor spins on the sync page, and must not keep a runner's thread from its work.
        monkeypatch.setattr(runner_page, "SPIN_CHECK", 1)
        monkeypatch.setattr(cpu_runner.Runner, "_watch", _yielding(cpu_runner.Runner._watch))
        self._switch_interval_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        # A runner collects garbage before each load. It need not look at all tests.
        gc.freeze()
        # Its thread waits for the runner's, which takes the time of a call.
        monkeypatch.setattr(cpu_runner, "own_waited_s", lambda: 0.0)
        monkeypatch.setattr(main.Launches, "hook_triton", _hook)
        monkeypatch.setattr(main, "HostCallMemory", self._call_memory)
        monkeypatch.setattr(main.python, "install_extensions", lambda *_: None)

    def spawn(
        self,
        role: str,
        limits: Limits,  # noqa: ARG002
        extra_paths: Any = (),  # noqa: ARG002
        *,
        streams: bool = False,
    ) -> Any:
        self.streams += [role] if streams else []
        child = ThreadChild(role, self.applied)
        self.children.append(child)
        return child

    def _write_files(self, files: list[dict[str, Any]], body: bytes) -> dict[str, str]:
        # Each child has a folder of its own, as in a sandbox.
        main.ROOT = build_main.ROOT = tempfile.mkdtemp(dir=self.home)
        return write_files(files, body)

    def _call_memory(self) -> HostCallMemory:
        self._memories.append(HostCallMemory())
        return self._memories[-1]

    def close(self) -> None:
        gc.unfreeze()
        sys.setswitchinterval(self._switch_interval_s)
        while self._closing:
            self._closing.pop().close()
        for child in self.children:
            if not child.closed:
                child.kill()
        # The end of a runner's process would close what its thread leaves open.
        for memory in self._memories:
            if memory.go_on >= 0:
                os.close(memory.go_on)
                memory.page = None
        (lease_folder() / f"{lease_name(self.device, self.cores)}.lock").unlink(missing_ok=True)

    def told(self, role: str = "runner") -> str:
        """Return, as JSON, every frame that children of `role` were sent."""
        return json.dumps([c.channel.sent for c in self.children if c.role == role])

    def judge(self, request: EvalRequest, emit: Any = lambda *_: None) -> EvalReport:
        """Evaluate a request."""
        return evaluate(self, request, emit, lambda: None)


def a_request(
    problem: str, candidate: str, *, entry: str = "work", language: str = "torch", **changes: Any
) -> EvalRequest:
    """Return a request over source texts; not timed unless `timing` says so."""
    parsed = parse_problem(problem, entry, entry, "a test")
    name = "work.cpp" if language == "cpp" else "work.py"
    made = Candidate(
        language=language, files=(SourceFile(path=name, text=candidate),), entry=parsed.entry
    )
    plain: dict[str, Any] = {
        "timing": TimingPlan(enabled=False),
        "limits": Limits(exit_s=2.0, call_timeout_s=10.0),
        "seed": ROOT,
        "baselines": (Baseline(name="eager", kind="eager"),),
    }
    return EvalRequest(problem=parsed, candidate=made, **{**plain, **changes})


def timed(blocks: int = 4) -> dict[str, Any]:
    """Return the shortest plan of timing."""
    plan = TimingPlan(min_blocks=blocks, max_blocks=blocks, max_s=20.0, target_ci_half_width=1e-9)
    return {"timing": plan}
