"""The stages of a study, one after another, each in processes of its own. No torch.

Each invocation goes on where the last one ended: a finished stage is not run again, and a training
resumes from its log. So a study may be spread over days, and a kill costs at most one step.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.config import load
from tilewright.errors import ConfigError, InfrastructureError, RecordError, writing
from tilewright.loop.answer_evaluator import MAX_WORKERS
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.rl.book_world import LiveEvaluator
from tilewright.rl.data.cold_start import cold_start
from tilewright.rl.stage_runner import (
    MIN_STAGE_S,
    OutOfTime,
    Shown,
    add_seconds,
    run_command,
    seconds_of,
    settings_text,
)
from tilewright.rl.study import study_folder
from tilewright.rl.study.arm_faults import (
    failures_of,
    has_device,
    record_failure,
    stopped_because,
)
from tilewright.rl.study.fresh_scores import FRESH, last_programs
from tilewright.rl.study.scaling import SCALING
from tilewright.rl.study.study_folder import StudyFolder, resumable_run
from tilewright.rl.synthetic_verdicts import synthetic_store
from tilewright.rl.training_config import TrainConfig, load_training
from tilewright.rl.verdict_census import (
    census_programs,
    judging_settings,
    store_key,
    take_census,
)
from tilewright.rl.verdict_store import VerdictStore

MAX_FAILED = 2
"""Arms that may fail in an invocation before it ends: two in one are a fault of the machine."""
MAX_UNJUDGED = 0.05
"""Largest share of the programs of a census that may stay without a verdict."""


@dataclass(frozen=True)
class StudyStage:
    """A part of a study. `run` gets the time of `time.monotonic` at which it must have stopped."""

    name: str
    is_done: Callable[[], bool]
    run: Callable[[float], None]
    is_arm: bool = False


@dataclass(frozen=True)
class StagesLeft:
    """The stages that an invocation leaves to the next one."""

    left: tuple[str, ...]
    failed: tuple[str, ...]
    """The last line of each arm that failed for a reason that does not stop it."""


class ArmFailed(InfrastructureError):
    """The machine let an arm fail; the arm goes on in the next invocation."""


class GateFailed(Exception):
    """A line of the gate fails, and the settings do not override it."""


def check_study(folder: StudyFolder) -> None:
    """Refuse settings that an arm cannot be trained with, before anything runs.

    Raises:
        ConfigError: a setting is wrong; the message names the arm.
        ProblemError: there are no such problems.
    """
    for name, arm in folder.config.arms.items():
        try:
            training_of(folder, arm.changes)
        except ConfigError as error:
            raise ConfigError(f"arms.{name}: {error}") from error
    for address in filter(None, (folder.config.group, folder.config.held_out)):
        find_problems(address, load().home)


def training_of(folder: StudyFolder, changes: dict[str, Any] | None = None) -> TrainConfig:
    """Return the settings of a training in this study, or raise `ConfigError`."""
    return load_training(folder.path / study_folder.TRAINING, settings_text(changes or {}))


def stages_of(folder: StudyFolder, shown: Shown) -> Iterator[StudyStage]:
    """Yield the stages: census, cold start, gate, each arm and seed, scaling, fresh scores."""
    path = folder.path
    live = not folder.config.is_synthetic
    if live:
        marker = study_folder.CENSUS_DONE
        evaluate = _evaluates(folder, study_folder.STORE, marker, lambda: _census(folder), shown)
        yield StudyStage("census", (path / marker).exists, evaluate)
    yield StudyStage(
        "cold start", lambda: folder.cold_model is not None, _cold_start(folder, shown)
    )
    yield StudyStage("gate", lambda: (path / study_folder.GATE).exists(), _gate(folder, shown))
    # An arm that fails each time keeps no other one from its end.
    for name, seed in sorted(folder.config.runs(), key=lambda r: len(failures_of(folder.arm(*r)))):
        yield StudyStage(f"arm {name}, seed {seed}", _arm_done(folder, name, seed),
                    _arm(folder, name, seed, shown), is_arm=True)  # fmt: skip
    if (place := folder.scaled_arm) is not None:
        # An arm that stopped has no model.
        done = lambda: (path / SCALING).exists() or bool(stopped_because(place))  # noqa: E731
        yield StudyStage("test-time scaling", done, _scaling(folder, shown))
    if live:
        again = lambda: last_programs(folder)  # noqa: E731
        evaluate = _evaluates(folder, FRESH, study_folder.FRESH_DONE, again, shown)
        yield StudyStage("fresh scores", (path / study_folder.FRESH_DONE).exists, evaluate)


def run_stages(folder: StudyFolder, until: float, shown: Shown) -> StagesLeft:
    """Run the stages that are not done until a time of `time.monotonic`; return those left.

    Raises:
        GateFailed: a line of the gate fails.
        ConfigError: the store of verdicts is of another evaluator, or of other rules or devices.
        RecordError: the store is damaged.
        InfrastructureError: a stage before the arms failed; the message has its last line.
    """
    stages = list(stages_of(folder, shown))
    if not all(stage.is_done() for stage in stages):
        _check_store(folder)
    failed = list[str]()
    for stage in stages:
        if stage.is_done():
            continue
        late = until - time.monotonic() < MIN_STAGE_S
        if late or len(failed) >= MAX_FAILED or (failed and not stage.is_arm):
            break
        shown(stage.name)
        began = time.monotonic()
        try:
            stage.run(until)
        except OutOfTime:
            break
        except ArmFailed as error:
            failed.append(str(error))
        finally:
            add_seconds(folder.path, stage.name, time.monotonic() - began)
    left = [stage.name for stage in stages if not stage.is_done()]
    return StagesLeft(tuple(left), tuple(failed))


def _check_store(folder: StudyFolder) -> None:
    """Refuse a store that the next stage cannot use; an arm would count this as its own fault."""
    if not folder.config.is_synthetic:
        key = store_key(training_of(folder).settings)
        VerdictStore.read(folder.path / study_folder.STORE, key)


def estimate_s(folder: StudyFolder, left: Sequence[str]) -> float | None:
    """Estimate the seconds of the arms that are left from those of finished ones."""
    arms = [name for name in left if name.startswith("arm ")]
    done = [s for name, s in seconds_of(folder.path).items() if name.startswith("arm ")
            and name not in left]  # fmt: skip
    return len(arms) * sum(done) / len(done) if done else None


def _evaluates(
    folder: StudyFolder,
    name: str,
    marker: str,
    programs: Callable[[], Iterable[tuple[Problem, str]]],
    shown: Shown,
) -> Callable[[float], None]:
    """Return a stage that evaluates programs into a store, and leaves a marker when all were."""

    def run(until: float) -> None:
        settings = training_of(folder).settings
        key = store_key(settings)
        store = VerdictStore.read(folder.path / name, key)
        judging, wanted = judging_settings(settings, key), list(programs())
        with tempfile.TemporaryDirectory() as place:
            workers = min(settings.loop.max_concurrency, MAX_WORKERS)
            evaluator = LiveEvaluator(judging, Path(place), lambda *_: None, workers)
            try:
                done = take_census(
                    store,
                    wanted,
                    evaluator,
                    until=until,
                    workers=workers,
                    reached=lambda count, total: shown(f"{count} of {total} programs"),
                )
            finally:
                evaluator.close()
        if time.monotonic() >= until and done.left:
            raise OutOfTime
        check_judged(done.left, len(wanted), training_of(folder))
        (folder.path / marker).touch()

    return run


def check_judged(left: int, count: int, config: TrainConfig) -> None:
    """Refuse to finish a stage that leaves many of its programs unjudged, as a lost device does.

    Raises:
        InfrastructureError: it is more than `MAX_UNJUDGED` of them, or the device is not here.
    """
    if left > MAX_UNJUDGED * count or (left and not has_device(config)):
        raise InfrastructureError(
            f"{left} of {count} programs could not be judged; repair the device, then repeat the "
            "command"
        )


def _census(folder: StudyFolder) -> Iterable[tuple[Problem, str]]:
    return census_programs(find_problems(folder.config.group, load().home))


def _cold_start(folder: StudyFolder, shown: Shown) -> Callable[[float], None]:
    def run(until: float) -> None:
        _write_conversations(folder)
        place = folder.path / study_folder.COLD
        words = ["train", "sft", *_begun_or(place, folder, [])]
        _required("cold start", folder, words, until, shown)

    return run


def _write_conversations(folder: StudyFolder) -> None:
    target = folder.path / study_folder.CONVERSATIONS
    if target.exists():
        return
    config, section = folder.config, folder.config.cold_start
    group = config.group.partition("/")[2]
    store = (
        synthetic_store(folder.path / study_folder.STORE, group)
        if config.is_synthetic
        else VerdictStore.read(folder.path / study_folder.STORE)
    )
    rows = cold_start(
        group,
        store,
        section.shares(),
        count=section.conversations,
        turns=section.turns,
        seed=section.seed,
        extent=section.extent,
    )
    fresh = target.with_suffix(".new")
    with writing(folder.path):
        fresh.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        fresh.replace(target)


def _begun_or(place: Path, folder: StudyFolder, changes: list[str]) -> list[str]:
    """Return the words that resume the run in a folder, or those that begin one."""
    if (run := resumable_run(place)) is not None:
        return ["--resume", str(run)]
    sets = [word for change in changes for word in ("--set", change)]
    return [str(folder.path / study_folder.TRAINING), "--out", str(place), *sets]


def _gate(folder: StudyFolder, shown: Shown) -> Callable[[float], None]:
    def run(until: float) -> None:
        words = ["train", "gate", str(folder.path)]
        status, last = run_command(words, _log(folder, "gate"), until, shown)
        # The files decide: a crash has the exit status of a failing line too.
        if (folder.path / study_folder.GATE).exists():
            return
        if (folder.path / study_folder.GATE_REFUSED).exists():
            raise GateFailed(last)
        raise InfrastructureError(f"gate: exit status {status}: {last}")

    return run


def _scaling(folder: StudyFolder, shown: Shown) -> Callable[[float], None]:
    words = ["train", "scaling", str(folder.path)]
    return lambda until: _required("test-time scaling", folder, words, until, shown)


def _arm_done(folder: StudyFolder, name: str, seed: int) -> Callable[[], bool]:
    place = folder.arm(name, seed)
    return lambda: (place / study_folder.DONE).exists() or bool(stopped_because(place))


def _arm(folder: StudyFolder, name: str, seed: int, shown: Shown) -> Callable[[float], None]:
    def run(until: float) -> None:
        place = folder.arm(name, seed)
        changes = dict(folder.config.arms[name].changes)
        changes |= {"seed": seed, "model.path": str(folder.cold_model)}
        words = ["train", "rl", *_begun_or(place, folder, settings_text(changes))]
        status, last = run_command(words, _log(folder, f"{name}-{seed}"), until, shown)
        if not status:
            with writing(place):
                (place / study_folder.DONE).touch()
        elif not record_failure(place, status, last):
            reason = failures_of(place)[-1]["reason"]
            raise ArmFailed(f"arm {name}, seed {seed}: {reason}")

    return run


def _required(
    name: str, folder: StudyFolder, words: Sequence[str], until: float, shown: Shown
) -> None:
    status, last = run_command(words, _log(folder, name.replace(" ", "-")), until, shown)
    for kind in (ConfigError, RecordError):
        if status == kind.exit_code:
            raise kind(f"{name}: {last}")
    if status:
        raise InfrastructureError(f"{name}: {last}")


def _log(folder: StudyFolder, name: str) -> Path:
    path = folder.path / study_folder.LOGS / f"{name}.txt"
    with writing(path):
        path.parent.mkdir(exist_ok=True)
    return path
