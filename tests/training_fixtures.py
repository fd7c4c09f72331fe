"""A tiny model and rollout batches made by hand, for tests of training."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

from tilewright.config import dump
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.tokens import TokenSample
from tilewright.rl.training_config import TrainConfig, load_training
from tilewright.rl.trajectories import trajectories_of
from tilewright.testing.synth_world import conversations

TOY = """
world: synth
preset: tilewright
seed: 3
overrides:
  reward: {speed: 0.1, max_speedup: 20}
  sampling: {prompts: 2, rollouts: 4, turns: 2, context_tokens: 128, reply_tokens: 24}
  optimizer: {learning_rate: 0.003, steps: 4}
  loss: {scale: 10}
  sft: {learning_rate: 0.01, batch: 16, epochs: 3}
  evaluation: {samples: 2, turns: 2}
model:
  from_scratch: {hidden: 64, layers: 2, heads: 4, positions: 256, vocabulary: 420}
data:
  conversations: [sft.jsonl]
  problems: synth
  held_out: synth/5-6
machine: {train_batch_size: 4, threads: 1, sampling_batch_size: 8}
checkpoints: {every: 2}
"""


def write_toy(folder: Path, rows: int = 320) -> Path:
    """Write a configuration and its conversations into a folder; return the configuration."""
    text = TOY.replace("sft.jsonl", str(folder / "sft.jsonl"))
    (folder / "toy.yaml").write_text(text, encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in conversations(rows, 2, 0))
    (folder / "sft.jsonl").write_text(lines, encoding="utf-8")
    return folder / "toy.yaml"


def toy(folder: Path, *overrides: str) -> TrainConfig:
    """Return the settings of the toy."""
    return load_training(write_toy(folder), [f"settings.runs={folder / 'runs'}", *overrides])


def cold_start(folder: Path) -> Path:
    """Train the toy on its conversations, into FOLDER/model; return the folder."""
    from tilewright.rl.engines.trl.sft import train_sft

    (folder / "cold").mkdir()
    train_sft(toy(folder), folder / "cold", silent)
    (folder / "cold" / "model").rename(folder / "model")
    return folder


def settings(folder: Path, *overrides: str) -> TrainConfig:
    """Return the settings of a training of the model in FOLDER/model."""
    return toy(folder, f"model.path={folder / 'model'}", *overrides)


def begun(folder: Path, name: str, *overrides: str) -> Path:
    """Return the new folder of such a training."""
    made = folder / name
    made.mkdir()
    (made / "run.yaml").write_text(dump(settings(folder, *overrides)), encoding="utf-8")
    return made


def silent(*_: object) -> None:
    """Print nothing."""


def weights(folder: Path) -> bytes:
    """Return the weights that a run has left."""
    return (folder / "model" / "model.safetensors").read_bytes()


def write_model(config: TrainConfig, folder: Path) -> Path:
    """Write an untrained model and its tokenizer into a folder."""
    from tilewright.rl.engines.trl import models

    texts = [m["content"] for row in conversations(64, 2, 0) for m in row["messages"]]
    tokenizer = models.fresh_tokenizer(texts, config.model.from_scratch)
    return models.save(
        models.fresh_model(config.model.from_scratch, tokenizer, 1), tokenizer, folder
    )


def played(
    verdicts: list[list[str | None]], *, groups: int, vocabulary: int = 300, seed: int = 0
) -> RolloutBatch:
    """Return a batch with these verdicts, (B, T), `None` for an absent turn.

    Replies are random tokens of random lengths; what is correct has a random speed-up.
    """
    draw = random.Random(seed)
    count = len(verdicts) // groups
    items = trajectories_of("step00000", ["p"] * groups, count, 0)
    turns, samples = [], []
    for item, row in zip(items, verdicts, strict=True):
        made: list[Turn | None] = []
        wrote: list[TokenSample | None] = []
        for number, verdict in enumerate(row):
            if verdict is None:
                made.append(None)
                wrote.append(None)
                continue
            speed = draw.uniform(0.5, 3) if verdict == "correct" else None
            said = EvalSummary(
                protocol="strict", verdict=verdict, speedup=speed, low=speed, high=speed
            )
            ask = Ask(id=item.ask_id(number), problem="p", sample=item.sample, turn=number)
            made.append(Turn(ask=ask, reply=Reply(text="x"), judgements=(said,)))
            reply = tuple(draw.randrange(10, vocabulary) for _ in range(draw.randint(1, 9)))
            prompt = tuple(draw.randrange(10, vocabulary) for _ in range(draw.randint(3, 12)))
            wrote.append(TokenSample(prompt, reply, tuple(-1.0 for _ in reply), "stop"))
        turns.append(tuple(made))
        samples.append(tuple(wrote))
    return RolloutBatch(tuple(items), tuple(turns), tuple(samples))


def known_warnings() -> None:
    """Ignore what the packages warn of among themselves."""
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=UserWarning)
    warnings.filterwarnings("ignore", category=ResourceWarning)
