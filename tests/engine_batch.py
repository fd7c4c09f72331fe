"""The stored batch of the golden test as tilewright's own records, and the cases of the test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from tests.engine_loops import load
from tests.engine_model import tiny_model
from tests.training_fixtures import toy
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.rl.presets import Preset
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.tokens import TokenSample
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_metrics import TrainedStep, step_metrics
from tilewright.rl.trajectories import Trajectory

PRESETS, DENOMINATORS = ("paper", "released_code", "tilewright"), ("kept", "planned")


@dataclass(frozen=True)
class Case:
    """One case; `rows` is the average number of rows that pass through the model together."""

    preset: str
    denominator: str
    rows: int

    @property
    def name(self) -> str:
        return f"{self.preset}-{self.denominator}-{'one' if self.rows > 24 else 'several'}"


CASES = [Case(p, d, rows) for p in PRESETS for d in DENOMINATORS for rows in (64, 2)]


def settings(folder: Path, case: Case) -> TrainConfig:
    """Return the settings of a case; all but the named ones are those of the preset."""
    config = toy(
        folder,
        f"model.path={folder / 'model'}",
        f"preset={case.preset}",
        f"machine.train_batch_size={case.rows}",
    )
    shape = {"prompts": 2, "rollouts": 4, "turns": 3, "context_tokens": 128, "reply_tokens": 40}
    overrides = {"sampling": shape, "loss": {"denominator": case.denominator}}
    return config.model_copy(update={"overrides": overrides})


def write_model(folder: Path) -> Path:
    """Write the tiny model into FOLDER/model."""
    import transformers
    from tokenizers import Tokenizer, models

    words = {f"t{number}": number for number in range(64)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="t1"))
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="t0", pad_token="t0", chat_template="{{ messages }}"
    )
    tiny_model().save_pretrained(folder / "model")
    made.save_pretrained(folder / "model")
    return folder


def stored_batch() -> RolloutBatch:
    """Return the stored batch."""
    trajectories, turns, samples = [], [], []
    for number, item in enumerate(load()["trajectories"]):
        batch, _, name = item["group"].partition("/")
        problem = name.removesuffix(".0")
        trajectory = Trajectory(batch, problem, 0, item["rollout"], number)
        assert trajectory.group == item["group"]
        trajectories.append(trajectory)
        turns.append(tuple(_turn(trajectory, t, row) for t, row in enumerate(item["turns"])))
        samples.append(tuple(None if row is None else _sample(row) for row in item["turns"]))
    return RolloutBatch(tuple(trajectories), tuple(turns), tuple(samples))


def _turn(trajectory: Trajectory, place: int, row: dict | None) -> Turn | None:
    if row is None:
        return None
    known = {name: row[name] for name in ("speedup", "low", "coverage") if row[name] is not None}
    said = EvalSummary(protocol="strict", verdict=row["verdict"], **known)
    ask = Ask(
        id=trajectory.ask_id(place),
        problem=trajectory.problem,
        sample=trajectory.sample,
        turn=place,
    )
    return Turn(ask=ask, reply=Reply(text="x"), judgements=(said,))


def _sample(row: dict) -> TokenSample:
    finish = "stop" if row["reply"][-1] == 0 else "length"
    return TokenSample(tuple(row["prompt"]), tuple(row["reply"]), tuple(row["sampler"]), finish)


def document(
    step: TrainedStep, preset: Preset, loss: float, grads: dict[str, torch.Tensor]
) -> dict:
    """Return what an engine found, as JSON."""
    places = [
        (b, t)
        for b, row in enumerate(step.played.turns)
        for t, turn in enumerate(row)
        if turn is not None
    ]
    rows, estimate = step.rows, step.estimate
    masks = {
        f"{b},{t}": rows.tokens[b, t][: len(step.played.samples[b][t].reply)].int().tolist()
        for b, t in places
    }
    return {
        "rewards": {
            f"{b},{t}": float(step.turns.rewards.values[b, t])
            for b, t in places
            if bool(step.turns.rewards.known[b, t])
        },
        "advantages": {
            f"{b},{t}": float(estimate.advantages.values[b, t])
            for b, t in places
            if bool(estimate.advantages.known[b, t])
        },
        "weights": {f"{b},{t}": float(rows.weights[b, t]) for b, t in places},
        "masks": masks,
        "loss_masks": masks,
        "padding": 0,
        "figures": step_metrics(step, preset),
        "loss": loss,
        "grads": {name: grad.double().flatten().tolist() for name, grad in grads.items()},
    }


def write(path: Path, found: dict[str, dict]) -> None:
    path.write_text(json.dumps(found), encoding="utf-8")


def read(path: Path) -> dict[str, dict]:
    return json.loads(path.read_text(encoding="utf-8"))
