"""`tilewright report`: one offline page of one or several runs, and its data."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import TypeAdapter, ValidationError

from tilewright.cli.options import option, switch
from tilewright.cli.output import print_line, print_skipped
from tilewright.cli.progress import Progress
from tilewright.config.schema import LoggerName, Loggers
from tilewright.errors import ConfigError, RecordError, writing
from tilewright.integrations.run_loggers import check_loggers, send
from tilewright.records.base import is_text
from tilewright.records.event_log import is_eval_run
from tilewright.records.run_folder import read_report
from tilewright.reports.csv_markdown import as_csv, as_markdown
from tilewright.reports.html_report import document, page
from tilewright.reports.loader import annotate, gather, title_of, uncollected
from tilewright.reports.strategy_report import strategy_files

LOGGERS: TypeAdapter[tuple[LoggerName, ...]] = TypeAdapter(Loggers)
OUT_HELP = "Folder of the files; default: the first run, or `report` in a run of eval."
TO_HELP = "Send the curves to tensorboard, trackio, wandb or mlflow, and write no page."
ANNOTATE_HELP = "Add a person's comment to a verdict. Repeatable."


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("--out", "DIR", OUT_HELP)
@option("--title", "TEXT", "Title of the page.")
@option("--to", "LOGGERS", TO_HELP)
@switch("--all-candidates", "Show every candidate on the page, however many.")
@option("--annotate", "CANDIDATE TEXT", ANNOTATE_HELP, "notes", nargs=2, multiple=True)
def command(runs: tuple[str, ...], notes: tuple[tuple[str, str], ...], **given: Any) -> int:  # noqa: ANN401 - the options
    """Write report.html, report.json, report.csv and report.md for one or several RUNs.

    A run that compares strategies also gets strategies.csv, strategy_differences.csv and
    strategy_regret.csv.
    Several runs make one leaderboard; they need the same problems, protocols and device.
    The page works from disk, without network access.
    """
    folders = [Path(run) for run in runs]
    texts = [("--title", given["title"] or ""), *(("RUN", str(p.resolve())) for p in folders)]
    for what, text in texts:
        if not is_text(text):
            raise ConfigError(f"{what} {text!r}: not valid UTF-8")
    for ask, text in notes:
        annotate(folders, ask, text)
    if given["to"]:
        return _send(folders, given["to"])
    target = Path(given["out"]) if given["out"] else _beside(folders[0])
    if is_eval_run(target) and _holds_verdict(target):
        lost = "its report.json is the verdict of a run of eval, which would be lost"
        raise ConfigError(f"--out {target}: {lost}; name another folder")
    # 100,000 candidates take several seconds.
    with uncollected(), Progress("report", now="reading the runs"):
        gathered = gather(folders, full=given["all_candidates"])
        name = given["title"] or title_of(gathered.runs[0].begun)
        shown = document(gathered, name, given["out"] or "")
        files = {
            "report.html": page(shown).encode(),
            "report.json": json.dumps(shown).encode(),
            "report.csv": as_csv(gathered).encode(),
            "report.md": as_markdown(gathered, name).encode(),
        }
        compared = strategy_files((run.name, run.comparison) for run in gathered.runs)
        files |= {file: text.encode() for file, text in compared.items()}
    with writing(f"--out {target}"):
        target.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (target / file).write_bytes(content)
    click.echo(target / "report.html")
    print_skipped(gathered.skipped)
    page_uri = (target / "report.html").resolve().as_uri()
    print_line(f"{', '.join(files)} are in {target}; open {page_uri}")
    return 0


def _send(folders: list[Path], to: str) -> int:
    """Send the curves of runs to loggers, each to a new destination."""
    try:
        names = LOGGERS.validate_python(to)
    except ValidationError as error:
        known = ", ".join(get_args(LoggerName))
        raise ConfigError(f"--to {to!r}: write some of {known}, with commas") from error
    check_loggers(names, "--to")
    for folder in folders:
        for name in names:
            with Progress("report", now=f"sending the curves of {folder} to {name}"):
                sent = send(folder, name)
            print_line(f"{sent.points} points are in {name} as {sent.name}")
    return 0


def _beside(folder: Path) -> Path:
    """Return the folder for the files of a run: its own, unless a verdict lies there."""
    return folder / "report" if is_eval_run(folder) else folder


def _holds_verdict(folder: Path) -> bool:
    """Tell whether the report.json of a folder is a verdict; a page has a file of this name too."""
    with suppress(RecordError):
        read_report(folder)
        return True
    return False
