"""Old names of event kinds and fields in event logs, and the names that replace them.

This table is the only place that knows the old names. It is used when a stored line is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tilewright.records.version1 import VALUES

__all__ = ["EVENT_KINDS", "REQUEST_FIELDS", "RUN_STARTED_FIELDS", "current_line", "current_request"]

EVENT_KINDS = {"begun": "run_started", "asked": "requests_issued", "told": "turn_finished"}
"""Kinds of events."""
REQUEST_FIELDS = {"directive": "instruction", "asked": "prompt_override", "shown": "shown_turns"}
"""Fields of an `Ask`."""
RUN_STARTED_FIELDS = {"weak": "unsound_problems", "unlinted": "problems_not_linted"}
"""Fields of a `RunStarted` event."""
_OLD_KIND = re.compile(rb'\{\s*"event"\s*:\s*"(?:begun|asked|told)"')


def current_line(line: bytes) -> bytes:
    """Return a line of an event log with the current names.

    A line that has current names, or that is damaged, is returned unchanged.
    """
    if not _OLD_KIND.match(line):
        return line
    try:
        event = json.loads(line)
    except ValueError:
        return line
    kind = event["event"] = EVENT_KINDS[event["event"]]
    if kind == "run_started":
        event = _renamed(event, RUN_STARTED_FIELDS)
        if event.get("schema_version") == 1:
            event["schema_version"] = 2
    elif kind == "requests_issued" and isinstance(event.get("asks"), list):
        event["asks"] = [current_request(ask) for ask in event["asks"]]
    elif kind == "turn_finished" and isinstance(event.get("turn"), dict):
        turn = {**event["turn"], "ask": current_request(event["turn"].get("ask"))}
        if isinstance(turn.get("judgements"), list):
            turn["judgements"] = [_current_summary(item) for item in turn["judgements"]]
        event["turn"] = turn
    return json.dumps(event).encode()


def current_request(ask: Any) -> Any:  # noqa: ANN401 - any JSON value, checked later
    """Return a stored `Ask` with the current names of its fields."""
    return _renamed(ask, REQUEST_FIELDS) if isinstance(ask, dict) else ask


def _current_summary(summary: Any) -> Any:  # noqa: ANN401 - any JSON value, checked later
    """Return a stored `EvalSummary` with the current codes of its findings and labels."""
    if not isinstance(summary, dict):
        return summary
    made = dict(summary)
    for field, names in VALUES["EvalSummary"].items():
        if isinstance(made.get(field), list):
            made[field] = [names.get(item, item) for item in made[field] if isinstance(item, str)]
    return made


def _renamed(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Rename fields; a field that has both names keeps both, so that its reader refuses it."""
    return {
        names[key] if key in names and names[key] not in fields else key: value
        for key, value in fields.items()
    }
