"""Steps for a GPU alone: a probe, memory sizes, interference."""

from __future__ import annotations

from tilewright.errors import InfrastructureError
from tilewright.evaluator.judge_client.gpu_messages import (
    CaseMeasured,
    MeasureCase,
    Probe,
)
from tilewright.evaluator.pipeline.ceilings_stage import record_workload
from tilewright.evaluator.pipeline.memory_admission import estimate_need
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.timing import blocks
from tilewright.evaluator.timing.case_timings import CaseTimes, corrected_times
from tilewright.records import Label
from tilewright.records.codes import LabelName
from tilewright.scoring import bootstrap

OUTPUT_GRAIN_BYTES = 512
"""Outputs take multiples of this: the alignment of torch's allocator on a GPU."""
ALLOCATOR_SHARE = 0.25
MAX_ALLOCATOR_SHARE_BYTES = 1 << 30
ALLOCATOR_EXTRA_BYTES = 32 << 20
"""Memory for a call's allocations beyond the reference's need: a share of it up to a limit, and
bytes in any case. A candidate may round up, or work in other steps. A runner that needs more gets
it elsewhere, and pays a copy of outputs there. Two runners hold this, so the largest references
would lack memory on a device of 80 GiB without the limit."""
INTERFERENCE_FLOOR_S = 5e-6
"""Seconds by which a baseline's call may change from one minute to the next."""
HOST_DRIFT = 0.5
"""Share by which work of the host may slow down without the candidate's doing: 0.4 was seen on a
busy host (docs/lab)."""
PROBE_TIMEOUT_S = 20.0
"""Seconds that a probe of the device may take."""
MAX_FAILED_PROBES = 2
"""Failed probes in a row after which the device is not used any more."""


def refuse_quarantined(host: DeviceHost) -> None:
    """Refuse a device that failed twice to compute a known result."""
    if host.bad_probes >= MAX_FAILED_PROBES:
        raise InfrastructureError(
            f"unjudged: {host.device.name} ({host.device.uuid}) is quarantined: it failed twice to "
            "compute a known result; check the device, then start tilewright again"
        )


def probe(session: EvaluationSession) -> None:
    """Check that the device still computes, after a candidate that failed on it."""
    host = session.host
    host.bad_probes += 1
    if not session.judge.request(Probe(), PROBE_TIMEOUT_S).right:
        raise InfrastructureError(f"{host.device.name} does not compute a known result")
    host.bad_probes, host.suspect = 0, False


def size_memory(session: EvaluationSession) -> None:
    """Learn from the reference how much device memory a runner's calls need."""
    pool, sizes = session.runners, list[CaseMeasured]()
    # A judge that was ended may have measured before.
    session.observations.work.clear()
    for case in session.request.problem.cases:
        seed = session.context.seed("sizes", case.name)
        with session.on_device():
            found = session.judge.request(MeasureCase(dict(case.params), seed))
        record_workload(session.observations, case.name, found)
        sizes.append(found)
        outputs = output_capacity(found.outputs, found.count)
        needed = (found.peak or 0) + found.outputs
        pool.output_bytes = max(pool.output_bytes, outputs)
        pool.allocator_bytes = max(pool.allocator_bytes, allocator_capacity(needed))
    estimate_need(session, sizes)


def allocator_capacity(needed: int) -> int:
    """Return the bytes in which calls allocate, where the reference needs `needed` of them."""
    spare = min(int(ALLOCATOR_SHARE * needed), MAX_ALLOCATOR_SHARE_BYTES)
    return needed + spare + ALLOCATOR_EXTRA_BYTES


def output_capacity(size: int, count: int) -> int:
    """Return the bytes that are reserved for `count` outputs of `size` bytes in all.

    The result is a multiple of the grain: the allocator's memory follows, and its start decides
    the alignment of all that a call allocates.
    """
    return -(-size // OUTPUT_GRAIN_BYTES) * OUTPUT_GRAIN_BYTES + OUTPUT_GRAIN_BYTES * count


def clock_labels(times: CaseTimes) -> list[Label]:
    """Return labels for what a device's clock showed of the candidate besides its time."""
    calls, gpu, found = times.total_s["candidate"], times.gpu, []
    if gpu.launching:
        detail = "launches of the baseline take too long to be queued; all times include launches"
        found.append(Label(name=LabelName.LAUNCH_TIME_INCLUDED, detail=f"{times.case}: {detail}"))
    elif times.candidate_waits:
        detail = f"{gpu.early} of {len(calls)} calls waited for the device themselves"
        found.append(Label(name=LabelName.HOST_SYNCHRONIZING, detail=f"{times.case}: {detail}"))
    reported = gpu.self_reported_s.get("candidate")
    if reported and not gpu.launching and corrected_times(times, "candidate") is calls:
        own_us, judge_us = bootstrap.median(reported) * 1e6, bootstrap.median(calls) * 1e6
        detail = f"{own_us:.1f} us by its own events, {judge_us:.1f} us by the judge's, which count"
        found.append(Label(name=LabelName.CLOCK_MISMATCH, detail=f"{times.case}: {detail}"))
    return found


def check_interference(session: EvaluationSession) -> None:
    """Time the first baseline again, now that the candidate has ended."""
    name = session.request.baselines[0].name
    times = session.observations.times[-1]
    case = next(item for item in session.request.problem.cases if item.name == times.case)
    official = session.request.protocol == "official"
    alone_s = blocks.time_uncontended(session.runners, case, name, times, officially=official)
    times.disturbed = [slowdown_share(times, name, alone_s, official=official)]


def slowdown_share(
    times: CaseTimes, baseline: str, alone_s: float, *, official: bool = False
) -> float:
    """Return the share of its uncontended time by which a baseline was slower before.

    Work that a candidate leaves on the device slows every process there. If times include work of
    the host, the CPU time that the candidate used meanwhile counts too, as a share of the time. A
    baseline does the same to the candidate if its threads wait actively for work, and only what
    exceeds that counts. Times of the official protocol may include launches, and no CPU time is
    known for them.
    """
    contended_s = bootstrap.median(times.total_s[baseline])
    share = (contended_s - alone_s - INTERFERENCE_FLOOR_S) / alone_s
    if official:
        return share - HOST_DRIFT
    if times.gpu.includes_host:
        theirs = bootstrap.median(times.gpu.baseline_cpu or [0.0])
        return max(share - HOST_DRIFT, bootstrap.median(times.disturbed) - theirs)
    return share
