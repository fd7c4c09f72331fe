"""A runner's memory on a GPU: blocks that the judge owns, with an allocation pool inside one.

The candidate can change this code and write all of the mapped memory. The work block holds a page
of stream semaphores, a reserve for outputs that lie elsewhere, and a pool. Calls allocate in the
pool, so that the judge reads most outputs in place. Times and sizes from here are self-reported.
"""

from __future__ import annotations

import ctypes
import math
import socket
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from tilewright.runner import calls, kernel_shapes
from tilewright.runner import main as runner_main
from tilewright.runner.calls import Answer, Function, PreparedCall, TimedAnswer, Watch
from tilewright.runner.host_memory import CallMemory, await_release, map_sync_page
from tilewright.runner.kept_outputs import KeptOutputs
from tilewright.runner.launch_counter import untraced
from tilewright.wire import cuda_driver
from tilewright.wire.cuda_driver import SEMAPHORES_BYTES, Block, Driver
from tilewright.wire.frames import Channel, Frame
from tilewright.wire.sync_page import DONE, OUTPUTS, PERMUTED

OUTPUT_GRAIN_BYTES = 512
"""Copied outputs begin at multiples of this, like allocations of torch."""
MAX_KERNELS = 64
"""Kernels in the answer to `trace`, the longest first."""
MAX_KERNEL_NAME = 300
"""Characters of a kernel's name in that answer."""
CLEARED_BYTES = 256 << 20
"""Bytes that are written to clear the L2 cache; KernelBench's `clear_l2_cache` writes as many."""
KNOWN_KERNEL_CYCLES = 20_000
"""Clock cycles of the kernel that calibrates the judge's clock: about 10 us."""
_allocated, _peak = torch.cuda.memory_allocated, torch.cuda.max_memory_allocated
_reset_peak = torch.cuda.reset_peak_memory_stats
_binding: Any = torch._C
_synchronize, _current_device = _binding._cuda_synchronize, _binding._cuda_getDevice
"""The functions of the same names in `torch.cuda` take longer than a small kernel runs."""
_begin_pool = _binding._cuda_beginAllocateToPool
_end_pool = _binding._cuda_endAllocateToPool
_release_pool = _binding._cuda_releasePool


class GpuCallMemory(CallMemory[Block]):
    """Where calls on a GPU find their inputs and leave their outputs."""

    driver: Driver

    def __init__(self) -> None:
        super().__init__()
        # This much is possible while others are timed. An error here comes again in `begin`.
        cuda_driver.initialise()
        self.work = Block(0, 0)
        self.reserve = (0, 0)
        """Offset and bytes, in the work block, of the reserve for outputs that lie elsewhere."""
        self.pools: list[Any] = []
        self.routes = 0
        """How many `begin_route` wait for their `end_route`."""
        self._events: list[torch.cuda.Event] = []

    def begin(self) -> None:
        """Create this process's CUDA context."""
        self.driver = Driver()
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self._kept = KeptOutputs.measure()

    def map(self, frame: Frame) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Open a new input block and, the first time, the work block; return the answer."""
        fields = frame.fields
        self.arena = self.driver.open(fields["handle"], fields["inputs"])
        if self.page is None:
            self.page = map_sync_page(frame.fds[0])
            self.work = self.driver.open(fields["work_handle"], fields["work"])
            self.reserve = (SEMAPHORES_BYTES, fields["reserve"])
            self._open_pool(fields["library"], SEMAPHORES_BYTES + fields["reserve"])
        torch.backends.cuda.matmul.allow_tf32 = fields["tf32"]
        torch.backends.cudnn.allow_tf32 = fields["tf32"]
        return {"base": self.work.address, "inputs": self.arena.address}, ()

    def _open_pool(self, library: str, start: int) -> None:
        own = ctypes.CDLL(library)
        size = self.work.size - start
        own.tw_pool_open(ctypes.c_uint64(self.work.address + start), ctypes.c_uint64(size))
        kind = torch.cuda.memory.CUDAPluggableAllocator
        self._allocator = kind(library, "tw_pool_allocate", "tw_pool_release").allocator()
        self.pools.append(torch.cuda.MemPool(self._allocator))
        _hook_graphs(self)
        _hook_empty_cache(self)
        _hook_tuning(self)

    def private_copy(self, size: int) -> Block:
        # No address stands for an empty block.
        size = max(size, 1)
        private = Block.private(size)
        private.elements(torch.uint8, size, 0).copy_(self.inputs.elements(torch.uint8, size, 0))
        return private

    def to_device(self, function: Function) -> Function:
        return function.to("cuda") if isinstance(function, torch.nn.Module) else function

    def known_kernel(self, *_: object) -> None:
        torch.cuda._sleep(KNOWN_KERNEL_CYCLES)

    def mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def begin_route(self) -> None:
        """Direct all allocations of this process into the pool."""
        _begin_pool(_current_device(), self.pools[0].id)
        self.routes += 1

    def end_route(self) -> None:
        """Direct allocations where torch would put them."""
        self.routes -= 1
        device = _current_device()
        _end_pool(device, self.pools[0].id)
        _release_pool(device, self.pools[0].id)

    @contextmanager
    def unrouted(self) -> Iterator[None]:
        """Direct the allocations within where torch would put them, if they go into the pool."""
        routed = self.routes > 0
        if routed:
            self.end_route()
        try:
            yield
        finally:
            if routed:
                self.begin_route()

    def expose(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return copies of tensors in the work block, as far as its pool has capacity."""
        self.begin_route()
        try:
            copies = [value.to("cuda", copy=True) for value in values]
        finally:
            self.end_route()
        _synchronize()
        return copies

    def _called(self, function: Function, call: PreparedCall, watch: Watch) -> Answer:
        self.begin_route()
        try:
            with watch:
                output = calls.run(function, call)
            leaves, structure = calls.deliver(output, call=call)
            originals, _ = calls.flatten(output)
            kept = self._kept.are_kept(originals, leaves, call.shared)
            # The caller of a candidate that keeps an output's memory needs a copy of its own. Its
            # own inputs are kept by itself.
            leaves = [
                calls.copy_of(leaf) if is_kept and not calls.lies_in_writable(leaf, call) else leaf
                for leaf, is_kept in zip(leaves, kept, strict=True)
            ]
            return output, self._in_work_block(leaves, call), structure
        finally:
            if self.routes:
                self.end_route()

    def _in_work_block(self, leaves: list[Any], call: PreparedCall) -> list[Any]:
        """Copy leaves outside the work block into its reserve, as far as it has capacity.

        An output on the host is copied too. A part of the call, as for its caller. Those in inputs
        that the call may overwrite stay there, since the judge reads them there.
        """
        placed, (offset, capacity), self.moved = [], self.reserve, set()
        for place, leaf in enumerate(leaves):
            outside = calls.is_plain(leaf) and not (
                0 <= leaf.data_ptr() - self.work.address < self.work.size
                or calls.lies_in_writable(leaf, call)
            )
            if outside:
                size = math.prod(leaf.shape) * leaf.element_size()
                if size and size <= capacity:
                    if leaf.device.type == "cpu":
                        self.moved.add(place)
                    flat = self.work.elements(leaf.dtype, leaf.numel(), offset)
                    # It is dense, maybe with the strides of the reference's output.
                    leaf = flat.as_strided(leaf.shape, leaf.stride()).copy_(leaf)
                    used = -(-size // OUTPUT_GRAIN_BYTES) * OUTPUT_GRAIN_BYTES
                    offset, capacity = offset + used, capacity - used
            placed.append(leaf)
        return placed

    def untimed(self, function: Function, call: PreparedCall, watch: Watch) -> Answer:
        answer = self._called(function, call, watch)
        _synchronize()
        return answer

    def timed(
        self,
        function: Function,
        fields: dict[str, Any],
        held: list[calls.Span],  # noqa: ARG002
    ) -> TimedAnswer:
        """Queue a call behind the judge's launch gate, report that, and wait for its end."""
        page = self.sync_page
        call = calls.prepare(fields, self.inputs)
        sequence, (begin, end) = fields["sequence"], self._events
        stream = torch.cuda.current_stream()
        calls.disable_gc()
        self.driver.await_semaphore(
            stream.cuda_stream, self.work.address + cuda_driver.GATE_SEMAPHORE, sequence
        )
        if fields.get("clears_cache"):
            _clear_l2_cache()
        begin.record(stream)
        for _ in range(fields.get("times", 1) - 1):
            self._called(function, call, nullcontext())
        _, leaves, structure = self._called(function, call, nullcontext())
        # The call ends with its work on every stream.
        self.driver.await_context(stream.cuda_stream)
        end.record(stream)
        self.driver.write_semaphore(
            stream.cuda_stream, self.work.address + cuda_driver.DONE_SEMAPHORE, sequence
        )
        for place, address in enumerate(calls.addresses(leaves)):
            page[OUTPUTS + place] = address
        page[PERMUTED] = calls.permuted_places(leaves)
        page[DONE] = sequence
        calls.enable_gc()
        _synchronize()
        return call, leaves, structure, float(begin.elapsed_time(end)) * 1e3

    def waited(self, function: Function, fields: dict[str, Any]) -> TimedAnswer:
        """Call when released, wait for the device, raise the done flag; return the peak bytes."""
        page = self.sync_page
        call = calls.prepare(fields, self.inputs)
        held = _allocated()
        _reset_peak()
        _synchronize()
        calls.disable_gc()
        await_release(page, fields["sequence"], fields["wait_s"])
        _, leaves, structure = self._called(function, call, nullcontext())
        _synchronize()
        page[DONE] = fields["sequence"]
        calls.enable_gc()
        return call, leaves, structure, max(_peak() - held, 0)

    def graph_pool(self) -> tuple[int, int]:
        """Return a new pool inside the work block, for one captured graph."""
        self.pools.append(torch.cuda.MemPool(self._allocator))
        pool: tuple[int, int] = self.pools[-1].id
        return pool


def _clear_l2_cache() -> None:
    """Queue a write of more bytes than the L2 cache holds. Launches that follow overtake it."""
    torch.empty(CLEARED_BYTES, dtype=torch.uint8, device="cuda").fill_(42)


def _hook_graphs(memory: GpuCallMemory) -> None:
    """Make torch capture graphs outside the calls' pool, yet inside the judge's block."""
    graph: Any = torch.cuda.CUDAGraph
    begin, end = graph.capture_begin, graph.capture_end

    @untraced
    def capture_begin(self: Any, pool: Any = None, **options: Any) -> None:  # noqa: ANN401
        self._tilewright_routed = memory.routes > 0
        if self._tilewright_routed:
            memory.end_route()
        begin(self, pool if pool is not None else memory.graph_pool(), **options)

    @untraced
    def capture_end(self: Any) -> None:  # noqa: ANN401
        end(self)
        if self._tilewright_routed:
            memory.begin_route()

    graph.capture_begin, graph.capture_end = capture_begin, capture_end


def _hook_empty_cache(memory: GpuCallMemory) -> None:
    module: Any = torch.cuda
    empty = module.empty_cache

    @untraced
    def empty_cache() -> None:
        # Outside the pool: torch empties no cache while allocations are directed into one.
        with memory.unrouted():
            empty()

    module.empty_cache = module.memory.empty_cache = empty_cache


def _hook_tuning(memory: GpuCallMemory) -> None:
    """Make Triton's tuner allocate the memory by which it clears the cache outside the pool.

    A pool has no room for it. torch would keep that memory, and later calls would place outputs
    there, which have to be copied into the work block.
    """
    try:
        from triton.backends.nvidia.driver import CudaDriver
    except ImportError:
        return
    make = CudaDriver.get_empty_cache_for_benchmark

    @untraced
    def get_empty_cache_for_benchmark(self: Any) -> Any:  # noqa: ANN401
        with memory.unrouted():
            return make(self)

    CudaDriver.get_empty_cache_for_benchmark = get_empty_cache_for_benchmark


class GpuRunnerProcess(runner_main.RunnerProcess):
    """A runner whose implementation computes on a GPU."""

    HANDLERS = (*runner_main.RunnerProcess.HANDLERS, "begin", "wait", "trace")

    def __init__(self, channel: Channel) -> None:
        self.device = GpuCallMemory()
        super().__init__(channel, self.device)

    def begin(self, frame: Frame) -> None:  # noqa: ARG002 - every handler gets one
        self.device.begin()
        self.channel.send("device_open")

    def wait(self, frame: Frame) -> None:
        """Answer one call that waits for the device, as a Python caller does."""
        before, self.kept = self.launches.count, []
        call, self.kept, structure, peak = self.device.waited(self._loaded(), frame.fields)
        described = calls.describe(self.kept, structure, call, self.device.moved)
        self._answer(described, before, {}, peak_bytes=peak)

    def trace(self, frame: Frame) -> None:
        """Answer with the kernels of one call, as torch's profiler lists them."""
        from torch.profiler import ProfilerActivity, profile

        function, call = self._loaded(), calls.prepare(frame.fields, self.device.inputs)
        with profile(activities=[ProfilerActivity.CUDA]) as traced:
            self.device.untimed(function, call, nullcontext())
        found: defaultdict[str, list[float]] = defaultdict(list)
        for event in traced.events():
            if str(event.device_type).endswith("CUDA"):
                found[event.name[:MAX_KERNEL_NAME]].append(float(event.device_time))
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            traced.export_chrome_trace(str(trace))
            shapes = kernel_shapes.shapes_in_trace(trace)
        cut = {name[:MAX_KERNEL_NAME]: shape for name, shape in shapes.items()}
        kernels = [
            {"name": name, "launches": len(times), "total_us": sum(times), "shape": cut.get(name)}
            for name, times in sorted(found.items(), key=lambda item: -sum(item[1]))
        ]
        self.channel.send("traced", {"kernels": kernels[:MAX_KERNELS]})


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Serve frames as `runner.main` does, with inputs and outputs on the device."""
    runner_main.main(sock, applied, GpuRunnerProcess)
