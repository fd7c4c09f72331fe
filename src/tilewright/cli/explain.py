"""`tilewright explain`: three answers about a report, and a script that reproduces a failure."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tilewright.api import evaluate_request
from tilewright.cli.options import JSON, SETTINGS, load_settings, switch
from tilewright.cli.output import print_line
from tilewright.cli.render import show_result
from tilewright.cli.render_answers import answers_view
from tilewright.cli.render_explain import CheckSeen, explain_view, spread_of
from tilewright.cli.report_address import report_path
from tilewright.config import Config
from tilewright.errors import ConfigError, RecordError
from tilewright.records import CaseResult, EvalReport
from tilewright.records.codes import FailureReason
from tilewright.records.run_folder import read_report
from tilewright.registry import catalogue, load
from tilewright.reports.glossary import terms_of
from tilewright.scoring.bottlenecks import advice
from tilewright.scoring.roofline import roofline_points

OF_THE_REPORT = ("work", "comparison")
"""Fields of a roofline point that the report holds already."""


@click.command("explain")
@click.argument("run")
@JSON
@switch("--full", "Show everything: stages, input samples, checks, isolation and more.")
@switch("--profile", "Run the candidate once more on its GPU, and list its kernels.")
@SETTINGS
def command(run: str, as_json: bool, full: bool, profile: bool, **given: Any) -> int:  # noqa: ANN401 - the options
    """Explain the verdict in RUN, a run folder or a report file.

    RUN/PROBLEM#SAMPLE names a candidate of a run with several, as its pages do.

    It answers what the verdict is and why, how fast the candidate is and how sure that is, and what
    limits it.

    If the candidate was incorrect or failed, reproduce.py is written to the folder of the report.
    That script holds the problem, the candidate and the seeds, and needs only torch.
    """
    # Imported late: it loads the evaluator, for which `tilewright --help` need not wait.
    from tilewright.cli.reproduce import failing_case, reproducer

    settings = load_settings(given)
    path = report_path(run)
    report = _read(path)
    if profile:
        report = _traced(report, settings)
    checks = _checks(report, settings.plugins)
    missing: ConfigError | None = None
    try:
        script, why_none = reproducer(report)
    except ConfigError as error:
        # The report can be read without jinja2; only the script is missing.
        script, why_none, missing = "", str(error), error
    written = _write(path if path.is_dir() else path.parent, script) if script else None
    about = _about(failing_case(report), written, script, why_none)
    # A profile lists kernels, which the short view leaves out.
    in_full = full or profile
    view = explain_view(report, checks, about) if in_full else answers_view(report, about)
    show_result(as_json, _document(path, report, checks, written), view)
    if missing is not None:
        raise missing
    # The script runs without a sandbox: the next command must not start a hostile program.
    harmless = written is not None and not _is_forgery(report)
    again = f"python {written}" if harmless else f"tilewright eval --from-report {path}"
    print_line(f"run {path}; next: {again}")
    return 0


def _is_forgery(report: EvalReport) -> bool:
    code = getattr(report.outcome, "reason", None)
    return code == FailureReason.PROTOCOL_VIOLATION


def _read(path: Path) -> EvalReport:
    try:
        return read_report(path)
    except RecordError as error:
        if not os.path.isdir(path):
            raise
        below = sorted(item.parent.name for item in path.glob("*/report.json"))
        if not below:
            raise
        names = ", ".join(below)
        raise RecordError(f"{path} holds several runs: explain one of {names}") from error


def _traced(report: EvalReport, settings: Config) -> EvalReport:
    """Return the report with the kernels of one call, from another evaluation without timing."""
    request = report.request
    if request.device == "cpu":
        raise ConfigError("--profile lists a GPU's kernels, and this evaluation ran on the CPU")
    untimed = request.timing.model_copy(update={"enabled": False})
    again = request.model_copy(update={"trace": True, "timing": untimed, "seed": report.seed})
    print_line("running the candidate once more under torch's profiler")
    return report.model_copy(update={"kernels": evaluate_request(again, settings).kernels})


def _checks(report: EvalReport, packages: tuple[str, ...] | None) -> list[CheckSeen]:
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
    path = folder / "reproduce.py"
    try:
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        print_line(f"{path} cannot be written: {error.strerror}")
        return None
    return path


def _about(failing: CaseResult | None, written: Path | None, script: str, why_none: str) -> str:
    if written is None:
        unwritten = "The script could not be written to the folder of the report."
        return unwritten if script else f"None: {why_none}."
    what = f"{failing.case}, {failing.input_variation}" if failing is not None else "the failure"
    about = f"It shows {what} with plain torch. It runs the candidate as you, without a sandbox."
    return f"{about}\npython {written}"


def _document(
    path: Path, report: EvalReport, checks: list[CheckSeen], written: Path | None
) -> dict[str, Any]:
    spreads = [spread_of(item) for item in report.comparisons]
    return {
        "run": str(path),
        "verdict": report.verdict,
        "report": report.model_dump(mode="json"),
        "checks": [
            vars(check) | {"findings": [item.model_dump(mode="json") for item in check.findings]}
            for check in checks
        ],
        "spreads": [asdict(item) for item in spreads if item is not None],
        "lights": [
            {name: value for name, value in vars(item).items() if name not in OF_THE_REPORT}
            for item in roofline_points(report)
        ],
        "advice": advice(report),
        "terms": terms_of(report),
        "reproducer": None if written is None else str(written),
    }
