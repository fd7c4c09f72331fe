"""The stages of a study, one after another, each in processes of its own. No torch.

Each invocation goes on where the last one ended: a finished stage is not run again, and a training
resumes from its log. So a study may be spread over days, and a kill costs at most one step.
"""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.config import load
from tilewright.errors import ConfigError, InfrastructureError, writing
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.rl.book_world import LiveEvaluator
from tilewright.rl.data.cold_start import cold_start
from tilewright.rl.study import study_folder
from tilewright.rl.study.fresh_scores import FRESH, last_programs
from tilewright.rl.study.study_folder import StudyFolder, run_in, stopped_because
from tilewright.rl.synthetic_verdicts import synthetic_store
from tilewright.rl.training_config import TrainConfig, load_training
from tilewright.rl.verdict_census import (
    census_programs,
    judging_settings,
    store_key,
    take_census,
)
from tilewright.rl.verdict_store import VerdictStore

EXIT_S = 60.0
"""Seconds that a process gets to end after an interrupt: it writes a batch of verdicts."""
MIN_STAGE_S = 20.0
"""Seconds that must be left for a stage to begin: a training takes ten to load its packages."""
POLL_S = 0.2
PR_SET_PDEATHSIG = 1
Shown = Callable[[str], None]


@dataclass(frozen=True)
class StudyStage:
    """A part of a study. `run` gets the time of `time.monotonic` at which it must have stopped."""

    name: str
    is_done: Callable[[], bool]
    run: Callable[[float], None]


class OutOfTime(Exception):
    """The time of this invocation is over; the stage goes on in the next one."""


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


def settings_text(changes: dict[str, Any]) -> list[str]:
    """Return changes as the values of `--set`."""
    return [f"{path}={json.dumps(value)}" for path, value in changes.items()]


def stages_of(folder: StudyFolder, shown: Shown) -> Iterator[StudyStage]:
    """Yield the stages: census, cold start, gate, each arm and seed, and fresh scores."""
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
    for name, seed in folder.config.runs():
        yield StudyStage(f"arm {name}, seed {seed}", _arm_done(folder, name, seed),
                    _arm(folder, name, seed, shown))  # fmt: skip
    if live:
        again = lambda: last_programs(folder)  # noqa: E731
        evaluate = _evaluates(folder, FRESH, study_folder.FRESH_DONE, again, shown)
        yield StudyStage("fresh scores", (path / study_folder.FRESH_DONE).exists, evaluate)


def run_stages(folder: StudyFolder, until: float, shown: Shown) -> list[str]:
    """Run the stages that are not done until a time of `time.monotonic`; return those left.

    Raises:
        GateFailed: a line of the gate fails.
        InfrastructureError: a stage failed; the message has its last line.
    """
    stages = list(stages_of(folder, shown))
    for stage in stages:
        if stage.is_done():
            continue
        if until - time.monotonic() < MIN_STAGE_S:
            break
        shown(stage.name)
        began = time.monotonic()
        try:
            stage.run(until)
        except OutOfTime:
            break
        finally:
            _add_seconds(folder, stage.name, time.monotonic() - began)
    return [stage.name for stage in stages if not stage.is_done()]


def seconds_of(folder: StudyFolder) -> dict[str, float]:
    """Return the seconds of each stage so far, over all invocations."""
    path = folder.path / study_folder.SECONDS
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def estimate_s(folder: StudyFolder, left: Sequence[str]) -> float | None:
    """Estimate the seconds of the arms that are left from those of finished ones."""
    arms = [name for name in left if name.startswith("arm ")]
    done = [s for name, s in seconds_of(folder).items() if name.startswith("arm ")
            and name not in left]  # fmt: skip
    return len(arms) * sum(done) / len(done) if done else None


def _add_seconds(folder: StudyFolder, name: str, seconds: float) -> None:
    found = seconds_of(folder)
    found[name] = round(found.get(name, 0.0) + seconds, 1)
    with writing(folder.path):
        (folder.path / study_folder.SECONDS).write_text(json.dumps(found), encoding="utf-8")


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
        judging = judging_settings(settings, key)
        with tempfile.TemporaryDirectory() as place:
            evaluator = LiveEvaluator(judging, Path(place), lambda *_: None)
            try:
                done = take_census(
                    store,
                    programs(),
                    evaluator,
                    until=until,
                    reached=lambda count, total: shown(f"{count} of {total} programs"),
                )
            finally:
                evaluator.close()
        if time.monotonic() >= until and done.left:
            raise OutOfTime
        # Those that are left are unjudged: another attempt is the user's decision.
        (folder.path / marker).touch()

    return run


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
    run = run_in(place)
    if run is not None:
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
        with writing(place):
            place.mkdir(parents=True, exist_ok=True)
            if status:
                with (place / study_folder.FAILURES).open("a", encoding="utf-8") as lines:
                    lines.write(f"{json.dumps({'status': status, 'reason': last})}\n")
            else:
                (place / study_folder.DONE).touch()
        if status and not stopped_because(place):
            raise InfrastructureError(f"arm {name}, seed {seed}: {last}")

    return run


def _required(
    name: str, folder: StudyFolder, words: Sequence[str], until: float, shown: Shown
) -> None:
    status, last = run_command(words, _log(folder, name.replace(" ", "-")), until, shown)
    if status == ConfigError.exit_code:
        raise ConfigError(f"{name}: {last}")
    if status:
        raise InfrastructureError(f"{name}: {last}")


def _log(folder: StudyFolder, name: str) -> Path:
    path = folder.path / study_folder.LOGS / f"{name}.txt"
    with writing(path):
        path.parent.mkdir(exist_ok=True)
    return path


def run_command(words: Sequence[str], log: Path, until: float, shown: Shown) -> tuple[int, str]:
    """Run `tilewright WORDS`; return its exit status and the last line that it wrote.

    Its output is appended to `log`. It ends with this process, also if that is killed.

    Raises:
        OutOfTime: it was interrupted, because the time is over.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "tilewright", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=_end_with_parent,
        )
    try:
        while child.poll() is None:
            if time.monotonic() > until:
                raise OutOfTime
            shown(_last_line(log))
            time.sleep(POLL_S)
    finally:
        _end(child)
    return child.returncode, _last_line(log)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("tilewright: ") if lines else ""
