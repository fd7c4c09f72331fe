"""Checkpoints that are whole: one without its marker was cut off, and is never gone on from."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

__all__ = ["COMPLETE", "complete", "latest", "prune"]

COMPLETE = "complete"
_NAME = re.compile(r"^checkpoint-(\d+)$")


def complete(folder: Path) -> None:
    """Put a checkpoint on the disk, and then its marker."""
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


def latest(folder: Path) -> tuple[Path, int] | None:
    """Return the newest whole checkpoint and its step; those that were cut off are removed."""
    found = _checkpoints(folder)
    whole = [item for item in found if (item[0] / COMPLETE).is_file()]
    for path, _ in found:
        if not (path / COMPLETE).is_file():
            shutil.rmtree(path)
    return max(whole, key=lambda item: item[1], default=None)


def prune(folder: Path, keep: int) -> None:
    """Remove all whole checkpoints but the newest."""
    found = sorted(_checkpoints(folder), key=lambda item: item[1])
    whole = [path for path, _ in found if (path / COMPLETE).is_file()]
    for path in whole[:-keep]:
        # The marker goes first: a removal that is cut off leaves nothing that looks whole.
        (path / COMPLETE).unlink()
        shutil.rmtree(path)


def _checkpoints(folder: Path) -> list[tuple[Path, int]]:
    if not folder.is_dir():
        return []
    named = [(path, _NAME.match(path.name)) for path in folder.iterdir()]
    return [(path, int(match[1])) for path, match in named if match]
