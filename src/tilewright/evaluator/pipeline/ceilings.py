"""What a device can do at most, and what a case asks of it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from pydantic import ValidationError

from tilewright.evaluator.devices.environment import device_key
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.records import Ceilings, Work
from tilewright.records.version1 import upgrade

__all__ = ["known_ceilings", "measure_ceilings", "record_workload"]

FILE = "ceilings.json"


def known_ceilings(session: EvaluationSession) -> Ceilings | None:
    """Return the ceilings of this device that were measured before, if they were."""
    with contextlib.suppress(KeyError, TypeError, ValidationError):
        return Ceilings.model_validate(upgrade(Ceilings, _stored(session)[_key(session)]))
    return None


def measure_ceilings(session: EvaluationSession) -> bool:
    """Measure the ceilings of a device, once, by a judge that has run no problem's code yet.

    Returns whether it did: such a judge has loaded much that no problem needs.
    """
    if not session.host.device.is_gpu or known_ceilings(session) is not None:
        return False
    with session.stage("ceilings") as said:
        found = session.ask("ceilings", {})
    if found["failed"]:
        # A device that is full shows nothing of what it can do.
        said.append(found["failed"])
        return True
    measured = Ceilings(
        memory_bandwidth_bytes_per_s=found["bytes_per_s"], flops_per_s=found["flops_per_s"]
    )
    document = _stored(session)
    with contextlib.suppress(OSError):
        # A full disk loses the short cut alone.
        text = json.dumps({**document, _key(session): measured.model_dump()}, indent=1)
        (session.host.home / FILE).write_text(text, encoding="utf-8")
    return True


def _key(session: EvaluationSession) -> str:
    return device_key(session.host.cores, session.host.device)


def _stored(session: EvaluationSession) -> dict[str, Any]:
    try:
        document = json.loads((session.host.home / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def record_workload(session: EvaluationSession, case: str, found: dict[str, Any]) -> None:
    """Keep what the problem says of a case's work, else what the judge counted on its reference."""
    passed = found["inputs"] + found["weights"] + found["outputs"]
    session.work.append(
        Work(
            case=case,
            precision=found["precision"],
            moved_bytes=passed if found["moved"] is None else found["moved"],
            output_bytes=found["outputs"],
            flops=found["flops"],
            peak_bytes=found["peak"],
        )
    )
