"""A folder that `datasets.load_dataset` reads: rows with licences, and a card about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilewright._version import __version__
from tilewright.errors import ConfigError, RecordError, writing
from tilewright.records import Problem
from tilewright.records.event_log import read_events
from tilewright.records.events import RunStarted

ROWS, HELD_OUT = "train.parquet", "train.held-out.parquet"
LICENCE = "licence"
"""The column that names the licence of a row's problem; empty: none restricts its use."""
QUOTING = ("prompt", "messages")
"""Columns that quote the problem's source."""
HEAD = """---
pretty_name: Kernels judged by tilewright
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train.parquet
{held_out}---
"""
HELD_OUT_SPLIT = """  - split: held_out
    path: data/held_out.parquet
"""


def check_folder(folder: Path) -> Path:
    """Return the file of rows in a new or empty folder.

    Raises:
        ConfigError: the folder holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"--to {folder}: with --card it must be a new or an empty folder")
    with writing(folder):
        (folder / "data").mkdir(parents=True, exist_ok=True)
    return folder / "data" / ROWS


def licensed(row: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return a row with the licence of its problem, and without the source that it restricts."""
    kept = {**row, LICENCE: problem.licence}
    if problem.licence:
        kept |= {name: [] for name in QUOTING if name in row}
    return kept


def card_text(
    sources: Sequence[str], rows: Counter[str], licences: Counter[str], omitted: Mapping[str, int]
) -> str:
    """Return what the card says below its head."""
    lines = ["# Kernels judged by tilewright", "", f"Made by tilewright {__version__}.", ""]
    lines += ["| run | device | evaluator | protocols |", "| --- | --- | --- | --- |"]
    for source in sources:
        with suppress(RecordError):
            begun = next(iter(read_events(Path(source))), None)
            if isinstance(begun, RunStarted):
                protocols = ", ".join(begun.protocols)
                name = Path(source).resolve().name
                lines.append(f"| {name} | {begun.device} | {begun.evaluator} | {protocols} |")
    lines += ["", "| verdict | rows |", "| --- | --- |"]
    lines += [f"| {name} | {count} |" for name, count in sorted(rows.items())]
    lines += ["", "## Left out", ""]
    lines += [f"- {count} {what}" for what, count in omitted.items() if count] or ["- nothing"]
    lines += ["", "## Licences", ""]
    for name, count in sorted(licences.items()):
        said = name or "no licence of a problem restricts these rows"
        quoted = "; the source of the problem is left out" if name else ""
        lines.append(f"- {count} rows: {said}{quoted}")
    lines += ["", "A speed-up has a 95 % interval in `speedup_low` and `speedup_high`."]
    lines += ["An unjudged candidate has no number; it is not zero.", ""]
    return "\n".join(lines)


def write_card(folder: Path, text: str) -> None:
    """Write the card, and give the held-out rows the name of a split."""
    held_out = folder / "data" / HELD_OUT
    with writing(folder):
        if held_out.exists():
            held_out.rename(folder / "data" / "held_out.parquet")
        head = HEAD.format(
            held_out=HELD_OUT_SPLIT if (folder / "data" / "held_out.parquet").exists() else ""
        )
        (folder / "README.md").write_text(f"{head}\n{text}", encoding="utf-8")
