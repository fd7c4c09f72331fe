"""The stage that times as users do: `triton.testing.do_bench`, without the judge."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from typing import Any

from benchmarks.audit.plain_calls import Job, answer, calls_of, namespace, prepare_process

LONG_US = 50.0
"""Cells whose calls take longer are compared with the judge's ratio."""
AGREEMENT = 0.03
"""Largest relative difference between the two ratios that counts as agreement."""


def time_candidate(job: Job) -> None:
    """Time reference and candidate on each case, alone on the GPU."""
    prepare_process(job)

    def made() -> dict[str, Any]:
        from triton.testing import do_bench

        problem = namespace(job.problem, "problem")
        function = namespace(job.candidate, "candidate")["work"]
        with open(job.lock, "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Also the first calls, which may tune: they disturb a process that times meanwhile.
            eager = calls_of(problem, problem["reference"], job.names, job.device)
            own = calls_of(problem, function, job.names, job.device)
            cases = {
                name: [_microseconds(do_bench, one), _microseconds(do_bench, other)]
                for (name, one), (_, other) in zip(eager, own, strict=True)
            }
        return {"cases": cases}

    answer(job, made)


def _microseconds(do_bench: Callable[..., Any], call: Callable[[], Any]) -> float:
    # The first call tunes and loads what is compiled.
    call()
    return round(1000 * float(do_bench(call, warmup=10, rep=60, return_mode="median")), 3)
