"""`tilewright demo`: evaluate the bundled candidates, honest ones and hacks."""

from __future__ import annotations

import importlib.util
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from tilewright import api, config
from tilewright.cli import options
from tilewright.cli.output import print_line
from tilewright.cli.progress import Progress
from tilewright.cli.render import Row, rows_table, short_reason, show, show_result, speed_of
from tilewright.cli.render_bench import turns_table
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.loop.policies.recorded import BUNDLED_RUN
from tilewright.problems.loader import BUNDLED
from tilewright.records import Unjudged
from tilewright.records.codes import UnjudgedReason
from tilewright.records.event_log import read_events, turns_of
from tilewright.records.events import RunStarted
from tilewright.records.run_folder import fresh_run, save

DEMO = BUNDLED / "demo"
QUICK = ("eval.timing.max_s=0.5", "eval.timing.min_blocks=10", "eval.timing.max_blocks=20")
"""Settings of a short demo. Its times are less exact than those of `tilewright eval`."""
_KEY = re.compile(r"^(?://)?\s*(problem|expect):\s*(.+?)\s*$")


@dataclass(frozen=True)
class Exhibit:
    """One candidate of the demo: its file, its problem and its expected verdicts."""

    path: Path
    problem: str
    expect: tuple[str, ...]
    name: str


def exhibits(folder: Path) -> list[Exhibit]:
    """Return the candidates in a folder, honest ones first."""
    found = []
    for path in [*folder.glob("*.py"), *folder.glob("*.cpp")]:
        lines = path.read_text(encoding="utf-8").splitlines()[:12]
        head = {match[1]: match[2] for match in map(_KEY.match, lines) if match is not None}
        if set(head) != {"problem", "expect"}:
            raise ConfigError(f"{path}: its header needs the keys `problem:` and `expect:`")
        expect = tuple(head["expect"].split(" or "))
        found.append(Exhibit(path, head["problem"], expect, path.stem))
    return sorted(found, key=lambda item: (item.expect != ("correct",), item.problem, item.name))


@click.command("demo")
@options.JSON
@options.OUT
@options.SETTINGS
@options.VERBOSE
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Evaluate the bundled candidates: honest ones, wrong ones and hacks.

    Exits with 0 if every verdict is the one that the candidate's header expects.
    """
    settings = options.load_settings(given, first=QUICK)
    options.ready_to_judge(settings)
    start = time.monotonic()
    rows, found = [], exhibits(DEMO)
    print_line(f"{len(found)} candidates: honest, wrong and cheating ones, a few seconds for each")
    with (
        fresh_run(settings.runs, config.dump(settings)) as folder,
        Progress(verbose=given["verbose"]) as progress,
    ):
        for number, exhibit in enumerate(found, start=1):
            progress.about(f"{number} of {len(found)}, {exhibit.name}")
            begin = time.monotonic()
            row = _judge_one(exhibit, settings, folder, progress)
            took = time.monotonic() - begin
            progress.note(f"{row.name} ({row.problem}): {row.verdict} in {took:.1f} s")
            rows.append(row)
    right = sum(row.as_expected is not False for row in rows)
    show_result(given["as_json"], [asdict(row) for row in rows], rows_table(rows))
    if not given["as_json"]:
        events = list(read_events(BUNDLED_RUN))
        begun = events[0]
        assert isinstance(begun, RunStarted)
        click.echo(f"\nA recorded optimisation of {begun.problems}: {begun.name}.")
        show(turns_table(turns_of(events)))
    took = time.monotonic() - start
    print_line(f"{right} of {len(rows)} verdicts are as expected, in {took:.0f} s")
    print_line("next: tilewright problems new my_operator   creates a problem of your own")
    print_line("next: tilewright optimize rmsnorm --model recorded:bundled   repeats that run here")
    wrong = [row.name for row in rows if row.verdict == "incorrect"]
    last = (wrong or [row.name for row in rows])[-1]
    print_line(f"run {folder}; next: tilewright explain {folder / last}")
    return 0 if right == len(rows) else 1


def _judge_one(exhibit: Exhibit, settings: Config, folder: Path, progress: Progress) -> Row:
    """Evaluate one candidate. An error of our own makes it unjudged, and the demo continues."""
    about = exhibit.name, exhibit.problem
    if exhibit.name.endswith("_triton") and importlib.util.find_spec("triton") is None:
        return Row(*about, "unjudged", "", "triton is not installed")
    try:
        request = api.build_request(exhibit.path, exhibit.problem, settings)
        report = api.evaluate_request(request, settings, progress)
    except InfrastructureError as error:
        why = str(error).partition("\n")[0]
        return Row(*about, "unjudged", "", why, as_expected=False)
    place = folder / exhibit.name
    place.mkdir()
    unsaved = save(place, report, settings.home)
    if unsaved is not None:
        raise ConfigError(unsaved)
    # A missing compiler is not unexpected.
    reason = report.outcome.reason if isinstance(report.outcome, Unjudged) else None
    expected = None if reason == UnjudgedReason.NO_COMPILER else report.verdict in exhibit.expect
    return Row(*about, report.verdict, speed_of(report), short_reason(report), expected)
