"""`tilewright doctor`: the features of this machine, and how to get the missing ones."""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from tilewright import api
from tilewright.cli import options, self_comparison
from tilewright.cli.output import print_line
from tilewright.cli.progress import Progress
from tilewright.cli.render import facts, show_result, table
from tilewright.cli.self_comparison import Sample, Scatter, samples_of, self_request
from tilewright.cli.system_checks import (
    Item,
    cluster_items,
    integration_items,
    layer_items,
    tool_items,
)
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, TilewrightError, writing
from tilewright.evaluator.devices.devices import find_device, plan_cores
from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.timing.calibration import Calibration, read_calibration, write_calibration
from tilewright.executors.factory import is_cluster
from tilewright.records import EvalReport
from tilewright.scoring.report_text import short_time

AA_PROBLEM, AA_CASE, AA_RUNS = "add_relu", "large", 5
CALIBRATION_PROBLEMS = ("add_relu", "softmax", "matmul_bias_gelu")
QUIET = 0.03
"""Largest distance of an A/A ratio from 1 on a quiet machine."""
QUICK = ("eval.timing.max_s=1.0",)
CALIBRATE_HELP = (
    "Measure process-to-process variation, and store it in home. Leave the machine idle meanwhile."
)


@click.command("doctor")
@options.switch("--calibrate", CALIBRATE_HELP)
@options.number("--runs", "Evaluations of each problem for --calibrate.", 2, 1000, 12, metavar="N")
@options.JSON
@options.SETTINGS
@options.VERBOSE
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """List the features of this machine, and how to get the missing ones.

    With --set executor=ray:ADDRESS it lists the nodes and devices of a cluster.

    Exits with 0 if this machine or cluster can judge candidates, else with 4.
    """
    settings = options.load_settings(given, first=() if given["calibrate"] else QUICK)
    settings = settings.with_eval(reuse=False)
    on_cluster = is_cluster(settings.executor)
    if on_cluster and given["calibrate"]:
        raise ConfigError("--calibrate measures one machine; run it on each node while it is idle")
    calibration: dict[str, Any] | None = None
    with Progress("doctor", verbose=given["verbose"]) as progress:
        if on_cluster:
            progress.about("leasing the devices of the cluster")
        items = cluster_items(settings) if on_cluster else tool_items(settings.home)
        reports, failure = _judge_self(settings, progress)
        if given["calibrate"] and not failure:
            calibration = _calibrate(settings, given["runs"], progress)
    items += [_judging_item(reports, failure), *layer_items(reports[-1] if reports else None)]
    samples = [sample for report in reports for sample in samples_of(report)]
    scatter = self_comparison.scatter_of(samples)
    items.append(noise_item(scatter))
    if not on_cluster:
        items.append(_calibration_item(settings))
    items += integration_items()
    document = {
        "items": [asdict(item) for item in items],
        "calibration": calibration,
        "noise": None if scatter is None else vars(scatter),
    }
    show_result(given["as_json"], document, doctor_view(items))
    print_line(f"next: {_next(failure, settings)}")
    return InfrastructureError.exit_code if failure else 0


def _next(failure: str, settings: Config) -> str:
    if failure:
        return "fix `judging` as listed, then tilewright doctor"
    if is_cluster(settings.executor):
        return "tilewright serve --executor ray --ray-address ADDRESS"
    if not _read(settings).measured:
        return "tilewright doctor --calibrate, on a quiet machine; or tilewright demo"
    return "tilewright demo"


def _judge_self(settings: Config, progress: Progress) -> tuple[list[EvalReport], str]:
    """Evaluate a reference against itself a few times; return also the error, if any."""
    reports: list[EvalReport] = []
    try:
        options.ready_to_judge(settings)
        for run in range(AA_RUNS):
            progress.about(f"A/A {run + 1} of {AA_RUNS}")
            request = self_request(AA_PROBLEM, settings, (AA_CASE,))
            reports.append(api.evaluate_request(request, settings, progress))
    except TilewrightError as error:
        return reports, str(error).partition("\n")[0]
    return reports, ""


def _calibrate(settings: Config, runs: int, progress: Progress) -> dict[str, Any]:
    samples: list[Sample] = []
    total = runs * len(CALIBRATION_PROBLEMS)
    for run in range(total):
        name = CALIBRATION_PROBLEMS[run % len(CALIBRATION_PROBLEMS)]
        progress.about(f"calibrating {run + 1} of {total}, {name}")
        request = self_request(name, settings)
        samples += samples_of(api.evaluate_request(request, settings, progress))
    sigmas, counts = self_comparison.calibrated(samples, on_gpu=settings.eval.device != "cpu")
    key = _key(settings)
    with writing(settings.home):
        write_calibration(settings.home, key, sigmas)
    fitted = {"sigmas": list(sigmas), "samples": list(counts)}
    return {"device": key, "classes": list(_read(settings).classes), **fitted}


def _judging_item(reports: list[EvalReport], failure: str) -> Item:
    if failure:
        return Item("judging", False, failure, "every verdict", "see the lines above")
    wrong = [report.verdict for report in reports if report.verdict != "correct"]
    if wrong:
        said = f"the verdict of the reference itself is {wrong[0]}"
        return Item("judging", False, said, "reliable verdicts", "report this as a bug")
    return Item("judging", True, f"{len(reports)} evaluations of a reference: correct")


def noise_item(scatter: Scatter | None) -> Item:
    if scatter is None:
        get = "two cores, and `judging` above"
        return Item("low noise", False, "nothing was timed", "speed-ups", get)
    said = (
        f"{scatter.runs} runs of {short_time(scatter.call_us)} per call: a reference differs from "
        f"itself by {math.expm1(scatter.median):.1%} in the median, "
        f"{math.expm1(scatter.worst):.1%} at most"
    )
    get = "end other programs, then run tilewright doctor again"
    return Item("low noise", scatter.worst <= QUIET, said, "narrow intervals", get)


def _key(settings: Config) -> str:
    cores = plan_cores(list(os.sched_getaffinity(0)))
    return device_key(cores, find_device(settings.eval.device))


def _read(settings: Config) -> Calibration:
    return read_calibration(settings.home, _key(settings), on_gpu=settings.eval.device != "cpu")


def _calibration_item(settings: Config) -> Item:
    found = _read(settings)
    sigmas = zip(found.sigmas, found.classes, strict=True)
    shown = ", ".join(f"{sigma:.2%} {name}" for sigma, name in sigmas)
    said = f"process-to-process sigma: {shown}" if found.measured else f"none; defaults ({shown})"
    enables = "intervals as narrow as this machine allows"
    return Item("calibration", found.measured, said, enables, "tilewright doctor --calibrate")


def doctor_view(items: list[Item]) -> RenderableType:
    """Return the table of features, then the missing ones and how to get them."""
    made = table("", "", "")
    made.show_header = False
    for item in items:
        word = Text("ok", style="green") if item.ok else Text("no", style="yellow")
        made.add_row(word, item.name, item.detail)
    parts: list[RenderableType] = [made]
    missing = [item for item in items if not item.ok]
    if missing:
        rows = [(item.name, f"would enable {item.enables}; {item.get}") for item in missing]
        parts += [Text(""), Text("Missing", style="bold"), facts(rows)]
    return Group(*parts)
