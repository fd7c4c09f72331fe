"""`tilewright data family` and `data conversations`: programs of a family as training data."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright.cli import options
from tilewright.cli.options import choice, load_settings, number, option, repeated
from tilewright.cli.output import print_line
from tilewright.cli.progress import Progress, counting
from tilewright.errors import ConfigError, suggestion
from tilewright.families.nano.compositions import FAMILY
from tilewright.families.nano.program_text import canonical
from tilewright.loop.table_input import RowWriter
from tilewright.problems.candidates import read_files
from tilewright.problems.imported_sets import find_problems
from tilewright.rl.book_world import LiveEvaluator
from tilewright.rl.data import family_rows
from tilewright.rl.data.cold_start import ColdStartMix, cold_start
from tilewright.rl.synthetic_verdicts import synthetic_store
from tilewright.rl.verdict_census import (
    census_programs,
    judging_settings,
    store_key,
    take_census,
)
from tilewright.rl.verdict_store import SYNTHETIC, VerdictStore

TARGET_HELP = "FILE.jsonl, FILE.parquet, or a folder that `datasets.load_from_disk` reads."
EXTENT_HELP = "The programs that are judged first, or all of them."
VERDICTS_HELP = f"A store of verdicts, or `{SYNTHETIC}`: computed ones, for rehearsals."
MIX_HELP = (
    "A share of a plan in the first turn, or the rate `repair` or `regress` of the next ones."
)


@click.command("family")
@click.argument("name")
@option("--to", "FILE", TARGET_HELP, "target", required=True)
@choice("--extent", ("census", "space"), "census", EXTENT_HELP)
@options.JSON
def family(name: str, target: str, extent: family_rows.Extent, as_json: bool) -> int:
    """Write programs of the family NAME as rows: code, plan, slots, and a conversation.

    NAME is nano, nano/train, nano/held_out or one problem of it. The programs were not judged.
    """
    group, count = _group(name)
    with RowWriter(Path(target), family_rows.SHAPE) as rows, Progress("family") as progress:
        written = counting(progress, "family", "written")
        for row in family_rows.family_rows(group, extent):
            rows.write(row)
            written(rows.count)
    _say(as_json, target, rows.count, f"{rows.count} programs for {count} problems in {target}")
    return 0


@click.command("conversations")
@click.argument("name")
@option("--to", "FILE", TARGET_HELP, "target", required=True)
@option("--verdicts", "STORE", VERDICTS_HELP, "store", required=True)
@number("--count", "Conversations.", 1, 10_000_000, 1000)
@number("--turns", "Programs of a conversation.", 1, 100, 3)
@number("--seed", "Seed of the conversations.", 0, 2**63, 0)
@choice("--extent", ("census", "space"), "space", EXTENT_HELP)
@repeated("--mix", "NAME=SHARE", MIX_HELP, "changes")
@options.JSON
def conversations(
    name: str,
    target: str,
    store: str,
    count: int,
    turns: int,
    seed: int,
    changes: tuple[str, ...],
    **given: Any,  # noqa: ANN401 - the options above
) -> int:
    """Write conversations about programs of the family NAME, for `tilewright train sft`.

    A conversation shows a reference, a program, its feedback by a store of verdicts, and the next
    program: repaired, repeated or worse.
    """
    group, _ = _group(name)
    mix = _mix(changes)
    shape = {"id": "string", "problem": "string", "messages": family_rows.SHAPE["messages"]}
    with Progress("conversations", now="reading the verdicts") as progress:
        known = (
            synthetic_store(Path(SYNTHETIC), group)
            if store == SYNTHETIC
            else VerdictStore.read(Path(store))
        )
        counts = {"count": count, "turns": turns, "seed": seed}
        written = counting(progress, "conversations", "written")
        with RowWriter(Path(target), shape) as rows:
            for row in cold_start(group, known, mix, **counts, extent=given["extent"]):
                rows.write(row)
                written(rows.count)
    computed = " from synthetic verdicts" if known.key.is_synthetic else ""
    _say(given["as_json"], target, rows.count, f"{rows.count} conversations{computed} in {target}")
    return 0


@click.command("verdicts")
@click.argument("name")
@option(
    "--to", "STORE", "The store of verdicts, which is made or extended.", "target", required=True
)
@repeated(
    "--program", "FILE", "A program for the one problem NAME, in place of the census.", "files"
)
@number("--minutes", "Most minutes of this invocation.", 1, 10_000, 9)
@number("--workers", options.WORKERS_HELP, 1, 64, 1)
@options.DEVICE
@options.JSON
@options.SETTINGS
def verdicts(name: str, target: str, files: tuple[str, ...], minutes: int, **given: Any) -> int:  # noqa: ANN401 - the options
    """Evaluate programs of the family NAME, and store their verdicts for the world `book`.

    The programs are those of the census that the store lacks. Repeat the command until none is
    left. A correct program is evaluated twice.
    """
    _group(name)
    settings = load_settings(given)
    key, problems = store_key(settings), find_problems(name, settings.home)
    if files and len(problems) != 1:
        raise ConfigError(f"--program needs one problem, and {name} has {len(problems)}")
    codes = [canonical(_text_of(file)) for file in files]
    programs = [(problems[0], code) for code in codes] if codes else census_programs(problems)
    store = VerdictStore.read(Path(target), key)
    with Progress("verdicts") as progress, tempfile.TemporaryDirectory() as folder:
        judging, workers = judging_settings(settings, key), given["workers"]
        evaluator = LiveEvaluator(judging, Path(folder), progress, workers)
        until = time.monotonic() + 60 * minutes
        try:
            done = take_census(
                store,
                programs,
                evaluator,
                until=until,
                workers=workers,
                reached=progress.reached,
            )
        finally:
            evaluator.close()
    if given["as_json"]:
        click.echo(json.dumps({"target": target, **vars(done)}, indent=1))
    lost = f"; {done.unjudged} evaluations are unjudged" if done.unjudged else ""
    print_line(f"{done.evaluated} programs evaluated{lost}; {done.left} left; {target}")
    return 0


def _text_of(file: str) -> str:
    (source,) = read_files(file)
    return source.text


def _group(name: str) -> tuple[str, int]:
    """Return the group of a family by its address, and its number of problems."""
    problems = find_problems(name, config.load().home)
    if any(not problem.id.startswith(f"{FAMILY}/") for problem in problems):
        raise ConfigError(f"{name} is no family of programs; known: {FAMILY}")
    return name.partition("/")[2], len(problems)


def _mix(changes: tuple[str, ...]) -> ColdStartMix:
    """Return the mix with some shares changed, each given as NAME=SHARE."""
    known, given = [item.name for item in dataclasses.fields(ColdStartMix)], dict[str, float]()
    for change in changes:
        name, equals, value = change.partition("=")
        if name not in known:
            hint = suggestion(name, known) or f"known: {', '.join(known)}"
            raise ConfigError(f"--mix {change}: there is no share {name!r}; {hint}")
        try:
            given[name] = float(value) if equals else float("nan")
        except ValueError:
            raise ConfigError(f"--mix {change}: {value!r} is no number") from None
    return ColdStartMix(**given)


def _say(as_json: bool, target: str, count: int, text: str) -> None:
    if as_json:
        click.echo(json.dumps({"target": target, "rows": count}, indent=1))
    print_line(text)
