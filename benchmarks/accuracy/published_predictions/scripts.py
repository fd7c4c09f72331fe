"""The benchmark's own scripts over the predictions, file by file, with a time limit for each.

`run_script_on_gpu` of `0_call_acc.py` decides the call: the exit status of prediction and tests in
one file. `run_with_gpu` of `1_exe_acc.py` decides the execution of a file that passed the call: it
runs that file and the gold file, and compares the text that they print.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TextIO

from benchmarks.accuracy.published_predictions.clone import (
    Prediction,
    call_script,
    execute_script,
    gold_folder,
    read_tests,
)
from tilewright.problems.sets.gold_file import SEPARATOR

GOLD = "gold"
"""Model name of the gold files, which get the first script alone."""
STOPPED = "stopped at the time limit"
MAX_TEXT = 2000
"""Characters that are kept of a file's output, and of the end of its errors."""
OUTCOMES = "scripts.jsonl"
CUDA_AS_CPU = Path(__file__).with_name("cuda_as_cpu.py")
"""The program that runs a file without a GPU."""


@dataclass(frozen=True)
class Outcome:
    """The answers of the benchmark's scripts about one file."""

    model: str
    file: str
    called: bool
    executed: bool
    """Whether it printed what the gold file prints; a file that failed the call is not asked."""
    output: str
    """The text that it printed in the first script."""
    error: str
    """The end of its standard error there."""
    seconds: float


@dataclass(frozen=True)
class Task:
    """One file, and where to run it."""

    clone: Path
    work: Path
    prediction: Prediction
    gpu: str
    """Value of CUDA_VISIBLE_DEVICES."""


def write_interpreter(work: Path, limit_s: int, *, on_cpu: bool) -> Path:
    """Write a program that runs a Python file, and ends it after a time limit; return its path."""
    command = [sys.executable, *([str(CUDA_AS_CPU)] if on_cpu else [])]
    path = _interpreter(work)
    path.write_text(
        "#!/bin/sh\n"
        + ("export TRITON_INTERPRET=1\n" if on_cpu else "")
        + f'timeout -k 5 {limit_s} {shlex.join(command)} "$@"\n'
        + "status=$?\n"
        + f'case $status in 124 | 137) echo "{STOPPED}" >&2 ;; esac\n'
        + "exit $status\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def _interpreter(work: Path) -> Path:
    return work / "python"


def gold_predictions(clone: Path, group: str) -> list[Prediction]:
    """Return the gold part of each gold file as a prediction."""
    paths = sorted(gold_folder(clone, group).glob("*.py"))
    parts = [(path.name, path.read_text(encoding="utf-8").split(SEPARATOR)[0]) for path in paths]
    return [Prediction(f"{group}/{GOLD}", name, code) for name, code in parts]


def read_outcomes(work: Path) -> dict[tuple[str, str], Outcome]:
    """Return the outcomes that earlier runs wrote, by model and file."""
    path, found = work / OUTCOMES, {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError):  # an empty line, or one that a kill cut short
            item = Outcome(**json.loads(line))
            found[item.model, item.file] = item
    return found


def write_outcomes(work: Path, outcomes: Sequence[Outcome]) -> None:
    """Append outcomes that others recorded."""
    with (work / OUTCOMES).open("a", encoding="utf-8") as log:
        log.writelines(json.dumps(asdict(item)) + "\n" for item in outcomes)


def run_scripts(tasks: Sequence[Task], work: Path, *, workers: int, seconds: float) -> int:
    """Run the tasks without an outcome, and append each outcome; return how many are left.

    None begins after `seconds`.
    """
    deadline, known = time.monotonic() + seconds, read_outcomes(work)
    left = [task for task in tasks if (task.prediction.model, task.prediction.file) not in known]
    running: set[Future[Outcome]] = set()
    # The scripts change the environment of their process, so each worker is one.
    context = get_context("spawn")
    with (
        (work / OUTCOMES).open("a", encoding="utf-8") as log,
        ProcessPoolExecutor(workers, context) as pool,
    ):
        # The last line may be cut short.
        log.write("\n")
        while left and time.monotonic() < deadline:
            if len(running) == workers:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                _write(log, done)
            running.add(pool.submit(run_task, left.pop(0)))
        _write(log, wait(running).done)
    return len(left)


def _write(log: TextIO, done: Iterable[Future[Outcome]]) -> None:
    for future in done:
        log.write(json.dumps(asdict(future.result())) + "\n")
    log.flush()


def run_task(task: Task) -> Outcome:
    """Run the benchmark's scripts over one prediction."""
    item, start = task.prediction, time.monotonic()
    script = call_script(task.clone, item.group)
    vars(script).update(py_interpreter=str(_interpreter(task.work)))
    tests = read_tests(task.clone, item)
    folder = task.work / "files" / item.model
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        called, _ = script.run_script_on_gpu(item.code, tests, item.file, str(folder), task.gpu)
    output, error = _parts(shown.getvalue(), item.file)
    own = item.model.partition("/")[2] == GOLD
    executed = called and (own or _prints_alike(task, folder / item.file))
    seconds = round(time.monotonic() - start, 2)
    return Outcome(item.model, item.file, called, executed, output, error, seconds)


def _prints_alike(task: Task, path: Path) -> bool:
    script = execute_script(task.clone, task.prediction.group)
    vars(script).update(py_interpreter=str(_interpreter(task.work)))
    gold = gold_folder(task.clone, task.prediction.group) / path.name
    equal, _ = script.run_with_gpu(str(path), str(gold), task.gpu)
    return bool(equal)


def _parts(shown: str, file: str) -> tuple[str, str]:
    """Return standard output and the end of standard error, as the first script shows both."""
    output, _, error = shown.partition(f"=== Errors for {file}")
    output = output.partition("\n")[2].removesuffix("\n")
    return output[:MAX_TEXT], error.partition("\n")[2].rstrip()[-MAX_TEXT:]
