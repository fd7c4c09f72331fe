"""Causes of process-to-process variation: `python -m benchmarks.gpu.process_variation`.

Several processes share one input, and each gets a block of the parent's memory, as runners do. The
parent flushes the cache and opens a gate, behind which one of them has queued its call. Each calls
a function with its output at several places, on other streams, and after a kernel of its own
between gate and call. A property that changes no time within a process does not explain the
variation between processes.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, median, pstdev

import torch
import torch.multiprocessing as mp

from tilewright.wire.cuda_driver import Driver

PROCESSES, ROUNDS, CALLS = 8, 3, 15
BLOCK, STEP, FLUSH = 192 << 20, 6 << 20, 192 << 20
PLACES = 4
BEFORE_CYCLES = 20_000
KINDS = ("offset", "stream", "blocking stream", "kernel before", "both", "nothing")
Setting = tuple[str, int]
SETTINGS: list[Setting] = [
    *((kind, place) for kind in KINDS for place in range(PLACES)),
]
OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "relu 1 MiB": lambda x, out: torch.clamp(x[: 1 << 18], min=0, out=out[: 1 << 18]),
    "relu 8 MiB": lambda x, out: torch.clamp(x[: 1 << 21], min=0, out=out[: 1 << 21]),
    "softmax": lambda x, out: torch.softmax(
        x[: 1 << 18].view(16, -1), 1, out=out[: 1 << 18].view(16, -1)
    ),
    "product": lambda x, out: torch.mm(
        x[: 1 << 18].view(512, 512), x[: 1 << 18].view(512, 512), out=out[: 1 << 18].view(512, 512)
    ),
    "five kernels": lambda x, out: _five(x, out),
}


def _five(x: torch.Tensor, out: torch.Tensor) -> None:
    part, to = x[: 1 << 18], out[: 1 << 18]
    for _ in range(5):
        torch.add(part, 1.0, out=to)
        part = to


def blocking_stream(driver: Driver) -> torch.cuda.Stream:
    """Return a stream that the default stream waits for, and that waits for it."""
    made = ctypes.c_void_p()
    driver.call("cuStreamCreate", ctypes.byref(made), ctypes.c_uint(0))
    return torch.cuda.ExternalStream(made.value)


class RunnerProcess:
    """One process: where it may write, its events and its streams."""

    def __init__(self, shared: torch.Tensor, block: torch.Tensor, semaphores: torch.Tensor) -> None:
        self.shared, self.block = shared, block
        self.semaphores = semaphores
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.driver = Driver()
        self.streams = [torch.cuda.Stream() for _ in range(PLACES)]
        self.blocking = [blocking_stream(self.driver) for _ in range(PLACES)]
        self.sequence = 0

    def measure(self, operation: str, setting: Setting, pipe: Connection) -> float:
        """Return the median microseconds of a call with cold caches."""
        kind, place = setting
        at = place * STEP if kind == "offset" else 0
        out = self.block[at : at + STEP]
        begin, end = self.events
        stream = torch.cuda.current_stream()
        if kind in ("stream", "both"):
            stream = self.streams[place]
        elif kind == "blocking stream":
            stream = self.blocking[place]
        call, found = OPERATIONS[operation], []
        with torch.cuda.stream(stream):
            # What is loaded or allocated at a first call may wait for the device, behind the gate.
            torch.cuda._sleep(1)
            call(self.shared, out)
            torch.cuda.synchronize()
            for _ in range(CALLS):
                self.sequence += 1
                self.driver.await_semaphore(
                    stream.cuda_stream, self.semaphores.data_ptr(), self.sequence
                )
                if kind in ("kernel before", "both"):
                    torch.cuda._sleep(BEFORE_CYCLES)
                begin.record(stream)
                call(self.shared, out)
                end.record(stream)
                pipe.send(self.sequence)
                end.synchronize()
                found.append(begin.elapsed_time(end) * 1e3)
        return float(median(found))


def run_process(
    pipe: Connection, shared: torch.Tensor, block: torch.Tensor, semaphores: torch.Tensor
) -> None:
    """Measure what is asked for, until nothing is."""
    made = RunnerProcess(shared, block, semaphores)
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        pipe.send([made.measure(asked, setting, pipe) for setting in SETTINGS])


def main() -> None:
    """Print, for each operation, how much each thing that varies changes a call's time."""
    context = mp.get_context("spawn")
    shared = torch.randn(1 << 22, device="cuda")
    blocks = [torch.empty(BLOCK // 4, device="cuda") for _ in range(PROCESSES)]
    semaphores = [torch.zeros(1024, dtype=torch.int32, device="cuda") for _ in range(PROCESSES)]
    flush, driver = torch.zeros(FLUSH // 4, device="cuda"), Driver()
    pipes = []
    for block, semaphore in zip(blocks, semaphores, strict=True):
        ours, theirs = context.Pipe()
        context.Process(
            target=run_process, args=(theirs, shared, block, semaphore), daemon=True
        ).start()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()
    rows: dict[str, list[list[list[float]]]] = {}
    for operation in OPERATIONS:
        rows[operation] = []
        for _ in range(ROUNDS):
            rows[operation].append([])
            for pipe, semaphore in zip(pipes, semaphores, strict=True):
                pipe.send(operation)
                while not isinstance(message := pipe.recv(), list):
                    flush.sum()
                    stream = torch.cuda.current_stream().cuda_stream
                    driver.write_semaphore(stream, semaphore.data_ptr(), message)
                rows[operation][-1].append(message)
        report(operation, rows[operation])
    for pipe in pipes:
        pipe.send(None)
    (Path(os.environ.get("OUT", "out")) / "gpu_process_variation.json").write_text(json.dumps(rows))


def report(operation: str, rounds: list[list[list[float]]]) -> None:
    """Print the scatter within and between processes, in percent of the call."""
    # One median over rounds for each process and setting.
    settled = [
        [median(made[process][place] for made in rounds) for place in range(len(SETTINGS))]
        for process in range(PROCESSES)
    ]
    whole = median(value for row in settled for value in row)
    alike = [mean(row[-PLACES:]) for row in settled]
    print(f"{operation}: {whole:.2f} us; processes {100 * pstdev(alike) / whole:.2f} %", end="")
    for kind in dict(SETTINGS):
        places = [place for place, setting in enumerate(SETTINGS) if setting[0] == kind]
        middle = median(row[place] for row in settled for place in places)
        scatter = mean(pstdev([row[place] for place in places]) for row in settled)
        means = pstdev([mean(row[place] for place in places) for row in settled])
        print(
            f"\n    {kind}: {middle:.2f} us, within {100 * scatter / whole:.2f} %, "
            f"processes {100 * means / whole:.2f} %",
            end="",
        )
    print(flush=True)
    print("\n   ", " ".join(f"{value:.2f}" for value in alike), flush=True)


if __name__ == "__main__":
    main()
