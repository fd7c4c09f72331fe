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

from tilewright import __version__
from tilewright.cli.common import (
    EXIT_CODES,
    fresh_run,
    load_settings,
    out_option,
    ready_to_judge,
    save,
    settings_options,
    usable_home,
)
from tilewright.cli.lines import complain, say
from tilewright.cli.progress import Progress
from tilewright.cli.render import report_view, show, speed_of
from tilewright.config import Config
from tilewright.errors import ConfigError, TilewrightError
from tilewright.executors.choose import device_model
from tilewright.records import EvalReport, EvalRequest
from tilewright.records.runs import read_report

__all__ = ["Asked", "Bar", "command", "parse_bar"]

POLL_S = 0.3
_BAR = re.compile(r"speedup\s*(>=|>)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*")


@dataclass(frozen=True)
class Bar:
    """A speed-up that must be reached, by the lower end of its interval."""

    text: str
    least: float
    strict: bool

    def met(self, low: float | None) -> bool:
        """Tell whether a lower end reaches the bar; without one nothing does."""
        if low is None:
            return False
        return low > self.least if self.strict else low >= self.least


def parse_bar(text: str) -> Bar:
    """Read `speedup>=X` or `speedup>X`.

    Raises:
        ConfigError: it is neither.
    """
    match = _BAR.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--require {text!r}: write speedup>=X or speedup>X, X a number above 0")
    least = float(match[2])
    if not 0 < least < math.inf:
        raise ConfigError(f"--require {text!r}: X must be above 0")
    return Bar(text=text.strip(), least=least, strict=match[1] == ">")


@dataclass(frozen=True)
class Asked:
    """The command line, as it was typed."""

    candidate: str | None
    problem: str | None
    language: str | None
    entry: str | None
    baselines: tuple[str, ...]
    protocol: str | None
    allow_imports: tuple[str, ...]
    watch: bool
    require: str | None
    device: str | None
    layers: tuple[str, ...]
    as_json: bool
    out: str | None
    file: str | None
    overrides: tuple[str, ...]
    reuse: bool
    replay: str | None
    verbose: bool

    def settings(self) -> Config:
        """Return the settings of this call.

        Raises:
            ConfigError: one of them is wrong.
        """
        return load_settings(
            self.file,
            self.overrides,
            {
                "eval.baselines": ("--baseline", self.baselines),
                "eval.protocol": ("--protocol", self.protocol),
                "eval.device": ("--device", self.device),
                "eval.require_layers": ("--require-layer", self.layers),
                "eval.reuse": ("--reuse", self.reuse),
                "runs": ("--out", self.out),
            },
        )

    def check(self) -> None:
        """Refuse flags that contradict each other.

        Raises:
            ConfigError: naming them.
        """
        if self.replay is not None:
            self._check_replay()
            return
        if self.candidate is None:
            raise ConfigError("name a candidate: a source file, a folder, or - for stdin")
        if self.problem is None:
            raise ConfigError("name a problem with --problem; `tilewright problems list` has some")
        if self.watch and self.candidate == "-":
            raise ConfigError("--watch and - contradict each other: stdin is never saved again")
        if self.watch and self.as_json:
            raise ConfigError("--watch and --json contradict each other: --json is one document")

    def _check_replay(self) -> None:
        given = {
            "CANDIDATE": self.candidate,
            "--problem": self.problem,
            "--language": self.language,
            "--entry": self.entry,
            "--baseline": self.baselines,
            "--protocol": self.protocol,
            "--allow-import": self.allow_imports,
            "--watch": self.watch,
            "--device": self.device,
            "--require-layer": self.layers,
            "--reuse": self.reuse,
        }
        given |= {f"--set {item}": True for item in self.overrides if item.startswith("eval.")}
        wrong = [name for name, value in given.items() if value]
        if wrong:
            raise ConfigError(
                f"--replay and {', '.join(wrong)} contradict each other: what is judged again is "
                "what the report holds"
            )


@click.command("eval")
@click.argument("candidate", required=False)
@click.option(
    "-p", "--problem", metavar="ADDRESS", help="A problem file, or the name of a bundled problem."
)
@click.option(
    "--language", metavar="NAME", help="Force the language; default: read from the source."
)
@click.option(
    "--entry", metavar="NAME", help="The exported name, if not ModelNew or the problem's."
)
@click.option(
    "--baseline",
    "baselines",
    metavar="NAME",
    multiple=True,
    help="What a speed-up is against: eager, compile, max-autotune, or another candidate's path. "
    "Repeatable; the first one is summed up. (eval.baselines)",
)
@click.option(
    "--protocol",
    type=click.Choice(["strict", "official"]),
    help="How to measure: ours, or the published rules of the benchmark. (eval.protocol)",
)
@click.option(
    "--allow-import",
    "allow_imports",
    metavar="DIR",
    multiple=True,
    help="A folder whose packages the candidate may import, mounted read-only. Repeatable.",
)
@click.option("--watch", is_flag=True, help="Judge again at each save, until Ctrl-C.")
@click.option(
    "--require",
    metavar="BAR",
    help="Exit with 1 unless speedup>=X (or speedup>X) holds for the lower end of the interval.",
)
@click.option("--device", metavar="NAME", help="Where candidates run: cpu or cuda. (eval.device)")
@click.option(
    "--require-layer",
    "layers",
    metavar="NAME",
    multiple=True,
    help="Judge nothing without this layer of the wall; `doctor` lists them. Repeatable. "
    "(eval.require_layers)",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as one document.")
@out_option
@settings_options
@click.option(
    "--reuse", is_flag=True, help="Answer identical work from the store of reports. (eval.reuse)"
)
@click.option(
    "--replay",
    metavar="REPORT",
    help="Judge again what a report (or its run folder) holds, on the same inputs.",
)
@click.option("-v", "--verbose", is_flag=True, help="Write every step to stderr.")
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Judge CANDIDATE (a file, a folder, or - for stdin) against a problem.

    Exits with 0 if it is correct, 1 if it is not or misses the bar of --require, 4 if unjudged.
    """
    asked = Asked(**given)
    asked.check()
    bar = None if asked.require is None else parse_bar(asked.require)
    settings = asked.settings()
    ready_to_judge(settings)
    if asked.replay is not None:
        return _replay(asked, settings, bar)
    _check_bar(bar, settings)
    if asked.watch:
        _watch(asked, settings, bar)
    return _judge(asked, settings, _request(asked, settings), bar)


def _request(asked: Asked, settings: Config) -> EvalRequest:
    """Build the request.

    Raises:
        ConfigError: the candidate or a baseline cannot be used.
        ProblemError: the problem cannot.
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
            allow_imports=asked.allow_imports,
        )
    except UnicodeDecodeError as error:
        raise ConfigError(f"{asked.candidate}: cannot be read as text: {error}") from error


def _check_bar(bar: Bar | None, settings: Config) -> None:
    if bar is None:
        return
    if settings.eval.protocol == "official":
        raise ConfigError(
            "--require and --protocol official contradict each other: the published rules give "
            "a speed-up no interval"
        )
    if not settings.eval.timing.enabled:
        raise ConfigError("--require and eval.timing.enabled=false contradict each other")


def _judge(asked: Asked, settings: Config, request: EvalRequest, bar: Bar | None) -> int:
    """Judge, show and write; return the exit code."""
    from tilewright.api import judge

    usable_home(settings)
    with fresh_run(settings) as folder:
        with Progress(verbose=asked.verbose) as progress:
            report = judge(request, settings, progress)
        trouble = save(folder, report, settings.home)
    if asked.as_json:
        click.echo(report.to_json(indent=1))
    else:
        show(report_view(report))
    if settings.eval.reuse and progress.events == 0:
        say("answered from the store: the same work was judged before (--reuse)")
    code = EXIT_CODES[report.verdict]
    if bar is not None and code == 0 and not bar.met(report.speedup_low):
        say(f"--require {bar.text!r} is missed: {_lower_end(report)}")
        code = 1
    if trouble is not None:
        raise ConfigError(trouble)
    say(f"run {folder}; next: tilewright explain {folder}")
    return code


def _lower_end(report: EvalReport) -> str:
    if report.speedup_low is None:
        return f"no speed-up was measured ({speed_of(report)})"
    return f"the lower end of the interval is {report.speedup_low:.4g}"


def _replay(asked: Asked, settings: Config, bar: Bar | None) -> int:
    """Judge a report's request again under its seed.

    Raises:
        RecordError: there is no such report.
    """
    recorded = read_report(Path(asked.replay or ""))
    request = recorded.request.model_copy(update={"seed": recorded.seed})
    section = settings.eval.model_copy(
        update={
            "reuse": False,
            "protocol": request.protocol,
            "device": request.device,
            "require_layers": request.require_layers,
            "rules": request.rules,
            "timing": request.timing,
            "limits": request.limits,
        }
    )
    settings = settings.model_copy(update={"eval": section})
    _check_bar(bar, settings)
    device_model(settings, request.device)
    if recorded.evaluator != __version__:
        say(f"recorded by tilewright {recorded.evaluator}, replayed by {__version__}")
    say(f"replaying seed {recorded.seed}; the recorded verdict is {recorded.verdict}")
    return _judge(asked, settings, request, bar)


def _watch(asked: Asked, settings: Config, bar: Bar | None) -> NoReturn:
    """Judge at each save; only an interrupt ends it."""
    where = Path(asked.candidate or "")
    places = [where, *(Path(path) for path in (asked.problem or "",) if Path(path).exists())]
    if not where.exists():
        raise ConfigError(f"{where}: no such file; --watch waits for saves, not for files to come")
    while True:
        before = saved(places)
        try:
            _judge(asked, settings, _request(asked, settings), bar)
        except TilewrightError as error:
            complain(str(error))
        say(f"watching {where}; save it to judge again, Ctrl-C ends")
        wait_for_save(before, lambda: saved(places))


def wait_for_save(
    before: dict[str, tuple[int, int]], look: Callable[[], dict[str, tuple[int, int]]]
) -> None:
    """Return once the files differ from `before` and have been left alone for one poll."""
    last = look()
    while True:
        if last and last != before:
            time.sleep(POLL_S)
            now = look()
            if now == last:
                return
            last = now
        else:
            time.sleep(POLL_S)
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
