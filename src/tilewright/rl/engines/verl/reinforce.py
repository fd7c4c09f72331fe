"""Learning from rewards with verl: its settings, its trainer, and the model that it leaves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tilewright.errors import RecordError, writing
from tilewright.rl.engines.verl.launch import resolved, run_trainer
from tilewright.rl.engines.verl.registration import require_registered
from tilewright.rl.engines.verl.verl_settings import flags_of, verl_settings
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_session import Note, Reached

FOLDER = "model"
"""Folder of the trained model in a run folder."""
LOG = "verl.log"
"""What verl prints in the process of the command; those of its own processes are Ray's."""
NEWEST = "latest_checkpointed_iteration.txt"
"""verl's file with the number of the newest complete checkpoint."""


def train_rl(
    config: TrainConfig, folder: Path, note: Note, *, reached: Reached = lambda *_: None
) -> dict[str, Any]:
    """Train until all steps are done; return a summary.

    The run continues from verl's last checkpoint. Turns in the event log are neither sampled nor
    judged again.

    Raises:
        ConfigError: a setting cannot be used, or mismatch rejection keeps nothing.
        InfrastructureError: the judge or a process of verl fails.
    """
    require_registered("this process")
    place = folder.resolve()
    found = run_trainer(
        resolved(flags_of(verl_settings(config, place))), place / LOG, note, reached
    )
    model, steps = _publish(place), config.estimator().optimizer.steps
    return {"run": str(folder), "model": str(model), "steps": steps, **found, "best": None}


def _publish(folder: Path) -> Path:
    """Copy the weights of the last checkpoint to RUN/model; return that folder."""
    checkpoints = folder / "checkpoints"
    newest = checkpoints / NEWEST
    if not newest.exists():
        raise RecordError(f"{checkpoints}: verl left no checkpoint")
    step = newest.read_text(encoding="utf-8").strip()
    source = checkpoints / f"global_step_{step}" / "actor" / "huggingface"
    target, fresh = folder / FOLDER, folder / f"{FOLDER}.new"
    with writing(target):
        for old in (fresh, target):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(source, fresh)
        fresh.replace(target)
    return target
