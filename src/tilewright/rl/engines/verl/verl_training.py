"""Learning from rewards with verl: its settings, its trainer, and the model that it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.records.event_log import read_events
from tilewright.records.events import Stepped
from tilewright.rl.engines.verl.launch import resolved, run_trainer
from tilewright.rl.engines.verl.published_model import publish
from tilewright.rl.engines.verl.registration import require_registered
from tilewright.rl.engines.verl.verl_settings import flags_of, verl_settings
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_metrics import Values
from tilewright.rl.training_run import STEP
from tilewright.rl.training_session import Note, Reached

LOG = "verl.log"
"""The output of verl in the process of the command. Ray keeps that of other processes."""


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
    run_trainer(resolved(flags_of(verl_settings(config, place))), place / LOG, note, reached)
    lora = config.model.lora
    scale = lora.alpha / lora.rank if lora.rank else None
    model = publish(place, Path(config.model.path), scale)
    steps = config.estimator().optimizer.steps
    return {
        "run": str(folder),
        "model": str(model),
        "steps": steps,
        **_last_metrics(place),
        "best": None,
    }


def _last_metrics(folder: Path) -> dict[str, Values]:
    """Return the metrics of the last step and of the last score in the log."""
    found: dict[str, Values] = {"last": {}, "held_out": {}}
    for event in read_events(folder):
        if isinstance(event, Stepped):
            found["last" if event.batch.startswith(STEP) else "held_out"] = event.figures
    return found
