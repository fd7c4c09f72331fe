"""Supervised fine-tuning on conversations; the loss covers the assistant's messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from datasets import Dataset, disable_progress_bars
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from tilewright._version import __version__
from tilewright.errors import ConfigError, RecordError, writing
from tilewright.loop.table_input import read_rows
from tilewright.records.event_log import EventLog, read_events
from tilewright.records.events import WITHOUT_DEVICE, RunStarted, Stepped
from tilewright.records.run_folder import PROBLEMS
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.arguments import machine_arguments
from tilewright.rl.engines.trl.checkpoints import Checkpointing, PlainTrainer, latest
from tilewright.rl.engines.trl.quiet_process import quiet
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_folder import was_begun

Reached = Callable[[int, int, str], None]


class ConversationTrainer(PlainTrainer, SFTTrainer):  # type: ignore[misc]
    """Trains on conversations. Lifetime: one session."""


class _StepLog(TrainerCallback):  # type: ignore[misc]
    """Records the metrics of each step. Lifetime: one session."""

    def __init__(
        self, log: EventLog, past: Iterable[int], note: Callable[[str], None], reached: Reached
    ) -> None:
        self._log, self._note, self._reached = log, note, reached
        self._past = set(past)
        self.losses: list[float] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        if "grad_norm" in logs:
            step, loss, gradient = state.global_step, logs["loss"], logs["grad_norm"]
            names = ("loss", "grad_norm", "entropy", "learning_rate")
            metrics = {name: logs.get(name) for name in names}
            # A resumed training repeats the steps after its last checkpoint.
            if step not in self._past:
                self._log.append(Stepped(step=step, batch="sft", figures=metrics))
            self.losses.append(loss)
            self._note(
                f"step {step} of {state.max_steps}, loss {loss:.4f}, gradient {gradient:.3f}"
            )
            self._reached(step, state.max_steps, f"loss {loss:.3f}")


def train_sft(
    config: TrainConfig,
    folder: Path,
    note: Callable[[str], None],
    *,
    reached: Reached = lambda *_: None,
) -> dict[str, Any]:
    """Train on conversations until all epochs are over; return a summary.

    `note` receives a line for each step, and `reached` the number of finished steps, that of all
    steps, and the loss.

    Without `model.path` it creates a model. It continues from the last complete checkpoint.

    Raises:
        ConfigError: the data or the model cannot be used.
        RecordError: a row has no messages.
    """
    rows = read_conversations(config.data.conversations)
    quiet(config.machine)
    disable_progress_bars()
    if config.model.path:
        tokenizer = models.load_tokenizer(models.initial_model(config))
        model = models.load_model(config.model.path)
    else:
        texts = [message["content"] for row in rows for message in row["messages"]]
        tokenizer = models.fresh_tokenizer(texts, config.model.from_scratch)
        model = models.fresh_model(config.model.from_scratch, tokenizer, config.seed)
    weighed = any(m["role"] == "assistant" and not m["weight"] for r in rows for m in r["messages"])
    if weighed and "weight" not in str(tokenizer.chat_template):
        note("the chat template ignores weights: the loss covers every message of the assistant")
    trainer = ConversationTrainer(
        model=model,
        args=_arguments(config, folder, len(rows)),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=models.adapters(config.model.lora),
        callbacks=[Checkpointing(config.checkpoints.keep)],
    )
    trainer.remove_callback(PrinterCallback)
    begun = was_begun(folder)
    events = read_events(folder) if begun else ()
    past = [event.step for event in events if isinstance(event, Stepped)]
    with EventLog(folder) as log:
        if not begun:
            _begin(config, folder, log)
        steps = _StepLog(log, past, note, reached)
        trainer.add_callback(steps)
        trainer.train(resume_from_checkpoint=latest(folder / "checkpoints"))
    model = trainer.accelerator.unwrap_model(trainer.model)
    return {
        "run": str(folder),
        "model": str(models.save(model, tokenizer, folder / models.FOLDER)),
        "conversations": len(rows),
        "steps": int(trainer.state.global_step),
        "first_loss": steps.losses[0] if steps.losses else None,
        "last_loss": steps.losses[-1] if steps.losses else None,
    }


def _begin(config: TrainConfig, folder: Path, log: EventLog) -> None:
    """Write the first line of the log, and a file without problems, so that pages can open it."""
    with writing(folder):
        (folder / PROBLEMS).write_text("", encoding="utf-8")
    log.append(
        RunStarted(
            kind="sft",
            name="sft",
            problems=", ".join(config.data.conversations),
            protocols=("strict",),
            evaluator=__version__,
            device=WITHOUT_DEVICE,
        )
    )


def read_conversations(files: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the rows with `messages` in files of JSON lines or parquet."""
    found = []
    for name in files:
        try:
            rows = list(read_rows(Path(name), _refuse))
        except ConfigError as error:
            raise ConfigError(f"data.conversations: {error}") from error
        found += [{"messages": _messages(where, row)} for where, row in rows]
    if not found:
        raise ConfigError("data.conversations names no file with a conversation in it")
    return found


def _refuse(problem: str) -> None:
    """Refuse a damaged row: without it, the data set would not be the one in the settings."""
    raise RecordError(problem)


def _messages(where: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return messages with the weights of `tilewright data export`; the loss ignores weight 0."""
    given = row.get("messages")
    try:
        given = json.loads(given) if isinstance(given, str) else given
        messages = [
            {
                "role": str(m["role"]),
                "content": str(m["content"]),
                "weight": int(m.get("weight", 1)),
            }
            for m in given or ()
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{where}: a message has `role` and `content`") from error
    if not any(message["role"] == "assistant" and message["weight"] for message in messages):
        raise RecordError(f"{where}: no message of an assistant to learn from")
    return messages


def _arguments(config: TrainConfig, folder: Path, count: int) -> SFTConfig:
    section = config.estimator().sft
    rows = min(config.machine.train_batch_size, section.batch)
    pieces = -(-section.batch // rows)
    steps = -(-count // (rows * pieces)) * section.epochs
    return SFTConfig(
        **machine_arguments(config, folder),
        num_train_epochs=section.epochs,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=pieces,
        learning_rate=section.learning_rate,
        # The released recipe of Dr. Kernel: 10 % warm-up, then a cosine.
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
