"""`tilewright explain`: everything that a report holds, and a script that shows the failure."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click

from tilewright.api import judge
from tilewright.cli.common import load_settings, settings_options
from tilewright.cli.lines import say
from tilewright.cli.render import show
from tilewright.cli.render_explain import CheckSeen, explain_view, spread_of
from tilewright.cli.reproduce import failing_case, reproducer
from tilewright.config import Config
from tilewright.errors import ConfigError, RecordError
from tilewright.records import EvalReport
from tilewright.records.log import EVENTS
from tilewright.records.runs import read_report
from tilewright.registry import catalogue, load
from tilewright.scoring.advice import advice
from tilewright.scoring.roofline import Light, lights

__all__ = ["command"]

SCRIPT = "reproduce.py"


@click.command("explain")
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print one document instead of the tables.")
@click.option("--trace", is_flag=True, help="Run it once more on its GPU, and list its kernels.")
@settings_options
def command(
    run: str, as_json: bool, trace: bool, file: str | None, overrides: tuple[str, ...]
) -> int:
    """Explain the verdict in RUN, a run folder or a report file.

    Writes reproduce.py beside the report where a draw was wrong or the candidate failed: a script
    with the problem, the candidate and the seeds, which shows the same with plain torch.
    """
    settings = load_settings(file, overrides, {})
    path = Path(run)
    report = _read(path)
    if trace:
        report = _traced(report, settings)
    checks = _checks(report, settings.plugins)
    script, why_none = reproducer(report)
    written = _write(path if path.is_dir() else path.parent, script) if script else None
    if as_json:
        click.echo(json.dumps(_document(path, report, checks, written), indent=1))
    else:
        show(explain_view(report, checks, _about(report, written, script, why_none)))
    say(f"run {path}; next: {_next(path, written)}")
    return 0


def _read(path: Path) -> EvalReport:
    if (path / EVENTS).is_file():
        one = next(iter(sorted(path.glob("reports/*.json"))), path / "reports" / "NAME.json")
        raise RecordError(f"{path} is a run of many: explain one of its reports, such as {one}")
    try:
        return read_report(path)
    except RecordError as error:
        below = sorted(item.parent.name for item in path.glob("*/report.json"))
        if not below:
            raise
        raise RecordError(f"{path} holds several: explain one of {', '.join(below)}") from error


def _traced(report: EvalReport, settings: Config) -> EvalReport:
    """Return the report with the kernels of one call, from another evaluation without timing."""
    request = report.request
    if request.device == "cpu":
        raise ConfigError("--trace lists the kernels of a GPU; this was judged on the CPU")
    untimed = request.timing.model_copy(update={"enabled": False})
    again = request.model_copy(update={"trace": True, "timing": untimed, "seed": report.seed})
    say("running it once more under torch's profiler")
    return report.model_copy(update={"kernels": judge(again, settings).kernels})


def _checks(report: EvalReport, packages: tuple[str, ...] | None) -> list[CheckSeen]:
    """Return the installed checks with their findings, then findings of others."""
    seen = []
    for name in catalogue("checks", packages=packages):
        about = (type(load("checks", name, packages=packages)).__doc__ or "").strip()
        mine = tuple(item for item in report.findings if item.check == name)
        seen.append(CheckSeen(name=name, about=about.partition("\n")[0], findings=mine))
    names = {item.name for item in seen}
    for finding in report.findings:
        if finding.check not in names:
            seen.append(CheckSeen(name=finding.check, about="", findings=(finding,)))
    return seen


def _write(folder: Path, script: str) -> Path | None:
    path = folder / SCRIPT
    try:
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        say(f"{path} cannot be written: {error.strerror}")
        return None
    return path


def _about(report: EvalReport, written: Path | None, script: str, why_none: str) -> str:
    if not script:
        return f"None: {why_none}."
    if written is None:
        return "It could not be written beside the report."
    failing = failing_case(report)
    what = f"{failing.case}, {failing.contents}" if failing is not None else "the failure"
    return (
        f"It shows {what} with plain torch. It runs the candidate as you, without the wall.\n"
        f"python {written}"
    )


def _next(path: Path, written: Path | None) -> str:
    if written is not None:
        return f"python {written}"
    return f"tilewright eval --replay {path}"


def _light(item: Light) -> dict[str, Any]:
    names = [field.name for field in fields(Light) if field.name not in ("work", "comparison")]
    return {name: getattr(item, name) for name in names}


def _document(
    path: Path, report: EvalReport, checks: list[CheckSeen], written: Path | None
) -> dict[str, Any]:
    spreads = [spread_of(item) for item in report.comparisons]
    return {
        "run": str(path),
        "verdict": report.verdict,
        "report": report.model_dump(mode="json"),
        "checks": [
            {
                "name": check.name,
                "about": check.about,
                "findings": [item.model_dump(mode="json") for item in check.findings],
            }
            for check in checks
        ],
        "spreads": [asdict(item) for item in spreads if item is not None],
        "lights": [_light(item) for item in lights(report)],
        "advice": advice(report),
        "reproducer": None if written is None else str(written),
    }
