"""The recorded predictions of a clone, and the functions of its scripts that decide accuracy.

The scripts run where they lie, with three changes. Each names a path of its author's machine or of
another folder, so none runs as published:

- the interpreter is one with a time limit (`scripts.write_interpreter`);
- the scripts of T read the tests and the statistics of T, not of G;
- the functions from `call_4folder` on are left out: they read the command line with syntax of
  Python 3.12.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from tilewright.errors import ProblemError
from tilewright.loop.prediction_formats import named_predictions
from tilewright.problems.sets.base import json_rows
from tilewright.problems.sets.gold_file import split_gold
from tilewright.records import Problem

SETS = {"g": "tritonbench/g", "t": "tritonbench/t", "x": "kernelbenchx"}
"""The address of the problems of each group; `x` is KernelBench-X, from a clone of its own."""
FIRST_DRIVER = "def call_4folder("


@dataclass(frozen=True)
class Prediction:
    """One recorded answer of a model."""

    model: str
    """The group and the name of the model's file, such as `t/output_gpt-4o`, or of the round."""
    file: str
    """Name of the gold file whose tests it gets."""
    code: str
    """The text that the benchmark's script runs above the tests."""

    @property
    def group(self) -> str:
        return self.model.partition("/")[0]

    @property
    def problem(self) -> str:
        return f"{SETS[self.group]}/{self.file.removesuffix('.py')}"


@cache
def call_script(clone: Path, group: str) -> ModuleType:
    """Return the functions of the script that measures call accuracy."""
    path = clone / "EVAL" / f"eval_{group.upper()}" / "0_call_acc.py"
    head, found, _ = _text(path).partition(FIRST_DRIVER)
    if not found:
        raise ProblemError(f"{path}: it has no {FIRST_DRIVER!r}; is it another version?")
    module = _module(path, head)
    data = clone / "data"
    statistics = data / f"TritonBench_{group.upper()}_v1.json"
    vars(module).update(
        statis_path=str(statistics if statistics.is_file() else statistics.with_suffix(".jsonl")),
        py_folder=str(gold_folder(clone, group)),
    )
    return module


@cache
def execute_script(clone: Path, group: str) -> ModuleType:
    """Return the functions of the script that measures execution accuracy."""
    path = clone / "EVAL" / f"eval_{group.upper()}" / "1_exe_acc.py"
    return _module(path, _text(path))


def gold_folder(clone: Path, group: str) -> Path:
    """Return the folder of the gold files of a group."""
    return clone / "data" / f"TritonBench_{group.upper()}_v1"


def gold_file(clone: Path, name: str) -> Path:
    """Return the path of a gold file of KernelBench-X."""
    return clone / "data" / "kernelbenchx" / name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path}: cannot be read: {error}") from error


def _module(path: Path, text: str) -> ModuleType:
    module = ModuleType(f"tritonbench_{path.parent.name}_{path.stem[2:]}")
    exec(compile(text, str(path), "exec"), vars(module))
    return module


def recorded_files(clone: Path, group: str) -> Iterator[tuple[str, Path]]:
    """Yield each model of a group with its file."""
    folders = (clone / "LLM_generated").glob(f"Bench_{group.upper()}_*")
    for path in sorted(path for folder in folders for path in folder.glob("*.jsonl")):
        yield f"{group}/{path.stem}", path


def read_predictions(clone: Path, model: str, path: Path) -> list[Prediction]:
    """Return the predictions of a file as the benchmark's script reads them.

    Raises:
        ProblemError: the script refuses the file.
    """
    group = model.partition("/")[0]
    script = call_script(clone, group)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            if group == "g":
                answers, _, files = script.get_code(str(path))
                codes = [script.process_code(answer) for answer in answers]
            else:
                codes, _, files = script.get_codes_for_test(str(path))
    except Exception as error:
        reason = f"{type(error).__name__} {error}".strip()
        raise ProblemError(f"{path}: the benchmark's own script refuses it: {reason}") from error
    rows = zip(files, codes, strict=True)
    return [Prediction(model, file, code) for file, code in rows]


def read_tests(clone: Path, prediction: Prediction) -> str:
    """Return the tests that a prediction gets."""
    if prediction.group == "x":
        path = gold_file(clone, prediction.file)
        return split_gold(_text(path), str(path))[1]
    script = call_script(clone, prediction.group)
    (tests,) = script.get_test(script.py_folder, [prediction.file])
    return str(tests)


def matched_otherwise(
    predictions: Sequence[Prediction], path: Path, problems: Sequence[Problem]
) -> list[str]:
    """Return a line for each row that tilewright's reader gives to another problem of the set.

    A row that fits no gold file, or several ones, is not among them: the benchmark's script then
    takes the first one, or the one that is left.
    """
    skipped: list[str] = []
    known = {problem.id for problem in problems}
    rows = named_predictions(json_rows(path, skipped), problems)
    pairs = zip(predictions, (str(row.get("name")) for _, row in rows), strict=True)
    return skipped + [
        f"{path}: {prediction.file}: tilewright reads it as {name}"
        for prediction, name in pairs
        if name in known - {prediction.problem}
    ]
