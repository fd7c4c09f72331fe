"""Work for later calls that a candidate may have done before the first timed one.

It may keep hundreds of outputs that are zero already, and take one of them in each call. No timed
call shows that work, but on a CPU its memory does, which is larger than that of a baseline. So a
replicate makes several calls for each such output: a few calls with less to do move no median
(ADR 72). On a GPU the judge sees which outputs had their values before a call (ADR 74).
"""

from __future__ import annotations

import math
from itertools import pairwise

from tilewright.evaluator.processes.memory_use import anonymous_bytes
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.timing.call_plan import HEAP_OUTPUTS, MAX_HEAP_BYTES
from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.scoring import bootstrap

MIN_OUTPUT_BYTES = 64 << 10
"""Bytes of a call's outputs from which on this counts. Fewer take 5 us, which is the resolution."""
CALLS_FOR_EACH = 4
"""Timed calls for each call whose outputs may lie ready, so that these are a quarter of them."""
FILL_BYTES_PER_S = 1e10
"""Speed at which one core fills memory."""
SLOW_FILL_BYTES_PER_S = 1e9
"""Speed at which it fills pages that it touches for the first time."""
DEVICE_BYTES_PER_S = 1.5e12
"""Speed at which a GPU fills memory: a third of the bandwidth of an H200."""
DEVICE_FILL_S = 2e-6
"""Seconds of a kernel that fills little memory."""


def ready_bytes(candidate: Runner, baseline: Runner, output_bytes: int) -> int:
    """Return the bytes of outputs that a candidate may keep ready; 0 for small outputs.

    These are its anonymous memory beyond the baseline's, and what both got for their heaps.
    """
    if output_bytes < MIN_OUTPUT_BYTES:
        return 0
    ours, theirs = (anonymous_bytes(each.child.tree.pids) for each in (candidate, baseline))
    return max(ours - theirs, 0) + min(HEAP_OUTPUTS * output_bytes, MAX_HEAP_BYTES)


def blocks_to_outlast(times: CaseTimes) -> int:
    """Return the blocks of the newest replicate that outlast outputs that may lie ready."""
    if not times.memory.ready_bytes or not times.memory.ready_bytes[-1]:
        return 0
    calls = times.memory.ready_bytes[-1] / times.size.output_bytes
    return math.ceil(CALLS_FOR_EACH * calls / 2)


def uncounted_fill_s(times: CaseTimes) -> float:
    """Return the seconds to fill outputs that lay ready, or may have lain ready on a CPU.

    There, outputs count that a replicate did not outlast, and memory that nobody wrote. So does
    what a candidate may do before each call without its inputs.
    """
    if times.on_device:
        return _found_fill_s(times, DEVICE_FILL_S, DEVICE_BYTES_PER_S)
    before_s = _before_call_s(times) * len(times.total_s["candidate"])
    unwritten_s = _found_fill_s(times, 0.0, FILL_BYTES_PER_S)
    return before_s + unwritten_s + _not_outlasted_s(times)


def _not_outlasted_s(times: CaseTimes) -> float:
    """Return the seconds to fill outputs that may have lain ready and were not outlasted."""
    made = [stop - start for start, stop in pairwise([*times.replicate_starts, times.blocks])]
    return sum(
        ready / FILL_BYTES_PER_S
        for ready, blocks in zip(times.memory.ready_bytes, made, strict=False)
        if ready * CALLS_FOR_EACH > 2 * blocks * times.size.output_bytes
    )


def _before_call_s(times: CaseTimes) -> float:
    """Return the most seconds of work before a call that needs no inputs, on a CPU.

    A candidate can replace tilewright's own code there by a shorter one. In the time that this
    saves it may draw random numbers, or write what no input changes. Its CPU time before a call
    contains all that it does then.
    """
    used = times.untimed_cpu_s["candidate"]
    if not used:
        return 0.0
    unchanged = times.memory.unchanged
    work_s = bootstrap.median(unchanged) / SLOW_FILL_BYTES_PER_S if unchanged else 0.0
    if times.size.is_random:
        work_s = math.inf
    return min(max(bootstrap.median(used), 0.0), work_s)


def _found_fill_s(times: CaseTimes, fixed_s: float, bytes_per_s: float) -> float:
    """Return the seconds to fill what lay ready, in all timed calls together.

    The judge compares only some calls with large outputs. So this multiplies the mean of the
    compared calls by the number of all calls.
    """
    found = times.memory.found_ready
    if not found:
        return 0.0
    filled = [fixed_s + ready / bytes_per_s for ready in found if ready]
    return sum(filled) / len(found) * len(times.total_s["candidate"])
