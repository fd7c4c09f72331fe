"""`tilewright eval`: judge one candidate."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from tilewright import api, config
from tilewright._version import __version__
from tilewright.cli import options
from tilewright.cli.options import load_settings, option, repeated, setting, switch
from tilewright.cli.output import print_error, print_line, printable
from tilewright.cli.progress import Progress
from tilewright.cli.render import report_view, show_result, speed_of
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, TilewrightError, reason_of
from tilewright.executors.factory import device_model
from tilewright.languages.detect import MissingEntry, find_entry
from tilewright.records import EvalReport, EvalRequest, Failed
from tilewright.records.codes import FailureReason
from tilewright.records.run_folder import fresh_run, read_report, save
from tilewright.scoring.report_text import known

PATHS_HELP = "Folder of packages that the candidate may import, mounted read-only."
BAR_HELP = "Exit with 1 unless the lower end of the interval is at least X (or above X: '>X')."
AGAIN_HELP = "Evaluate the request of a report (or run folder) again, on the same inputs."
POLL_INTERVAL_S = 0.3
"""Seconds between two looks at the files that --watch watches."""
OF_THE_REPORT = (
    *("candidate", "problem", "language", "entry", "baselines", "protocol", "python_paths"),
    *("watch", "device", "require_isolation", "reuse"),
)
"""Options that --from-report replaces by the content of the report."""
Files = dict[str, tuple[int, int]]
"""The time of the last change and the size of each file."""
_BAR = re.compile(r"(?:speedup\s*(?=>))?(>=|>|)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*")


@dataclass(frozen=True)
class Bar:
    """A speed-up that the lower end of the interval must reach."""

    text: str
    least: float
    strict: bool

    def met(self, low: float | None) -> bool:
        """Tell whether a lower end reaches the required speed-up; `None` never does."""
        return low is not None and (low > self.least or (low == self.least and not self.strict))


def parse_bar(text: str) -> Bar:
    """Read `X`, `>=X` or `>X`, also with `speedup` before it."""
    match = _BAR.fullmatch(text.strip())
    least = float(match[2]) if match is not None else 0.0
    if match is None or not 0 < least < math.inf:
        form = "write X, '>=X' or '>X', with a number X above 0"
        raise ConfigError(f"--min-speedup {text!r}: {form}")
    return Bar(text=text.strip(), least=least, strict=match[1] == ">")


def _check(given: dict[str, Any]) -> None:
    """Refuse options that contradict each other, or that lack one."""
    if given["from_report"] is not None:
        fixed = [f"--set {item}" for item in given["overrides"] if item.startswith("eval.")]
        params = click.get_current_context().command.params
        flags = {p.name: p.opts[0] if isinstance(p, click.Option) else "CANDIDATE" for p in params}
        wrong = [*(flags[name] for name in OF_THE_REPORT if given[name]), *fixed]
        if wrong:
            raise ConfigError(
                f"--from-report and {', '.join(wrong)} contradict each other: the report "
                "holds everything that is evaluated again"
            )
    elif given["candidate"] is None:
        raise ConfigError("name a candidate: a source file, a folder, or - for stdin")
    elif given["problem"] is None:
        raise ConfigError("name a problem with --problem; `tilewright problems list` shows some")
    elif given["watch"] and given["candidate"] == "-":
        raise ConfigError("--watch and - contradict each other: stdin is never saved again")
    elif given["watch"] and given["as_json"]:
        raise ConfigError("--watch and --json contradict each other: --json is one document")


@click.command("eval")
@click.argument("candidate", required=False)
@options.PROBLEM
@option("--language", "NAME", "Language of the candidate; default: detected from the source.")
@option("--entry", "NAME", "Exported name of the candidate; default: ModelNew or the problem's.")
@setting(
    "--baseline",
    "eval.baselines",
    "Baseline of the speed-up: eager, compile, max-autotune, or the path of a candidate. "
    "Repeatable; the summary uses the first one.",
    "baselines",
    metavar="NAME",
    multiple=True,
)
@setting(
    "--protocol",
    "eval.protocol",
    "Rules of measurement: ours, or those that the benchmark published.",
    type=options.OneOf(["strict", "official"]),
)
@repeated("--python-path", "DIR", PATHS_HELP, "python_paths")
@switch("--watch", "Evaluate again whenever a file is saved, until Ctrl-C.")
@option("--min-speedup", "X", BAR_HELP)
@setting("--device", "eval.device", "Device that runs the candidate: cpu or cuda.", metavar="NAME")
@setting(
    "--require-isolation",
    "eval.require_isolation",
    "Isolation layer that must be active; `doctor` lists them. Repeatable.",
    metavar="NAME",
    multiple=True,
)
@options.JSON
@options.OUT
@options.HOST
@options.SETTINGS
@setting("--reuse", "eval.reuse", "Return the stored report of an identical request.", is_flag=True)
@option("--from-report", "REPORT", AGAIN_HELP)
@options.VERBOSE
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Judge CANDIDATE (a file, a folder, or - for stdin) against a problem.

    Exits with 0 if CANDIDATE is correct, with 4 if it is unjudged, else with 1. It also exits with
    1 if the speed-up is below --min-speedup.
    """
    _check(given)
    bar = None if given["min_speedup"] is None else parse_bar(given["min_speedup"])
    settings = load_settings(given)
    options.ready_to_judge(settings)
    if given["from_report"] is not None:
        return _judge_again(given, settings, bar)
    _check_bar(bar, settings)
    if given["watch"]:
        _watch(given, settings, bar)
    return _judge(given, settings, _request(given, settings), bar)[0]


def _request(given: dict[str, Any], settings: Config) -> EvalRequest:
    device_model(settings, settings.eval.device)
    try:
        return api.build_request(
            given["candidate"],
            given["problem"],
            settings,
            language=given["language"],
            entry=given["entry"],
            allow_imports=given["python_paths"],
        )
    except UnicodeDecodeError as error:
        raise ConfigError(f"{given['candidate']}: {reason_of(error)}") from error


def _check_bar(bar: Bar | None, settings: Config) -> None:
    official, timed = settings.eval.protocol == "official", settings.eval.timing.enabled
    if bar is not None and (official or not timed):
        what = "--protocol official" if official else "eval.timing.enabled=false"
        why = "the published rules give no interval" if official else "nothing is timed"
        raise ConfigError(f"--min-speedup and {what} contradict each other: {why}")


def _judge(
    given: dict[str, Any], settings: Config, request: EvalRequest, bar: Bar | None
) -> tuple[int, EvalReport]:
    """Evaluate and show a candidate; return the exit code and the report."""
    with fresh_run(settings.runs, config.dump(settings)) as folder:
        with Progress(verbose=given["verbose"]) as progress:
            report = api.evaluate_request(request, settings, progress)
        error = save(folder, report, settings.home)
    show_result(given["as_json"], report.model_dump(mode="json"), report_view(report))
    if settings.eval.reuse and progress.events == 0:
        print_line("answered from the store: an identical request was evaluated before (--reuse)")
    if name := _other_entry(report):
        print_line(f"or evaluate another name of it: --entry {name}")
    code = {"correct": 0, "unjudged": InfrastructureError.exit_code}.get(report.verdict, 1)
    if bar is not None and code == 0 and not bar.met(report.speedup_low):
        lower_end = known("the lower end of the interval is {:.4g}", report.speedup_low)
        lower_end = lower_end or f"no speed-up was measured ({speed_of(report)})"
        print_line(f"--min-speedup {bar.text!r} is missed: {lower_end}")
        code = 1
    if error is not None:
        raise ConfigError(error)
    print_line(f"run {folder}; next: tilewright explain {folder}")
    return code, report


def _other_entry(report: EvalReport) -> str:
    """Return a name that a candidate without its entry point defines; empty if there is none."""
    outcome, given, problem = report.outcome, report.request.candidate, report.request.problem
    if not isinstance(outcome, Failed) or outcome.reason != FailureReason.MISSING_ENTRY:
        return ""
    found = find_entry(given.files, problem.entry, given.entry)
    return found.defined[0] if isinstance(found, MissingEntry) and found.defined else ""


def _judge_again(given: dict[str, Any], settings: Config, bar: Bar | None) -> int:
    recorded = read_report(Path(given["from_report"]))
    request = recorded.request.model_copy(update={"seed": recorded.seed})
    kept = ("protocol", "device", "require_isolation", "rules", "timing", "limits")
    fields = {name: getattr(request, name) for name in kept}
    settings = settings.with_eval(reuse=False, **fields)
    _check_bar(bar, settings)
    device_model(settings, request.device)
    if recorded.evaluator != __version__:
        print_line(f"recorded by tilewright {recorded.evaluator}, evaluated again by {__version__}")
    print_line(f"seed {recorded.seed}; the recorded verdict is {recorded.verdict}")
    return _judge(given, settings, request, bar)[0]


def _watch(given: dict[str, Any], settings: Config, bar: Bar | None) -> NoReturn:
    # It imports the state of searches, which takes longer than the rest of this module.
    from tilewright.reports.run_comparison import change_text

    where, problem = Path(given["candidate"]), Path(given["problem"])
    places = [where, problem] if problem.exists() else [where]
    if not where.exists():
        raise ConfigError(f"{where}: no such file; --watch needs a file that exists")
    last: EvalReport | None = None
    while True:
        before = saved(places)
        try:
            _, report = _judge(given, settings, _request(given, settings), bar)
            if last is not None:
                print_line(printable(change_text(last, report)))
            last = report
        except TilewrightError as error:
            print_error(str(error))
        print_line(f"watching {where}; save it to evaluate it again, Ctrl-C to end")
        wait_for_change(before, lambda: saved(places))


def wait_for_change(before: Files, look: Callable[[], Files]) -> None:
    """Return once the files differ from `before` and have been left alone for one poll."""
    last: Files = {}
    while not (now := look()) or now == before or now != last:
        last = now
        time.sleep(POLL_INTERVAL_S)


def saved(places: list[Path]) -> Files:
    """Return the files at or below `places`, without those that vanish meanwhile."""
    found = {}
    for place in places:
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            with contextlib.suppress(OSError):
                status = file.stat()
                if file.is_file() and "__pycache__" not in file.parts:
                    found[str(file)] = (status.st_mtime_ns, status.st_size)
    return found
