"""A side whose calls run on a GPU: what it maps, and calls that are queued behind the gate."""

from __future__ import annotations

import time
from typing import Any

from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.messages import Mapped, Result, Traced, read
from tilewright.records import KernelTime
from tilewright.wire import sync_page
from tilewright.wire.frames import FrameError

__all__ = ["QUEUE_S", "GpuRunner"]

QUEUE_S = 0.01
"""How long a call may take to be queued whole before its gate is opened all the same."""

LIBRARIES = (
    *("at::", "cub::", "cublas", "cudnn", "cutlass", "nvjet", "gemm", "cufft", "Memcpy", "Memset"),
)
"""What stands in the names of kernels of torch and of NVIDIA's libraries."""


class GpuRunner(Runner):
    """One contestant on a device. The judge owns all memory that it shares."""

    clock_excess_s = 0.0
    """What the judge's interval has beside the call; measured before a candidate is loaded."""
    queue_s = QUEUE_S
    """The same of this side: 0 where launches are to be in its times."""
    was_early = False
    """Whether its last call could not be queued whole within that."""

    def map(self, shared: dict[str, Any], library: str, *, tf32: bool) -> int:
        """Have the contestant map what the judge shares; return where its work block lies."""
        first = not self._page_sent
        self._page_sent = True
        self.inputs_bytes = shared["inputs"]
        fields = {**shared, "library": library, "tf32": tf32}
        frame = self.ask("map", fields, fds=(self.page.fd,) if first else ())
        self._expect("mapped", frame)
        return read(frame, Mapped).base

    def arm(self, fields: dict[str, Any], sequence: int) -> None:
        """Ask for one gated call, without waiting for anything."""
        self._sequence = sequence
        self.page.words[sync_page.DONE] = 0
        self._send("arm", {**fields, "sequence": sequence, "wait_s": self.limits.call_timeout_s})

    def is_queued(self, within_s: float) -> bool:
        """Wait until the call is queued whole; `False` when that takes longer."""
        limit = time.monotonic() + within_s
        words = self.page.words
        while words[sync_page.DONE] != self._sequence:
            if self._poll.poll(0) and words[sync_page.DONE] != self._sequence:
                frame = self.receive(limit)
                raise self._forged(f"{frame.kind!r} before the call was queued")
            if time.monotonic() > limit:
                return False
            self._watch()
        return True

    def result(self) -> Result:
        """Return what the contestant says of the call, once its device has finished it."""
        frame = self.receive(time.monotonic() + self.limits.call_timeout_s)
        self._expect("result", frame)
        return self._read_result(frame)

    def waited_call(self, fields: dict[str, Any], sequence: int) -> tuple[float, Result]:
        """Have one call made as a Python caller makes it; return the seconds it took, by our clock.

        From its release until the side has waited for its device and says so: its own word ends
        it, so no ratio is made of it.
        """
        limit, words = time.monotonic() + self.limits.call_timeout_s, self.page.words
        words[sync_page.DONE] = 0
        self._send("wait", {**fields, "sequence": sequence, "wait_s": self.limits.call_timeout_s})
        self._spin(sync_page.READY, sequence, limit)
        start = time.perf_counter()
        words[sync_page.GO] = sequence
        self._spin(sync_page.DONE, sequence, limit)
        return time.perf_counter() - start, self.result()

    def traced(self, fields: dict[str, Any], timeout_s: float) -> list[KernelTime]:
        """Return the kernels of one call, by the side's own profiler."""
        frame = self.ask("trace", fields, timeout_s=timeout_s)
        self._expect("traced", frame)
        try:
            said = read(frame, Traced).kernels
        except FrameError as error:
            raise self._forged(str(error)) from None
        return [
            KernelTime(**item.model_dump(), library=any(mark in item.name for mark in LIBRARIES))
            for item in said
        ]

    def late(self) -> Exception:
        """Return what to raise for a call that does not end."""
        return self._late(self.limits.call_timeout_s)
