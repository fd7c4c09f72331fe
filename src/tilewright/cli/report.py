"""`tilewright report`: one offline page of one or several runs, and its data."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tilewright.cli.output import print_line, print_skipped
from tilewright.cli.renamed_options import RenamingCommand
from tilewright.errors import ConfigError
from tilewright.records.base import is_text
from tilewright.reports.csv_markdown import as_csv, as_markdown
from tilewright.reports.html_report import document, page
from tilewright.reports.loader import annotate, gather, uncollected

__all__ = ["command"]


@click.command("report", cls=RenamingCommand, verb="report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", metavar="DIR", help="Folder of the files; default: the first run.")
@click.option("--title", metavar="TEXT", help="Title of the page.")
@click.option(
    "--all-candidates", is_flag=True, help="Show every candidate on the page, however many."
)
@click.option(
    "--annotate",
    "notes",
    nargs=2,
    multiple=True,
    metavar="CANDIDATE TEXT",
    help="Add a person's comment to a verdict. Repeatable.",
)
def command(
    runs: tuple[str, ...],
    out: str | None,
    title: str | None,
    all_candidates: bool,
    notes: tuple[tuple[str, str], ...],
) -> int:
    """Write report.html, report.json, report.csv and report.md for one or several RUNs.

    Several runs make one leaderboard; they need the same problems, protocols and device.
    The page works from disk, without network access.
    """
    folders = [Path(run) for run in runs]
    for what, text in [("--title", title or ""), *(("RUN", str(p.resolve())) for p in folders)]:
        if not is_text(text):
            raise ConfigError(f"{what} {text!r}: not valid UTF-8")
    for ask, text in notes:
        annotate(folders, ask, text)
    target = Path(out) if out else folders[0]
    with uncollected():
        gathered = gather(folders, full=all_candidates)
        name = title or f"{gathered.runs[0].begun.problems}, {gathered.runs[0].begun.device}"
        shown = document(gathered, name)
        texts = {
            "report.html": page(shown),
            "report.json": json.dumps(shown),
            "report.csv": as_csv(gathered),
            "report.md": as_markdown(gathered, name),
        }
        files = {file: text.encode() for file, text in texts.items()}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file, encoded in files.items():
            (target / file).write_bytes(encoded)
    except OSError as error:
        raise ConfigError(f"--out {target}: cannot be written: {error.strerror}") from error
    click.echo(target / "report.html")
    print_skipped(gathered.skipped)
    print_line(
        f"{', '.join(files)} are in {target}; open {(target / 'report.html').resolve().as_uri()}"
    )
    return 0
