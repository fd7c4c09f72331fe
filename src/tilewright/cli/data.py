"""`tilewright data`: event logs as data sets, and data sets of others as event logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright.cli.common import load_settings, out_option, settings_options
from tilewright.cli.lines import say
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.export import import_coldstart, trajectory_rows, turn_rows
from tilewright.loop.files import parquet_rows
from tilewright.records.runs import create_run

__all__ = ["command"]

ROWS = {"turns": turn_rows, "trajectories": trajectory_rows}
MOST_NAMED = 20


@click.group("data")
def command() -> None:
    """Data sets from runs, and runs from data sets."""


@command.command("export")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--to", "target", required=True, metavar="FILE", help="FILE.jsonl, FILE.parquet, or "
              "a folder that `datasets.load_from_disk` reads.")  # fmt: skip
@click.option(
    "--rows",
    type=click.Choice(sorted(ROWS)),
    default="turns",
    show_default=True,
    help="A prompt and a reply in each row, or a whole conversation.",
)
@click.option("--verdict", "verdicts", multiple=True, help="Only such turns. Repeatable.")
def export(runs: tuple[str, ...], target: str, rows: str, verdicts: tuple[str, ...]) -> int:
    """Write the turns of RUNs as rows to train on."""
    if verdicts and rows != "turns":
        raise ConfigError("--verdict chooses among turns; a conversation has several")
    found = [row for run in runs for row in ROWS[rows](Path(run))]
    kept = [row for row in found if not verdicts or row["verdict"] in verdicts]
    path = Path(target)
    try:
        _write(kept, path)
    except OSError as error:
        raise ConfigError(f"--to {target}: cannot be written: {error.strerror}") from error
    say(f"{len(kept)} of {len(found)} rows in {path}")
    return 0


def _write(rows: list[dict[str, Any]], path: Path) -> None:
    if path.suffix == ".jsonl":
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(row)}\n" for row in rows)
    elif path.suffix == ".parquet":
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise ConfigError(_missing("parquet", "pyarrow")) from error
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif not path.suffix:
        try:
            import datasets
        except ImportError as error:
            raise ConfigError(_missing("a data set's folder", "datasets")) from error
        datasets.Dataset.from_list(rows).save_to_disk(str(path))
    else:
        raise ConfigError(f"--to {path}: FILE.jsonl, FILE.parquet, or a folder without a suffix")


def _missing(what: str, package: str) -> str:
    return f"to write {what} needs {package}: pip install 'tilewright[data]'"


@command.command("import")
@click.argument("source", metavar="FILE")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["drkernel-coldstart"]),
    default="drkernel-coldstart",
    show_default=True,
    help="Whose conversations these are.",
)
@out_option
@settings_options
def import_(source: str, kind: str, out: str | None, **given: Any) -> int:  # noqa: ANN401 - options
    """Make a run of the conversations in FILE (parquet or JSON lines). Nothing of it is judged."""
    settings = load_settings(given["file"], given["overrides"], {"runs": ("--out", out)})
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"{source}: no such file")
    folder = create_run(settings.runs, config.dump(settings))
    count, skipped = import_coldstart(_rows(path), folder, path.name)
    for line in skipped[:MOST_NAMED]:
        say(f"left out: {line}")
    if len(skipped) > MOST_NAMED:
        say(f"left out: {len(skipped) - MOST_NAMED} more")
    say(f"{count} turns ({kind}), {len(skipped)} rows left out")
    say(f"run {folder}; next: tilewright view {folder}")
    return 0 if count else 6


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        yield from (row for _, row in parquet_rows(path))
        return
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise RecordError(f"{path}:{number}: no JSON: {error}") from error
            yield row if isinstance(row, dict) else {}
