"""The cache of builds: a folder for each key, those that nobody asked for the longest go first."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

__all__ = ["prune", "read_cache", "write_cache"]

MAX_CACHE_BYTES = 4 << 30
LEFT_SHARE = 0.75
"""The share of `MAX_CACHE_BYTES` that pruning leaves, so that not every build prunes."""
INDEX = "index.json"


def read_cache(folder: Path) -> dict[str, bytes] | None:
    """Return what is stored in a folder, or `None` when nothing is, or nothing whole."""
    try:
        names = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        found = {name: (folder / file).read_bytes() for name, file in names.items()}
    except (OSError, ValueError):
        return None
    # A read-only cache serves all the same; it is only pruned in another order.
    with suppress(OSError):
        os.utime(folder)
    return found


def write_cache(folder: Path, libraries: dict[str, bytes]) -> None:
    """Store libraries under their key; a reader sees all of them or none."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}.new")
    try:
        fresh.mkdir(parents=True)
        names = {}
        for index, (name, data) in enumerate(libraries.items()):
            names[name] = f"{index}.so"
            (fresh / names[name]).write_bytes(data)
        (fresh / INDEX).write_text(json.dumps(names), encoding="utf-8")
        if folder.exists() and read_cache(folder) is None:
            # Damaged: what cannot be read would stand in the way for ever.
            shutil.rmtree(folder)
        fresh.rename(folder)
    except OSError:
        # A full or read-only disk, or another build that came first: the cache is a convenience.
        shutil.rmtree(fresh, ignore_errors=True)
    prune(folder.parent)


def prune(root: Path, most: int = MAX_CACHE_BYTES) -> None:
    """Remove what was not read for the longest, where more than `most` bytes are stored."""
    entries: list[tuple[float, int, Path]] = []
    try:
        for folder in root.iterdir():
            sizes = [file.stat().st_size for file in folder.iterdir()]
            entries.append((folder.stat().st_mtime, sum(sizes), folder))
    except OSError:
        # Another supervisor is at it.
        return
    total = sum(size for _, size, _ in entries)
    if total <= most:
        return
    for _, size, folder in sorted(entries):
        shutil.rmtree(folder, ignore_errors=True)
        total -= size
        if total <= LEFT_SHARE * most:
            return
