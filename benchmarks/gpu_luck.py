"""What of a process makes the same call faster or slower? `python -m benchmarks.gpu_luck`.

Several processes share one input and get a block each of the parent's memory, as sides do. Each
calls a function with its output at several places, with other events, and on other streams, in
turn with the others. What is varied within a process and changes nothing is not its luck.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, median, pstdev

import torch
import torch.multiprocessing as mp

PROCESSES, ROUNDS, CALLS = 8, 4, 21
BLOCK, STEP, FLUSH = 256 << 20, 6 << 20, 192 << 20
PLACES = 6
Setting = tuple[str, int]
SETTINGS: list[Setting] = [
    *(("offset", place) for place in range(PLACES)),
    *(("own block", place) for place in range(PLACES)),
    *(("events", place) for place in range(PLACES)),
    *(("stream", place) for place in range(PLACES)),
    *(("nothing", place) for place in range(PLACES)),
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
}


class Contestant:
    """One process: where it may write, its events and its streams."""

    def __init__(self, shared: torch.Tensor, block: torch.Tensor) -> None:
        self.shared, self.block = shared, block
        self.blocks = [torch.empty(STEP, device="cuda") for _ in range(PLACES)]
        self.events = [
            [torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(PLACES)
        ]
        self.streams = [torch.cuda.Stream() for _ in range(PLACES)]
        self.flush = torch.zeros(FLUSH // 4, device="cuda")

    def measure(self, operation: str, setting: Setting) -> float:
        """Return the median microseconds of a call with cold caches."""
        kind, place = setting
        at = place * STEP if kind == "offset" else 0
        out = self.blocks[place] if kind == "own block" else self.block[at : at + STEP]
        begin, end = self.events[place if kind == "events" else 0]
        stream = self.streams[place] if kind == "stream" else torch.cuda.current_stream()
        call, found = OPERATIONS[operation], []
        with torch.cuda.stream(stream):
            for _ in range(CALLS):
                self.flush.sum()
                torch.cuda._sleep(300_000)
                begin.record(stream)
                call(self.shared, out)
                end.record(stream)
                end.synchronize()
                found.append(begin.elapsed_time(end) * 1e3)
        return float(median(found))


def contest(pipe: Connection, shared: torch.Tensor, block: torch.Tensor) -> None:
    """Measure what is asked for, until nothing is."""
    made = Contestant(shared, block)
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        pipe.send([made.measure(asked, setting) for setting in SETTINGS])


def main() -> None:
    """Print, for each operation, how much each thing that varies changes a call's time."""
    context = mp.get_context("spawn")
    shared = torch.randn(1 << 22, device="cuda")
    blocks = [torch.empty(BLOCK // 4, device="cuda") for _ in range(PROCESSES)]
    pipes = []
    for block in blocks:
        ours, theirs = context.Pipe()
        context.Process(target=contest, args=(theirs, shared, block), daemon=True).start()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()
    rows: dict[str, list[list[list[float]]]] = {}
    for operation in OPERATIONS:
        rows[operation] = []
        for _ in range(ROUNDS):
            rows[operation].append([])
            for pipe in pipes:
                pipe.send(operation)
                rows[operation][-1].append(pipe.recv())
        report(operation, rows[operation])
    for pipe in pipes:
        pipe.send(None)
    (Path(os.environ.get("OUT", "out")) / "gpu_luck.json").write_text(json.dumps(rows))


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
        scatter = mean(pstdev([row[place] for place in places]) for row in settled)
        means = pstdev([mean(row[place] for place in places) for row in settled])
        print(
            f"; {kind}: within {100 * scatter / whole:.2f} %, "
            f"processes {100 * means / whole:.2f} %",
            end="",
        )
    print(flush=True)
    print("   ", " ".join(f"{value:.2f}" for value in alike), flush=True)


if __name__ == "__main__":
    main()
