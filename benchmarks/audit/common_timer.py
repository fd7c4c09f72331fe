"""The stage that times as users do: `triton.testing.do_bench`, without the judge.

`do_bench` differs from the judge in two conditions. It launches each call while the device is
nearly idle, and it clears the second level cache by writing. So two more times of each call tell
why a ratio differs: with its launches hidden, and with a cache that was read into as well.
"""

from __future__ import annotations

import fcntl
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.audit.plain_calls import Job, answer, calls_of, namespace, prepare_process

LONG_US = 50.0
"""Cells whose calls take longer are compared with the judge's ratio."""
AGREEMENT = 0.03
"""Largest relative difference between the two ratios that counts as agreement."""
CALLS = 20
"""Calls of which a time is the median."""
SPIN_CYCLES = 20_000_000
"""Length of the kernel that hides the launches: 10 ms on an H200, as long as the judge waits."""
SPIN_S = 0.009
"""A call whose launches take longer waited for that kernel to end."""
CACHES = 2
"""Size of the data that are read to clear the cache, as a multiple of the cache's size."""


@dataclass(frozen=True)
class Times:
    """Times of one call in microseconds."""

    do_bench: float
    hidden: float
    """Behind another kernel, so that the device never waits for a launch."""
    clean: float
    """The same, with a cache that was cleared by reading."""
    waits: bool
    """Whether the call waits for the device, so that its launches cannot be hidden."""


def time_candidate(job: Job) -> None:
    """Time reference and candidate on each case, alone on the GPU and beside no import."""
    with open(job.lock, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        prepare_process(job)

        def made() -> dict[str, Any]:
            problem = namespace(job.problem, "problem")
            function = namespace(job.candidate, "candidate")["work"]
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Also the first calls, which may tune: they disturb a process that times meanwhile.
            eager = calls_of(problem, problem["reference"], job.names, job.device)
            own = calls_of(problem, function, job.names, job.device)
            pairs = {
                name: (_times(one), _times(other))
                for (name, one), (_, other) in zip(eager, own, strict=True)
            }
            # Each field maps a case to two values: the baseline's and the candidate's.
            return {
                field: {name: [getattr(each, key) for each in pair] for name, pair in pairs.items()}
                for field, key in (
                    ("cases", "do_bench"),
                    ("hidden", "hidden"),
                    ("clean", "clean"),
                    ("waits", "waits"),
                )
            }

        answer(job, made)


def _times(call: Callable[[], Any]) -> Times:
    import torch
    from triton.testing import do_bench

    # The first call tunes and loads what is compiled.
    call()
    usual = do_bench(call, warmup=10, rep=60, return_mode="median")
    cache = torch.cuda.get_device_properties("cuda").L2_cache_size
    written = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    read = torch.zeros(CACHES * cache // 4, device="cuda")
    total = torch.zeros((), device="cuda")
    hidden, waited = _hidden(call, written.zero_)
    clean, _ = _hidden(call, lambda: torch.sum(read, dim=0, out=total))
    return Times(round(1000 * float(usual), 3), hidden, clean, waited)


def _hidden(call: Callable[[], Any], clear: Callable[[], Any]) -> tuple[float, bool]:
    """Return the median time of a call whose launches are hidden; tell whether it waited."""
    import torch

    times, launches = [], []
    for _ in range(CALLS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(SPIN_CYCLES)
        clear()
        begin.record()
        start = time.perf_counter()
        call()
        launches.append(time.perf_counter() - start)
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * begin.elapsed_time(end))
    return round(statistics.median(times), 3), statistics.median(launches) > SPIN_S
