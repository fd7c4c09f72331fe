"""The supervisor's handle of one runner: its process, shared memory, plain and timed calls."""

from __future__ import annotations

import os
import random
import select
import time
from collections.abc import Callable

from tilewright.errors import InfrastructureError, ProblemError
from tilewright.evaluator.processes import process_tree
from tilewright.evaluator.processes.forkserver_client import Child
from tilewright.evaluator.processes.process_tree import waited_s as own_waited_s
from tilewright.evaluator.runners.build_requests import BuildRequests
from tilewright.evaluator.runners.call_limit import CallLimit
from tilewright.evaluator.runners.cpu_accounting import CallReadings, CallTiming, call_s
from tilewright.evaluator.runners.messages import (
    Addresses,
    ErrorReport,
    EvaluationEnded,
    Mapped,
    Model,
    Result,
    emptied,
    failure_of,
    read,
    read_weights,
)
from tilewright.evaluator.runners.sync_page import ReportedOutputs, SyncPage, page_round
from tilewright.records import Failed, Limits
from tilewright.records.codes import FailureReason, Stage
from tilewright.wire import sync_page
from tilewright.wire.frames import ChannelClosed, DeadlineExceeded, Fields, Frame, FrameError

POLL_INTERVAL_S = 0.05
"""Seconds between two checks of client, deadline and memory while the supervisor waits."""
MEMORY_DESCRIPTORS = 3
"""Descriptors that a runner sends of itself: its memory, its memory map, and its pages."""
SENT_S = 1.0
"""Seconds for the rest of a frame whose first bytes are there, also after the limit of its call."""
HIDES = "its first thread has ended, so that its memory cannot be counted"
MIN_HELD = 2
"""Calls whose outputs their caller holds at least."""


class Runner:
    """One runner process and what it shares with the judge. Lifetime: the process."""

    def __init__(
        self,
        name: str,
        child: Child,
        limits: Limits,
        watch: Callable[[], None],
        deadline: float,
        threads: int,
        held_seed: int = 0,
    ) -> None:
        self.name = name
        self.child = child
        self.limits = limits
        self.call_timeout_s = limits.call_timeout_s
        self.stage: Stage = Stage.LOAD
        self.judged = False
        """Whether its process answered the calls by which correctness is judged."""
        self.profiled = False
        """Whether a profiler was loaded into its process."""
        self.reused = False
        """Whether the process served in an earlier evaluation."""
        self.entries = b""
        """The weights that it reports to have, in JSON."""
        self.builds = BuildRequests(name)
        self.inputs_bytes = 0
        self.page = SyncPage()
        self.base = 0
        """Address of the runner's inputs."""
        self.empty_call_s = 0.0
        """Seconds of a call that does nothing, measured before a candidate is loaded."""
        self.held: list[int] = []
        """Numbers of the calls whose outputs the caller still holds."""
        self.dropped: list[int] = []
        """Those whose outputs the caller gives back after the present call."""
        self.max_held = MIN_HELD
        """The largest number of calls in `held`."""
        self._heap_bytes = 0
        self._choices = random.Random(held_seed)
        self._watch_client = watch
        self._deadline = deadline
        self._threads = threads
        self.entered = False
        """Whether the candidate's own code has begun: an earlier failure is tilewright's."""
        self._sequence = 0
        self._hides = False
        self._next_look = 0.0
        self._cpu_before = 0.0
        self._poll = select.poll()
        self._poll.register(child.channel.fileno(), select.POLLIN | select.POLLHUP)

    def serve(self, watch: Callable[[], None], deadline: float) -> None:
        """Go on in another evaluation, with its client and deadline."""
        self._watch_client, self._deadline, self.reused = watch, deadline, True

    def reserve_inputs(self, inputs: int) -> tuple[int, ...]:
        """Have the runner make memory for inputs; return descriptors, which the caller closes.

        The first time they are of the runner's memory, its memory map and its pages; later none.
        """
        first = not self.inputs_bytes
        self.inputs_bytes = page_round(inputs)
        fds = (self.page.fd, self.page.go_on) if first else ()
        frame = self.ask(
            "map", {"inputs": self.inputs_bytes}, fds=fds, takes=MEMORY_DESCRIPTORS * first
        )
        memory = tuple(frame.fds[: MEMORY_DESCRIPTORS * first])
        try:
            base = self._read("mapped", frame, Mapped).base
            if first and len(memory) != MEMORY_DESCRIPTORS:
                raise self._forged("it sent no descriptors of its memory")
        except BaseException:
            for fd in memory:
                os.close(fd)
            raise
        if first:
            # Trusted, because no candidate is loaded yet.
            self.base = base
        return memory

    def grow_heap(self, size: int) -> None:
        """Have the runner touch `size` bytes of its heap and free them, unless it has before."""
        if size > self._heap_bytes:
            self._expect("heap_grown", self.ask("grow_heap", {"size": size}))
            self._heap_bytes = size

    def reported_outputs(self, count: int) -> ReportedOutputs:
        """Return where the runner says that the outputs of a timed call lie."""
        return self.page.outputs(count)

    def ask(
        self,
        kind: str,
        fields: Fields,
        *,
        body: bytes = b"",
        fds: tuple[int, ...] = (),
        timeout_s: float | None = None,
        takes: int = 0,
    ) -> Frame:
        """Send a frame and return the answer; an `error` answer ends the evaluation.

        `takes` descriptors of the answer are left open for the caller.
        """
        timeout_s = timeout_s or self.call_timeout_s
        deadline = time.monotonic() + timeout_s
        self._send(kind, fields, body, fds)
        return self.receive(deadline, timeout_s, takes)

    def receive(self, deadline: float, timeout_s: float | None = None, takes: int = 0) -> Frame:
        """Return the next frame; raise as `ask` does."""
        try:
            return self._checked(self.child.channel.receive(deadline, self._watch), takes)
        except DeadlineExceeded:
            raise self.late(timeout_s) from None
        except ChannelClosed:
            raise self._died() from None
        except FrameError as error:
            raise self._forged(str(error)) from None

    def _send(
        self, kind: str, fields: Fields, body: bytes = b"", fds: tuple[int, ...] = ()
    ) -> None:
        try:
            self.child.channel.send(kind, fields, body, fds, self.call_timeout_s)
        except FrameError as error:
            raise ProblemError(f"more tensors or files than a frame can name: {error}") from error
        except DeadlineExceeded:
            raise self.late() from None
        except ChannelClosed:
            raise self._died() from None

    def load(self, fields: Fields, body: bytes) -> None:
        """Load the candidate; every failure after the `entering` frame is the candidate's."""
        self.stage = Stage.LOAD
        self._expect("entering", self.ask("load", fields, body=body))
        self.entered = True
        deadline = time.monotonic() + self.limits.load_s
        frame = self.receive(deadline, self.limits.load_s)
        if frame.kind == "constructing":
            self.stage = Stage.CONSTRUCT
            frame = self.receive(deadline, self.limits.load_s)
        self._expect("loaded", frame)
        self.stage = Stage.LOAD
        try:
            self.entries = read_weights(frame.body) if frame.body else b""
        except FrameError as error:
            raise self._forged(str(error)) from None

    def read_weights(self, names: list[str]) -> list[int]:
        """Return where the runner says that the named weights lie."""
        frame = self.ask("read_weights", {"names": names})
        return self._read("weights_read", frame, Addresses).addresses

    def suppress_launches(self) -> None:
        """Let the candidate's own launches do nothing from now on."""
        self._expect("run_suppressed", self.ask("suppress_launches", {}))

    def call(self, fields: Fields) -> Result:
        """Answer one call whose operators are counted, on inputs that have been written."""
        return self._read("result", self.ask("call", fields), Result)

    def timed_call(
        self,
        fields: Fields,
        write_inputs: Callable[[], bool] = lambda: True,
        finish: Callable[[int], None] = lambda _: None,
    ) -> CallTiming:
        """Make one call whose inputs the runner can read only once its time runs.

        The supervisor stops the ready runner. `write_inputs` runs then, and the runner goes on.
        When it reports completion the supervisor stops it again. `finish` gets the number of the
        call, and runs before the runner may go on. So a runner that reports too early is stopped
        with unfinished outputs. All CPU time between the two stops is part of the call.
        """
        self._sequence += 1
        sequence, flags, tree = self._sequence, self.page.flags, self.child.tree
        limit = CallLimit(tree, self.call_timeout_s)
        wait_s = self.call_timeout_s
        held = {"held": self.held, "sequence": sequence, "wait_s": wait_s}
        self._send("arm", {**fields, **held})
        self._spin(sync_page.READY, sequence, limit)
        self.stop()
        ready_cpu_s, waited_s = tree.cpu_s(), tree.waited_s() + own_waited_s()
        if not write_inputs():
            raise self._forged("its inputs cannot be written any more")
        flags[sync_page.GO] = sequence
        released_at = time.perf_counter()
        tree.resume()
        self._spin(sync_page.DONE, sequence, limit)
        done_at = time.perf_counter()
        self.stop()
        stopped_at, stopped_cpu_s = time.perf_counter(), tree.cpu_s()
        self._choose_dropped()
        finish(sequence)
        if not tree.is_stopped():
            raise self._forged("it ran while it was stopped")
        if tree.payload_hides():
            raise self._forged(HIDES)
        # Read once more: a process that was woken and stopped again has used CPU time since.
        before, self._cpu_before = self._cpu_before, tree.cpu_s()
        if not self.page.let_go_on():
            raise self._forged("it closed or filled the pipe by which it is told to go on")
        tree.resume()
        readings = CallReadings(
            cpu_s=self._cpu_before - ready_cpu_s,
            waited_s=tree.waited_s() + own_waited_s() - waited_s,
            late_cpu_s=self._cpu_before - stopped_cpu_s,
            done_s=done_at - released_at,
            stopped_s=stopped_at - released_at,
        )
        # The limit begins anew: until here the judge worked, and the runner was stopped.
        result = self._read("result", self.receive(time.monotonic() + wait_s), Result)
        self.held = [call for call in (*self.held, sequence) if call not in self.dropped]
        total_s = call_s(readings, self.empty_call_s, self._threads)
        return CallTiming(total_s, ready_cpu_s - before, result)

    def _choose_dropped(self) -> None:
        """Choose held calls at random whose outputs the caller gives back after this call."""
        most = self._choices.randint(MIN_HELD, max(self.max_held, MIN_HELD))
        # Some are held for long: a ring of buffers is found whatever its length is.
        self.dropped = self._choices.sample(self.held, max(len(self.held) + 1 - most, 0))

    def stop(self) -> None:
        """Stop all threads of the process, or raise what that means for the evaluation."""
        if not self.child.tree.freeze():
            message = f"SIGSTOP did not stop it within {process_tree.STOPPED_S:g} s"
            outcome = Failed(stage=self.stage, reason=FailureReason.TIMEOUT, message=message)
            raise self._attributed(outcome, repeatable=True)

    def forbid_processes(self) -> None:
        """Refuse new processes of this runner, and end those that it started."""
        if not self.child.forbid_processes():
            limit = f"{process_tree.NO_PROCESSES_TIMEOUT_S:g} s"
            message = f"its other processes were not gone {limit} after they were killed"
            raise self._failed(FailureReason.TIMEOUT, message)
        self._cpu_before = self.child.tree.cpu_s()

    def allow_processes(self) -> None:
        """Let the runner start processes again."""
        self.child.allow_processes()

    def _spin(self, flag: int, sequence: int, limit: CallLimit) -> None:
        while not self.page.spin(flag, sequence):
            if self._poll.poll(0) and self.page.flags[flag] != sequence:
                # A frame before completion: an error of the candidate, or its end.
                frame = self.receive(max(limit.at, time.monotonic() + SENT_S))
                raise self._forged(f"{frame.kind!r} before the call was done")
            if limit.is_over():
                raise self.late()
            self._watch()
            self.page.pause()

    def _watch(self) -> None:
        """Check that the client is there, time is left, and memory is within its limit."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + POLL_INTERVAL_S
        self._watch_client()
        if now > self._deadline:
            message = f"the whole evaluation took longer than {self.limits.total_timeout_s:g} s"
            raise EvaluationEnded.failed(self.stage, FailureReason.TIMEOUT, message)
        if message := self.excess():
            raise self._failed(FailureReason.OUT_OF_MEMORY, message)
        hid, self._hides = self._hides, self.child.tree.payload_hides()
        if hid and self._hides:
            raise self._forged(HIDES)

    def excess(self) -> str:
        """Kill the process if it holds too much memory; return how much, or nothing."""
        if self.child.closed:
            # It has ended, and its descriptors in this process with it.
            return ""
        allowed = self.limits.memory_bytes + self.inputs_bytes
        if (used := self.child.memory.excess(allowed)) is None:
            return ""
        self.child.kill_async()
        return f"it held {used >> 20} MiB of memory, at most {allowed >> 20} MiB are allowed"

    def _read(self, kind: str, frame: Frame, model: type[Model]) -> Model:
        """Return the fields of a frame of this kind; any other frame breaks the protocol."""
        self._expect(kind, frame)
        try:
            return read(frame, model)
        except FrameError as error:
            raise self._forged(str(error)) from None

    def _expect(self, kind: str, frame: Frame) -> None:
        if frame.kind != kind:
            raise self._forged(f"expected {kind!r}, got {frame.kind[:40]!r}")

    def _checked(self, frame: Frame, takes: int = 0) -> Frame:
        if frame.kind == "unbuilt":
            raise self._failed(*self.builds.refusal(emptied(frame).body))
        if frame.kind != "error":
            return emptied(frame, takes)
        report = self._read("error", emptied(frame), ErrorReport)
        raise self._attributed(failure_of(report, self.stage))

    def late(self, timeout_s: float | None = None) -> Exception:
        """Return what to raise when no answer came within this time, or a call's."""
        seconds = timeout_s or self.call_timeout_s
        return self._failed(FailureReason.TIMEOUT, f"no answer within {seconds:g} s")

    def _forged(self, what: str) -> Exception:
        return self._failed(FailureReason.PROTOCOL_VIOLATION, what[:500])

    def _died(self) -> Exception:
        if message := self.excess():
            return self._failed(FailureReason.OUT_OF_MEMORY, message)
        status = self.child.wait_status(2.0)
        if status is None:
            return self._failed(FailureReason.PROTOCOL_VIOLATION, "it closed its channel")
        if os.WIFSIGNALED(status):
            message = f"killed by {process_tree.signal_name(os.WTERMSIG(status))}"
            return self._failed(FailureReason.CRASH, message)
        message = f"it ended itself with exit code {os.WEXITSTATUS(status)}"
        return self._failed(FailureReason.UNEXPECTED_EXIT, message)

    def _failed(self, reason: FailureReason, message: str) -> Exception:
        return self._attributed(Failed(stage=self.stage, reason=reason, message=message))

    def _attributed(self, outcome: Failed, *, repeatable: bool = False) -> Exception:
        """Return what to raise; it depends on where the runner failed, not on its message."""
        if self.entered:
            return EvaluationEnded(outcome, self.name, repeatable=repeatable or self.reused)
        text = f"{outcome.reason}: {outcome.message}"
        return InfrastructureError(f"{self.name} failed before its candidate was entered: {text}")

    def end(self, timeout_s: float) -> int | None:
        """Let the process finish by itself; return its wait status, `None` if it does not end."""
        deadline = time.monotonic() + timeout_s
        try:
            self.child.channel.send("exit")
            while emptied(self.child.channel.receive(deadline, self._watch)).kind != "bye":
                continue
        except (DeadlineExceeded, ChannelClosed, FrameError):
            pass
        return self.child.wait_status(max(deadline - time.monotonic(), 0.0))

    def close(self) -> None:
        """Kill the process and release the shared memory."""
        self.child.kill()
        self.page.close()
