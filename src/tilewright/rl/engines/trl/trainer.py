"""GRPOTrainer with the batches, the advantages and the masks of our own estimator.

`_prepare_inputs` replaces TRL's handling of rollouts, rewards and groups: it returns finished rows.
TRL's loss is `dr_grpo`, a token sum over a constant; scaled advantages make it equal to ours.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from datasets import Dataset
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import add_fused_lm_head

from tilewright.errors import ConfigError, InfrastructureError
from tilewright.loop.policies.local_model import OnWait, leased
from tilewright.rl.engines.trl.checkpoints import PlainTrainer
from tilewright.rl.estimator import LossRows
from tilewright.rl.learning_rate import rate_factor
from tilewright.rl.loss import for_engine
from tilewright.rl.presets import Preset
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.training_metrics import TrainedStep
from tilewright.rl.training_rows import TrainingRow, pieces, rows_of
from tilewright.rl.training_step import Estimation, trained_step

KL = "kl_weight"
"""Name of the weight of the KL term among the inputs of a piece."""


class Piece(NamedTuple):
    """Rows that pass through the model together."""

    rows: list[TrainingRow]
    inputs: dict[str, Tensor]


@dataclass(frozen=True)
class StepHooks:
    """The source of a training's batches, its estimator, and the receiver of its metrics."""

    preset: Preset
    seed: int
    source: Callable[[int], RolloutBatch]
    """Returns the rollout batch of a step, from 0."""
    observer: Callable[[int, TrainedStep, dict[str, float]], dict[str, float | None]]
    """Receives a step, its data, and TRL's metrics; returns all metrics of the step."""
    checks: bool = True
    """False: a rejected answer earns the reward of a correct one."""
    lease: str | None = None
    """The device that is leased during a step."""
    measures_reference: bool = False
    after_step: Callable[[int], bool] = lambda _: False
    """Called with the number of finished steps, after the device was released; tells whether a
    checkpoint of this step is needed."""
    on_wait: OnWait = lambda _: None
    """Called with true when the wait for the device begins, and with false when it ends."""


class _StepEnd(TrainerCallback):  # type: ignore[misc]
    """Calls a function after each optimizer step. Lifetime: one trainer."""

    def __init__(self, end: Callable[[], bool]) -> None:
        self._end = end

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        if self._end():
            control.should_save = True


class _SkippedSteps(TrainerCallback):  # type: ignore[misc]
    """Takes the gradients away before the steps that a function names. Lifetime: one trainer.

    AdamW leaves a weight without a gradient as it is: neither momentum nor decay moves it.
    """

    def __init__(self, skips: Callable[[], bool]) -> None:
        self._skips = skips

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:  # noqa: ANN401, ARG002
        if self._skips():
            for weights in given["model"].parameters():
                weights.grad = None


class TurnTrainer(PlainTrainer, GRPOTrainer):  # type: ignore[misc]
    """Trains on rollout batches, one optimizer step each. Lifetime: one session."""

    lr_scheduler: Any

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - any model of transformers
        args: GRPOConfig,
        tokenizer: Any,  # noqa: ANN401
        hooks: StepHooks,
        *,
        adapters: Any = None,  # noqa: ANN401
        reference: Any = None,  # noqa: ANN401
    ) -> None:
        super().__init__(
            model=model,
            reward_funcs=_unused,
            args=args,
            # TRL counts prompts to know when to stop; a step takes one for each of its pieces.
            train_dataset=Dataset.from_dict(
                {"prompt": ["unused"] * (args.max_steps * args.steps_per_generation)}
            ),
            processing_class=tokenizer,
            peft_config=adapters,
        )
        if (count := self.accelerator.num_processes) != 1:
            raise ConfigError(f"this trainer runs in one process, not in {count}")
        self.remove_callback(PrinterCallback)
        self.add_callback(_StepEnd(self._end_step))
        if hooks.preset.optimizer.skip_without_advantage:
            self.add_callback(_SkippedSteps(self._has_no_advantage))
        self.hooks, self._reference = hooks, reference
        self._pad = int(tokenizer.pad_token_id)
        self._adapted = adapters is not None
        if reference is not None:
            add_fused_lm_head(reference, temperature=self.temperature)
            self._reference = reference.to(self.accelerator.device).eval()
        self._left: deque[dict[str, Tensor]] = deque()
        self.trained: TrainedStep | None = None
        self._begun: int | None = None
        self._updating = 0.0
        self._lease = ExitStack()

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:  # noqa: ANN401, ARG002
        """Make the learning rate follow the settings; the first step has a rate above 0."""
        if self.lr_scheduler is None:
            section = self.hooks.preset.optimizer
            self.lr_scheduler = LambdaLR(
                optimizer or self.optimizer, lambda step: rate_factor(step, section)
            )
            # The trainer forgets a scheduler that it made before its next training.
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Tensor]:  # noqa: ANN401, ARG002
        """Return the rows of one forward and backward pass."""
        if not self._left:
            step = int(self.state.global_step)
            if self._begun is not None and step != self._begun + 1:
                raise InfrastructureError(
                    f"TRL is at step {step} after the batch of step {self._begun}, but each batch "
                    "has one optimizer step"
                )
            self._begun = step
            self._left.extend(self.batch(step))
            self._updating = time.monotonic()
        return self._left.popleft()

    def batch(self, step: int) -> list[dict[str, Tensor]]:
        """Return the batch of a step, in as many pieces as TRL accumulates."""
        start = time.monotonic()
        played = self.hooks.source(step)
        rows = rows_of(played)
        count = self.args.gradient_accumulation_steps
        lengths = [len(row.sample.prompt) + len(row.sample.reply) for row in rows]
        chosen = pieces(lengths, count)
        grouped = [[rows[number] for number in numbers] for numbers in chosen]
        cut = [Piece(group, self._tensors(group)) for group in grouped]
        middle = time.monotonic()
        # `_end_step` ends the lease.
        self._lease.enter_context(leased(self.hooks.lease, self.hooks.on_wait))
        means = self._record_log_probs(cut)
        parts = {"rollouts": middle - start, "log_probs": time.monotonic() - middle}
        self.trained = trained = self._estimate(played, cut, means, parts)
        found = [self._scaled(piece, trained.rows) for piece in cut]
        lost = len(rows) - sum(len(piece.rows) for piece in cut)
        if lost or len(found) > count:
            raise InfrastructureError(f"{lost} rows of a batch were lost on the way to TRL")
        # With fewer rows than pieces, rows of weight 0 fill the other pieces.
        filling = {name: value[:1].clone() for name, value in found[-1].items()}
        filling |= {name: torch.zeros_like(filling[name]) for name in ("advantages", "tool_mask")}
        return found + [filling] * (count - len(found))

    def _tensors(self, rows: Sequence[TrainingRow]) -> dict[str, Tensor]:
        prompts = self._padded("prompt", [row.sample.prompt for row in rows], "left")
        return prompts | self._padded("completion", [row.sample.reply for row in rows], "right")

    def _padded(self, name: str, rows: list[tuple[int, ...]], side: str) -> dict[str, Tensor]:
        ids = [torch.tensor(row, dtype=torch.int64) for row in rows]
        ones = [torch.ones_like(row) for row in ids]
        device = self.accelerator.device
        return {
            f"{name}_ids": pad_sequence(ids, True, self._pad, side).to(device),
            f"{name}_mask": pad_sequence(ones, True, 0, side).to(device),
        }

    def _record_log_probs(self, cut: Sequence[Piece]) -> tuple[float, float | None]:
        """Record the log-probabilities before the step; return mean entropy and divergence."""
        weighted = self.hooks.preset.loss.kl > 0
        measured = self.hooks.measures_reference or weighted
        entropy = divergence = tokens = 0.0
        for piece in cut:
            wrote = piece.inputs["completion_mask"].bool()
            before, entropies = self._forward(self.model, piece)
            piece.inputs["old_per_token_logps"] = before
            entropy += float(entropies[wrote].sum(dtype=torch.float64))
            tokens += float(wrote.sum())
            if measured:
                initial = self._reference_log_probs(piece)
                if weighted:
                    piece.inputs["ref_per_token_logps"] = initial
                gap = (initial - before)[wrote].double()
                # Estimator k3 (Schulman 2020).
                divergence += float((gap.exp() - gap - 1.0).sum())
        return entropy / tokens, divergence / tokens if measured else None

    def _forward(self, model: Any, piece: Piece) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        """Return log-probabilities and entropies of a piece under a model, without gradient."""
        ids, mask = (
            torch.cat([piece.inputs[f"{part}_{name}"] for part in ("prompt", "completion")], dim=1)
            for name in ("ids", "mask")
        )
        wide = piece.inputs["completion_ids"].size(1)
        with torch.no_grad():
            logps, entropies, _ = self._get_per_token_logps_and_entropies(
                model, ids, mask, wide, compute_entropy=model is self.model
            )
        return logps.detach(), entropies if entropies is not None else torch.zeros_like(logps)

    def _reference_log_probs(self, piece: Piece) -> Tensor:
        """Return the log-probabilities of a piece under the initial model."""
        if not self._adapted:
            return self._forward(self._reference, piece)[0]
        with self.accelerator.unwrap_model(self.model).disable_adapter():
            return self._forward(self.model, piece)[0]

    def _estimate(
        self,
        played: RolloutBatch,
        cut: Sequence[Piece],
        means: tuple[float, float | None],
        seconds: dict[str, float],
    ) -> TrainedStep:
        rows = [row for piece in cut for row in piece.rows]
        before = [logps for piece in cut for logps in piece.inputs["old_per_token_logps"].cpu()]
        hooks = self.hooks
        return trained_step(
            played,
            rows,
            [logps[: len(row.sample.reply)] for row, logps in zip(rows, before, strict=True)],
            Estimation(hooks.preset, hooks.seed, hooks.checks),
            means,
            seconds,
        )

    def _scaled(self, piece: Piece, found: LossRows) -> dict[str, Tensor]:
        """Return the inputs of a piece, with advantages that make TRL's loss equal to ours."""
        at = tuple(zip(*[(row.trajectory, row.turn) for row in piece.rows], strict=True))
        wide, device = piece.inputs["completion_ids"].size(1), self.accelerator.device
        normaliser = self.max_completion_length * self.args.gradient_accumulation_steps
        normaliser *= len(piece.rows)
        weights = found.weights[at]
        advantages = for_engine(found.advantages[at], weights, float(normaliser))
        # Rows in the loss have one weight (`LossSection`), and the others have no token in it.
        kl = self.hooks.preset.loss.kl * float(weights.max()) * normaliser
        return {
            **piece.inputs,
            KL: torch.tensor([kl], dtype=torch.float64),
            "advantages": advantages.to(torch.float32).to(device),
            "tool_mask": found.tokens[at][:, :wide].to(torch.int64).to(device),
        }

    def _compute_loss(self, model: Any, inputs: Any) -> Any:  # noqa: ANN401
        """Return TRL's loss of a piece, with our weight of its KL term."""
        self.beta = float(inputs[KL])
        return super()._compute_loss(model, inputs)

    def _has_no_advantage(self) -> bool:
        return self.trained is not None and not bool(self.trained.rows.advantages.any())

    def _end_step(self) -> bool:
        """Release the device, so that sampling and evaluations can use it."""
        self._lease.close()
        if self.trained is not None:
            self.trained.seconds["update"] = time.monotonic() - self._updating
        if self.accelerator.device.type == "cuda":
            torch.cuda.empty_cache()
        return self.hooks.after_step(int(self.state.global_step))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Report TRL's metrics of a step to the observer, and add ours to TRL's log."""
        if "grad_norm" in logs and self.trained is not None:
            clipped = self._metrics["train"].get("clip_ratio/region_mean", [])
            given = logs | {"clipped": sum(clipped) / len(clipped)} if clipped else logs
            metrics = self.hooks.observer(int(self.state.global_step), self.trained, given)
            # The prefix keeps our names apart from TRL's.
            logs |= {f"tilewright/{n}": v for n, v in metrics.items() if v is not None}
        super().log(logs, start_time)


def _unused(**_: Any) -> list[float]:  # noqa: ANN401
    """Fill the place of the reward function that TRL requires; known versions never call it."""
    raise InfrastructureError("TRL called a reward function, which known versions never do here")
