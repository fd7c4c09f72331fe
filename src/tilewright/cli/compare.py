"""`tilewright compare`: the changes from one run to another."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.cli import options
from tilewright.cli.options import JSON, option, switch
from tilewright.cli.output import print_line, print_skipped, printable
from tilewright.cli.render import show_result, table
from tilewright.errors import writing
from tilewright.reports.comparison_page import as_page
from tilewright.reports.run_comparison import (
    COLUMNS,
    as_document,
    as_markdown,
    cells,
    compare_runs,
    compared_run,
    headline,
    notes,
)
from tilewright.scoring.run_changes import REGRESSIONS, Change

REGRESSED = 1
"""Exit status with --fail-on-regression if a problem broke or became slower."""


@click.command("compare")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option(
    "--protocol",
    type=options.OneOf(["strict", "official"]),
    default="strict",
    show_default=True,
    help="Whose verdicts to compare.",
)
@switch("--fail-on-regression", "Exit with 1 if a problem broke or became slower.", "fail")
@option("--markdown", "FILE", "Write the changed problems as Markdown, for a CI summary.")
@option("--page", "FILE", "Write all problems as one page that works from disk.")
@JSON
def command(
    before: str,
    after: str,
    protocol: str,
    fail: bool,
    markdown: str | None,
    page: str | None,
    as_json: bool,
) -> int:
    """List the problems that became correct, broke, got faster or slower from BEFORE to AFTER.

    Both are run folders of eval, bench or optimize. The best candidate of a problem counts. A
    speed-up has changed if the interval of the ratio excludes 1.
    """
    runs = [compared_run(Path(folder), protocol) for folder in (before, after)]
    print_skipped([line for run in runs for line in run.skipped])
    found = compare_runs(runs[0], runs[1], protocol)
    for path, made in ((markdown, as_markdown), (page, as_page)):
        if path is not None:
            with writing(path):
                Path(path).write_text(made(found), encoding="utf-8")
    rows = [row for row in found.rows if row.change != Change.SAME]
    shown = ([printable(value) for value in cells(row)] for row in rows)
    show_result(as_json, as_document(found), table(*COLUMNS, rows=shown))
    for text in (headline(found), *notes(found)):
        print_line(printable(text))
    if markdown is not None:
        print_line(f"the changes as Markdown are in {printable(markdown)}")
    if page is not None:
        print_line(f"the page is in {printable(page)}; open {Path(page).resolve().as_uri()}")
    regressed = any(row.change in REGRESSIONS for row in found.rows)
    return REGRESSED if fail and regressed else 0
