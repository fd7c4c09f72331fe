"""The data set of verl: a number for each prompt of each step. The run has the prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from tilewright.rl.engines.verl.registered_names import AGENT_LOOP
from tilewright.rl.training_config import load_training
from tilewright.rl.training_run import held_out_count

HELD_OUT = "held_out"
"""Name of the rows of held-out problems, in the place of a file."""


class NumberedPrompts(Dataset[dict[str, Any]]):
    """The rows of a training, or of one score. Lifetime: one session."""

    def __init__(self, data_files: Any, config: Any, **_: Any) -> None:  # noqa: ANN401 - of verl
        folder = Path(config.tilewright_run)
        preset = load_training(folder / "run.yaml", recorded=True).estimator()
        self._held_out = HELD_OUT in str(data_files)
        if self._held_out:
            self._prompts = held_out_count(folder)
            self._count, self._rollouts = self._prompts, preset.evaluation.samples
        else:
            self._prompts, self._rollouts = preset.sampling.prompts, preset.sampling.rollouts
            self._count = self._prompts * preset.optimizer.steps

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {
            # verl asks for a conversation; the run has the real prompts.
            "raw_prompt": [{"role": "user", "content": str(number)}],
            "agent_name": AGENT_LOOP,
            "index": number % self._prompts,
            "rollouts": self._rollouts,
            "held_out": self._held_out,
            "data_source": "tilewright",
            "reward_model": {},
            "extra_info": {},
        }
