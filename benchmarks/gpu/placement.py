"""Which memory makes one call slower: `python -m benchmarks.gpu.placement`.

One process calls a transposed convolution many times. Between two measurements it moves only the
weights, only what the call allocates (output and workspace), only the input, or nothing. Where a
move changes the time, the time depends on the physical place of that memory. `offset` moves the
allocations within one block of device memory, as a runner's pool has it. The kernels of the fastest
and the slowest measurement are printed with their times.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import tempfile
from collections.abc import Callable
from math import prod
from pathlib import Path
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

from tilewright.evaluator.devices.toolchain import pool_library
from tilewright.wire.cuda_driver import Driver

TRIALS = 12
"""Places of one kind of memory."""
CALLS = 12
FLUSH_BYTES = 192 << 20
HELD_BYTES = (3 << 20, 11 << 20, 34 << 20, 70 << 20, 130 << 20)
"""Blocks that stay allocated so that the next allocation lies elsewhere, used in turn."""
SHAPES = {
    "3 x 3 x 3": ((64, 128), (3, 3, 3), (16, 64, 8, 16, 16)),
    "3 x 5 x 5": ((32, 64), (3, 5, 5), (16, 32, 64, 64, 64)),
}


BLOCK_BYTES = 6 << 30
"""Size of the block in which `offset` moves the allocations."""
OFFSET_BYTES = 2 << 20
"""Step of `offset`: a page of device memory."""


class Placed:
    """A convolution whose weights, input and allocations can be moved one by one."""

    def __init__(self, name: str) -> None:
        channels, kernel, self.shape = SHAPES[name]
        self.module = torch.nn.ConvTranspose3d(*channels, kernel, bias=False).cuda().eval()
        self.input = torch.randn(prod(self.shape), device="cuda").view(self.shape)
        self.pool = torch.cuda.MemPool()
        self.flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")
        self.held: list[torch.Tensor] = []

    def hold(self, number: int) -> None:
        size = HELD_BYTES[number % len(HELD_BYTES)]
        self.held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))

    def move_weights(self, number: int) -> None:
        self.hold(number)
        old = self.module.weight
        self.module.weight = torch.nn.Parameter(old.detach().clone())
        self.held.append(old.detach())

    def move_input(self, number: int) -> None:
        self.hold(number)
        self.held.append(self.input)
        self.input = self.input.clone()

    def move_allocations(self, number: int) -> None:
        self.held = []
        torch.cuda.empty_cache()
        self.hold(number)
        self.pool = torch.cuda.MemPool()

    def open_block(self) -> None:
        """Let calls allocate in one block from now on, by the allocator of runners."""
        library = str(pool_library(Path(tempfile.mkdtemp())))
        block = Driver().allocate(BLOCK_BYTES)
        own = ctypes.CDLL(library)
        own.tw_pool_open(ctypes.c_uint64(block.address), ctypes.c_uint64(block.size))
        kind = torch.cuda.memory.CUDAPluggableAllocator
        self.allocator = kind(library, "tw_pool_allocate", "tw_pool_release").allocator()
        self.pool = torch.cuda.MemPool(self.allocator)

    def move_offset(self, number: int) -> None:
        if number == 0:
            self.open_block()
        self.held = []
        torch.cuda.empty_cache()
        with torch.cuda.use_mem_pool(self.pool):
            # Larger than what torch serves from shared segments.
            self.held.append(
                torch.empty((number + 6) * OFFSET_BYTES, dtype=torch.uint8, device="cuda")
            )

    def call(self) -> torch.Tensor:
        with torch.cuda.use_mem_pool(self.pool):
            output: torch.Tensor = self.module(self.input)
        return output

    def timed(self) -> float:
        """Return the median microseconds of a call with cold caches."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        found = []
        for number in range(CALLS + 2):
            self.flush.sum()
            begin.record()
            output = self.call()
            end.record()
            end.synchronize()
            del output
            if number >= 2:
                found.append(begin.elapsed_time(end) * 1e3)
        return float(median(found))

    def kernels(self) -> dict[str, float]:
        """Return the microseconds of each kernel of one call."""
        with profile(activities=[ProfilerActivity.CUDA]) as traced:
            self.call()
            torch.cuda.synchronize()
        found: dict[str, float] = {}
        for event in traced.events():
            if str(event.device_type).endswith("CUDA"):
                found[event.name[:90]] = found.get(event.name[:90], 0.0) + float(event.device_time)
        return found


def main() -> None:
    """Print the times by what was moved, and the kernels of the extremes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="", help="only what moves by a name with this text")
    wanted = parser.parse_args().match
    rows: dict[str, dict[str, list[float]]] = {}
    with torch.no_grad():
        for name in SHAPES:
            placed, rows[name] = Placed(name), {}
            moves: dict[str, Callable[[int], None]] = {
                "nothing": lambda _: None,
                "weights": placed.move_weights,
                "input": placed.move_input,
                "allocations": placed.move_allocations,
                "offset": placed.move_offset,
                "same offsets": placed.move_offset,
            }
            extremes: list[tuple[float, dict[str, float]]] = []
            for kind, move in moves.items():
                if wanted not in kind:
                    continue
                times = []
                for number in range(TRIALS):
                    move(number)
                    times.append(placed.timed())
                    extremes.append((times[-1], placed.kernels()))
                rows[name][kind] = times
                shown = " ".join(f"{value:.0f}" for value in times)
                print(f"{name:10} {kind:12} {shown}", flush=True)
            for seconds, kernels in (
                min(extremes, key=lambda e: e[0]),
                max(extremes, key=lambda e: e[0]),
            ):
                print(
                    f"    {seconds:.0f} us: "
                    + ", ".join(f"{k}: {v:.0f}" for k, v in kernels.items())
                )
    (Path(os.environ.get("OUT", "out")) / "gpu_placement.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
