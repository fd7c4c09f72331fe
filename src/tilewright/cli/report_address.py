"""The report that a word of the command line names: a path, or a candidate of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tilewright.errors import RecordError
from tilewright.records.event_log import EVENTS, read_events, turns_of
from tilewright.records.events import Turn


def report_path(word: str) -> Path:
    """Return the path of the report that `word` names.

    `RUN/PROBLEM#SAMPLE` and `RUN#ID` name a candidate of a run, any other word a file or a folder.

    Raises:
        RecordError: a run has no such candidate, or it holds several reports.
    """
    path = Path(word)
    if os.path.isfile(path / EVENTS):
        reported = [turn for turn in _turns(path) if _reports(turn)]
        such = f"{path}/{reported[0].ask.id}" if reported else f"{path}/reports/NAME.json"
        advice = f"explain one of its reports, such as {such}"
        raise RecordError(f"{path} holds several evaluations: {advice}")
    if os.path.exists(path):
        return path
    for folder, name in _addresses(word):
        if os.path.isfile(folder / EVENTS):
            return folder / _report_of(folder, name)
    return path


def _addresses(word: str) -> Iterator[tuple[Path, str]]:
    """Yield each way to read a word as a run and the id of a candidate, the longest run first."""
    for place in reversed(range(1, len(word))):
        if word[place] in "/#":
            yield Path(word[:place]), word[place + 1 :]


def _turns(folder: Path) -> list[Turn]:
    return turns_of(read_events(folder, with_requests=False, left_out=lambda _: None))


def _reports(turn: Turn) -> list[str]:
    return [item.report for item in turn.judgements if item.report]


def _report_of(folder: Path, name: str) -> str:
    """Return the path of a candidate's first report, below the folder of its run."""
    turns = {turn.ask.id: turn for turn in _turns(folder)}
    if name not in turns:
        known = ", ".join(list(turns)[:3]) or "none"
        raise RecordError(f"{folder} has no candidate {name}; it has: {known}")
    if not (found := _reports(turns[name])):
        raise RecordError(f"{folder}: the candidate {name} has no report")
    return found[0]
