"""KernelBench's run folders: generations are read, and `eval_results.json` is written.

The folder is one of KernelBench's `runs`, with files named
`level_1_problem_2_sample_0_kernel.py`. The file of results is the one that KernelBench's analysis
reads: a list of samples for each number of a problem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.config import Config
from tilewright.errors import (
    ConfigError,
    InfrastructureError,
    NoVerdict,
    ProblemError,
    RecordError,
    reason_of,
    writing,
)
from tilewright.executors.base import Progress
from tilewright.integrations.kept_report import judge_and_keep
from tilewright.integrations.kernelbench import (
    CORRECT_TRIALS,
    TIMED_TRIALS,
    Arguments,
    KernelExecResult,
    as_source,
    not_honoured,
    result_of,
)
from tilewright.problems.requests import build_request
from tilewright.records import Problem
from tilewright.records.file_lock import lock
from tilewright.records.whole_files import write_whole

RESULTS = "eval_results.json"
SUFFIX = "_kernel.py"
MAX_SOURCE_BYTES = 1 << 20
"""Bytes of a generation. A longer file is left out: no model writes so much in one answer."""
EXCESSIVE = 10.0
"""KernelBench's default of `excessive_speedup_threshold`."""
ASKED = Arguments(num_correct_trials=CORRECT_TRIALS, num_perf_trials=TIMED_TRIALS)
"""The defaults of KernelBench's script."""
_NAME = re.compile(r"level_([0-9]{1,4})_problem_([0-9]{1,6})_sample_([0-9]{1,6})_kernel\.py")
Results = dict[str, list[dict[str, Any]]]
"""The samples of each problem, as KernelBench writes them."""


@dataclass(frozen=True, order=True)
class Generation:
    """One file of a run folder of KernelBench."""

    level: int
    problem: int
    sample: int
    path: Path = field(compare=False)

    def __str__(self) -> str:
        """Return its name in messages."""
        return f"level {self.level} problem {self.problem} sample {self.sample}"

    @property
    def problem_id(self) -> str:
        """The id of its problem in the imported set."""
        return f"kernelbench/level{self.level}-{self.problem}"

    def text(self) -> str:
        """Return the source.

        Raises:
            ConfigError: the file is too long or is not UTF-8 text.
        """
        try:
            if self.path.stat().st_size > MAX_SOURCE_BYTES:
                raise ConfigError(f"{self.path}: longer than {MAX_SOURCE_BYTES} bytes")
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.path}: cannot be read: {reason_of(error)}") from error


@dataclass(frozen=True)
class Judged:
    """A generation with its result, or with the reason why it has none."""

    generation: Generation
    result: KernelExecResult | None
    why: str = ""


def read_generations(folder: Path, level: int | None = None) -> tuple[list[Generation], list[str]]:
    """Return the generations of one level in order, and a message for each unusable file.

    Raises:
        ConfigError: there is no generation, or there are several levels and none was chosen.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"--run-dir {folder}: no such folder; name a folder of KernelBench's runs"
        )
    found, unusable = [], []
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(SUFFIX):
            continue
        match = _NAME.fullmatch(path.name)
        if match is None:
            unusable.append(f"{path}: not named level_L_problem_P_sample_S{SUFFIX}")
        elif path.is_symlink() or not path.is_file():
            unusable.append(f"{path}: not a plain file; copy the source into the folder")
        else:
            number, problem, sample = (int(part) for part in match.groups())
            found.append(Generation(number, problem, sample, path))
    levels = sorted({item.level for item in found})
    if level is None and len(levels) > 1:
        listed = ", ".join(map(str, levels))
        raise ConfigError(f"--run-dir {folder} holds levels {listed}; choose one with --level")
    chosen = sorted(item for item in found if level in (None, item.level))
    if not chosen:
        what = "no generation" if level is None else f"no generation of level {level}"
        first = f"; {unusable[0]}" if unusable else ""
        raise ConfigError(
            f"--run-dir {folder}: {what}, such as level_1_problem_2_sample_0{SUFFIX}{first}"
        )
    return chosen, unusable


def read_results(path: Path) -> Results:
    """Return the samples of each problem in a file of results; empty: there is no file.

    Raises:
        RecordError: the file is damaged; it is not overwritten.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{path}: {reason_of(error)}; repair it or move it away") from error
    fault = _fault(document)
    if fault:
        raise RecordError(f"{path}: {fault}; repair it or move it away")
    results: Results = document
    return results


def _fault(document: object) -> str:
    if not isinstance(document, dict):
        return "not an object with the number of each problem"
    for number, samples in document.items():
        if not re.fullmatch(r"[0-9]{1,18}", number):
            return f"{number[:40]!r} is not the number of a problem"
        if not isinstance(samples, list):
            return f"problem {number} has no list of samples"
        for sample in samples:
            if not isinstance(sample, dict) or not isinstance(sample.get("sample_id"), int):
                return f"problem {number} has a sample without `sample_id`"
    return ""


def has(results: Results, generation: Generation) -> bool:
    """Tell whether a file of results holds a generation."""
    samples = results.get(str(generation.problem), [])
    return any(item["sample_id"] == generation.sample for item in samples)


def add_result(path: Path, generation: Generation, result: KernelExecResult) -> None:
    """Add a result to a file of results, which another process may have extended meanwhile.

    Raises:
        ConfigError: the file cannot be written.
        RecordError: the file is damaged; it is not overwritten.
    """
    with writing(path):
        taken = path.with_name(f".{path.name}.lock").open("w")
    # Processes that judge parts of a folder take turns, so that none loses another one's result.
    with taken as file:
        lock(file)
        _add(path, generation, result)


def _add(path: Path, generation: Generation, result: KernelExecResult) -> None:
    results = read_results(path)
    if has(results, generation):
        return
    entry = {"sample_id": generation.sample, **result.model_dump(mode="json")}
    samples = [*results.get(str(generation.problem), []), entry]
    results[str(generation.problem)] = sorted(samples, key=lambda item: int(item["sample_id"]))
    ordered = {number: results[number] for number in sorted(results, key=int)}
    with writing(path):
        write_whole(path, json.dumps(ordered, indent=4) + "\n")


def judge_generations(
    generations: Iterable[Generation],
    problems: Mapping[str, Problem],
    settings: Config,
    results: Path,
    progress: Progress | None = None,
) -> Iterator[Judged]:
    """Judge generations and add each result to the file at once; yield each with its result.

    A generation without a result is not in the file, so that a repeated command tries again.
    """
    ignored = not_honoured(ASKED, settings)
    for item in generations:
        problem = problems.get(item.problem_id)
        if problem is None:
            yield Judged(item, None, f"{item.problem_id} is not among the problems")
            continue
        try:
            text = as_source(item.text())
        except ConfigError as error:
            yield Judged(item, None, str(error))
            continue
        try:
            request = build_request(text, problem, settings)
            result = result_of(judge_and_keep(request, settings, progress), ignored, EXCESSIVE)
        except (NoVerdict, InfrastructureError, ProblemError) as error:
            yield Judged(item, None, str(error))
            continue
        add_result(results, item, result)
        yield Judged(item, result)
