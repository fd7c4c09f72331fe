"""`tilewright report`: one offline page of one or several runs, and what it was drawn from."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tilewright.cli.lines import say, say_left_out
from tilewright.errors import ConfigError
from tilewright.records.base import is_text
from tilewright.reports.gather import annotate, gather, uncollected
from tilewright.reports.page import document, page
from tilewright.reports.tables import as_csv, as_markdown

__all__ = ["command"]


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", metavar="DIR", help="Where the files are written; default: the first run.")
@click.option("--title", metavar="TEXT", help="What stands at the top of the page.")
@click.option("--full", is_flag=True, help="Put every candidate into the page, however many.")
@click.option(
    "--annotate",
    "notes",
    nargs=2,
    multiple=True,
    metavar="CANDIDATE TEXT",
    help="Put a person's judgement beside a verdict. Repeatable.",
)
def command(
    runs: tuple[str, ...],
    out: str | None,
    title: str | None,
    full: bool,
    notes: tuple[tuple[str, str], ...],
) -> int:
    """Write report.html, report.json, report.csv and report.md for one or several RUNs.

    Several runs make one leaderboard; they must be of the same problems, protocols and device.
    The page works from disk, without a network.
    """
    folders = [Path(run) for run in runs]
    for what, text in [("--title", title or ""), *(("RUN", str(p.resolve())) for p in folders)]:
        if not is_text(text):
            raise ConfigError(f"{what} {text!r}: not UTF-8, as a page has to be")
    for ask, text in notes:
        annotate(folders, ask, text)
    target = Path(out) if out else folders[0]
    with uncollected():
        gathered = gather(folders, full=full)
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
    say_left_out(gathered.skipped)
    say(f"{', '.join(files)} are in {target}; open {(target / 'report.html').resolve().as_uri()}")
    return 0
