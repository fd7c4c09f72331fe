"""Processes that serve one cell each, forked where torch and triton are imported already."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.audit.plain_calls import Job

PRELOADED = ("torch", "triton", "torch._dynamo", "torch._inductor.compile_fx")
"""To import torch anew would take longer than most cells."""

QUIET = {
    # Whether there is a device is found out without opening it, which a fork does not survive.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    # torch's own pool of compilers would start threads where processes are forked.
    "TORCH_WARM_POOL": "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


def run_all(
    work: Callable[[Job], None], jobs: Sequence[Job], at_once: int, limit_s: float, until: float
) -> list[dict[str, Any]]:
    """Run `work` for each job in a process of its own; return the answers in order.

    A process is killed after `limit_s` seconds. None starts after the monotonic time `until`.
    """
    os.environ.update(QUIET)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, work.__module__])

    def one(job: Job) -> dict[str, Any]:
        left = min(limit_s, until - time.monotonic())
        if left <= 0:
            return {"skipped": "no time left"}
        process = context.Process(target=work, args=(job,), daemon=True)
        process.start()
        process.join(left)
        if process.is_alive():
            process.kill()
            process.join()
            if left < limit_s:
                return {"skipped": "no time left"}
            return {"error": f"not done after {limit_s:.0f} s"}
        path = Path(job.answer)
        if not path.exists():
            return {"error": f"the process ended with status {process.exitcode}"}
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    with ThreadPoolExecutor(max(at_once, 1)) as pool:
        return list(pool.map(one, jobs))
