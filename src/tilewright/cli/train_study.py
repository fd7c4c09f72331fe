"""`tilewright train study` and `train gate`: arms of a training, compared by their logs."""

from __future__ import annotations

import dataclasses
import importlib
import json
import time
from pathlib import Path
from typing import Any

import click

from tilewright.cli.options import JSON, number, option
from tilewright.cli.output import print_line
from tilewright.cli.progress import Progress
from tilewright.errors import ConfigError, InfrastructureError, writing

STUDY = "tilewright.rl.study"
STAGES, LOG, PAGES = f"{STUDY}.stages", f"{STUDY}.study_log", f"{STUDY}.study_page"
PACKING, RUNNER = f"{STUDY}.packing", "tilewright.rl.stage_runner"
FOLDERS, SETTINGS, GATES = f"{STUDY}.study_folder", f"{STUDY}.study_config", f"{STUDY}.gate_run"
SCALINGS = f"{STUDY}.scaling_run"
GATE_FAILED = 1
"""Exit status if a line of the gate fails."""


@click.command("study")
@click.argument("file", required=False, metavar="CONFIG")
@option("--out", "DIR", "Folder of the study, which is made or continued.", "target", required=True)
@number("--minutes", "Most minutes of this invocation.", 1, 10_000, 9)
@option("--arm", "NAME", "Run this arm alone, with one seed.", "arm")
@click.option("--seed", type=int, help="Seed of --arm; default: the first that it does not have.")
@click.option("--page-only", is_flag=True, help="Draw the page from a log; train nothing.")
@option("--logs", "FILE", "The log of a study, for --page-only.")
@click.option("--pack", is_flag=True, help="Write DIR/pack: few files, for another machine.")
@JSON
def study(
    file: str | None,
    target: str,
    minutes: int,
    page_only: bool,
    logs: str | None,
    **given: Any,  # noqa: ANN401 - the options above
) -> int:
    """Train arms with and without one part of the method, and write a page that compares them.

    Each invocation runs the next stages, stops in time, and prints what is left; repeat it until
    it prints `complete`. CONFIG is a YAML file, or nano-rehearsal.yaml, which comes with
    tilewright and needs no GPU.
    """
    folder = Path(target)
    if page_only:
        if not logs:
            raise ConfigError("--page-only needs --logs FILE, the study-log.json.gz of a study")
        _write_pages(folder, _module(LOG).read_log(Path(logs)))
        print_line(f"page {folder / _module(PAGES).PAGE}")
        return 0
    if not file:
        raise ConfigError("train study needs a CONFIG, for example nano-rehearsal.yaml")
    config = _module(SETTINGS).load_study(file)
    if given["arm"]:
        config = _module(SETTINGS).one_arm(config, given["arm"], given["seed"])
    elif given["seed"] is not None:
        raise ConfigError("--seed needs --arm NAME, the arm that is trained with it")
    status = _run(config, folder, minutes, as_json=given["as_json"])
    if given["pack"]:
        packing = _module(PACKING)
        parts = packing.pack(folder)
        print_line(f"packed; elsewhere: {packing.unpack_command(parts)}")
    return status


def _run(config: Any, target: Path, minutes: int, *, as_json: bool) -> int:  # noqa: ANN401 - lazy
    until = time.monotonic() + 60 * minutes
    opened = _module(FOLDERS).open_study(target, config)
    _module(STAGES).check_study(opened)
    with _module(RUNNER).held(opened.path):
        return _continued(opened, until, as_json=as_json)


def _continued(opened: Any, until: float, *, as_json: bool) -> int:  # noqa: ANN401 - lazy
    stages, log = _module(STAGES), _module(LOG)
    with Progress(f"study {opened.config.name}") as progress:
        try:
            done = stages.run_stages(opened, until, lambda text: progress("stage", {"stage": text}))
        except stages.GateFailed:
            rows = json.loads((opened.path / _module(FOLDERS).GATE_REFUSED).read_text("utf-8"))
            progress.note("the gate fails; no arm was run. Change the mix, and give another --out")
            _print_gate(rows, as_json=as_json)
            return GATE_FAILED
    found = log.study_log(opened, _module(RUNNER).seconds_of(opened.path))
    log.write_log(opened.path / log.LOG, found)
    _write_pages(opened.path, found)
    left = list(done.left)
    seconds = stages.estimate_s(opened, left)
    page = str(opened.path / _module(PAGES).PAGE)
    if as_json:
        document = {"complete": not left, "left": left, "estimate_s": seconds, "page": page}
        click.echo(json.dumps(document, indent=1))
    if left:
        about = f", about {seconds / 60:.0f} min for the arms" if seconds else ""
        print_line(f"left: {', '.join(left)}{about}; repeat the command")
    else:
        print_line(f"complete; page {page}")
    if done.failed:
        raise InfrastructureError("; ".join(done.failed))
    return 0


@click.command("gate")
@click.argument("folder", metavar="DIR")
@JSON
def gate(folder: str, as_json: bool) -> int:
    """Print whether the cold-started model of a study can show the effects of its arms.

    DIR is the folder of a study. The exit status is 1 if a line fails; the last column names the
    setting to change.
    """
    opened = _module(FOLDERS).read_study(Path(folder))
    with Progress("gate", now="sampling the cold-started model") as progress:
        lines = _module(GATES).run_gate(opened, progress)
    rows = [dataclasses.asdict(line) for line in lines]
    held = all(row["held"] for row in rows)
    _print_gate(rows, as_json=as_json)
    if not held:
        print_line("the gate fails: " + ", ".join(r["name"] for r in rows if not r["held"]))
    return 0 if held else GATE_FAILED


@click.command("scaling")
@click.argument("folder", metavar="DIR")
@JSON
def scaling(folder: str, as_json: bool) -> int:
    """Sample many turns of a trained model of a study, once with each context.

    DIR is the folder of a study with a section `scaling`. Each line is the share of trajectories
    whose best program so far has a speed-up above 1.2, after each turn.
    """
    opened = _module(FOLDERS).read_study(Path(folder))
    with Progress("scaling") as progress:
        found = _module(SCALINGS).run_scaling(opened, progress, progress.in_phase)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return 0
    for context, figures in found.items():
        shares = " ".join(f"{share:.3f}" for share in figures["fast@1.2"])
        click.echo(f"{context}: fast@1.2 of the best so far {shares}")
    return 0


def _print_gate(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        seen = "no sample" if row["seen"] is None else f"{row['seen']:.3g}"
        ends = "" if row["low"] is None else f" [{row['low']:.3g}, {row['high']:.3g}]"
        advice = "" if row["held"] else f"; change {row['setting']}"
        held = "held" if row["held"] else "FAILS"
        click.echo(f"{row['name']}: {seen}{ends}, wanted {row['wanted']}: {held}{advice}")


def _write_pages(folder: Path, log: dict[str, Any]) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _module(PAGES).study_pages(log).items():
            (folder / name).write_text(text, encoding="utf-8")


def _module(name: str) -> Any:  # noqa: ANN401 - a module that may need torch
    return importlib.import_module(name)
