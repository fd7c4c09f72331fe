"""Runs with a log, and readers of the stores of loggers, by the tools' own means."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tilewright.records.events import (
    Ask,
    EvalSummary,
    Event,
    Reply,
    RequestsIssued,
    RunStarted,
    Stepped,
    Turn,
    TurnFinished,
)

Curves = dict[str, list[tuple[int, float]]]
VERDICTS = ("incorrect", "correct", "unjudged", "rejected", "correct", "failed", "correct")


def started(kind: str = "optimize") -> RunStarted:
    return RunStarted(
        kind=kind, name="m", problems="p", protocols=("strict",), evaluator="1", device="cpu"
    )


def turn_of(number: int, verdict: str | None = None) -> Turn:
    ask = Ask(id=f"p#{number}", problem="set/p", turn=number)
    verdict = verdict or VERDICTS[number % len(VERDICTS)]
    timed = {"speedup": 1 + number / 10, "low": 1 + number / 20, "high": 2 + number / 5}
    judgement = EvalSummary(
        protocol="strict",
        verdict=verdict,
        findings=("unused_kernel",) if verdict == "rejected" else (),
        seconds=0.5,
        **(timed if verdict == "correct" else {}),
    )
    reply = Reply(text=f"```python\n# {number}\n```", prompt_tokens=10, reply_tokens=5)
    return Turn(ask=ask, source=f"s{number}", reply=reply, judgements=(judgement,))


def events_of(kind: str = "optimize", count: int = 20) -> list[Event]:
    events: list[Event] = [started(kind)]
    for number in range(count):
        turn = turn_of(number)
        events += [RequestsIssued(limit=1, asks=(turn.ask,)), TurnFinished(turn=turn)]
        if kind == "train" and number % 4 == 3:
            figures = {"reward": number / 3, "kl": None}
            step = number // 4 + 1
            events.append(Stepped(step=step, batch=f"step{step:05}", figures=figures))
    if kind == "train":
        events.append(Stepped(step=5, batch="score00005", figures={"reward": 2.0}))
    return events


def curves(logger: str, run: Path, name: str, key: str) -> Curves:
    """Return the curves of one destination, as the tool's own reader tells them."""
    found = {
        "tensorboard": _tensorboard,
        "trackio": _trackio,
        "wandb": _wandb,
        "mlflow": _mlflow,
    }[logger](run, name, key)
    return {tag: sorted(set(points)) for tag, points in found.items()}


def _tensorboard(run: Path, name: str, key: str) -> Curves:  # noqa: ARG001
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(run / "tensorboard" / name), size_guidance={"scalars": 0})
    board.Reload()
    return {
        tag: [(item.step, item.value) for item in board.Scalars(tag)]
        for tag in board.Tags()["scalars"]
    }


def _trackio(run: Path, name: str, key: str) -> Curves:  # noqa: ARG001
    from trackio.sqlite_storage import SQLiteStorage

    found: Curves = defaultdict(list)
    for row in SQLiteStorage.get_logs("tilewright", name):
        for tag, value in row.items():
            if tag not in ("step", "timestamp"):
                found[tag].append((row["step"], value))
    return found


def _wandb(run: Path, name: str, key: str) -> Curves:  # noqa: ARG001
    from wandb.proto import wandb_internal_pb2

    found: Curves = defaultdict(list)
    for file in sorted(run.glob(f"wandb/offline-*-{key}*/run-{key}.wandb")):
        for data in leveldb_records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            values = {
                item.key or "/".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            for tag, value in values.items():
                if not tag.startswith("_") and tag != "step":
                    found[tag].append((values["step"], value))
    return found


def leveldb_records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a file of wandb, which has the form of a log of LevelDB."""
    place, parts = 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        length, kind = struct.unpack("<HB", data[place + 4 : place + 7])
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield parts
            parts = b""


def _mlflow(run: Path, name: str, key: str) -> Curves:  # noqa: ARG001
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{run.resolve().parent / 'mlflow.db'}")
    tags = client.get_run(key).data.metrics
    return {
        tag: [(item.step, item.value) for item in client.get_metric_history(key, tag)]
        for tag in tags
    }
