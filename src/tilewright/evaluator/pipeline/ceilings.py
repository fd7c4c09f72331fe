"""The ceilings of a device and the work of a case, which together give a roofline fraction."""

from __future__ import annotations

import contextlib
import json

from pydantic import ValidationError

from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.evidence import Observations
from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import CaseMeasured, MeasureCeilings
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.records import Ceilings, Work
from tilewright.records.version1 import upgrade
from tilewright.wire.frames import Fields

__all__ = ["complete_ceilings", "known_ceilings", "record_workload"]

FILE = "ceilings.json"


def known_ceilings(host: DeviceHost) -> Ceilings | None:
    """Return the ceilings of this device if an earlier evaluation measured them."""
    with contextlib.suppress(KeyError, TypeError, ValidationError):
        return Ceilings.model_validate(upgrade(Ceilings, _stored(host)[_key(host)]))
    return None


def complete_ceilings(session: EvaluationSession) -> None:
    """Measure the ceilings of a GPU, once for a device, in a process that runs no problem's code.

    This stage is the last one, so that no candidate waits for it.
    """
    if not session.on_gpu or session.observations.ceilings is not None:
        return
    with session.stage("ceilings") as details:
        child = session.host.spawn("judge", session.request.limits)
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
        measured = Ceilings(
            memory_bandwidth_bytes_per_s=found.bytes_per_s, flops_per_s=found.flops_per_s
        )
        session.observations.ceilings = measured
        _store(session.host, measured)


def _store(host: DeviceHost, measured: Ceilings) -> None:
    text = json.dumps({**_stored(host), _key(host): measured.model_dump()}, indent=1)
    # On a full disk the next evaluation measures again.
    with contextlib.suppress(OSError):
        (host.home / FILE).write_text(text, encoding="utf-8")


def _key(host: DeviceHost) -> str:
    return device_key(host.cores, host.device)


def _stored(host: DeviceHost) -> Fields:
    try:
        document = json.loads((host.home / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


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
