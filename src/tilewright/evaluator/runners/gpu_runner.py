"""The supervisor's handle of a GPU runner: mapped memory, calls behind the launch gate."""

from __future__ import annotations

import time

from tilewright.evaluator.judge_client.gpu_messages import SharedMemory
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.messages import Mapped, Result, Traced
from tilewright.records import KernelTime
from tilewright.wire import sync_page
from tilewright.wire.frames import Fields

QUEUE_TIMEOUT_S = 0.01
"""Seconds that a runner may take to queue a whole call before the launch gate opens anyway."""
LIBRARIES = (
    *("at::", "cub::", "cublas", "cudnn", "cutlass", "nvjet", "gemm", "cufft", "Memcpy", "Memset"),
)
"""Parts of the names of kernels that belong to torch and to NVIDIA's libraries."""


class GpuRunner(Runner):
    """One runner on a GPU. The judge owns all memory that it shares."""

    clock_excess_s = 0.0
    """Seconds of the judge's interval that are no work of the call; measured before a candidate is
    loaded."""
    queue_timeout_s = QUEUE_TIMEOUT_S
    """The same for this runner; 0 if its times are to include launches."""
    was_early = False
    """Whether the gate opened before the last call was queued whole."""

    def map(self, shared: SharedMemory, library: str, *, tf32: bool) -> int:
        """Let the runner map what the judge shares; return the address of its work block."""
        first = not self.inputs_bytes
        self.inputs_bytes = shared.inputs
        fields = {**shared.fields(), "library": library, "tf32": tf32}
        frame = self.ask("map", fields, fds=(self.page.fd,) if first else ())
        return self._read("mapped", frame, Mapped).base

    def arm(self, fields: Fields, sequence: int) -> None:
        """Ask for one gated call, without waiting for anything."""
        self._sequence = sequence
        self.page.flags[sync_page.DONE] = 0
        self._send("arm", {**fields, "sequence": sequence, "wait_s": self.limits.call_timeout_s})

    def is_queued(self, within_s: float) -> bool:
        """Wait until the call is queued whole; `False` when that takes longer."""
        limit = time.monotonic() + within_s
        flags = self.page.flags
        while flags[sync_page.DONE] != self._sequence:
            if self._poll.poll(0) and flags[sync_page.DONE] != self._sequence:
                frame = self.receive(limit)
                raise self._forged(f"{frame.kind!r} before the call was queued")
            if time.monotonic() > limit:
                return False
            self._watch()
        return True

    def result(self) -> Result:
        """Return the runner's report of the call, once its device has finished it."""
        frame = self.receive(time.monotonic() + self.limits.call_timeout_s)
        return self._read("result", frame, Result)

    def waited_call(self, fields: Fields, sequence: int) -> tuple[float, Result]:
        """Make one call as a Python caller would; return its seconds by the supervisor's clock.

        It lasts from the release until the runner reports that its device has finished. Because
        the report is the runner's own, no ratio is computed from it.
        """
        limit, flags = time.monotonic() + self.limits.call_timeout_s, self.page.flags
        flags[sync_page.DONE] = 0
        self._send("wait", {**fields, "sequence": sequence, "wait_s": self.limits.call_timeout_s})
        self._spin(sync_page.READY, sequence, limit)
        start = time.perf_counter()
        flags[sync_page.GO] = sequence
        self._spin(sync_page.DONE, sequence, limit)
        return time.perf_counter() - start, self.result()

    def traced(self, fields: Fields, timeout_s: float) -> list[KernelTime]:
        """Return the kernels of one call, as the runner's own profiler reports them."""
        frame = self.ask("trace", fields, timeout_s=timeout_s)
        return [
            KernelTime(**item.model_dump(), library=any(mark in item.name for mark in LIBRARIES))
            for item in self._read("traced", frame, Traced).kernels
        ]
