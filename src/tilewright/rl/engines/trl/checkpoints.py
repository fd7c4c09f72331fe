"""Complete checkpoints: a resumed run uses only those that have a marker file."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

__all__ = ["COMPLETE", "Checkpointing", "latest"]

COMPLETE = "complete"
_NAME = re.compile(r"^checkpoint-(\d+)$")


class Checkpointing(TrainerCallback):  # type: ignore[misc]
    """Completes each checkpoint and removes old ones. Lifetime: one trainer."""

    def __init__(self, keep: int) -> None:
        self._keep = keep

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        """Complete the checkpoint of this step, then remove all but the newest."""
        folder = Path(args.output_dir)
        complete(folder / f"checkpoint-{state.global_step}")
        whole = [path for path in _checkpoints(folder) if (path / COMPLETE).is_file()]
        for path in whole[: -self._keep]:
            # The marker goes first: an interrupted removal leaves nothing that looks complete.
            (path / COMPLETE).unlink()
            shutil.rmtree(path)


def complete(folder: Path) -> None:
    """Force a checkpoint to the disk, and then its marker."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
    with open(folder / COMPLETE, "wb") as file:
        file.flush()
        os.fsync(file.fileno())
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def latest(folder: Path) -> str | None:
    """Return the path of the newest complete checkpoint; incomplete ones are removed."""
    found = None
    for path in _checkpoints(folder):
        if (path / COMPLETE).is_file():
            found = str(path)
        else:
            shutil.rmtree(path)
    return found


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, in the order of their steps."""
    paths = folder.iterdir() if folder.is_dir() else ()
    steps = {int(match[1]): path for path in paths if (match := _NAME.match(path.name))}
    return [steps[step] for step in sorted(steps)]
