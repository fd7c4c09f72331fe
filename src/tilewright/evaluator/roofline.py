"""What a device can do at most, and what a case asks of it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from pydantic import ValidationError

from tilewright.evaluator.environment import device_key
from tilewright.evaluator.evaluation import Evaluation
from tilewright.records import Ceilings, Work

__all__ = ["known_ceilings", "measure_ceilings", "note_work"]

FILE = "ceilings.json"


def known_ceilings(evaluation: Evaluation) -> Ceilings | None:
    """Return the ceilings of this device that were measured before, if they were."""
    with contextlib.suppress(KeyError, TypeError, ValidationError):
        return Ceilings.model_validate(_stored(evaluation)[_key(evaluation)])
    return None


def measure_ceilings(evaluation: Evaluation) -> bool:
    """Measure the ceilings of a device, once, by a judge that has run no problem's code yet.

    Returns whether it did: such a judge has loaded much that no problem needs.
    """
    if not evaluation.host.device.is_gpu or known_ceilings(evaluation) is not None:
        return False
    with evaluation.stage("ceilings") as said:
        found = evaluation.ask("ceilings", {})
    if found["failed"]:
        # A device that is full shows nothing of what it can do.
        said.append(found["failed"])
        return True
    measured = Ceilings(bytes_per_s=found["bytes_per_s"], flops_per_s=found["flops_per_s"])
    document = _stored(evaluation)
    with contextlib.suppress(OSError):
        # A full disk loses the short cut alone.
        text = json.dumps({**document, _key(evaluation): measured.model_dump()}, indent=1)
        (evaluation.host.home / FILE).write_text(text, encoding="utf-8")
    return True


def _key(evaluation: Evaluation) -> str:
    return device_key(evaluation.host.cores, evaluation.host.device)


def _stored(evaluation: Evaluation) -> dict[str, Any]:
    try:
        document = json.loads((evaluation.host.home / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def note_work(evaluation: Evaluation, case: str, found: dict[str, Any]) -> None:
    """Keep what the problem says of a case's work, else what the judge counted on its reference."""
    passed = found["inputs"] + found["weights"] + found["outputs"]
    evaluation.work.append(
        Work(
            case=case,
            precision=found["precision"],
            moved_bytes=passed if found["moved"] is None else found["moved"],
            output_bytes=found["outputs"],
            flops=found["flops"],
            peak_bytes=found["peak"],
        )
    )
