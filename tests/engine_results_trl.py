"""`python -m tests.engine_results_trl OUT`: what the engine trl finds for the stored batch."""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import torch

from tests.engine_batch import CASES, Case, document, settings, stored_batch, write, write_model
from tests.engine_model import movement
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.arguments import rl_arguments
from tilewright.rl.engines.trl.quiet_process import quiet
from tilewright.rl.engines.trl.trainer import StepHooks, TurnTrainer


def result(folder: Path, case: Case) -> dict:
    """Return the estimate, the loss and the gradient of one step."""
    config = settings(folder, case)
    preset = config.estimator()
    hooks = StepHooks(preset, config.seed, source=lambda _: stored_batch(), observer=lambda *_: {})
    path = str(folder / "model")
    args = rl_arguments(config, preset, folder / "run")
    model = models.load_model(path)
    trainer = TurnTrainer(model, args, models.load_tokenizer(path), hooks)
    pieces = trainer.batch(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.add_(movement(name, tuple(weight.shape)))
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = args.gradient_accumulation_steps
    losses = [trainer._compute_loss(trainer.model, piece) for piece in pieces]
    sum(losses).backward()
    trainer._end_step()
    grads = {name: weight.grad for name, weight in model.named_parameters()}
    assert trainer.trained is not None
    return document(trainer.trained, preset, float(sum(losses)), grads)


def main() -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        folder = write_model(Path(place))
        quiet(settings(folder, CASES[0]).machine)
        write(Path(sys.argv[1]), {case.name: result(folder, case) for case in CASES})


if __name__ == "__main__":
    main()
