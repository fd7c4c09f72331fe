"""`tilewright view`: the turns of a run in a browser, live or as one file."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright.cli.options import number, option, switch
from tilewright.cli.output import print_line, print_skipped
from tilewright.cli.progress import Progress
from tilewright.errors import TilewrightError, writing
from tilewright.loop.run_state import resume_session
from tilewright.records.event_log import EVENTS, is_eval_run
from tilewright.reports.eval_run import read_eval_run
from tilewright.reports.html_report import page_of_eval
from tilewright.reports.run_list import RunList, run_files
from tilewright.reports.turn_view import Turns
from tilewright.reports.viewer_server import Viewer, exported, runs_page
from tilewright.scoring.headline import counted


@click.command("view")
@click.argument("run", metavar="RUN")
@number("--port", "Port of the page; 0: any free port.", 0, 65535, 0)
@option("--export", "FILE", "Write one page that works from disk, and exit.")
@switch("--json", "Print one document with a row for each turn, and exit.", "as_json")
def command(run: str, port: int, export: str | None, as_json: bool) -> int:
    """Show the turns of RUN: prompts, replies, code, verdicts and feedback.

    A run of eval is shown as its candidate. A folder of runs is shown as a list: state, best so
    far, cost. The page is served on this machine only, until an interrupt. New turns and runs
    appear on it.
    """
    folder = Path(run)
    if is_eval_run(folder):
        return _eval(folder, port, export, as_json=as_json)
    if not os.path.isfile(folder / EVENTS) and next(run_files(folder), None) is not None:
        return _list(folder, port, export, as_json=as_json)
    with Progress("view", now="reading the turns"):
        turns = Turns(folder)
    print_skipped(turns.skipped)
    if as_json:
        click.echo(json.dumps({"run": run, "turns": turns.rows}, indent=1))
        return 0
    # A search of 20,000 turns takes 20 s.
    with Progress("view", now="replaying the search"):
        turns.cells = _cells(folder)
    if export is not None:
        return _write(export, exported(turns), _content(turns))
    return _serve(Viewer(turns, port), f"{_content(turns)} of {run}")


def _eval(folder: Path, port: int, export: str | None, *, as_json: bool) -> int:
    """Show the candidate of a run of `eval`."""
    page = page_of_eval(folder)
    if as_json:
        found = read_eval_run(folder)
        verdict = found.turn.judgements[0].model_dump(mode="json")
        click.echo(json.dumps({"run": str(folder), "verdict": verdict}, indent=1))
        return 0
    if export is not None:
        return _write(export, page, "1 candidate")
    return _serve(Viewer(folder, port), f"the candidate of {folder}")


def _content(turns: Turns) -> str:
    """Return how much a page of a run has: the steps of a training on texts, else turns."""
    if turns.rows or not turns.steps():
        return counted(len(turns.rows), "turn")
    return counted(len(turns.steps()), "step")


def _write(export: str, page: str, what: str) -> int:
    with writing(f"--export {export}"):
        Path(export).write_text(page, encoding="utf-8")
    print_line(f"{what}; open {Path(export).resolve().as_uri()}")
    return 0


def _list(folder: Path, port: int, export: str | None, *, as_json: bool) -> int:
    """Show the runs of a folder."""
    runs = RunList(folder)
    if as_json or export is not None:
        runs.look()
    if as_json:
        click.echo(json.dumps({"folder": str(folder), "runs": runs.rows()}, indent=1))
        return 0
    if export is not None:
        page = runs_page(runs.rows(), folder, live=False)
        return _write(export, page, counted(len(runs.rows()), "run"))
    return _serve(Viewer(runs, port), f"runs in {folder}")


def _serve(viewer: Viewer, what: str) -> int:
    click.echo(viewer.url)
    print_line(f"{what}; interrupt to end")
    with viewer, contextlib.suppress(KeyboardInterrupt):
        viewer.serve_forever()
    return 0


def _cells(folder: Path) -> list[dict[str, Any]]:
    """Return the cells of the archives at the end of a search; none if it cannot be replayed."""
    if not (folder / "run.yaml").exists():
        return []
    try:
        settings = config.load(folder / "run.yaml", recorded=True)
        found = resume_session(folder, settings).strategy.cells()
    except TilewrightError:
        # An imported run, or one of another version: its turns are shown without an archive.
        return []
    return [{"sample": cell.sample, "place": cell.place, "id": cell.writer} for cell in found]
