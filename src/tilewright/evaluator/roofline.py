"""What a device can do at most, and what a case asks of it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from pydantic import ValidationError

from tilewright.evaluator.environment import device_key
from tilewright.evaluator.evaluation import Evaluation
from tilewright.records import Ceilings, Work

__all__ = ["ceilings_of", "note_work"]

FILE = "ceilings.json"


def ceilings_of(evaluation: Evaluation) -> Ceilings:
    """Return the ceilings of this device: those in `home`, else measured now and stored there."""
    host = evaluation.host
    path, key = host.home / FILE, device_key(host.cores, host.device)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        document = {}
    with contextlib.suppress(KeyError, TypeError, ValidationError):
        return Ceilings.model_validate(document[key])
    with evaluation.stage("ceilings"):
        found = Ceilings.model_validate(evaluation.ask("ceilings", {}))
    with contextlib.suppress(OSError, TypeError):
        # A full disk, or a file that is something else, loses the short cut alone.
        path.write_text(json.dumps({**document, key: found.model_dump()}, indent=1))
    return found


def note_work(evaluation: Evaluation, case: str, found: dict[str, Any]) -> None:
    """Keep what the judge counted on the reference of a case."""
    evaluation.work.append(
        Work(
            case=case,
            precision=found["precision"],
            moved_bytes=found["inputs"] + found["outputs"],
            output_bytes=found["outputs"],
            flops=found["flops"],
            peak_bytes=found["peak"],
        )
    )
