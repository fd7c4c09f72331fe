"""The cost of CUDA contexts that start at once: `python -m benchmarks.gpu.context_creation`.

Processes start together, all on one GPU or each on its own. They time the driver's start, the
device's context, and its end. A cost that grows with the number of processes shows that the driver
creates contexts one after another.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import time
from multiprocessing.synchronize import Barrier
from statistics import median
from typing import Any

from tilewright.evaluator.devices.devices import gpu_names

COUNTS = (1, 2, 4, 8)
REPEATS = 3
WAYS = ((False, False), (True, False), (False, True), (True, True))
"""Whether each process has a GPU of its own, and whether it sees no other."""


def make(device: int, alone: bool, start: Barrier, told: Any) -> None:  # noqa: ANN401 - a queue
    """Tell how many milliseconds the driver's start, a context and its end took."""
    if alone:
        os.environ["CUDA_VISIBLE_DEVICES"], device = str(device), 0
    driver = ctypes.CDLL("libcuda.so.1")
    start.wait()
    marks = [time.perf_counter()]
    failed = driver.cuInit(0)
    marks.append(time.perf_counter())
    context = ctypes.c_void_p()
    failed |= driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    marks.append(time.perf_counter())
    start.wait()
    marks.append(time.perf_counter())
    failed |= driver.cuDevicePrimaryCtxRelease_v2(device)
    marks.append(time.perf_counter())
    told.put((failed, *(1e3 * (marks[at + 1] - marks[at]) for at in (0, 1, 3))))


def main() -> None:
    """Print a row for each number of processes on one GPU and on all."""
    names = gpu_names()
    context = multiprocessing.get_context("fork")
    print(f"{len(names)} GPUs; milliseconds, median and worst: cuInit | context | its end")
    for spread, alone in WAYS if len(names) > 1 else WAYS[:1]:
        for count in COUNTS:
            if spread and count > len(names):
                continue
            rows = []
            for _ in range(REPEATS):
                start, told = context.Barrier(count), context.Queue()
                made = [
                    context.Process(target=make, args=(n * spread, alone, start, told))
                    for n in range(count)
                ]
                for process in made:
                    process.start()
                rows += [told.get(timeout=60) for _ in made]
                for process in made:
                    process.join()
            cells = [
                f"{median(row[at] for row in rows):.0f}, {max(row[at] for row in rows):.0f}"
                for at in (1, 2, 3)
            ]
            failed = sum(row[0] != 0 for row in rows)
            where = "each on its own" if spread else "on one"
            where += ", the only one it sees" if alone else ""
            print(f"{count} {where}: {' | '.join(cells)}; {failed} failed", flush=True)


if __name__ == "__main__":
    main()
