"""`tilewright data`: event logs as data sets, and data sets of others as event logs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright.cli.common import load_settings, out_option, settings_options
from tilewright.cli.lines import say
from tilewright.cli.progress import Progress
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.tables import read_rows
from tilewright.records.runs import create_run
from tilewright.rl.data import drkernel
from tilewright.rl.data.exports import (
    FORMATS,
    OF_TURNS,
    Choice,
    Exported,
    Plan,
    by_kind,
    export,
    held_out_path,
    matches_path,
)
from tilewright.rl.data.imports import import_rows

__all__ = ["command"]

MOST_NAMED = 20
EVERY = 1000


@click.group("data")
def command() -> None:
    """Data sets from runs, and runs from data sets."""


@command.command("export")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--to", "target", required=True, metavar="FILE", help="FILE.jsonl, FILE.parquet, or "
              "a folder that `datasets.load_from_disk` reads.")  # fmt: skip
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    default="turns",
    show_default=True,
    help="turns: a prompt and a reply each; sft: conversations with weights; rl: prompts with "
    "their problems; or a format of Dr. Kernel's data.",
)
@click.option("--verdict", "verdicts", multiple=True, help="Only such turns. Repeatable.")
@click.option("--min-speedup", "least", type=click.FloatRange(min=0.0), metavar="X",
              help="Only correct turns that are surely so fast.")  # fmt: skip
@click.option("--with-label", "labels", multiple=True, metavar="NAME",
              help="Only turns with this label or finding. Repeatable.")  # fmt: skip
@click.option("--without", multiple=True, metavar="NAME",
              help="No turns with this label or finding. Repeatable.")  # fmt: skip
@click.option("--dedupe", type=click.Choice(["off", "exact", "near"]), default="off",
              show_default=True, help="Leave out programs that came before.")  # fmt: skip
@click.option("--against", multiple=True, metavar="PROBLEMS",
              help="Leave out what holds problems of this benchmark. Repeatable.")  # fmt: skip
@click.option("--held-out", type=click.FloatRange(0.0, 1.0, max_open=True), default=0.0,
              metavar="SHARE", help="Put the rows of this share of the problems into "
              "FILE.held-out.")  # fmt: skip
@click.option("--split-seed", type=int, default=0, show_default=True,
              help="Which problems these are.")  # fmt: skip
@click.option("--language", metavar="NAME", help="In which candidates are to be written, for "
              "problems at an address. (loop.language)")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one document.")
@settings_options
def export_(sources: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - the options above
    """Write SOURCEs as rows to learn from.

    A SOURCE is a run; for the formats rl, drkernel-rl and drkernel-validation, which hold problems
    and no turns, also an address of problems.
    """
    settings = load_settings(
        given["file"], given["overrides"], {"loop.language": ("--language", given["language"])}
    )
    choice = Choice(given["verdicts"], given["least"], given["labels"], given["without"])
    if choice != Choice() and given["kind"] not in OF_TURNS:
        raise ConfigError(f"--format {given['kind']} holds problems; there is no turn to choose")
    plan = Plan(
        sources=sources,
        target=Path(given["target"]),
        format=given["kind"],
        choice=choice,
        dedupe=given["dedupe"],
        against=given["against"],
        held_out=given["held_out"],
        seed=given["split_seed"],
        language=settings.loop.language,
        home=settings.home,
    )
    named = _Named()
    with Progress("export") as progress:
        done = export(plan, named, _counting(progress, "export"))
    named.rest()
    if given["as_json"]:
        click.echo(json.dumps(_document(plan, done), indent=1))
    _summarise(plan, done)
    return 0


def _summarise(plan: Plan, done: Exported) -> None:
    said = {
        "not chosen": done.not_chosen,
        "repeated": done.repeated,
        "nearly repeated": done.nearly_repeated,
        "of a benchmark's problem": done.contaminated,
        "left out": done.left_out,
    }
    parts = ", ".join(f"{count} {what}" for what, count in said.items() if count)
    unit = "turns" if plan.format in OF_TURNS else "problems"
    say(f"{done.rows} rows in {plan.target}, of {done.turns} {unit}{'; ' if parts else ''}{parts}")
    if plan.held_out:
        say(f"{done.held_out} rows of held-out problems in {held_out_path(plan.target)}")
    if plan.against:
        found = ", ".join(f"{count} by {how}" for how, count in by_kind(done.matches).items())
        say(f"like a benchmark's problem: {found or 'none'}; see {matches_path(plan.target)}")


def _document(plan: Plan, done: Exported) -> dict[str, Any]:
    counts = {key: value for key, value in done.__dict__.items() if key != "matches"}
    rows = counts.pop("rows")
    held = counts.pop("held_out")
    return {
        "target": str(plan.target),
        "format": plan.format,
        "rows": rows,
        "held_out_rows": held,
        **counts,
        "matches": [match.__dict__ for match in done.matches],
    }


@command.command("import")
@click.argument("sources", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "kind",
    type=click.Choice(drkernel.FORMATS),
    default="drkernel-coldstart",
    show_default=True,
    help="Whose rows these are.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one document.")
@out_option
@settings_options
def import_(sources: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - the options above
    """Make a run of the rows in FILEs (parquet or JSON lines). Nothing of it is judged.

    A row that cannot be read is named by its file and place, and the rest goes on.
    """
    settings = load_settings(given["file"], given["overrides"], {"runs": ("--out", given["out"])})
    for source in sources:
        if not Path(source).is_file():
            raise ConfigError(f"{source}: no such file")
    folder, named = create_run(settings.runs, config.dump(settings)), _Named()
    with Progress("import") as progress:
        rows = _counted(sources, named, _counting(progress, "import"))
        name = ", ".join(Path(source).name for source in sources)
        done = import_rows(rows, folder, name, given["kind"], named)
    named.rest()
    if not done.rows:
        shutil.rmtree(folder, ignore_errors=True)
        raise RecordError(f"{name}: none of its rows is of the format {given['kind']}")
    if given["as_json"]:
        document = {"run": str(folder), "rows": done.rows, "turns": done.turns}
        click.echo(json.dumps({**document, "left_out": named.count}, indent=1))
    say(f"{done.rows} rows ({given['kind']}), {done.turns} turns, {named.count} left out")
    after = "view" if done.turns else "data export --format rl"
    say(f"run {folder}; next: tilewright {after} {folder}")
    return 0


def _counted(
    sources: tuple[str, ...], left_out: Callable[[str], None], count: Callable[[int], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    for source in sources:
        try:
            for item in read_rows(Path(source), left_out):
                number += 1
                count(number)
                yield item
        except RecordError as error:
            # One file that is damaged as a whole is no reason to read no other.
            left_out(str(error))


def _counting(progress: Progress, verb: str) -> Callable[[int], None]:
    def count(number: int) -> None:
        if number % EVERY == 0:
            progress.about(f"{verb}, {number} read")

    return count


class _Named:
    """Names what is left out, the first of them on stderr. Lifetime: one command."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, what: str) -> None:
        """Take in one of them."""
        self.count += 1
        if self.count <= MOST_NAMED:
            say(f"left out: {what}")

    def rest(self) -> None:
        """Say how many were not named."""
        if self.count > MOST_NAMED:
            say(f"left out: {self.count - MOST_NAMED} more")
