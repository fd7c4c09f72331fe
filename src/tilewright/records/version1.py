"""Documents of schema version 1: the step to the names of version 2, by `version1.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel

from tilewright.records.codes import IncorrectKind, InputOrigin, Stage

_TABLE: Final = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
FIELDS: Final[dict[str, dict[str, str]]] = _TABLE["fields"]
"""Class of a record: the name of a field in version 1, and its name now."""
VALUES: Final[dict[str, dict[str, dict[str, str]]]] = {}
"""Class of a record, its field by the name it has now: values in version 1, and their names now."""
for _row in _TABLE["values"]:
    for _record, _field in (place.split(".") for place in _row["of"]):
        VALUES.setdefault(_record, {})[_field] = _row["names"]

_INCORRECT = re.compile(
    rf"(?P<kind>{'|'.join(IncorrectKind)}) \((?P<case>.*?), (?P<inputs>[\w ]+)\): "
)
"""The reason of an incorrect output in version 1: kind, case, and input variation or `timed`."""
_FAILED = re.compile(
    r"(?P<reason>build|crash|exception|exit|memory corruption|out of memory|protocol|timeout"
    r"|unparseable)(?: in (?P<stage>prepare|spawn|load|correctness|knockout|timing|exit))?: "
)
"""The reason of a failed candidate in version 1: reason and stage."""


def upgrade(record: type[BaseModel], document: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a version 1 document of `record` as version 2 writes it; unknown keys stay.

    Only names are changed, so that the validation that follows sees every other defect.
    """
    return _upgraded([record], document)


def _upgraded(records: Sequence[type[BaseModel]], value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_upgraded(records, item) for item in value]
    if not isinstance(value, dict):
        return value
    record = next((item for item in records if _is_tagged(item, value)), records[0])
    names = FIELDS.get(record.__name__, {})
    # A document with both names of a field keeps both, so that the validation refuses it.
    made = {
        names[key] if key in names and names[key] not in value else key: item
        for key, item in value.items()
    }
    for key, values in VALUES.get(record.__name__, {}).items():
        if key in made:
            made[key] = _renamed(made[key], values)
    for key, field in record.model_fields.items():
        nested = _records_in(field.annotation)
        if nested and key in made:
            made[key] = _upgraded(nested, made[key])
    if made.get("schema_version") == 1:
        made["schema_version"] = 2
    return _codes_of(made) | made if record.__name__ == "EvalSummary" else made


def _codes_of(summary: dict[str, Any]) -> dict[str, str]:
    """Return the codes that version 1 wrote into the reason alone, as far as it has them."""
    reason, verdict = str(summary.get("reason", "")), summary.get("verdict")
    if verdict == "incorrect" and (found := _INCORRECT.match(reason)):
        origin = InputOrigin.NOMINAL if found["inputs"] == "nominal" else InputOrigin.VARIED
        if found["case"].startswith("hidden "):
            origin = InputOrigin.HIDDEN_SIZE
        return {
            "code": found["kind"],
            "inputs": InputOrigin.TIMED if found["inputs"] == "timed" else origin,
        }
    if verdict == "failed" and (found := _FAILED.match(reason)):
        codes = {"reason": found["reason"], "stage": found["stage"] or Stage.BUILD}
        names = {key: VALUES["Failed"][key].get(value, value) for key, value in codes.items()}
        return {"code": names["reason"], "stage": names["stage"]}
    return {}


def _is_tagged(record: type[BaseModel], value: dict[str, Any]) -> bool:
    """Tell whether a document has the constant field of a member of a union."""
    fields = record.model_fields
    return any(
        tag in fields and value.get(tag) == fields[tag].default for tag in ("verdict", "event")
    )


def _renamed(value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return names.get(value, value)
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value


def _records_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [record for part in get_args(annotation) for record in _records_in(part)]
