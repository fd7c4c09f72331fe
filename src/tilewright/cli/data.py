"""`tilewright data`: write event logs as data sets, and read data sets as event logs."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright.cli import options
from tilewright.cli.data_family import TARGET_HELP, conversations, family, verdicts
from tilewright.cli.options import choice, load_settings, option, repeated, switch
from tilewright.cli.output import Skipped, print_line
from tilewright.cli.progress import Progress, counting
from tilewright.cli.usage_errors import CommandGroup
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.table_input import read_rows
from tilewright.records.run_folder import create_run
from tilewright.rl.data import drkernel_rows, exports
from tilewright.rl.data.card import card_text, check_folder, write_card
from tilewright.rl.data.imports import import_rows

FORMAT_HELP = (
    "Of turns: turns (a prompt and a reply each) or sft (conversations with weights). Of problems: "
    "rl. Of searches: steps, step-sft, groups, actions, or contexts (parents of best steps, for "
    "data.contexts). The others are formats of Dr. Kernel's data."
)
SEED_HELP = "Seed that chooses those problems."


@click.group("data", cls=CommandGroup)
def command() -> None:
    """Convert runs to data sets, and data sets to runs."""


@command.command("export")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@option("--to", "FILE", TARGET_HELP, "target", required=True)
@switch("--card", "Make the FOLDER of --to a data set with a card, for datasets.load_dataset.")
@choice("--format", tuple(exports.FORMATS), "turns", FORMAT_HELP, "kind")
@repeated("--verdict", None, "Only turns with this verdict.", "verdicts")
@option(
    "--min-speedup",
    "X",
    "Only correct turns whose lower confidence bound reaches X.",
    "least",
    type=click.FloatRange(min=0.0),
)
@repeated("--include-label", "NAME", "Only turns with this label or finding.", "include_labels")
@repeated("--exclude-label", "NAME", "No turns with this label or finding.", "exclude_labels")
@choice("--dedupe", ("off", "exact", "near"), "off", "Skip programs that repeat earlier ones.")
@repeated("--decontaminate", "PROBLEMS", "Skip rows with problems of this benchmark.", "against")
@option(
    "--held-out",
    "SHARE",
    "Write the rows of this share of the problems to FILE.held-out.",
    type=click.FloatRange(0.0, 1.0, max_open=True),
    default=0.0,
)
@click.option("--split-seed", "seed", default=0, show_default=True, help=SEED_HELP)
@options.LANGUAGE
@options.JSON
@options.SETTINGS
def export_(sources: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - the options above
    """Write SOURCEs as rows of a data set.

    A SOURCE is a run. The formats rl, drkernel-rl and drkernel-validation hold problems and no
    turns; for them a SOURCE may also be an address of problems.
    """
    settings = load_settings(given)
    chosen = (given[name] for name in ("verdicts", "least", "include_labels", "exclude_labels"))
    selection = exports.Selection(*chosen)
    if selection != exports.Selection() and given["kind"] not in exports.OF_TURNS:
        form = f"--format {given['kind']}"
        raise ConfigError(f"{form} holds problems and no turns, so turns cannot be selected")
    folder = Path(given["target"])
    plan = exports.ExportPlan(
        sources=sources,
        target=check_folder(folder) if given["card"] else folder,
        card=given["card"],
        format=given["kind"],
        choice=selection,
        language=settings.loop.language,
        home=settings.home,
        **{name: given[name] for name in ("dedupe", "against", "held_out", "seed")},
    )
    named = Skipped()
    with Progress("export") as progress:
        done = exports.export(plan, named, counting(progress, "export", "read"))
    named.rest()
    if given["as_json"]:
        click.echo(json.dumps(_document(plan, done), indent=1))
    _summarise(plan, done)
    if plan.card:
        text = card_text(sources, done.verdicts, done.licences, _omitted(done))
        write_card(folder, text)
        print_line(f"nothing was uploaded; {folder}/README.md describes the data set")
    return 0


def _omitted(done: exports.Exported) -> dict[str, int]:
    return {
        "not chosen": done.not_chosen,
        "repeated": done.repeated,
        "nearly repeated": done.nearly_repeated,
        "of a benchmark's problem": done.contaminated,
        "left out": done.left_out,
    }


def _summarise(plan: exports.ExportPlan, done: exports.Exported) -> None:
    parts = ", ".join(f"{count} {what}" for what, count in _omitted(done).items() if count)
    unit = "turns" if plan.format in exports.OF_TURNS else "problems"
    rest = f"; {parts}" if parts else ""
    print_line(f"{done.rows} rows in {plan.target}, of {done.turns} {unit}{rest}")
    if plan.held_out:
        held_out = exports.held_out_path(plan.target)
        print_line(f"{done.held_out} rows of held-out problems in {held_out}")
    if plan.against:
        kinds = Counter(match.how for match in done.matches)
        found = ", ".join(f"{count} by {how}" for how, count in kinds.items())
        where = exports.matches_path(plan.target)
        print_line(f"like a benchmark's problem: {found or 'none'}; see {where}")


def _document(plan: exports.ExportPlan, done: exports.Exported) -> dict[str, Any]:
    counts = vars(done) | {"matches": [vars(match) for match in done.matches]}
    head = {"target": str(plan.target), "format": plan.format, "rows": counts.pop("rows")}
    return {**head, "held_out_rows": counts.pop("held_out"), **counts}


command.add_command(family)
command.add_command(conversations)
command.add_command(verdicts)


@command.command("import")
@click.argument("sources", nargs=-1, required=True, metavar="FILE...")
@choice("--format", drkernel_rows.FORMATS, "drkernel-coldstart", "Format of the rows.", "kind")
@options.JSON
@options.OUT
@options.SETTINGS
def import_(sources: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - the options above
    """Convert the rows in FILEs (parquet or JSON lines) to a run. Nothing is evaluated.

    A row that cannot be read is skipped and named by its file and position.
    """
    settings = load_settings(given)
    for source in sources:
        if not Path(source).is_file():
            raise ConfigError(f"{source}: no such file")
    folder, named = create_run(settings.runs, config.dump(settings)), Skipped()
    with Progress("import") as progress:
        rows = _counted(sources, named, counting(progress, "import", "read"))
        name = ", ".join(Path(source).name for source in sources)
        done = import_rows(rows, folder, name, given["kind"], named)
    named.rest()
    if not done.rows:
        shutil.rmtree(folder, ignore_errors=True)
        raise RecordError(f"{name}: none of its rows is of the format {given['kind']}")
    if given["as_json"]:
        document = {"run": str(folder), "rows": done.rows, "turns": done.turns}
        click.echo(json.dumps({**document, "left_out": named.count}, indent=1))
    print_line(f"{done.rows} rows ({given['kind']}), {done.turns} turns, {named.count} left out")
    after = "view" if done.turns else "data export --format rl"
    print_line(f"run {folder}; next: tilewright {after} {folder}")
    return 0


def _counted(
    sources: tuple[str, ...], left_out: Skipped, count: Callable[[int], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    numbers = itertools.count(1)
    for source in sources:
        try:
            for item in read_rows(Path(source), left_out):
                count(next(numbers))
                yield item
        except RecordError as error:
            # A file that is damaged as a whole is skipped like a row.
            left_out(str(error))
