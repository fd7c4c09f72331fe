"""`tilewright train replay` of a run that learned to choose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from tilewright.cli.progress import Progress
from tilewright.cli.render import show
from tilewright.errors import ConfigError

if TYPE_CHECKING:
    from tilewright.rl.choices.choice_replay import ReplayedChoices

AS_TRAINED = "as trained"
HEADS = {
    "turns": "decisions",
    "reward": "mean R",
    "return": "sum of R",
    "steps": "steps",
    "correct": "correct",
    "faster": "faster",
    "best": "best speed-up",
    "advantage/least": "least A",
    "advantage/most": "most A",
}
COLUMNS = ("rung", "reward", "value", "advantage", "return")


def replay_choice_run(folder: Path, given: dict[str, Any]) -> None:
    """Print the rewards and advantages of each batch, or of each decision with --explain.

    Raises:
        ConfigError: an option is for other runs, or there is no such batch.
    """
    if given["names"] or given["seed"] is not None or given["without_checks"]:
        raise ConfigError(
            f"{folder} learned to choose: its own settings alone say how, so leave out --preset, "
            "--seed and --without-checks"
        )
    with Progress("replay", now="reading the log"):
        from tilewright.rl.choices.choice_replay import replay_choices

        parts = replay_choices(folder)
    if (name := given["chosen"]) is not None and name not in {part.batch for part in parts}:
        known = ", ".join(part.batch for part in parts[:5])
        raise ConfigError(f"--batch {name}: no such batch; the run has {known}")
    if name is not None or given["explained"]:
        parts = [part for part in parts if name in (None, part.batch)]
        parts = parts[:1] if name is None else parts
    if given["as_json"]:
        batches = [_batch(part, explained=given["explained"]) for part in parts]
        found = {AS_TRAINED: {"settings": _settings(parts), "batches": batches}}
        click.echo(json.dumps({"run": str(folder), "presets": found}, indent=1))
    elif given["explained"]:
        show(_decisions(parts[0]))
    else:
        show(_table(parts))


def _settings(parts: list[ReplayedChoices]) -> dict[str, Any]:
    return parts[0].preset.model_dump(mode="json") if parts else {}


def _batch(part: ReplayedChoices, *, explained: bool) -> dict[str, Any]:
    masks = {"masks": list(part.rows())} if explained else {}
    return {"batch": part.batch, **part.figures, **masks}


def _table(parts: list[ReplayedChoices]) -> Table:
    table = Table(title=AS_TRAINED, title_justify="left", box=None, pad_edge=False)
    table.add_column("batch")
    for head in HEADS.values():
        table.add_column(head, justify="right")
    for part in parts:
        figures = part.figures
        table.add_row(part.batch, *(_cell(figures[name]) for name in HEADS))
    return table


def _decisions(part: ReplayedChoices) -> Table:
    table = Table(title=part.batch, title_justify="left", box=None, pad_edge=False)
    table.add_column("decision")
    for head in COLUMNS:
        table.add_column(head, justify="left" if head == "rung" else "right")
    for row in part.rows():
        table.add_row(row["ask"], row["rung"], *(_cell(row[name]) for name in COLUMNS[1:]))
    return table


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
