"""Stage ceilings: what the device can do, and how much of that each case needs.

It is the last stage, so that no candidate waits for it.
"""

from __future__ import annotations

from contextlib import suppress

from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.devices.stored_ceilings import read_ceilings, write_ceilings
from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import (
    CaseMeasured,
    CeilingsMeasured,
    MeasureCase,
    MeasureCeilings,
)
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.verdict import Observations
from tilewright.records import Ceilings, Work
from tilewright.records.codes import Stage


def complete_ceilings(session: EvaluationSession) -> None:
    """Measure the ceilings, once for a device, and on a CPU the work of the timed cases.

    On a GPU the judge has measured the work before, because the calls need that memory.
    """
    seen = session.observations
    if not session.on_gpu and not seen.times:
        return
    seen.ceilings = seen.ceilings or known_ceilings(session.host)
    if session.on_gpu and seen.ceilings is not None:
        return
    with session.stage(Stage.CEILINGS) as details:
        if not session.on_gpu:
            _measure_work(session)
        if seen.ceilings is None:
            _measure(session, details)


def known_ceilings(host: DeviceHost) -> Ceilings | None:
    """Return the ceilings of this device if an earlier evaluation measured them."""
    return read_ceilings(host.home, device_key(host.cores, host.device))


def _measure_work(session: EvaluationSession) -> None:
    timed = {times.case for times in session.observations.times}
    for case in session.request.problem.cases:
        if case.name in timed:
            seed = session.context.seed("sizes", case.name)
            found = session.judge.request(MeasureCase(dict(case.params), seed))
            record_workload(session.observations, case.name, found)


def _measure(session: EvaluationSession, details: list[str]) -> None:
    found = _measured(session)
    if found.bytes_per_s is None:
        # A device whose memory is full does not show what it can do.
        details.append(found.failed)
        return
    session.observations.ceilings = measured = Ceilings(
        memory_bandwidth_bytes_per_s=found.bytes_per_s, flops_per_s=found.flops_per_s
    )
    # On a full disk the next evaluation measures again.
    with suppress(OSError):
        host = session.host
        write_ceilings(host.home, device_key(host.cores, host.device), measured)


def _measured(session: EvaluationSession) -> CeilingsMeasured:
    """Measure in a process that runs no problem's code."""
    host = session.host
    child = host.spawn("judge", session.request.limits)
    try:
        child.wait_ready()
        judge = JudgeClient(session.context)
        judge.child = child
        return judge.request(MeasureCeilings(host.cores.threads))
    finally:
        child.kill()


def record_workload(observations: Observations, case: str, found: CaseMeasured) -> None:
    """Record the work of a case as the problem declares it, else as the judge measured it."""
    passed = found.inputs + found.weights + found.outputs
    observations.work.append(
        Work(
            case=case,
            precision=found.precision,
            moved_bytes=passed if found.moved is None else found.moved,
            output_bytes=found.outputs,
            flops=found.flops,
            peak_bytes=found.peak,
        )
    )
