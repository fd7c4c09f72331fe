"""Stored contexts of prompts: programs with verdicts that a prompt shows before the model writes.

A context is a problem and turns of an earlier run. A training draws contexts as it draws problems,
and each prompt shows the programs and the feedback of one of them. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError, field_validator

from tilewright.errors import ConfigError, RecordError, writing
from tilewright.records.base import Record
from tilewright.records.events import Turn
from tilewright.records.field_faults import first_fault
from tilewright.rl.training_folder import CONTEXTS


class PromptContext(Record):
    """One line of a file of contexts."""

    id: str
    """Its name, unique in the file."""
    problem: str
    shown: tuple[Turn, ...]
    """Judged turns that the prompt shows, the oldest first. The last one is the parent. In a file
    they are texts of JSON, so that all rows have equal columns."""

    @field_validator("shown", mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:  # noqa: ANN401 - what a file holds
        if isinstance(given, list | tuple):
            return [Turn.model_validate_json(x) if isinstance(x, str) else x for x in given]
        return given

    def row(self) -> dict[str, Any]:
        """Return the context as a row of a file."""
        shown = [turn.to_json() for turn in self.shown]
        return {"id": self.id, "problem": self.problem, "shown": shown}


@dataclass(frozen=True)
class Contexts:
    """The contexts of a run, by id. An empty one leaves prompts as they are."""

    by_id: dict[str, PromptContext]

    def names(self) -> list[str]:
        """Return the ids, in the order of the file."""
        return list(self.by_id)

    def turns(self) -> dict[str, Turn]:
        """Return the shown turns of all contexts, by the id of their request."""
        return {turn.ask.id: turn for item in self.by_id.values() for turn in item.shown}

    def shown(self, name: str) -> tuple[Turn, ...]:
        """Return the turns of a context; none for the empty name."""
        return self.by_id[name].shown if name else ()


NO_CONTEXTS = Contexts({})


def read_contexts(path: Path) -> Contexts:
    """Return the contexts in a file.

    Raises:
        ConfigError: there is no such file, or no context in it.
        RecordError: a line is no context, or two have one id; the message names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"data.contexts: {path}: no such file, or no text") from error
    found: dict[str, PromptContext] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = PromptContext.model_validate_json(line)
        except ValidationError as error:
            raise RecordError(f"{path}:{number}: no context: {first_fault(error)}") from error
        if fault := _fault(item, found):
            raise RecordError(f"{path}:{number}: {fault}")
        found[item.id] = item
    if not found:
        raise ConfigError(f"data.contexts: {path} has no context")
    return Contexts(found)


def _fault(item: PromptContext, earlier: Mapping[str, PromptContext]) -> str:
    """Return why a context cannot be used; empty if it can."""
    if not item.id:
        return "a context has no id"
    if item.id in earlier:
        return f"a second context has the id {item.id}"
    for turn in item.shown:
        if not turn.judgements or turn.judgements[0].verdict == "unjudged":
            return f"the shown turn {turn.ask.id} has no verdict"
        if turn.ask.problem != item.problem:
            return f"the shown turn {turn.ask.id} is about {turn.ask.problem}, not {item.problem}"
    return ""


def write_contexts(path: Path, contexts: Iterable[PromptContext]) -> None:
    """Write contexts as JSON lines; the file is there as a whole or not at all."""
    fresh = path.with_suffix(".new")
    with writing(path):
        fresh.write_text(
            "".join(f"{json.dumps(item.row())}\n" for item in contexts), encoding="utf-8"
        )
        fresh.replace(path)


def contexts_of_run(folder: Path) -> Contexts:
    """Return the contexts that a run was begun with; none if it has no file of them."""
    path = folder / CONTEXTS
    return read_contexts(path) if path.exists() else NO_CONTEXTS
