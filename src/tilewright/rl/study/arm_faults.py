"""Why the process of an arm failed: by a reason that stops the arm, or by the machine. No torch.

An arm is stopped by its own settings: they are wrong, mismatch rejection keeps nothing, or too many
turns are unjudged. A crash, a kill, a failing disk or a lost GPU stops none: it continues later. So
does an arm whose run another process has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, InfrastructureError, writing
from tilewright.executors.factory import device_model
from tilewright.problems.imported_sets import find_problems
from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import TurnFinished
from tilewright.records.file_lock import try_lock
from tilewright.records.whole_files import write_whole
from tilewright.rl.study.study_folder import TRAINED, run_in
from tilewright.rl.training_config import TrainConfig, load_training

FAILURES = "failures.jsonl"
"""Attempts of an arm that failed: a JSON object each, with `status`, `reason` and `stops`."""


def record_failure(place: Path, status: int, last: str) -> bool:
    """Record that the process of an arm ended with a status; tell whether this stops the arm."""
    reason = last if status >= 0 else f"signal {-status} ended it; last line: {last}"
    found = _stops(place, status)
    row = {"status": status, "reason": reason, "stops": found}
    lines = [json.dumps(each) for each in (*failures_of(place), row)]
    with writing(place):
        write_whole(place / FAILURES, "\n".join(lines))
    return found


def failures_of(place: Path) -> list[dict[str, Any]]:
    """Return the attempts of an arm that failed, in order."""
    path = place / FAILURES
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def stopped_because(place: Path) -> str:
    """Return why an arm is left out of the rest of the study; empty: it is not."""
    return next((str(row["reason"]) for row in failures_of(place) if row["stops"]), "")


def _stops(place: Path, status: int) -> bool:
    run = run_in(place)
    if status == ConfigError.exit_code:
        return run is None or not is_in_use(run)
    if status != InfrastructureError.exit_code or run is None:
        return False
    config = load_training(run / "run.yaml", recorded=True)
    return lacks_verdicts(run, config) and has_device(config)


def is_in_use(run: Path) -> bool:
    """Tell whether a process writes the log of a run now."""
    if not (run / EVENTS).exists():
        return False
    with (run / EVENTS).open("rb") as log:
        return not try_lock(log)


def lacks_verdicts(run: Path, config: TrainConfig) -> bool:
    """Tell whether more turns of the newest batch are unjudged than `health.stop_unjudged`."""
    if not (run / EVENTS).exists():
        return False
    events = read_events(run, left_out=lambda _: None)
    turns = {item.turn.ask.id: item.turn for item in events if isinstance(item, TurnFinished)}
    batches = {name: name.partition("/")[0] for name in turns}
    if not batches:
        return False
    newest = list(batches.values())[-1]
    lost = sum(
        turn.judgements[0].verdict == "unjudged"
        for name, turn in turns.items()
        if batches[name] == newest
    )
    return lost > config.health.stop_unjudged * _planned(newest, config)


def _planned(batch: str, config: TrainConfig) -> int:
    """Return the number of turns that a batch has if its contexts have room."""
    preset = config.estimator()
    if batch.startswith(TRAINED):
        return preset.sampling.prompts * preset.sampling.rollouts * preset.sampling.turns
    held_out = find_problems(config.data.held_out, config.settings.home)
    return len(held_out) * preset.evaluation.samples * preset.evaluation.turns


def has_device(config: TrainConfig) -> bool:
    """Tell whether the device that judges is here. A lost one leaves every turn unjudged."""
    try:
        device_model(config.settings, config.settings.eval.device)
    except InfrastructureError:
        return False
    return True
