"""`tilewright eval`: judge one candidate."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from tilewright._version import __version__
from tilewright.cli.options import load_settings, out_option, ready_to_judge, settings_options
from tilewright.cli.output import print_error, print_line
from tilewright.cli.progress import Progress
from tilewright.cli.renamed_options import RenamingCommand
from tilewright.cli.render import report_view, show, speed_of
from tilewright.cli.run_output import EXIT_CODES, fresh_run, save, usable_home
from tilewright.config import Config
from tilewright.errors import ConfigError, TilewrightError
from tilewright.executors.factory import device_model
from tilewright.records import EvalReport, EvalRequest
from tilewright.records.run_folder import read_report

__all__ = ["Asked", "Bar", "command", "parse_bar"]

POLL_INTERVAL_S = 0.3
"""Seconds between two looks at the files that --watch watches."""
_BAR = re.compile(r"(?:speedup\s*(?=>))?(>=|>|)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*")


@dataclass(frozen=True)
class Bar:
    """A speed-up that the lower end of the interval must reach."""

    text: str
    least: float
    strict: bool

    def met(self, low: float | None) -> bool:
        """Tell whether a lower end reaches the required speed-up; `None` never does."""
        if low is None:
            return False
        return low > self.least if self.strict else low >= self.least


def parse_bar(text: str) -> Bar:
    """Read `X`, `>=X` or `>X`, also with `speedup` before it.

    Raises:
        ConfigError: it is none of these.
    """
    match = _BAR.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            f"--min-speedup {text!r}: write X, '>=X' or '>X', with a number X above 0"
        )
    least = float(match[2])
    if not 0 < least < math.inf:
        raise ConfigError(f"--min-speedup {text!r}: X must be above 0")
    return Bar(text=text.strip(), least=least, strict=match[1] == ">")


@dataclass(frozen=True)
class Asked:
    """The arguments of the command line."""

    candidate: str | None
    problem: str | None
    language: str | None
    entry: str | None
    baselines: tuple[str, ...]
    protocol: str | None
    python_paths: tuple[str, ...]
    watch: bool
    min_speedup: str | None
    device: str | None
    require_isolation: tuple[str, ...]
    as_json: bool
    out: str | None
    file: str | None
    overrides: tuple[str, ...]
    reuse: bool
    from_report: str | None
    verbose: bool

    def settings(self) -> Config:
        """Return the settings of this invocation.

        Raises:
            ConfigError: a setting is wrong.
        """
        return load_settings(
            self.file,
            self.overrides,
            {
                "eval.baselines": ("--baseline", self.baselines),
                "eval.protocol": ("--protocol", self.protocol),
                "eval.device": ("--device", self.device),
                "eval.require_isolation": ("--require-isolation", self.require_isolation),
                "eval.reuse": ("--reuse", self.reuse),
                "runs": ("--out", self.out),
            },
        )

    def check(self) -> None:
        """Refuse flags that contradict each other.

        Raises:
            ConfigError: naming them.
        """
        if self.from_report is not None:
            self._check_from_report()
            return
        if self.candidate is None:
            raise ConfigError("name a candidate: a source file, a folder, or - for stdin")
        if self.problem is None:
            raise ConfigError("name a problem with --problem; `tilewright problems list` has some")
        if self.watch and self.candidate == "-":
            raise ConfigError("--watch and - contradict each other: stdin is never saved again")
        if self.watch and self.as_json:
            raise ConfigError("--watch and --json contradict each other: --json is one document")

    def _check_from_report(self) -> None:
        given = {
            "CANDIDATE": self.candidate,
            "--problem": self.problem,
            "--language": self.language,
            "--entry": self.entry,
            "--baseline": self.baselines,
            "--protocol": self.protocol,
            "--python-path": self.python_paths,
            "--watch": self.watch,
            "--device": self.device,
            "--require-isolation": self.require_isolation,
            "--reuse": self.reuse,
        }
        given |= {f"--set {item}": True for item in self.overrides if item.startswith("eval.")}
        wrong = [name for name, value in given.items() if value]
        if wrong:
            raise ConfigError(
                f"--from-report and {', '.join(wrong)} contradict each other: the report "
                "holds everything that is evaluated again"
            )


@click.command("eval", cls=RenamingCommand, verb="eval")
@click.argument("candidate", required=False)
@click.option(
    "-p", "--problem", metavar="ADDRESS", help="A problem file, or the name of a bundled problem."
)
@click.option(
    "--language",
    metavar="NAME",
    help="Language of the candidate; default: detected from the source.",
)
@click.option(
    "--entry",
    metavar="NAME",
    help="Exported name of the candidate; default: ModelNew or the problem's.",
)
@click.option(
    "--baseline",
    "baselines",
    metavar="NAME",
    multiple=True,
    help="Baseline of the speed-up: eager, compile, max-autotune, or the path of a candidate. "
    "Repeatable; the summary uses the first one. (eval.baselines)",
)
@click.option(
    "--protocol",
    type=click.Choice(["strict", "official"]),
    help="Rules of measurement: ours, or those that the benchmark published. (eval.protocol)",
)
@click.option(
    "--python-path",
    "python_paths",
    metavar="DIR",
    multiple=True,
    help="Folder of packages that the candidate may import, mounted read-only. Repeatable.",
)
@click.option(
    "--watch", is_flag=True, help="Evaluate again whenever a file is saved, until Ctrl-C."
)
@click.option(
    "--min-speedup",
    metavar="X",
    help="Exit with 1 unless the lower end of the interval is at least X (or above X: '>X').",
)
@click.option(
    "--device", metavar="NAME", help="Device that runs the candidate: cpu or cuda. (eval.device)"
)
@click.option(
    "--require-isolation",
    metavar="NAME",
    multiple=True,
    help="Isolation layer that must be active; `doctor` lists them. Repeatable. "
    "(eval.require_isolation)",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as one document.")
@out_option
@settings_options
@click.option(
    "--reuse", is_flag=True, help="Return the stored report of an identical request. (eval.reuse)"
)
@click.option(
    "--from-report",
    metavar="REPORT",
    help="Evaluate the request of a report (or run folder) again, on the same inputs.",
)
@click.option("-v", "--verbose", is_flag=True, help="Write every step to stderr.")
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Judge CANDIDATE (a file, a folder, or - for stdin) against a problem.

    Exits with 0 if CANDIDATE is correct, with 4 if it is unjudged, else with 1. It also exits with
    1 if the speed-up is below --min-speedup.
    """
    asked = Asked(**given)
    asked.check()
    bar = None if asked.min_speedup is None else parse_bar(asked.min_speedup)
    settings = asked.settings()
    ready_to_judge(settings)
    if asked.from_report is not None:
        return _judge_again(asked, settings, bar)
    _check_bar(bar, settings)
    if asked.watch:
        _watch(asked, settings, bar)
    return _judge(asked, settings, _request(asked, settings), bar)


def _request(asked: Asked, settings: Config) -> EvalRequest:
    """Build the request.

    Raises:
        ConfigError: the candidate or a baseline cannot be used.
        ProblemError: the problem cannot be used.
    """
    from tilewright.api import build_request

    device_model(settings, settings.eval.device)
    try:
        return build_request(
            asked.candidate or "",
            asked.problem or "",
            settings,
            language=asked.language,
            entry=asked.entry,
            allow_imports=asked.python_paths,
        )
    except UnicodeDecodeError as error:
        raise ConfigError(f"{asked.candidate}: cannot be read as text: {error}") from error


def _check_bar(bar: Bar | None, settings: Config) -> None:
    if bar is None:
        return
    if settings.eval.protocol == "official":
        raise ConfigError(
            "--min-speedup and --protocol official contradict each other: the published rules "
            "give no interval"
        )
    if not settings.eval.timing.enabled:
        raise ConfigError("--min-speedup and eval.timing.enabled=false contradict each other")


def _judge(asked: Asked, settings: Config, request: EvalRequest, bar: Bar | None) -> int:
    """Judge, show and write; return the exit code."""
    from tilewright.api import evaluate_request

    usable_home(settings)
    with fresh_run(settings) as folder:
        with Progress(verbose=asked.verbose) as progress:
            report = evaluate_request(request, settings, progress)
        trouble = save(folder, report, settings.home)
    if asked.as_json:
        click.echo(report.to_json(indent=1))
    else:
        show(report_view(report))
    if settings.eval.reuse and progress.events == 0:
        print_line("answered from the store: an identical request was evaluated before (--reuse)")
    code = EXIT_CODES[report.verdict]
    if bar is not None and code == 0 and not bar.met(report.speedup_low):
        print_line(f"--min-speedup {bar.text!r} is missed: {_lower_end(report)}")
        code = 1
    if trouble is not None:
        raise ConfigError(trouble)
    print_line(f"run {folder}; next: tilewright explain {folder}")
    return code


def _lower_end(report: EvalReport) -> str:
    if report.speedup_low is None:
        return f"no speed-up was measured ({speed_of(report)})"
    return f"the lower end of the interval is {report.speedup_low:.4g}"


def _judge_again(asked: Asked, settings: Config, bar: Bar | None) -> int:
    """Evaluate the request of a report again, under its seed.

    Raises:
        RecordError: there is no such report.
    """
    recorded = read_report(Path(asked.from_report or ""))
    request = recorded.request.model_copy(update={"seed": recorded.seed})
    section = settings.eval.model_copy(
        update={
            "reuse": False,
            "protocol": request.protocol,
            "device": request.device,
            "require_isolation": request.require_isolation,
            "rules": request.rules,
            "timing": request.timing,
            "limits": request.limits,
        }
    )
    settings = settings.model_copy(update={"eval": section})
    _check_bar(bar, settings)
    device_model(settings, request.device)
    if recorded.evaluator != __version__:
        print_line(f"recorded by tilewright {recorded.evaluator}, evaluated again by {__version__}")
    print_line(f"seed {recorded.seed}; the recorded verdict is {recorded.verdict}")
    return _judge(asked, settings, request, bar)


def _watch(asked: Asked, settings: Config, bar: Bar | None) -> NoReturn:
    """Evaluate after each save, until an interrupt."""
    where = Path(asked.candidate or "")
    places = [where, *(Path(path) for path in (asked.problem or "",) if Path(path).exists())]
    if not where.exists():
        raise ConfigError(f"{where}: no such file; --watch needs a file that exists")
    while True:
        before = saved(places)
        try:
            _judge(asked, settings, _request(asked, settings), bar)
        except TilewrightError as error:
            print_error(str(error))
        print_line(f"watching {where}; save it to evaluate it again, Ctrl-C to end")
        wait_for_change(before, lambda: saved(places))


def wait_for_change(
    before: dict[str, tuple[int, int]], look: Callable[[], dict[str, tuple[int, int]]]
) -> None:
    """Return once the files differ from `before` and have been left alone for one poll."""
    last = look()
    while True:
        if last and last != before:
            time.sleep(POLL_INTERVAL_S)
            now = look()
            if now == last:
                return
            last = now
        else:
            time.sleep(POLL_INTERVAL_S)
            last = look()


def saved(places: list[Path]) -> dict[str, tuple[int, int]]:
    """Return time and size of every file at or below `places`; those that vanish are left out."""
    found = {}
    for place in places:
        files = [place] if not place.is_dir() else sorted(place.rglob("*"))
        for file in files:
            try:
                status = file.stat()
            except OSError:
                continue
            if file.is_file() and "__pycache__" not in file.parts:
                found[str(file)] = (status.st_mtime_ns, status.st_size)
    return found
