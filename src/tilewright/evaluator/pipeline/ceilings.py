"""The ceilings of a device and the work of a case, which together give a roofline fraction."""

from __future__ import annotations

from contextlib import suppress

from pydantic import ValidationError

from tilewright.evaluator.devices.recorded_environment import (
    device_key,
    read_by_device,
    write_for_device,
)
from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import CaseMeasured, MeasureCeilings
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.verdict import Observations
from tilewright.records import Ceilings, Work
from tilewright.records.codes import Stage
from tilewright.records.version1 import upgrade

FILE = "ceilings.json"


def known_ceilings(host: DeviceHost) -> Ceilings | None:
    """Return the ceilings of this device if an earlier evaluation measured them."""
    with suppress(KeyError, TypeError, ValidationError):
        stored = read_by_device(host.home / FILE)[device_key(host.cores, host.device)]
        return Ceilings.model_validate(upgrade(Ceilings, stored))
    return None


def complete_ceilings(session: EvaluationSession) -> None:
    """Measure the ceilings of a GPU, once for a device, in a process that runs no problem's code.

    This stage is the last one, so that no candidate waits for it.
    """
    host = session.host
    if not session.on_gpu or session.observations.ceilings is not None:
        return
    with session.stage(Stage.CEILINGS) as details:
        child = host.spawn("judge", session.request.limits)
        try:
            child.wait_ready()
            judge = JudgeClient(session.context)
            judge.child = child
            found = judge.request(MeasureCeilings())
        finally:
            child.kill()
        if found.bytes_per_s is None:
            # A device whose memory is full does not show what it can do.
            details.append(found.failed)
            return
        session.observations.ceilings = measured = Ceilings(
            memory_bandwidth_bytes_per_s=found.bytes_per_s, flops_per_s=found.flops_per_s
        )
        # On a full disk the next evaluation measures again.
        with suppress(OSError):
            key = device_key(host.cores, host.device)
            write_for_device(host.home / FILE, key, measured.model_dump())


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
