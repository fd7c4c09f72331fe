"""The policy `files`: answers that stand in files already, from whoever wrote them.

A folder of KernelBench's runs (`level_1_problem_12_sample_0_kernel.py`), a folder with a file or a
folder of files for each problem, JSON lines, parquet, a run of ours, or `reference`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, ProblemError
from tilewright.loop.tables import parquet_rows
from tilewright.problems.candidates import read_files
from tilewright.problems.sets.base import json_rows
from tilewright.records import Problem, SourceFile
from tilewright.records.events import Ask, Told
from tilewright.records.log import EVENTS, read_events
from tilewright.records.runs import read_report

__all__ = ["REFERENCE", "Answers", "read_answers"]

REFERENCE = "reference"
_KERNELBENCH = re.compile(r"^level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py$")
_CODE = ("code", "kernel", "predict", "kernel_code", "custom_code", "candidate")
"""Fields that hold source in the files of various projects."""
_SOURCES = (".py", ".cpp", ".cu")


@dataclass
class Answers:
    """Sources by ask, in the order of their problems, and what could not be read."""

    sources: dict[Ask, tuple[SourceFile, ...]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def add(self, problem: str, sample: int, files: tuple[SourceFile, ...], where: str) -> None:
        """Take an answer in; of two with one id the first counts."""
        ask = Ask(id=f"{problem}#{sample}", problem=problem, sample=sample)
        if ask in self.sources:
            self.skipped.append(f"{where}: {ask.id} stands twice; the first one counts")
        else:
            self.sources[ask] = files


def read_answers(where: str, problems: list[Problem]) -> Answers:
    """Read the answers to these problems.

    Raises:
        ConfigError: there is nothing of the kind.
        RecordError: a run of ours cannot be read.
    """
    answers, path = Answers(), Path(where)
    if where == REFERENCE:
        for problem in problems:
            answers.add(problem.id, 0, (_reference(problem),), problem.id)
        return answers
    if not path.exists():
        raise ConfigError(f"--candidates {where}: no such file or folder; or write `{REFERENCE}`")
    known = _Names(problems)
    if path.is_dir() and (path / EVENTS).is_file():
        _read_run(path, known, answers)
    elif path.is_dir():
        _read_folder(path, known, answers)
    elif path.suffix == ".parquet":
        _read_rows(parquet_rows(path, answers.skipped.append), known, answers)
    elif path.suffix in (".jsonl", ".json"):
        try:
            _read_rows(json_rows(path, answers.skipped), known, answers)
        except ProblemError as error:
            raise ConfigError(str(error)) from error
    else:
        only = known.only()
        if only is None:
            raise ConfigError(
                f"--candidates {where}: one file answers one problem, these are {len(problems)}"
            )
        answers.add(only, 0, read_files(where), where)
    order = {problem.id: place for place, problem in enumerate(problems)}
    ordered = sorted(answers.sources.items(), key=lambda item: (order[item[0].problem], item[0].id))
    return Answers(dict(ordered), answers.skipped)


def _reference(problem: Problem) -> SourceFile:
    """Return the reference as its own candidate."""
    text = problem.source.text
    if problem.kind == "module":
        return SourceFile(path="candidate.py", text=f"{text}\n\nModelNew = Model\n")
    return SourceFile(path="candidate.py", text=f"{text}\n\n{problem.entry} = reference\n")


class _Names:
    """The problems of a run by every name that files give them."""

    def __init__(self, problems: list[Problem]) -> None:
        self._ids = [problem.id for problem in problems]
        self._by_name: dict[str, str] = {}
        for identity in reversed(self._ids):
            tail = identity.rpartition("/")[2]
            self._by_name |= {identity: identity, tail: identity}

    def only(self) -> str | None:
        """Return the only problem, if there is but one."""
        return self._ids[0] if len(self._ids) == 1 else None

    def find(self, name: str) -> str | None:
        """Return the id of the problem that is called so."""
        return self._by_name.get(name) or self._by_name.get(name.replace("/", "-"))


def _read_run(path: Path, known: _Names, answers: Answers) -> None:
    for event in read_events(path):
        if not isinstance(event, Told):
            continue
        turn = event.turn
        problem = known.find(turn.ask.problem)
        kept = [item.report for item in turn.judgements if item.report]
        if problem is None or not kept:
            answers.skipped.append(f"{path}: {turn.ask.id}: not among these problems, or no source")
            continue
        files = read_report(path / kept[0]).request.candidate.files
        answers.add(problem, turn.ask.sample, files, f"{path}: {turn.ask.id}")


def _read_folder(path: Path, known: _Names, answers: Answers) -> None:
    found = 0
    for item in sorted(path.iterdir()):
        name = _KERNELBENCH.match(item.name)
        if name:
            problem, sample = known.find(f"level{name[1]}-{name[2]}"), int(name[3])
        else:
            stem, _, number = item.stem.rpartition(".")
            several = item.is_file() and number.isdecimal() and bool(stem)
            problem = known.find(item.name if item.is_dir() else stem if several else item.stem)
            sample = int(number) if several else 0
        if item.name.startswith(".") or (item.is_file() and item.suffix not in _SOURCES):
            continue
        found += 1
        if problem is None:
            answers.skipped.append(f"{item}: no problem of this run is called so")
            continue
        try:
            answers.add(problem, sample, read_files(str(item)), str(item))
        except ConfigError as error:
            answers.skipped.append(str(error))
    if not found:
        raise ConfigError(
            f"--candidates {path}: no candidate in it; files are called PROBLEM.py, "
            "PROBLEM.SAMPLE.py or level_1_problem_12_sample_0_kernel.py"
        )


def _read_rows(rows: Iterator[tuple[str, dict[str, Any]]], known: _Names, answers: Answers) -> None:
    counts: dict[str, int] = {}
    for where, row in rows:
        named = _named(row)
        problem = known.only() if named is None else known.find(named)
        if problem is None:
            answers.skipped.append(f"{where}: no problem of this run is called {named!r}")
            continue
        code = next((row[name] for name in _CODE if isinstance(row.get(name), str)), None)
        if code is None:
            answers.skipped.append(f"{where}: no source in any of {', '.join(_CODE)}")
            continue
        given = row.get("sample", row.get("sample_id"))
        sample = given if isinstance(given, int) else counts.get(problem, 0)
        counts[problem] = counts.get(problem, 0) + 1
        file = SourceFile(path="candidate.py", text=code)
        answers.add(problem, sample, (file,), where)


def _named(row: dict[str, Any]) -> str | None:
    """Return how a row names its problem."""
    if "level" in row and "problem_id" in row:
        return f"level{row['level']}-{row['problem_id']}"
    for name in ("problem", "problem_id", "task_id", "uuid", "file", "name"):
        if isinstance(row.get(name), str):
            return str(row[name]).removesuffix(".py")
    return None
