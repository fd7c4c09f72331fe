"""The judge's half of calls on a device: what it shares, its gate, and its clock.

In one stream the judge waits for the gate, writes the inputs into the slot, and flushes the second
level cache. It then records an event, releases the runner by a semaphore, waits for that of the
runner, and records a second event. The runner queues its call meanwhile, so that no launch is in
the interval. The inputs are written only when the gate is open: a result that a runner computes
before that, on whatever stream, comes from old inputs.

The interval exceeds the runner's work by a constant (docs/lab). The judge measures it anew for each
runner before its candidate is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from tilewright.evaluator.judge.ready_outputs import ReadyOutputs, places_of
from tilewright.evaluator.judge_client.gpu_messages import SharedMemory
from tilewright.wire import cuda_driver
from tilewright.wire.cuda_driver import Block, Driver

FLUSH_CACHES = 2
"""Size of the data that flush the second level cache, as a multiple of the cache's size."""
POLL_S = 2e-5
SPIN_S = 5e-4
"""Seconds that the judge asks for the end of a call without a pause. Most calls end within them,
and the shortest pause of a process is longer than many calls."""
SPARE_BYTES = 2 << 30
"""Bytes of device memory that processes load in addition to what the judge shares with them."""


@dataclass
class Shared:
    """The blocks that one runner has mapped: the input block of all runners, and its work block."""

    inputs: Block
    work: Block
    reserve: int


class LaunchGate:
    """The judge's stream, gate and blocks on one device. Lifetime: the judge."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        self.shared: dict[str, Shared] = {}
        self._inputs: Block | None = None
        self._flag = torch.zeros(1, dtype=torch.int32).pin_memory()
        cache = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        self._flush = torch.zeros(FLUSH_CACHES * cache // 4, device="cuda")
        self._sum = torch.zeros((), device="cuda")
        self._read_flush()
        self._begin, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._sequence = 0

    def share(self, runner: str, inputs: int, reserve: int, pool: int) -> SharedMemory:
        """Allocate blocks for a runner, or only a larger input block; return handles and sizes."""
        block = self._inputs_of(inputs)
        known = self.shared.get(runner)
        if known is not None:
            old, known.inputs = known.inputs, block
            self._free_unused(old)
            return SharedMemory(self.driver.export(block), len(block))
        work = self._fresh(cuda_driver.SEMAPHORES_BYTES + reserve + pool)
        work.elements(torch.uint8, cuda_driver.SEMAPHORES_BYTES, 0).zero_()
        torch.cuda.synchronize()
        self.shared[runner] = Shared(block, work, reserve)
        return SharedMemory(
            self.driver.export(block), len(block), self.driver.export(work), len(work), reserve
        )

    def _inputs_of(self, size: int) -> Block:
        """Return the block from which all runners read their inputs, a new one if it is too small.

        The place of the inputs changes the time of a small kernel by some percent, so it is shared.
        """
        newest = self._inputs
        if newest is None or len(newest) < size:
            self._inputs = self._fresh(size)
            if newest is not None:
                self._free_unused(newest)
        assert self._inputs is not None
        return self._inputs

    def _free_unused(self, block: Block) -> None:
        """Free an input block that no runner has mapped any more, unless it is the newest."""
        if block is not self._inputs and all(s.inputs is not block for s in self.shared.values()):
            torch.cuda.synchronize()
            self.driver.free(block)

    def _fresh(self, size: int) -> Block:
        """Return an overwritten block, which holds nothing that an earlier runner computed."""
        if torch.cuda.mem_get_info()[0] < size + SPARE_BYTES:
            # Free the allocator's cache: a process that maps this also needs memory for its code.
            torch.cuda.empty_cache()
        try:
            block = self.driver.allocate(size)
        except RuntimeError:
            torch.cuda.empty_cache()
            block = self.driver.allocate(size)
        block.elements(torch.uint8, len(block), 0).fill_(0xFF)
        torch.cuda.synchronize()
        return block

    def empty_cache_if_low(self) -> None:
        """Empty the allocator's cache if less is free than the largest work block and a reserve.

        torch does so before it runs out of memory itself, but not for another process. A runner
        whose calls leave gaps in its work block allocates as much again elsewhere.
        """
        most = max((len(shared.work) for shared in self.shared.values()), default=0)
        if torch.cuda.mem_get_info()[0] < most + SPARE_BYTES:
            torch.cuda.empty_cache()

    def release(self, runner: str) -> None:
        """Free a runner's blocks; its process has ended."""
        shared = self.shared.pop(runner, None)
        if shared is not None:
            torch.cuda.synchronize()
            self._free_unused(shared.inputs)
            self.driver.free(shared.work)

    def close(
        self,
        runner: str,
        sequence: int,
        write_inputs: Callable[[], None],
        ready: ReadyOutputs,
    ) -> None:
        """Queue one call of a runner behind a closed gate; `sequence` is above all before it.

        `ready` looks at the memory for outputs when the call begins.
        """
        self._sequence = sequence
        first, stream = self.shared[runner].work.address, self.stream.cuda_stream
        self._flag[0] = 0
        self.driver.await_semaphore(stream, self._flag.data_ptr(), 1)
        write_inputs()
        # While the gate was closed, the runner may have worked on other streams. The judge reads
        # in each call: by the time of a read, a runner could see which calls are compared.
        ready.read_before(places_of(self.shared[runner].work))
        self._read_flush()
        self._begin.record(self.stream)
        self.driver.write_semaphore(stream, first + cuda_driver.GATE_SEMAPHORE, self._sequence)
        self.driver.await_semaphore(stream, first + cuda_driver.DONE_SEMAPHORE, self._sequence)
        self._end.record(self.stream)

    def _read_flush(self) -> None:
        """Fill the second level cache by reads: dirty lines would be written back later."""
        torch.sum(self._flush, dim=0, out=self._sum)

    def open(self) -> None:
        """Let the queued call go."""
        self._flag[0] = 1

    def wait(self, timeout_s: float, interrupted: Callable[[], bool]) -> float | None:
        """Return the seconds between the two events, or `None` where the call does not end.

        The wait ends, too, once `interrupted` is true.
        """
        start = time.monotonic()
        while not self._end.query():
            waited_s = time.monotonic() - start
            if waited_s > timeout_s:
                return None
            if waited_s > SPIN_S:
                if interrupted():
                    return None
                time.sleep(POLL_S)
        return float(self._begin.elapsed_time(self._end)) / 1e3

    def abandon(self, runner: str) -> None:
        """Release our own stream from a call that will not end by itself."""
        self.open()
        other = torch.cuda.Stream()
        done = self.shared[runner].work.address + cuda_driver.DONE_SEMAPHORE
        self.driver.write_semaphore(other.cuda_stream, done, self._sequence)
        self.stream.synchronize()
