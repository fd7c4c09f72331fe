"""`tilewright integrations`: list the integrations, and run those that are commands."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from tilewright.cli import options
from tilewright.cli.integrations_flashinfer import command as flashinfer
from tilewright.cli.options import load_settings, option, ready_to_judge, setting
from tilewright.cli.output import print_line, print_skipped, printable
from tilewright.cli.progress import Progress
from tilewright.cli.render import show_result, table
from tilewright.cli.usage_errors import CommandGroup
from tilewright.config import Config
from tilewright.errors import NoVerdict
from tilewright.executors.factory import device_model
from tilewright.integrations.catalogue import (
    INTEGRATIONS,
    allowed_range,
    installed_version,
    state_of,
)
from tilewright.integrations.kernelbench_run import (
    RESULTS,
    Generation,
    Judged,
    has,
    judge_generations,
    read_generations,
    read_results,
)
from tilewright.integrations.packages import OPENENV, require
from tilewright.integrations.popcorn import clone_of, judge_submission, lines_of
from tilewright.integrations.verifiers_project import write_project
from tilewright.problems.imported_sets import find_problems
from tilewright.problems.sets.gpumode import read_task


@click.group("integrations", cls=CommandGroup)
def command() -> None:
    """List the integrations with other tools, or run one of them."""


@command.command("list")
@options.JSON
def list_integrations(as_json: bool) -> int:
    """List the integrations, with the tested and the installed version of each tool."""
    made = table(
        "integration", "tool", "tested version", "installed", "state", "use", wrap=(1, 2, 4, 5)
    )
    rows: list[dict[str, str | None]] = []
    for item in INTEGRATIONS:
        installed = installed_version(item)
        state = state_of(item, installed)
        made.add_row(item.name, item.tool, item.tested, installed or "not here", state, item.use)
        rows.append(
            {
                "name": item.name,
                "tool": item.tool,
                "package": item.package,
                "tested": item.tested,
                "installed": installed,
                "range": allowed_range(item),
                "state": state,
                "use": item.use,
            }
        )
    show_result(as_json, rows, made)
    return 0


@command.group("new", cls=CommandGroup)
def new() -> None:
    """Make a project for another tool."""


@new.command("verifiers")
@click.argument("name")
@option("--dir", "DIR", "Folder in which the project is made.", "parent", default=".")
def new_verifiers(name: str, parent: str) -> int:
    """Make the project NAME, a package of verifiers' tasks that vf-eval NAME finds."""
    for path in write_project(name, Path(parent)):
        click.echo(path)
    print_line(f"next: pip install -e {Path(parent) / name}; vf-eval {name} --no-push")
    return 0


@command.group("run", cls=CommandGroup)
def run() -> None:
    """Run an integration that reads and writes the files of another tool."""


@run.command("kernelbench-eval")
@option("--run-dir", "DIR", "A folder of KernelBench's runs, with its generations.", required=True)
@option(
    "--problems",
    "ADDRESS",
    "The set of problems: an imported one, or a file of KernelBench's rows.",
    default="kernelbench",
    show_default=True,
)
@click.option(
    "--level", type=options.WholeNumber(0), help="The level to judge, if DIR has several."
)
@setting(
    "--protocol",
    "eval.protocol",
    "Rules of measurement: KernelBench's (official, the default) or ours (strict).",
    type=options.OneOf(["strict", "official"]),
)
@setting("--device", "eval.device", "Device that runs candidates: cpu or cuda.", metavar="NAME")
@options.JSON
@options.OUT
@options.HOST
@options.SETTINGS
@options.VERBOSE
def kernelbench_eval(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Judge the generations of a run of KernelBench, and write DIR/eval_results.json.

    Each result is written at once, and generations that are in the file already are skipped. An
    unjudged generation is left out of the file, and the exit code is then 4.
    """
    folder = Path(given["run_dir"])
    settings = load_settings(given, first=["eval.protocol=official"])
    ready_to_judge(settings)
    device_model(settings, settings.eval.device)
    generations, unusable = read_generations(folder, given["level"])
    print_skipped(unusable)
    path = folder / RESULTS
    before = read_results(path)
    waiting = [item for item in generations if not has(before, item)]
    done = _judged(waiting, settings, path, given)
    without = [item for item in done if item.result is None]
    document = {
        "results": str(path),
        "skipped": len(generations) - len(waiting),
        "judged": len(done) - len(without),
        "left_out": [{"file": str(item.generation.path), "why": item.why} for item in without],
        "unusable": unusable,
    }
    made = table("generations", "", right=(1,))
    made.add_row("in the file before", document["skipped"])
    made.add_row("judged now", document["judged"])
    made.add_row("without a result", len(without))
    made.add_row("unusable files", len(unusable))
    show_result(given["as_json"], document, made)
    if without:
        print_line(
            f"{len(without)} without a result are not in {path}; KernelBench's analysis counts a "
            "missing sample 0 as not compiled; remove the cause and repeat this command"
        )
    print_line(f"results {path}, reports below {settings.runs}")
    return NoVerdict.exit_code if without else 0


run.add_command(flashinfer)


@run.command("popcorn")
@click.argument("submission", type=click.Path(path_type=Path))
@option("--task", "DIR", "The folder of a task in a clone of reference-kernels.", required=True)
@click.option(
    "--mode",
    type=options.OneOf(["test", "benchmark", "leaderboard"]),
    default="test",
    show_default=True,
    help="The runs of GPU MODE's bot.",
)
@setting(
    "--protocol",
    "eval.protocol",
    "Rules of measurement: ours (strict, the default) or the tolerances of the task (official).",
    type=options.OneOf(["strict", "official"]),
)
@options.DEVICE
@options.JSON
@options.OUT
@options.HOST
@options.SETTINGS
@options.VERBOSE
def popcorn(submission: Path, **given: Any) -> int:  # noqa: ANN401 - the options above
    """Judge SUBMISSION on a task of GPU MODE, and print what its bot prints.

    The sizes are those of the task, and the inputs have secret seeds.
    """
    settings, folder = load_settings(given), Path(given["task"])
    ready_to_judge(settings)
    with Progress("popcorn", verbose=given["verbose"]) as progress:
        found = list(judge_submission(submission, folder, given["mode"], settings, progress))
    ranking = read_task(folder.absolute(), clone_of(folder)).ranking_by
    lines = list(lines_of(found, ranking))
    rows = [
        {"mode": item.mode, "verdict": item.kept.report.verdict, "report": str(item.kept.folder)}
        for item in found
    ]
    if given["as_json"]:
        click.echo(json.dumps({"task": str(folder), "runs": rows, "lines": lines}, indent=1))
    else:
        click.echo("\n".join(lines))
    last = found[-1]
    print_line(f"report {last.kept.folder}; the bot itself runs fixed seeds and its own clock")
    if last.kept.report.verdict == "unjudged":
        return NoVerdict.exit_code
    return 0 if last.kept.report.verdict == "correct" else 1


@run.command("openenv")
@option(
    "--problems",
    "ADDRESS",
    "Problems that a client may reset to; default: the bundled ones and the imported sets.",
    multiple=True,
)
@option("--host", None, "Address at which the server listens.", default="127.0.0.1")
@options.number("--port", "Port of the server.", 1, 65535, 8000)
@options.number("--sessions", "Most clients at once.", 1, 1000, 32)
@options.number("--turns", "Answers after which an episode is over.", 1, 1000, 10)
@options.SETTINGS
def openenv_server(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Serve an environment of OpenEnv. The server has no tokens: keep it on a loopback address.

    Each episode is a run folder. All sessions share the devices.
    """
    require(OPENENV)
    import uvicorn

    from tilewright.integrations.openenv_server import MAX_BODY_BYTES, DevicePool, create_app

    settings = load_settings(given, first=["loop.reward=tilewright"])
    ready_to_judge(settings)
    with closing(DevicePool(settings, given["problems"], given["turns"])) as pool:
        app = create_app(pool, given["sessions"])
        print_line(f"openenv at http://{given['host']}:{given['port']}, runs in {settings.runs}")
        uvicorn.run(
            app,
            host=given["host"],
            port=given["port"],
            ws_max_size=MAX_BODY_BYTES,
            log_level="warning",
        )
    return 0


def _judged(
    waiting: list[Generation], settings: Config, path: Path, given: dict[str, Any]
) -> list[Judged]:
    """Judge generations and name each; return them with their results."""
    done: list[Judged] = []
    if not waiting:
        return done
    problems = {item.id: item for item in find_problems(given["problems"], settings.home)}
    with Progress("kernelbench-eval", verbose=given["verbose"]) as progress:
        progress.reached(0, len(waiting))
        for item in judge_generations(waiting, problems, settings, path, progress):
            done.append(item)
            progress.reached(len(done), len(waiting))
            progress.note(f"{len(done)} of {len(waiting)}, {item.generation}: {_text(item)}")
    return done


def _text(item: Judged) -> str:
    if item.result is None:
        return printable(f"left out: {item.why}")
    result = item.result
    why = [str(value) for key, value in result.metadata.items() if f"{key}_name" in result.metadata]
    time = f"{result.runtime:.3g} ms" if result.runtime > 0 else ""
    return printable("; ".join(filter(None, [result.metadata["verdict"], time, *why])))
