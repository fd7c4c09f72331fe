"""One rollout batch of a model that is not trained, for the gate of a study."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

import torch

from tilewright.loop.answer_evaluator import OnEvent
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.quiet_process import quiet
from tilewright.rl.engines.trl.sampler import Precision
from tilewright.rl.engines.trl.sampler_choice import make_sampler
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_run import TrainingRun
from tilewright.rl.trajectories import ShownTurns, all_turns
from tilewright.rl.worlds import measures_time


def sample_model(
    config: TrainConfig,
    folder: Path,
    on_event: OnEvent,
    on_wait: Callable[[bool], None] = lambda _: None,
    *,
    shown: ShownTurns = all_turns,
) -> RolloutBatch:
    """Return the first rollout batch of a run, as recorded or newly sampled; train nothing.

    `shown` chooses the earlier turns that a prompt has.

    Raises:
        ConfigError: the model or a setting cannot be used.
        InfrastructureError: the judge fails.
    """
    quiet(config.machine)
    machine = config.machine
    with closing(TrainingRun(config, folder, on_event)) as run:
        path = models.initial_model(config)
        tokenizer = models.load_tokenizer(path)
        model = models.load_model(path).to(machine.device).eval()
        lease = machine.device if measures_time(run.world) else None
        precision: Precision = nullcontext
        if (machine.sampler_precision or machine.precision) == "bf16":
            precision = lambda: torch.autocast(machine.device, torch.bfloat16)  # noqa: E731
        name = f"local:{path}"
        sampler = make_sampler(machine, model, tokenizer, lease, precision, name, on_wait)
        return run.play(0, sampler, shown)
