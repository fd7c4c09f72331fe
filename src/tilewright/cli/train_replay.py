"""`tilewright train replay`: compute rewards and advantages of an existing event log."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from rich.console import Group
from rich.table import Table

from tilewright.cli import options
from tilewright.cli.options import JSON, option, switch
from tilewright.cli.output import print_line
from tilewright.cli.progress import Progress
from tilewright.cli.render import show
from tilewright.cli.train_replay_choices import replay_choice_run
from tilewright.errors import ConfigError
from tilewright.rl.choices.choice_log import is_choice_run
from tilewright.rl.preset_text import explain
from tilewright.rl.presets import PRESETS, Preset, preset
from tilewright.rl.rewards.turn_reward import find_reward

if TYPE_CHECKING:
    from tilewright.rl.replay import RecordedBatch, Replayed

    Found = dict[Preset, list[Replayed]]

NO_MISMATCH = (
    "mismatch rejection (MRS) is not computed: this run has no log-probabilities of a trainer"
)
AS_TRAINED = "as trained"
"""Name of the row with the settings of the run itself."""
UNCHECKED_HELP = (
    "Reward rejected answers as if no check had run. The verdicts remain those of the log."
)
EXPLAIN_HELP = "Print the formulas of the estimator, and every mask of one batch."
BATCH_HELP = "Only this batch; default: all, and with --explain the first one."
MAX_MASKS = 200
"""Most rows of the table of masks."""
ROUNDED = 1e-12
"""A smaller number is a rounding residue."""
HEADS = {
    "turns": "turns",
    "unjudged": "unjudged",
    "correct": "correct",
    "reward": "mean R",
    "return": "mean G",
    "advantage": "mean A",
    "advantage_rms": "rms A",
    "filtered": "filtered",
    "kept_profiling": "PRS keeps",
    "kept_mismatch": "MRS keeps",
    "learned": "in the loss",
}
LEFT = ("preset", "batch, turn", "turn", "verdict", "out")
"""Columns of text. The others hold numbers."""
SHARES = ("correct", "filtered", "kept_profiling", "kept_mismatch", "learned")


@click.command("replay")
@click.argument("run", metavar="RUN")
@click.option(
    "--preset",
    "names",
    multiple=True,
    type=options.OneOf(list(PRESETS)),
    help="Preset of the estimator. Repeatable; default: the settings of the run, and all presets.",
)
@click.option("--seed", type=int, help="Seed of PRS; default: the seed of the run, else 0.")
@switch("--without-checks", UNCHECKED_HELP)
@switch("--explain", EXPLAIN_HELP, "--dry-run", "explained")
@option("--batch", "NAME", BATCH_HELP, "chosen")
@JSON
def command(run: str, names: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - the options
    """Compute rewards, advantages and keep rates of RUN again. Needs torch, and no device.

    RUN is a run of `train rl`, `train choices`, `optimize` or `bench --model`. A run of the last
    two counts as one batch.
    """
    if importlib.util.find_spec("torch") is None:
        raise ConfigError("estimators need torch: pip install 'tilewright[judge]'")
    folder = Path(run)
    if is_choice_run(folder):
        replay_choice_run(folder, {"names": names, **given})
        return 0
    seed = given["seed"] if given["seed"] is not None else _seed_of(folder)
    with Progress("replay", now="reading the log") as progress:
        batches, found = _replayed(folder, names, seed, given, progress)
    lacking = any(batch.log_ratios is None for batch in batches)
    if given["as_json"]:
        click.echo(json.dumps(_document(run, seed, found, given, lacking), indent=1))
    elif given["explained"]:
        for parts in found.values():
            click.echo(explain(parts[0].preset))
            show(_masks_table(parts[0]))
    else:
        show(Group(*_tables(found)))
    if lacking:
        print_line(NO_MISMATCH)
    return 0


def _replayed(
    folder: Path, names: tuple[str, ...], seed: int, given: dict[str, Any], progress: Progress
) -> tuple[list[RecordedBatch], Found]:
    """Return the chosen batches of a run, and their estimates with each preset."""
    from tilewright.rl import replay as rl

    batches = _chosen(rl.read_batches(folder, checks=not given["without_checks"]), given)
    found: Found = {}
    if not names and (trained := rl.trained_settings(folder)) is not None:
        own = trained.estimator().model_copy(update={"name": AS_TRAINED})
        with_code = find_reward(own.reward.function).reads_code
        checks = trained.settings.reward.checks
        paid = rl.read_batches(folder, checks=checks, with_code=with_code)
        found[own] = _estimates(rl.replay_all(paid, own, seed), _chosen(paid, given))
    chosen = [preset(name) for name in names or PRESETS]
    for number, each in enumerate(chosen):
        progress.in_phase(number, len(chosen), f"preset {each.name}")
        found[each] = rl.replay_all(batches, each, seed)
    return batches, found


def _estimates(parts: list[Replayed], chosen: list[RecordedBatch]) -> list[Replayed]:
    """Return the estimates of some batches; smoothing needed those before them as well."""
    names = {batch.name for batch in chosen}
    return [part for part in parts if part.batch.name in names]


def _chosen(batches: list[RecordedBatch], given: dict[str, Any]) -> list[RecordedBatch]:
    name = given["chosen"]
    if name is None:
        return batches[:1] if given["explained"] else batches
    found = [batch for batch in batches if batch.name == name]
    if not found:
        known = ", ".join(batch.name or "(the whole run)" for batch in batches[:5])
        raise ConfigError(f"--batch {name}: no such batch; the run has {known}")
    return found


def _seed_of(folder: Path) -> int:
    try:
        tree = yaml.safe_load((folder / "run.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return 0
    seed = tree.get("seed") if isinstance(tree, dict) else None
    return seed if isinstance(seed, int) else 0


def _document(
    run: str, seed: int, found: Found, given: dict[str, Any], lacking: bool
) -> dict[str, Any]:
    from tilewright.rl.replay import masks, replay_metrics

    def batch(part: Replayed) -> dict[str, Any]:
        turns = range(len(part.batch.asks[0]))
        row = {"batch": part.batch.name, **replay_metrics([part])}
        row["by_turn"] = [replay_metrics([part], turn) for turn in turns]
        return row | ({"masks": masks(part)} if given["explained"] else {})

    presets = {
        each.name: {
            "settings": each.model_dump(mode="json"),
            **({"explained": explain(parts[0].preset)} if given["explained"] else {}),
            "total": replay_metrics(parts),
            "batches": list(map(batch, parts)),
        }
        for each, parts in found.items()
    }
    checks = not given["without_checks"]
    head = {"run": run, "seed": seed, "checks": checks, "mismatch": NO_MISMATCH if lacking else ""}
    return {**head, "presets": presets}


def _tables(found: Found) -> list[Table]:
    from tilewright.rl.replay import replay_metrics

    tables = []
    if len(found) > 1:
        tables.append(_table("all batches", "preset", *HEADS.values()))
        for each, parts in found.items():
            tables[0].add_row(each.name, *_cells(replay_metrics(parts)))
    for each, parts in found.items():
        tables.append(_table(each.name, "batch, turn", *HEADS.values()))
        for part in parts:
            for turn in range(len(part.batch.asks[0])):
                cells = _cells(replay_metrics([part], turn))
                tables[-1].add_row(f"{part.batch.name or 'all'}, {turn}", *cells)
    return tables


def _table(title: str, *heads: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, justify="left" if head in LEFT else "right")
    return table


def _cells(row: dict[str, Any], names: Iterable[str] = tuple(HEADS)) -> list[str]:
    return [_cell(row[name], share=name in SHARES) for name in names]


def _cell(value: float | None, *, share: bool) -> str:
    if value is None or isinstance(value, int):
        return "-" if value is None else str(value)
    # Advantages sum to 0; show a rounding residue as 0.
    value = 0.0 if abs(value) < ROUNDED else value
    return f"{value:.0%}" if share else f"{value:.3g}"


def _masks_table(part: Replayed) -> Table:
    from tilewright.rl.replay import masks

    heads = ("turn", "verdict", "R", "G", "A", "PR", "p", "u", "out")
    table, rows = _table(f"batch {part.batch.name or 'all'}", *heads), masks(part)
    numbers = ("reward", "return", "advantage", "coverage", "chance", "draw")
    for row in rows[:MAX_MASKS]:
        table.add_row(row["ask"], row["verdict"], *_cells(row, numbers), row["out"])
    if len(rows) > MAX_MASKS:
        table.caption = f"{len(rows) - MAX_MASKS} more; --json has all"
    return table
