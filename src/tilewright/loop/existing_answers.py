"""Answers that exist already: files of any author, an earlier run, or the references.

A folder may hold a run of KernelBench (`level_1_problem_12_sample_0_kernel.py`), or one file or
folder for each problem. A file may hold JSON lines or parquet rows, also conversations in the
format of Dr. Kernel.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, ProblemError, RecordError, reason_of
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.prediction_formats import named_predictions, without_tests
from tilewright.loop.run_state import CANDIDATES, is_unjudged, sources_of
from tilewright.problems.candidates import read_candidate
from tilewright.problems.sets.base import json_rows, whole_number
from tilewright.records import Problem, SourceFile
from tilewright.records.base import is_text
from tilewright.records.event_log import EVENTS, read_events, turns_of
from tilewright.records.events import Ask
from tilewright.records.field_faults import damage_of
from tilewright.records.parquet import parquet_rows
from tilewright.records.run_folder import REPORT, read_report
from tilewright.scoring.summary import last_of_trajectories

REFERENCE = "reference"
_KERNELBENCH = re.compile(r"^level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py$")
_CODE = ("code", "kernel", "predict", "kernel_code", "custom_code", "candidate")
"""Fields that hold source in the files of various projects."""
_NAMED_BY = ("problem", "problem_id", "task_id", "uuid", "file", "name")
"""Fields that name the problem of a row; a string is preferred to a number."""
_SOURCES = (".py", ".cpp", ".cu")
NOTHING = (SourceFile(path="candidate.py", text=""),)
"""The files of an answer without code, which is a failed candidate."""


@dataclass(frozen=True)
class Answers:
    """Sources by request, in the order of their problems, and lines about unreadable answers."""

    sources: dict[Ask, tuple[SourceFile, ...]]
    skipped: list[str]


def read_answers(where: str, problems: list[Problem]) -> Answers:
    """Read the answers to these problems.

    Raises:
        ConfigError: there is no file or folder of this name, or it has no candidate.
        RecordError: the run cannot be read.
    """
    reader, path = _Reader(problems), Path(where)
    if where == REFERENCE:
        for problem in problems:
            reader.add(problem.id, 0, (_reference(problem),), problem.id)
        return Answers(reader.sources, reader.skipped)
    if not is_text(where):
        raise ConfigError(f"--candidates {where!r}: the name is not UTF-8; rename the file")
    try:
        path.stat()
    except (OSError, ValueError) as error:
        wanted = f"a folder, JSON lines, parquet, a run, or `{REFERENCE}`"
        raise ConfigError(f"--candidates {where}: {reason_of(error)}; name {wanted}") from error
    if os.path.isfile(path / EVENTS):
        reader.read_run(path)
    elif os.path.isfile(path / REPORT):
        reader.read_report(path / REPORT, None, 0)
    elif path.is_dir():
        reader.read_folder(path)
    else:
        reader.read_file(path)
    order = {problem.id: place for place, problem in enumerate(problems)}
    ordered = sorted(reader.sources.items(), key=lambda item: (order[item[0].problem], item[0].id))
    return Answers(dict(ordered), reader.skipped)


class _Reader:
    """Collects the answers to some problems, which it knows by every name that files use."""

    def __init__(self, problems: list[Problem]) -> None:
        self.sources: dict[Ask, tuple[SourceFile, ...]] = {}
        self.skipped: list[str] = []
        self._problems = problems
        self._only = problems[0].id if len(problems) == 1 else None
        self._entries = {problem.id: problem.entry for problem in problems}
        self._by_source = {problem.source.text.strip(): problem.id for problem in problems}
        self._by_name: dict[str, str] = {}
        for identity in reversed(self._entries):
            # Also `GROUP/NAME` without the set, as in the files of KernelBench-X.
            names = identity.rpartition("/")[2], identity.partition("/")[2], identity
            self._by_name |= dict.fromkeys(filter(None, names), identity)

    def _find(self, name: str) -> str | None:
        return self._by_name.get(name) or self._by_name.get(name.replace("/", "-"))

    def add(self, problem: str, sample: int, files: tuple[SourceFile, ...], where: str) -> None:
        """Add an answer; of two with one id the first counts."""
        ask = Ask(id=f"{problem}#{sample}", problem=problem, sample=sample)
        if ask in self.sources:
            self.skipped.append(f"{where}: {ask.id} occurs twice; the first one counts")
        else:
            self.sources[ask] = without_tests(files, problem)

    def read_file(self, path: Path) -> None:
        if path.suffix == ".parquet":
            self._read_rows(parquet_rows(path, self.skipped.append))
        elif path.suffix in (".jsonl", ".json"):
            try:
                self._read_rows(json_rows(path, self.skipped))
            except ProblemError as error:
                raise ConfigError(str(error)) from error
        elif self._only is None:
            raise ConfigError(
                f"--candidates {path}: one file answers one problem, and there are "
                f"{len(self._problems)}; give a folder with a file for each"
            )
        else:
            self.add(self._only, 0, read_candidate(str(path), self._entries[self._only]), str(path))

    def read_run(self, path: Path) -> None:
        """Add the last answer of each trajectory of a run."""
        given = sources_of(path) if (path / CANDIDATES).is_file() else {}
        turns = turns_of(read_events(path, left_out=self.skipped.append))
        for turn in last_of_trajectories(turn for turn in turns if turn.ask.role != "say"):
            where, problem = f"{path}: {turn.ask.id}", self._find(turn.ask.problem)
            kept = [item.report for item in turn.judgements if item.report]
            if problem is None:
                self.skipped.append(f"{where}: none of these problems")
            elif turn.ask in given:
                self.add(problem, turn.ask.sample, given[turn.ask], where)
            elif kept:
                self.read_report(path / kept[0], problem, turn.ask.sample)
            elif is_unjudged(turn):
                self.skipped.append(f"{where}: the run did not judge it and holds no source of it")
            else:
                self.add(problem, turn.ask.sample, NOTHING, where)

    def read_report(self, path: Path, problem: str | None, sample: int) -> None:
        """Add the candidate of a report, for a problem or for the one that the report names."""
        try:
            request = read_report(path).request
        except RecordError as error:
            self.skipped.append(str(error))
            return
        problem = problem or self._find(request.problem.id)
        if problem is None:
            self.skipped.append(f"{path}: {request.problem.id} is none of these problems")
        else:
            self.add(problem, sample, request.candidate.files, str(path))

    def read_folder(self, path: Path) -> None:
        found = 0
        for item in sorted(path.iterdir()):
            name = _KERNELBENCH.match(item.name)
            if name:
                problem, sample = self._find(f"level{name[1]}-{name[2]}"), int(name[3])
            else:
                stem, _, number = item.stem.rpartition(".")
                several = item.is_file() and number.isdecimal() and bool(stem)
                problem = self._find(item.name if item.is_dir() else stem if several else item.stem)
                sample = int(number) if several else 0
            if item.name.startswith(".") or (item.is_file() and item.suffix not in _SOURCES):
                continue
            found += 1
            if problem is None:
                self.skipped.append(f"{item}: {self._unmatched(item)}")
            elif not (item.is_file() or item.is_dir()):
                self.skipped.append(f"{item}: neither a file nor a folder")
            elif not item.resolve().is_relative_to(path.resolve()):
                self.skipped.append(f"{item}: a link out of the folder; replace it by a copy")
            else:
                try:
                    files = read_candidate(str(item), self._entries[problem])
                    self.add(problem, sample, files, str(item))
                except ConfigError as error:
                    self.skipped.append(str(error))
        if not found:
            raise ConfigError(
                f"--candidates {path}: it has no candidate; name the files PROBLEM.py, "
                "PROBLEM.SAMPLE.py or level_1_problem_12_sample_0_kernel.py"
            )

    def _unmatched(self, item: Path) -> str:
        """Return why a file or a folder answers no problem."""
        stem, _, number = item.stem.rpartition(".")
        if item.is_file() and stem and self._find(stem) is not None:
            return f"{number!r} is no sample number; name it {stem}.1{item.suffix}"
        return "no problem of this run has this name"

    def _read_rows(self, rows: Iterator[tuple[str, dict[str, Any]]]) -> None:
        counts: dict[str, int] = {}
        for where, row in named_predictions(rows, self._problems):
            named, reference = _named(row), row.get("original_python_code")
            problem = self._by_source.get(reference.strip()) if isinstance(reference, str) else None
            problem = problem or self._find(named or "")
            if named is None and not reference:
                problem = self._only
            if problem is None:
                name = "of its reference" if named is None else repr(named[:80])
                self.skipped.append(f"{where}: no problem of this run has the name {name}")
                continue
            given = row.get("sample", row.get("sample_id"))
            sample = counts.get(problem, 0) if given is None else whole_number(given)
            if sample is None:
                self.skipped.append(
                    f"{where}: sample {str(given)[:40]!r} is no integer of at least 0"
                )
                continue
            counts[problem] = counts.get(problem, 0) + 1
            try:
                files = _sources(row, self._entries[problem])
            except ValueError as error:
                self.skipped.append(f"{where}: {damage_of(error)}")
                continue
            self.add(problem, sample, files, where)


def _reference(problem: Problem) -> SourceFile:
    name = "ModelNew = Model" if problem.kind == "module" else f"{problem.entry} = reference"
    return SourceFile(path="candidate.py", text=f"{problem.source.text}\n\n{name}\n")


def _sources(row: dict[str, Any], entry: str) -> tuple[SourceFile, ...]:
    """Return the source in a row: in a field, or in the last answer of a conversation."""
    # An answer without code is a candidate that fails, so an incomplete answer scores no better.
    code = next((row[name] for name in _CODE if isinstance(row.get(name), str)), None)
    if code is not None:
        return (SourceFile(path="candidate.py", text=code),)
    messages = row.get("messages")
    if isinstance(messages, list):
        spoken = (item for item in messages if isinstance(item, dict))
        answers = [item.get("content") for item in spoken if item.get("role") == "assistant"]
        return parse_reply(str(answers[-1]) if answers else "", entry).files or NOTHING
    if not any(name in row for name in _CODE):
        raise ValueError(f"no source in any of {', '.join(_CODE)}, and no messages")
    return NOTHING


def _named(row: dict[str, Any]) -> str | None:
    if "level" in row and "problem_id" in row:
        level, number = (whole_number(row[name]) for name in ("level", "problem_id"))
        return f"level{level}-{number}"
    given = [row[name] for name in _NAMED_BY if row.get(name) is not None]
    # A number is also a name, although of no problem: its row must not count for another one.
    chosen = next((item for item in given if isinstance(item, str)), given[0] if given else None)
    return None if chosen is None else str(chosen).removesuffix(".py")
