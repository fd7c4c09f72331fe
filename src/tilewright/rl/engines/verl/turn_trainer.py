"""The trainer of verl with the batches, the advantages and the masks of our own estimator.

verl moves rows between its processes, computes log-probabilities, and updates the model. One
override computes everything that the estimator decides, over the whole batch.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
import transfer_queue as tq
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from tensordict import TensorDict
from torch import Tensor
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils as tu

from tilewright.errors import InfrastructureError, boundary
from tilewright.rl.engines.verl.registered_names import ACTOR, TRAINER
from tilewright.rl.engines.verl.registration import require_registered
from tilewright.rl.engines.verl.row_targets import Place, RowTarget, row_targets
from tilewright.rl.engines.verl.run_service import SCORED, TRAINED, RunService
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.training_config import load_training
from tilewright.rl.training_metrics import TrainedStep
from tilewright.rl.training_rows import TrainingRow, paid_verdicts, rewards_of, rows_of
from tilewright.rl.training_step import Estimation, trained_step

FIELDS = ("trajectory", "turn", "old_log_probs", "entropy", "rollout_log_probs", "rm_scores")

LOOP_CHECK_S = 10.0
"""Seconds between two looks at the agent loops while a batch is sampled and judged."""
REWARD_ROUNDING = 1e-5
"""Relative difference of a reward in float32 from itself."""


@register_trainer(TRAINER)
class VerlTurnTrainer(PPOTrainerSync):
    """Trains on rollout batches, one optimizer step each. Lifetime: one session."""

    def __init__(self, config: Any) -> None:  # noqa: ANN401 - of omegaconf
        super().__init__(config)
        folder = str(config.tilewright.run)
        settings = load_training(Path(folder) / "run.yaml", recorded=True)
        self._how = Estimation(settings.estimator(), settings.seed, settings.settings.reward.checks)
        self._folder = folder
        self._trained: TrainedStep | None = None
        self._run: Any = None
        self._padding: frozenset[str] = frozenset()
        self._updating = 0.0

    def _build_replay_buffer(self) -> Any:  # noqa: ANN401
        # verl takes any name but this one for an asynchronous mode.
        self.trainer_mode = "sync"
        return super()._build_replay_buffer()

    def _setup(self) -> None:
        require_registered("the trainer's process")
        cluster: Any = ray
        for node in cluster.nodes():
            if node["Alive"]:
                ray.get(_registered_on(node["NodeID"]))
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        service: Any = ray.remote(RunService)
        # Each loop of a batch waits in a call of its own.
        self._run = service.options(
            name=ACTOR, num_cpus=0, max_concurrency=100_000, scheduling_strategy=here
        ).remote(self._folder)
        # The data sets need what the run writes at its beginning.
        ray.get(self._run.open.remote())
        super()._setup()

    def init(self) -> None:
        """Start all processes; release the judge if one of them fails."""
        try:
            super().init()
        except BaseException:
            self._close()
            raise

    def fit(self, agent_loop_manager: Any) -> None:  # noqa: ANN401
        """Train; then release the judge and the event log."""
        try:
            super().fit(agent_loop_manager)
        finally:
            self._close()

    def _close(self) -> None:
        if self._run is not None:
            # The failure that ended the training matters, not one of an actor that is gone.
            with suppress(ray.exceptions.RayError):
                ray.get(self._run.close.remote())

    def _balance_batch(self, batch: Any, metrics: dict[str, Any], **more: Any) -> Any:  # noqa: ANN401
        batch = super()._balance_batch(batch, metrics, **more)
        pairs = zip(batch.keys, batch.tags, strict=True)
        self._padding = frozenset(key for key, tag in pairs if tag.get("is_padding"))
        return batch

    def on_sample_begin(self) -> None:
        """Wait until the batch is judged; a failure of the judge ends the training here."""
        super().on_sample_begin()
        start = time.monotonic()
        self._played: RolloutBatch = self._judged(TRAINED, self.global_steps - 1)
        self._seconds = {"rollouts": time.monotonic() - start}
        self._sampled = time.monotonic()

    def _judged(self, kind: str, step: int) -> RolloutBatch:
        """Return a batch once it is judged.

        Raises:
            InfrastructureError: an agent loop or its process ended without its replies.
        """
        batch = self._run.play.remote(kind, step)
        partition = "val" if kind == SCORED else "train"
        while not ray.wait([batch], timeout=LOOP_CHECK_S)[0]:
            loops = [
                loop.__ray_ready__.remote() for loop in self.agent_loop_manager.agent_loop_workers
            ]
            tags = (tq.kv_list(partition) or {}).get(partition, {}).values()
            lost = sum(tag.get("status") == "failure" for tag in tags)
            with boundary(InfrastructureError, "a process of the agent loops ended"):
                ray.get(ray.wait(loops, num_returns=len(loops), timeout=LOOP_CHECK_S)[0])
            if lost:
                raise InfrastructureError(
                    f"the agent loops of {lost} prompts failed; the log of Ray has the cause"
                )
        return ray.get(batch)  # type: ignore[no-any-return]

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:  # noqa: ANN401, ARG002
        """Write the masks and advantages of all rows, from the verdicts of the whole batch."""
        fields = list(FIELDS) + (["ref_log_prob"] if self.use_reference_policy else [])
        data = tq.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=fields
        )
        self._seconds["log_probs"] = time.monotonic() - self._sampled
        places = places_of(data, [key in self._padding for key in batch.keys])
        columns = {name: list(data[name].unbind()) for name in fields[2:]}
        self._trained = estimate(self._played, places, columns, self._how, self._seconds)
        lengths = [len(row) for row in columns["old_log_probs"]]
        targets = row_targets(places, lengths, self._trained.rows)
        self._updating = time.monotonic()
        return tq.kv_batch_put(
            keys=batch.keys, partition_id=batch.partition_id, fields=fields_of(targets)
        )

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:  # noqa: ANN401
        batch = super()._update_actor(batch, metrics)
        assert self._trained is not None
        self._trained.seconds["update"] = time.monotonic() - self._updating
        names = {"loss": "actor/loss", "grad_norm": "actor/grad_norm", "learning_rate": "actor/lr"}
        names["clipped"] = "actor/pg_clipfrac"
        logs = {ours: float(metrics[theirs]) for ours, theirs in names.items() if theirs in metrics}
        ray.get(self._run.observe.remote(self.global_steps, self._trained, logs))
        return batch

    def _validate(self) -> dict[str, float]:
        """Score the held-out problems, with the agent loops of a training batch."""
        for rows in self.val_dataloader:
            rows["uid"] = np.array([str(uuid.uuid4()) for _ in rows["raw_prompt"]], dtype=object)
            batch = tu.get_tensordict(rows)
            tu.assign_non_tensor_data(batch, "global_steps", self.global_steps)
            tu.assign_non_tensor_data(batch, "validate", True)
            tag = {"is_prompt": True, "status": "pending", "global_steps": self.global_steps}
            keys = list(batch["uid"])
            tq.kv_batch_put(keys=keys, partition_id="val", tags=[tag for _ in keys])
            self.agent_loop_manager.generate_sequences(batch)
            self._judged(SCORED, self.global_steps)
            found, _ = self.replay_buffer.sample(
                global_steps=self.global_steps, partition_id="val", batch_size=len(batch)
            )
            tq.kv_clear(keys=found.keys, partition_id=found.partition_id)
        return {}


def places_of(data: Any, padding: Sequence[bool]) -> list[Place]:  # noqa: ANN401 - a table
    """Return the places of rows by the numbers that they carry, never by their order.

    A padding row is a copy of another row, numbers included; `padding` tells them apart.
    """
    numbers = zip(list(data["trajectory"]), list(data["turn"]), padding, strict=True)
    return [None if added else (int(b), int(t)) for b, t, added in numbers]


def estimate(
    played: RolloutBatch,
    places: Sequence[Place],
    columns: dict[str, list[Tensor]],
    how: Estimation,
    seconds: dict[str, float],
) -> TrainedStep:
    """Return the estimate of a batch from the columns of verl's rows, each (n,) for n tokens.

    Raises:
        InfrastructureError: a turn is not among the rows, or its reward is not that of the turn.
    """
    at = {place: number for number, place in enumerate(places) if place is not None}
    rows = rows_of(played)
    chosen = [at.get((row.trajectory, row.turn)) for row in rows]
    numbers = [number for number in chosen if number is not None]
    if len(numbers) != len(rows):
        raise InfrastructureError(f"verl lost {len(rows) - len(numbers)} of {len(rows)} turns")
    before = [columns["old_log_probs"][number].double() for number in numbers]
    entropies = torch.cat([columns["entropy"][number].double() for number in numbers])
    divergence = None
    if "ref_log_prob" in columns:
        initial = [columns["ref_log_prob"][number].double() for number in numbers]
        gap = torch.cat(initial) - torch.cat(before)
        # Estimator k3 (Schulman 2020).
        divergence = float((gap.exp() - gap - 1.0).mean())
    means = float(entropies.mean()), divergence
    _require_rewards(played, how, rows, [columns["rm_scores"][number] for number in numbers])
    return trained_step(played, rows, before, how, means, seconds)


def _require_rewards(
    played: RolloutBatch, how: Estimation, rows: Sequence[TrainingRow], scores: Sequence[Tensor]
) -> None:
    """Refuse rows with the reward of another turn, which verl's own loops have."""
    paid = rewards_of(paid_verdicts(played, checks=how.checks), how.preset.reward)
    for row, score in zip(rows, scores, strict=True):
        place = row.trajectory, row.turn
        earned = float(paid.values[place]) if bool(paid.known[place]) else 0.0
        if abs(float(score.sum()) - earned) > REWARD_ROUNDING * max(abs(earned), 1.0):
            raise InfrastructureError(
                f"trajectory {row.trajectory}, turn {row.turn}: verl has the reward "
                f"{float(score.sum()):g}, and the turn earned {earned:g}"
            )


def fields_of(targets: Sequence[RowTarget]) -> TensorDict:
    """Return the fields of all rows as verl stores them: nested, each row of its own length."""
    masks = torch.nested.as_nested_tensor([row.mask for row in targets], layout=torch.jagged)
    gains = [row.advantages for row in targets]
    advantages = torch.nested.as_nested_tensor(gains, layout=torch.jagged)
    columns = {"response_mask": masks, "loss_mask": masks, "advantages": advantages}
    return TensorDict({**columns, "returns": advantages}, batch_size=len(targets))


def _registered_on(node: str) -> Any:  # noqa: ANN401 - a future of Ray
    affinity = NodeAffinitySchedulingStrategy(node, soft=False)
    task: Any = ray.remote(require_registered)
    options = task.options(num_cpus=0, scheduling_strategy=affinity)
    return options.remote(f"a worker on node {node}")
