"""`tilewright mcp`: a coding agent writes candidates and judges them with tools."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright._version import __version__
from tilewright.cli import options
from tilewright.cli.options import load_settings, one_model, option, setting
from tilewright.cli.output import print_line, printable
from tilewright.cli.progress import LOUD, describe
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.executors.factory import open_executor
from tilewright.problems.imported_sets import find_one, known_problems
from tilewright.records import EvalReport, EvalRequest
from tilewright.records.events import RunStarted
from tilewright.registry import selected_checks
from tilewright.serve.agent_problems import AgentProblems
from tilewright.serve.agent_session import MODEL, AgentRun
from tilewright.serve.mcp import load_sdk, serve
from tilewright.serve.workspace import write_workspace

INIT_HELP = "Write SKILL.md and .mcp.json for an agent into DIR, and exit."


@click.command("mcp")
@options.PROBLEM
@options.LANGUAGE
@setting("--executor", "executor", "URL of a `tilewright serve` that judges.", metavar="URL")
@setting("--device", "eval.device", "cpu, cuda or cuda:N.", metavar="NAME")
@option("--init", "DIR", INIT_HELP, "workspace")
@options.OUT
@options.SETTINGS
@options.VERBOSE
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Serve a problem to a coding agent: MCP on stdin and stdout.

    Without --problem the agent lists the problems and chooses one itself.
    The agent's client starts this command; --init writes the files that the client needs. Each
    candidate that the agent sends is a turn of a run, as with `optimize`.
    """
    settings = load_settings(given)
    if given["workspace"] is not None:
        if not given["problem"]:
            raise ConfigError(
                f"--init {given['workspace']}: name the problem with --problem; "
                "tilewright problems list has some"
            )
        return _init(given, settings)
    options.ready_to_judge(settings)
    _serve(given["problem"], settings, given["verbose"])
    return 0


def _serve(address: str | None, settings: Config, verbose: bool) -> None:
    sdk = load_sdk()
    checks = selected_checks(settings.plugins)
    device = one_model(settings)
    executor = open_executor(settings)

    def open_run(address: str) -> AgentRun:
        problem = find_one(address, settings.home)
        begun = RunStarted(
            kind="mcp",
            name=MODEL,
            problems=address,
            protocols=(settings.eval.protocol,),
            language=settings.loop.language,
            evaluator=__version__,
            device=device,
        )

        def on_progress(event: str, fields: dict[str, Any]) -> None:
            text = describe(event, fields)
            if text:
                run.doing = printable(text)
            if text and (verbose or event in LOUD):
                print_line(printable(text))

        def evaluate(request: EvalRequest) -> EvalReport:
            return executor.evaluate(request, on_progress, checks=checks)

        run = AgentRun(settings, problem, begun, evaluate)
        return run

    known = partial(known_problems, settings.home)
    agent = AgentProblems(open_run, known, address)
    what = "problems of the agent's choice" if address is None else agent.problem().facts.address
    print_line(f"serving {what} to an MCP client on stdin and stdout")
    try:
        serve(sdk, agent, stop=executor.kill, warn=lambda text: print_line(printable(text)))
    finally:
        executor.close()
        agent.close()
        for folder in agent.folders:
            print_line(f"run {folder}; next: tilewright report {folder}")


def _init(given: dict[str, Any], settings: Config) -> int:
    """Write a workspace whose command has the same options, with absolute paths."""
    problem = find_one(given["problem"], settings.home)
    # -P keeps the current folder, to which the agent writes, out of the import path.
    words = [sys.executable, "-P", "-m", "tilewright", "mcp", "--problem"]
    path = Path(given["problem"])
    words.append(str(path.resolve()) if path.exists() else given["problem"])
    for name in ("language", "device", "executor"):
        if given[name] is not None:
            words += [f"--{name}", given[name]]
    folder = Path(given["workspace"])
    # The client may start the server in any folder.
    words += ["--out", str(Path(given["out"] or folder / "runs").resolve())]
    if given["file"] is not None:
        words += ["--config", str(Path(given["file"]).resolve())]
    words += [word for item in given["overrides"] for word in ("--set", item)]
    variables = config.environment((config.HOME_VARIABLE, config.PLUGINS_VARIABLE))
    for written in write_workspace(folder, problem.id, words, variables):
        print_line(f"{written} written")
    print_line(f"next: start your agent in {folder}, or give its client: {shlex.join(words)}")
    return 0
