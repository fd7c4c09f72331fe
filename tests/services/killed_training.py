"""A training that kills itself at a chosen place, in a process that has its packages already."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.rl.engines.trl import checkpoints
from tilewright.rl.engines.trl.reinforce import train_rl
from tilewright.rl.training_config import load_training
from tilewright.rl.training_run import TrainingRun
from tilewright.testing.synth_world import SynthWorld

LIMIT_S = 200.0
# Each process needs seconds of computing to import the packages; a fork has them.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([train_rl.__module__])


def train_until_killed(folder: Path, where: str, count: int) -> int | None:
    """Return the exit code of a training in a process of its own, which kills itself."""
    process = FORKS.Process(target=_train, args=(folder, where, count))
    process.start()
    process.join(LIMIT_S)
    code = process.exitcode
    process.kill()
    process.join()
    process.close()
    return code


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _train(folder: Path, where: str, count: int) -> None:
    PLANTED[where](count)
    train_rl(load_training(folder / "run.yaml"), folder, print, print)


def _at_evaluation(count: int) -> None:
    evaluate, seen = SynthWorld.evaluate, list[int]()

    def counted(self: SynthWorld, *given: Any, **named: Any) -> Any:
        seen.append(1)
        if len(seen) == count:
            _die()
        return evaluate(self, *given, **named)

    SynthWorld.evaluate = counted  # type: ignore[method-assign]


def _at_checkpoint(count: int) -> None:
    complete = checkpoints.complete

    def completed(path: Path) -> None:
        if path.name == f"checkpoint-{count}":
            _die()
        complete(path)

    checkpoints.complete = completed


def _at_record(count: int) -> None:
    record = TrainingRun.record

    def recorded(self: TrainingRun, step: int, *given: Any) -> None:
        record(self, step, *given)
        if step == count:
            _die()

    TrainingRun.record = recorded  # type: ignore[method-assign]


PLANTED: dict[str, Callable[[int], None]] = {
    "judging": _at_evaluation,
    "saving": _at_checkpoint,
    "logged": _at_record,
}
"""By the place of the kill: what makes the process kill itself there."""
