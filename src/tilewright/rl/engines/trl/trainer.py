"""GRPOTrainer with the batches, the advantages and the masks of our own estimator.

TRL keeps the model, the optimizer, accumulation, precision and checkpoints. What it would do with
rollouts, rewards and groups is replaced as a whole: `_prepare_inputs` hands it finished rows. Its
loss is `dr_grpo`, a token sum over a constant, and advantages are scaled so that it is ours.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import add_fused_lm_head

from tilewright.errors import ConfigError, InfrastructureError
from tilewright.rl.engines.trl.checkpoints import complete, prune
from tilewright.rl.engines.trl.sampler import leased
from tilewright.rl.estimator import Rows, TurnEstimate, Turns, estimate_rows, estimate_turns
from tilewright.rl.loss import for_engine
from tilewright.rl.presets import Preset
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.training_rows import Row, pieces, rows_of, table, turns_of

__all__ = ["Learned", "Lesson", "Source", "TurnTrainer"]

Source = Callable[[int], RolloutBatch]
"""Plays the rollout batch of a step, from 0."""
Observer = Callable[[int, "Learned", dict[str, float]], dict[str, float | None]]
"""Takes a step, what it was made of, and what TRL measured; returns all figures of it."""


@dataclass(frozen=True)
class Learned:
    """What a step was made of."""

    played: RolloutBatch
    turns: Turns
    estimate: TurnEstimate
    rows: Rows
    before: Tensor
    """The trainer's log-probabilities before the step, float32 (B, T, L)."""
    sampler: Tensor
    """The sampler's, (B, T, L)."""
    generated: Tensor
    """Bool (B, T, L)."""
    entropy: float
    """Mean over all generated tokens, in nats."""
    divergence: float | None
    """From the model that the run began with, a mean over generated tokens, in nats."""
    seconds: dict[str, float]
    """By part of the step."""


@dataclass(frozen=True)
class Piece:
    """Rows that go through the model together."""

    rows: list[Row]
    inputs: dict[str, Tensor]


@dataclass(frozen=True)
class Lesson:
    """What is learned, from whom, and who is told."""

    preset: Preset
    seed: int
    source: Source
    observer: Observer
    lease: str | None = None
    """The device that is held while a step is made."""
    keep: int = 2
    """Checkpoints."""
    measures_reference: bool = False


class _Ends(TrainerCallback):  # type: ignore[misc]
    """Says that the optimizer has made its step. Lifetime: that of its trainer."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def on_step_end(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
        """Say it."""
        self._end()


class TurnTrainer(GRPOTrainer):  # type: ignore[misc]
    """Trains on rollout batches, one optimizer step each. Lifetime: one sitting."""

    _tag_names = ["tilewright"]  # noqa: RUF012 - as in the base

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - any model of transformers
        args: GRPOConfig,
        tokenizer: Any,  # noqa: ANN401
        lesson: Lesson,
        *,
        adapters: Any = None,  # noqa: ANN401
        reference: Any = None,  # noqa: ANN401
    ) -> None:
        super().__init__(
            model=model,
            reward_funcs=_unused,
            args=args,
            # TRL counts prompts to know when it is done; a step takes as many as it has pieces.
            train_dataset=Dataset.from_list(
                [{"prompt": "unused"}] * (args.max_steps * args.steps_per_generation)
            ),
            processing_class=tokenizer,
            peft_config=adapters,
        )
        if self.accelerator.num_processes != 1:
            raise ConfigError(
                f"this trainer runs in one process, not in {self.accelerator.num_processes}"
            )
        self.remove_callback(PrinterCallback)
        self.add_callback(_Ends(self._end_step))
        self._lesson = lesson
        self._pad = int(tokenizer.pad_token_id)
        self._adapted = adapters is not None
        self._reference = reference
        if reference is not None:
            add_fused_lm_head(reference, temperature=self.temperature)
            self._reference = reference.to(self.accelerator.device).eval()
        self._left: deque[dict[str, Tensor]] = deque()
        self._learned: Learned | None = None
        self._begun: int | None = None
        self._updating = 0.0
        self._lease = ExitStack()

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Tensor]:  # noqa: ANN401, ARG002
        """Return the rows of one forward and backward pass."""
        if not self._left:
            step = int(self.state.global_step)
            if self._begun is not None and step != self._begun + 1:
                raise InfrastructureError(
                    f"TRL is at step {step} after the batch of step {self._begun}: one optimizer "
                    "step a batch is what is trained here"
                )
            self._begun = step
            self._left.extend(self.batch(step))
            self._updating = time.monotonic()
        return self._left.popleft()

    def batch(self, step: int) -> list[dict[str, Tensor]]:
        """Play the batch of a step; return it in as many pieces as TRL accumulates."""
        start = time.monotonic()
        played = self._lesson.source(step)
        rows = rows_of(played)
        count = self.args.gradient_accumulation_steps
        cut = [
            Piece([rows[n] for n in chosen], self._tensors([rows[n] for n in chosen]))
            for chosen in pieces([row.length for row in rows], count)
        ]
        middle = time.monotonic()
        # Until the step is made.
        self._lease.enter_context(leased(self._lesson.lease))
        looked = self._look(cut)
        parts = {"rollouts": middle - start, "log_probs": time.monotonic() - middle}
        self._learned = learned = self._estimate(played, cut, looked, parts)
        found = [self._scaled(piece, learned.rows) for piece in cut]
        lost = len(rows) - sum(len(piece.rows) for piece in cut)
        if lost or len(found) > count:
            raise InfrastructureError(f"{lost} rows of a batch were lost on the way to TRL")
        # Where rows are fewer than pieces, a row of weight 0 stands for nothing.
        return found + [_filling(found[-1])] * (count - len(found))

    def _tensors(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        device = self.accelerator.device
        left = max(len(row.sample.prompt) for row in rows)
        right = max(len(row.sample.reply) for row in rows)
        shape = len(rows), left + right
        ids = torch.full(shape, self._pad, dtype=torch.int64)
        mask = torch.zeros(shape, dtype=torch.int64)
        for number, row in enumerate(rows):
            prompt, reply = row.sample.prompt, row.sample.reply
            ids[number, left - len(prompt) : left + len(reply)] = torch.tensor(prompt + reply)
            mask[number, left - len(prompt) : left + len(reply)] = 1
        return {
            "prompt_ids": ids[:, :left].to(device),
            "prompt_mask": mask[:, :left].to(device),
            "completion_ids": ids[:, left:].to(device),
            "completion_mask": mask[:, left:].to(device),
        }

    def _look(self, cut: Sequence[Piece]) -> tuple[float, float | None]:
        """Note the log-probabilities before the step.

        Returns:
            The mean entropy of a token, and its divergence from the reference, in nats: that of
            exp(d) - d - 1 with d = log q - log p, q the reference (Schulman's k3).
        """
        entropy = apart = tokens = 0.0
        for piece in cut:
            wrote = piece.inputs["completion_mask"].bool()
            before, entropies = self._passed(self.model, piece)
            piece.inputs["old_per_token_logps"] = before
            entropy += float(entropies[wrote].sum(dtype=torch.float64))
            tokens += float(wrote.sum())
            if self._lesson.measures_reference:
                gap = (self._referred(piece) - before)[wrote].double()
                apart += float((gap.exp() - gap - 1.0).sum())
        return entropy / tokens, apart / tokens if self._lesson.measures_reference else None

    def _passed(self, model: Any, piece: Piece) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        """Return log-probabilities and entropies of a piece under a model, without gradient."""
        given = piece.inputs
        ids = torch.cat([given["prompt_ids"], given["completion_ids"]], dim=1)
        mask = torch.cat([given["prompt_mask"], given["completion_mask"]], dim=1)
        wide = given["completion_ids"].size(1)
        with torch.no_grad():
            logps, entropies, _ = self._get_per_token_logps_and_entropies(
                model, ids, mask, wide, compute_entropy=model is self.model
            )
        return logps.detach(), entropies if entropies is not None else torch.zeros_like(logps)

    def _referred(self, piece: Piece) -> Tensor:
        """Return the log-probabilities of a piece under the model that the run began with."""
        if not self._adapted:
            return self._passed(self._reference, piece)[0]
        with self.accelerator.unwrap_model(self.model).disable_adapter():
            return self._passed(self.model, piece)[0]

    def _estimate(
        self,
        played: RolloutBatch,
        cut: Sequence[Piece],
        looked: tuple[float, float | None],
        seconds: dict[str, float],
    ) -> Learned:
        start = time.monotonic()
        turns = turns_of(played, self._lesson.preset, self._lesson.seed)
        estimate = estimate_turns(turns, self._lesson.preset)
        shape = turns.present.shape[0], turns.present.shape[1]
        rows = [row for piece in cut for row in piece.rows]
        before = [
            logps[: len(row.sample.reply)]
            for piece in cut
            for row, logps in zip(
                piece.rows, piece.inputs["old_per_token_logps"].cpu(), strict=True
            )
        ]
        tables = (
            table(rows, [item.float() for item in before], shape),
            table(rows, [torch.tensor(row.sample.logprobs) for row in rows], shape),
            table(rows, [torch.ones(len(r.sample.reply), dtype=torch.bool) for r in rows], shape),
        )
        found = estimate_rows(estimate, *tables, self._lesson.preset)
        seconds["estimator"] = time.monotonic() - start
        return Learned(played, turns, estimate, found, *tables, *looked, seconds)

    def _scaled(self, piece: Piece, found: Rows) -> dict[str, Tensor]:
        """Return the inputs of a piece, with advantages that make TRL's loss ours."""
        at = tuple(zip(*[(row.trajectory, row.turn) for row in piece.rows], strict=True))
        wide = piece.inputs["completion_ids"].size(1)
        normaliser = (
            len(piece.rows) * self.max_completion_length * self.args.gradient_accumulation_steps
        )
        advantages = for_engine(found.advantages[at], found.weights[at], float(normaliser))
        device = self.accelerator.device
        return {
            **piece.inputs,
            "advantages": advantages.to(torch.float32).to(device),
            "tool_mask": found.tokens[at][:, :wide].to(torch.int64).to(device),
        }

    def _end_step(self) -> None:
        """Let go of the device, before anybody samples or judges on it."""
        self._lease.close()
        if self._learned is not None:
            self._learned.seconds["update"] = time.monotonic() - self._updating
        if self.accelerator.device.type == "cuda":
            torch.cuda.empty_cache()

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Pass on what TRL measured of a step, with what we did."""
        if "grad_norm" in logs and self._learned is not None:
            clipped = self._metrics["train"].get("clip_ratio/region_mean", [])
            given = logs | {"clipped": sum(clipped) / len(clipped)} if clipped else logs
            figures = self._lesson.observer(int(self.state.global_step), self._learned, given)
            # Under a name of ours, so that none is taken for one of TRL's.
            logs |= {f"tilewright/{n}": v for n, v in figures.items() if v is not None}
        super().log(logs, start_time)

    def create_model_card(self, *given: Any, **named: Any) -> None:  # noqa: ANN401
        """Write none: a run folder says what was trained, and on what."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:  # noqa: ANN401
        super()._save_checkpoint(model, trial)
        folder = Path(self.args.output_dir)
        complete(folder / f"checkpoint-{self.state.global_step}")
        prune(folder, self._lesson.keep)


def _filling(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    one = {name: value[:1].clone() for name, value in inputs.items()}
    return {
        **one,
        "advantages": torch.zeros_like(one["advantages"]),
        "tool_mask": torch.zeros_like(one["tool_mask"]),
    }


def _unused(**_: Any) -> list[float]:  # noqa: ANN401
    """Stand in for reward functions, which TRL wants and never calls here."""
    raise InfrastructureError("TRL asked for a reward, which it does not do in the known versions")
