"""Before-after timing with a control: `python -m benchmarks.gpu.before_after`.

Each process times a baseline, drops it, and then times baseline and candidate by turns. For any two
processes P and Q of one set, three estimates of the log ratio are compared:

    two processes   [candidate in P, after] - [baseline in Q, after]
    no control      [candidate in P, after] - [baseline in P, before]
    with control    [candidate in P, after] - [baseline in Q, after]
                    - c * ([baseline in P, before] - [baseline in Q, before])

The coefficient c of a comparison is 1, or it is fitted on the other comparisons. An estimate with a
smaller standard deviation over P and Q needs fewer process replicates.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Iterator
from itertools import permutations
from math import log
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import correlation, mean, median, pstdev
from typing import Any

import torch
import torch.multiprocessing as mp

from benchmarks.gpu.before_after_pairs import COMPARISONS, INPUT_NUMBERS, Comparison
from tilewright.wire.cuda_driver import Driver

PROCESSES = 6
"""Processes of one set. They exist at the same time and use the GPU by turns."""
BEFORE_ROUNDS, AFTER_ROUNDS = 3, 4
CALLS = 10
"""Calls of one function in one round; long calls are made less often."""
LONG_US, LONG_CALLS = 2000.0, 3
CHECKS = 8
"""Calls of the candidate between the phases, as the checks of correctness make them."""
FLUSH_BYTES = 192 << 20
OVERWRITTEN_BYTES = 256 << 20
"""Memory that a process overwrites after it dropped the baseline."""

Phases = dict[str, list[float]]
"""Log of microseconds by `before`, `baseline` and `candidate`, one number for each process."""


class TimedProcess:
    """One process: it queues calls behind a gate that its parent opens."""

    def __init__(self, pipe: Connection, shared: torch.Tensor, semaphore: torch.Tensor) -> None:
        self.pipe, self.shared, self.semaphore = pipe, shared, semaphore
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.driver, self.sequence = Driver(), 0

    def timed(self, function: Any) -> float:  # noqa: ANN401 - a function of one tensor
        """Return the median microseconds of a call with cold caches."""
        begin, end = self.events
        stream = torch.cuda.current_stream()
        # A first call loads code and allocates memory, which would wait for the device at the gate.
        function(self.shared)
        torch.cuda.synchronize()
        found: list[float] = []
        while len(found) < (LONG_CALLS if found and found[0] > LONG_US else CALLS):
            self.sequence += 1
            self.driver.await_semaphore(
                stream.cuda_stream, self.semaphore.data_ptr(), self.sequence
            )
            begin.record(stream)
            output = function(self.shared)
            end.record(stream)
            self.pipe.send(self.sequence)
            end.synchronize()
            del output
            found.append(begin.elapsed_time(end) * 1e3)
        return float(median(found))

    def answer(self, comparison: Comparison, phase: str) -> float:
        """Time one function, or drop the baseline and check the candidate."""
        with torch.no_grad():
            if phase == "unload":
                gc.collect()
                torch.cuda.empty_cache()
                torch.full((OVERWRITTEN_BYTES,), 90, dtype=torch.uint8, device="cuda")
                torch.cuda.empty_cache()
                function = comparison.candidate()
                for _ in range(CHECKS):
                    function(self.shared)
                torch.cuda.synchronize()
                return 0.0
            made = comparison.candidate if phase == "candidate" else comparison.baseline
            return self.timed(made())


def run_process(pipe: Connection, shared: torch.Tensor, semaphore: torch.Tensor) -> None:
    """Answer the parent's requests until one is None."""
    process = TimedProcess(pipe, shared, semaphore)
    pipe.send(0.0)
    while (asked := pipe.recv()) is not None:
        place, phase = asked
        pipe.send(float(process.answer(COMPARISONS[place], phase)))


class ProcessSet:
    """Processes that share one input, and the parent's side of their gates."""

    def __init__(self, shared: torch.Tensor) -> None:
        context = mp.get_context("spawn")
        self.semaphores = [
            torch.zeros(1024, dtype=torch.int32, device="cuda") for _ in range(PROCESSES)
        ]
        self.flush, self.driver = torch.zeros(FLUSH_BYTES // 4, device="cuda"), Driver()
        self.pipes, self.processes = [], []
        for semaphore in self.semaphores:
            ours, theirs = context.Pipe()
            process = context.Process(target=run_process, args=(theirs, shared, semaphore))
            process.start()
            self.pipes.append(ours)
            self.processes.append(process)
        for pipe in self.pipes:
            pipe.recv()

    def ask(self, number: int, place: int, phase: str) -> float:
        """Return what a process answers, and open its gate as often as it waits there."""
        pipe = self.pipes[number]
        pipe.send((place, phase))
        while not isinstance(message := pipe.recv(), float):
            self.flush.sum()
            stream = torch.cuda.current_stream().cuda_stream
            self.driver.write_semaphore(stream, self.semaphores[number].data_ptr(), message)
        return message

    def compare(self, place: int) -> Phases:
        """Time one comparison in every process, with both phases."""
        found: dict[str, list[list[float]]] = {
            phase: [[] for _ in range(PROCESSES)] for phase in ("before", "baseline", "candidate")
        }
        for _ in range(BEFORE_ROUNDS):
            for number in range(PROCESSES):
                found["before"][number].append(self.ask(number, place, "before"))
        for number in range(PROCESSES):
            self.ask(number, place, "unload")
        for turn in range(AFTER_ROUNDS):
            order = ("baseline", "candidate") if turn % 2 else ("candidate", "baseline")
            for number in range(PROCESSES):
                for phase in order:
                    found[phase][number].append(self.ask(number, place, phase))
        return {
            phase: [log(median(times)) for times in processes] for phase, processes in found.items()
        }

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join()


def pairs(phases: Phases) -> Iterator[tuple[float, float, float]]:
    """Yield (two processes, baseline in P - baseline in Q, no control) for each P and Q."""
    before, baseline, candidate = (phases[name] for name in ("before", "baseline", "candidate"))
    for p, q in permutations(range(len(before)), 2):
        yield candidate[p] - baseline[q], before[p] - before[q], candidate[p] - before[p]


def fitted(sets: list[Phases]) -> tuple[float, float]:
    """Return covariance and variance of the pairs, from which a coefficient is fitted."""
    shared, spread = 0.0, 0.0
    for phases in sets:
        rows = list(pairs(phases))
        middle = mean(row[0] for row in rows)
        shared += sum((row[0] - middle) * row[1] for row in rows)
        spread += sum(row[1] ** 2 for row in rows)
    return shared, spread


def report(results: list[list[Phases]]) -> list[dict[str, float | str]]:
    """Print the standard deviations over P and Q, in percent, for each comparison."""
    parts = [fitted(sets) for sets in results]
    rows: list[dict[str, float | str]] = []
    for place, sets in enumerate(results):
        others = [part for number, part in enumerate(parts) if number != place]
        whole = sum(part[1] for part in others)
        c = sum(part[0] for part in others) / whole if whole else 0.0
        every = [row for phases in sets for row in pairs(phases)]
        two, control = [row[0] for row in every], [row[1] for row in every]
        row: dict[str, float | str] = {
            "name": COMPARISONS[place].name,
            "us": float(mean(2.718281828**value for phases in sets for value in phases["before"])),
            "two": 100 * pstdev(two),
            "no_control": 100 * pstdev([item[2] for item in every]),
            "one": 100 * pstdev([t - b for t, b in zip(two, control, strict=True)]),
            "c": c,
            "fitted": 100 * pstdev([t - c * b for t, b in zip(two, control, strict=True)]),
            "correlation": correlation(two, control) if pstdev(control) else 0.0,
        }
        rows.append(row)
        print(
            f"{row['name']:42} {row['us']:9.1f} us | two {row['two']:5.2f} | no control "
            f"{row['no_control']:5.2f} | c=1 {row['one']:5.2f} | c={c:4.2f} {row['fitted']:5.2f} | "
            f"r {row['correlation']:5.2f}",
            flush=True,
        )
    return rows


def main() -> None:
    """Measure sets of processes until the time is over, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=200.0, help="no set begins later")
    until = time.monotonic() + parser.parse_args().seconds
    shared = torch.randn(INPUT_NUMBERS, device="cuda")
    results: list[list[Phases]] = [[] for _ in COMPARISONS]
    out = Path(os.environ.get("OUT", "out"))
    made = 0
    while time.monotonic() < until:
        processes = ProcessSet(shared)
        for place in range(len(COMPARISONS)):
            results[place].append(processes.compare(place))
        processes.close()
        made += 1
        print(f"set {made}: {until - time.monotonic():.0f} s left", flush=True)
        raw = {item.name: sets for item, sets in zip(COMPARISONS, results, strict=True)}
        (out / "gpu_before_after.json").write_text(json.dumps(raw), encoding="utf-8")
    print(f"{made} sets of {PROCESSES} processes; standard deviation of the log ratio in %")
    (out / "gpu_before_after_table.json").write_text(json.dumps(report(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
