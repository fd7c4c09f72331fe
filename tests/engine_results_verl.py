"""`python -m tests.engine_results_verl OUT`: what the engine verl finds for the stored batch.

It runs verl's own worker without Ray: the rows that its agent loops make, its padding, its
log-probabilities, its loss and its backward pass. RANK and WORLD_SIZE set the ranks. `--faults`
plants each fault into our side instead.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from tensordict import NonTensorData
from torch.distributed.tensor import DTensor, distribute_tensor
from verl.trainer.ppo.padding_utils import construct_minimal_padding_template
from verl.trainer.ppo.v1 import agent_loop_tq
from verl.utils import tensordict_utils as tu
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl.workers.utils.padding import response_from_nested

from tests.engine_batch import CASES, Case, document, settings, stored_batch, write, write_model
from tests.engine_faults import FAULTS, UNPLANTED, Fault
from tests.engine_model import END, movement, tiny_model
from tilewright.errors import TilewrightError
from tilewright.rl.engines.verl import agent_loop, turn_trainer
from tilewright.rl.engines.verl.launch import resolved
from tilewright.rl.engines.verl.run_service import PlayedTurn
from tilewright.rl.engines.verl.verl_settings import flags_of, verl_settings
from tilewright.rl.training_rows import paid_verdicts, rewards_of
from tilewright.rl.training_step import Estimation

WITHOUT_GPU = {
    "actor_rollout_ref.model.use_remove_padding": False,
    "+actor_rollout_ref.model.override_config.attn_implementation": "eager",
    "actor_rollout_ref.actor.use_torch_compile": False,
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile": False,
}
ROWS = 24


class _Loop:
    """The methods that verl's agent loop worker calls on itself when a loop ends."""

    async def _nothing(self, *_, **__):
        return None

    _compute_score = _compute_teacher_logprobs = _nothing

    def _compute_multi_modal_inputs(self, *_):
        return {}

    def _compute_position_ids(self, ids, *_):
        return torch.arange(ids.shape[-1])[None]


def rows_of_loops(batch, rewards) -> list[dict]:
    """Return the rows that verl stores, in a random order, with its own padding rows."""
    stored: list[dict] = []

    async def put(keys, fields, tags, **_):
        for number in range(len(keys)):
            row = {name: fields[name][number] for name in fields.keys()}  # noqa: SIM118
            stored.append({"key": keys[number], "tag": tags[number], "row": row})

    agent_loop_tq.tq = SimpleNamespace(async_kv_batch_put=put)
    worker = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class
    for b, samples in enumerate(batch.samples):
        turns = [
            PlayedTurn(b, t, sample, _earned(rewards, b, t))
            for t, sample in enumerate(samples)
            if sample is not None
        ]
        outputs = [agent_loop.output_of(turn, 0) for turn in turns]
        fields = {"uid": f"u{b // 4}", "session_id": b % 4, "global_steps": 1}
        asyncio.run(worker._agent_loop_postprocess(_Loop(), outputs, False, **fields))
    source = stored[0]
    while len(stored) < ROWS:
        row, tag = construct_minimal_padding_template(source["row"], source["tag"], END)
        stored.append({"key": f"pad_{len(stored)}_0", "tag": tag, "row": row})
    random.Random(0).shuffle(stored)
    return stored


def _earned(rewards, b: int, t: int) -> float | None:
    return float(rewards.values[b, t]) if bool(rewards.known[b, t]) else None


class Bench:
    """One worker of verl with the tiny model. Lifetime: one process of the test."""

    def __init__(self, folder: Path, ranks: int) -> None:
        config = settings(folder, CASES[0])
        machine = config.machine.model_copy(update={"gpus": ranks, "verl": WITHOUT_GPU})
        config = config.model_copy(update={"machine": machine})
        run = folder / "run"
        found = resolved(flags_of(verl_settings(config, run)))
        self.worker = ActorRolloutRefWorker(found.actor_rollout_ref, role="actor")
        self.worker.init_model()
        self.engine, self.ranks = self.worker.actor.engine, ranks
        self.weights = dict(self.engine.module.named_parameters())
        self.start = dict(tiny_model().named_parameters())
        self.batch = stored_batch()

    def result(self, folder: Path, case: Case, planted: Fault) -> dict:
        """Return the estimate, the loss and the gradient of one step."""
        config = settings(folder, case)
        preset = planted.preset(config.estimator())
        how = Estimation(preset, config.seed)
        engine_config = self.worker.actor.engine_config
        tokens = case.rows * preset.sampling.context_tokens
        engine_config.max_token_len_per_gpu = engine_config.infer_max_token_len_per_gpu = tokens
        for name, weight in self.weights.items():
            self._set(weight, self.start[name].detach())
        rewards = rewards_of(paid_verdicts(self.batch, checks=True), preset.reward)
        with planted.on():
            stored = rows_of_loops(self.batch, rewards)
            data = tu.list_of_dict_to_tensordict([item["row"] for item in stored])
            places = turn_trainer.places_of(data, ["is_padding" in item["tag"] for item in stored])
            self._log_probs(data)
            # Another model: the divergence from it is measured, and must not enter the loss.
            data["ref_log_prob"] = data["old_log_probs"] + 0.25
            names = ("old_log_probs", "entropy", "rollout_log_probs", "rm_scores")
            columns = {name: list(data[name].unbind()) for name in names}
            try:
                step = turn_trainer.estimate(self.batch, places, columns, how, {})
            except TilewrightError as error:
                return {"refused": str(error)}
            lengths = [len(row) for row in columns["old_log_probs"]]
            targets = turn_trainer.row_targets(places, lengths, step.rows)
            for name, column in turn_trainer.fields_of(targets).items():
                data[name] = column
        for name, weight in self.weights.items():
            moved = self.start[name].detach() + movement(name, tuple(weight.shape))
            self._set(weight, moved)
        loss, grads, passes = self._update(data)
        return (
            {"passes": passes}
            | document(step, preset, loss, grads)
            | _written(data, places, columns["rm_scores"], step)
        )

    def _set(self, weight, value: torch.Tensor) -> None:
        with torch.no_grad():
            spread = isinstance(weight, DTensor)
            own = (
                distribute_tensor(value, weight.device_mesh, weight.placements) if spread else value
            )
            weight.copy_(own)

    def _mine(self, data):
        return tu.chunk_tensordict(data, self.ranks)[torch.distributed.get_rank()]

    def _log_probs(self, data) -> None:
        given = self._mine(data)
        tu.assign_non_tensor(given, calculate_entropy=True, compute_loss=False, temperature=1.0)
        output = self.worker.compute_log_prob(given)
        for name in ("log_probs", "entropy"):
            own = response_from_nested(output[name], given["response_mask"]).unbind()
            every = [None] * self.ranks
            torch.distributed.all_gather_object(every, [row.float() for row in own])
            rows = [row for part in every for row in part]
            target = "old_log_probs" if name == "log_probs" else name
            data[target] = torch.nested.as_nested_tensor(rows, layout=torch.jagged)

    def _update(self, data) -> tuple[float, dict[str, torch.Tensor], int]:
        grads: dict[str, torch.Tensor] = {}

        def capture() -> float:
            for name, weight in self.weights.items():
                full = (
                    weight.grad.full_tensor() if isinstance(weight.grad, DTensor) else weight.grad
                )
                grads[name] = full.clone()
            self.engine.optimizer.zero_grad()
            return 0.0

        passes = 0
        forward = type(self.engine).forward_step

        def counted(*given, **named):
            nonlocal passes
            passes += 1
            return forward(self.engine, *given, **named)

        self.engine.optimizer_step, self.engine.forward_step = capture, counted
        given = self._mine(data)
        extra = {"calculate_entropy": False, "distillation_use_topk": False, "temperature": 1.0}
        sizes = {"global_batch_size": ROWS, "mini_batch_size": ROWS, "epochs": 1, "seed": 0}
        loader = NonTensorData({"shuffle": False})
        tu.assign_non_tensor(given, **extra, **sizes, distillation_only=False)
        given["dataloader_kwargs"] = loader
        output = self.worker.update_actor(given)
        (loss,) = output["metrics"]["loss"]
        return float(loss), grads, passes


def _written(data, places, scores, step) -> dict:
    """Return what the rows of verl hold, which its loss reads."""
    found: dict[str, dict] = {"rewards": {}, "masks": {}, "loss_masks": {}}
    columns = {"masks": data["response_mask"].unbind(), "loss_masks": data["loss_mask"].unbind()}
    padding = 0
    for number, place in enumerate(places):
        for name, column in columns.items():
            if place is None:
                padding += int(column[number].sum())
            else:
                found[name][f"{place[0]},{place[1]}"] = column[number].int().tolist()
        if place is not None and bool(step.turns.rewards.known[place]):
            found["rewards"][f"{place[0]},{place[1]}"] = float(scores[number].sum())
    return {**found, "padding": padding}


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder = write_model(Path(place))
        (folder / "run").mkdir()
        bench = Bench(folder, int(os.environ["WORLD_SIZE"]))
        if sys.argv[2:] == ["--faults"]:
            found = {name: bench.result(folder, CASES[1], fault) for name, fault in FAULTS.items()}
        else:
            found = {case.name: bench.result(folder, case, UNPLANTED) for case in CASES}
        if torch.distributed.get_rank() == 0:
            write(Path(sys.argv[1]), found)
        torch.distributed.barrier()


if __name__ == "__main__":
    main()
