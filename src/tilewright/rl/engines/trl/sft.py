"""The cold start: supervised learning of conversations, the loss on the assistant's turns alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback
from trl import SFTConfig, SFTTrainer

from tilewright.errors import ConfigError, RecordError
from tilewright.loop.table_input import read_rows
from tilewright.records.event_log import EventLog
from tilewright.records.events import Stepped
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.arguments import machine_arguments, quiet
from tilewright.rl.engines.trl.checkpoints import complete, latest, prune
from tilewright.rl.training_config import TrainConfig

__all__ = ["read_conversations", "train_sft"]

TurnFinished = Callable[[str], None]
MODEL = "model"


class Conversations(SFTTrainer):  # type: ignore[misc]
    """Learns conversations, and says how far it is. Lifetime: one sitting."""

    _tag_names = ["tilewright"]  # noqa: RUF012 - as in the base

    def follow(self, record: Callable[[int, dict[str, float]], None], keep: int) -> None:
        """Have each step recorded, and so many checkpoints kept."""
        self.remove_callback(PrinterCallback)
        self._record = record
        self._keep = keep

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Record a step."""
        super().log(logs, start_time)
        if "grad_norm" in logs:
            self._record(int(self.state.global_step), dict(logs))

    def create_model_card(self, *given: Any, **named: Any) -> None:  # noqa: ANN401
        """Write none: a run folder says what was trained, and on what."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:  # noqa: ANN401
        super()._save_checkpoint(model, trial)
        folder = Path(self.args.output_dir)
        complete(folder / f"checkpoint-{self.state.global_step}")
        prune(folder, self._keep)


def train_sft(config: TrainConfig, folder: Path, told: TurnFinished) -> dict[str, Any]:
    """Train on conversations until all epochs are over; return what came of it.

    A model is made where `model.path` is empty. The run goes on from its last whole checkpoint.

    Raises:
        ConfigError: the data or the model cannot be used.
    """
    rows = read_conversations(config.data.conversations)
    quiet(config.machine)
    if config.model.path:
        tokenizer = models.load_tokenizer(models.started(config))
        model = models.load_model(config.model.path)
    else:
        texts = [message["content"] for row in rows for message in row["messages"]]
        tokenizer = models.fresh_tokenizer(texts, config.model.from_scratch)
        model = models.fresh_model(config.model.from_scratch, tokenizer, config.seed)
    weighed = any(m["role"] == "assistant" and not m["weight"] for r in rows for m in r["messages"])
    if weighed and "weight" not in str(tokenizer.chat_template):
        told("its chat template reads no weights: every message of the assistant is learned")
    args = _arguments(config, folder, len(rows))
    trainer = Conversations(
        model=model,
        args=args,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=models.adapters(config.model.lora),
    )
    whole = latest(folder / "checkpoints")
    losses: list[float] = []
    with EventLog(folder) as log:

        def record(step: int, logs: dict[str, float]) -> None:
            figures: dict[str, float | None] = {
                name: logs.get(name) for name in ("loss", "grad_norm", "entropy", "learning_rate")
            }
            log.append(Stepped(step=step, batch="sft", figures=figures))
            losses.append(logs["loss"])
            told(f"step {step}, loss {logs['loss']:.4f}, gradient {logs['grad_norm']:.3f}")

        trainer.follow(record, config.checkpoints.keep)
        trainer.train(resume_from_checkpoint=str(whole[0]) if whole else None)
    place = models.save(trainer.accelerator.unwrap_model(trainer.model), tokenizer, folder / MODEL)
    return {
        "run": str(folder),
        "model": str(place),
        "conversations": len(rows),
        "steps": int(trainer.state.global_step),
        "first_loss": losses[0] if losses else None,
        "last_loss": losses[-1] if losses else None,
    }


def read_conversations(files: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return rows with `messages` of files of JSON lines or parquet.

    Raises:
        ConfigError: there are none, or a file is missing.
        RecordError: a row has no messages.
    """
    found = []
    for name in files:
        try:
            rows = list(read_rows(Path(name), _refused))
        except ConfigError as error:
            raise ConfigError(f"data.conversations: {error}") from error
        found += [{"messages": _messages(where, row)} for where, row in rows]
    if not found:
        raise ConfigError("data.conversations names no file with a conversation in it")
    return found


def _refused(what: str) -> None:
    # Whoever trains on what is left has another data set than they say.
    raise RecordError(what)


def _messages(where: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return messages with the weights of `tilewright data export`: 0 is not learned."""
    given = row.get("messages")
    try:
        given = json.loads(given) if isinstance(given, str) else given
        said = [
            {
                "role": str(m["role"]),
                "content": str(m["content"]),
                "weight": int(m.get("weight", 1)),
            }
            for m in given or ()
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{where}: a message has `role` and `content`") from error
    if not any(message["role"] == "assistant" and message["weight"] for message in said):
        raise RecordError(f"{where}: no message of an assistant to learn from")
    return said


def _arguments(config: TrainConfig, folder: Path, count: int) -> SFTConfig:
    section = config.estimator().sft
    rows = min(config.machine.train_batch_size, section.batch)
    whole = -(-section.batch // rows)
    steps = -(-count // (rows * whole)) * section.epochs
    return SFTConfig(
        **machine_arguments(config, folder),
        num_train_epochs=section.epochs,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=whole,
        learning_rate=section.learning_rate,
        # As the released recipe: a tenth of warm-up, then a cosine.
        lr_scheduler_type="cosine",
        warmup_steps=steps // 10,
        weight_decay=0.01,
        max_grad_norm=1.0,
        assistant_only_loss=True,
        packing=False,
        max_length=config.data.max_tokens,
        dataset_num_proc=None,
        loss_type="nll",
        eos_token=None,
    )
