"""`tilewright bench`: evaluate many candidates in one run, which can be killed and resumed."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, cast

import click

from tilewright import config
from tilewright._version import __version__
from tilewright.cli.lint import known_health
from tilewright.cli.optimize import asks_a_model, model_options, opened
from tilewright.cli.options import (
    device_flags,
    load_settings,
    one_model,
    out_option,
    ready_to_judge,
    settings_options,
)
from tilewright.cli.output import print_line, print_skipped
from tilewright.cli.progress import Progress
from tilewright.cli.renamed_options import RenamingCommand
from tilewright.cli.render import show
from tilewright.cli.render_bench import bench_view, turn_text
from tilewright.cli.run_output import usable_home
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.executors.factory import open_executor
from tilewright.loop.answer_evaluator import AnswerEvaluator
from tilewright.loop.budget import usage_of
from tilewright.loop.driver import drive
from tilewright.loop.environment import judged
from tilewright.loop.existing_answers import read_answers
from tilewright.loop.run_search import SearchResult, play
from tilewright.loop.run_state import BenchRun, begin, is_unjudged, resume
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem, Protocol
from tilewright.records.base import digest_text
from tilewright.records.event_log import EventLog, read_events, turns_of
from tilewright.records.events import Ask, RunStarted, Turn
from tilewright.records.problem_lint import is_weak
from tilewright.records.run_folder import create_run
from tilewright.registry import catalogue
from tilewright.scoring.learning_curves import curves
from tilewright.scoring.summary import summary_of

__all__ = ["command"]

PROTOCOLS = ("strict", "official")


@click.command("bench", cls=RenamingCommand, verb="bench")
@click.argument("problems", required=False, default="")
@click.option(
    "--candidates",
    metavar="WHERE",
    help="A folder, JSON lines, parquet, a run, or `reference`: the reference of each problem as "
    "its candidate.",
)
@model_options
@click.option(
    "--protocol", "protocols", metavar="LIST", help="strict (default), official, or strict,official"
)
@click.option("--language", metavar="NAME", help="Language of all candidates.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Evaluations at the same time; a device times one of them at a time.",
)
@click.option("--resume", "resumed", metavar="RUN", help="Resume a run that was stopped.")
@click.option(
    "--max-candidates", type=click.IntRange(1), help="Most evaluations of this invocation."
)
@click.option(
    "--device", metavar="NAME", help="cpu, cuda, cuda:N, or several with commas. (eval.device)"
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one document.")
@out_option
@settings_options
@click.option("-v", "--verbose", is_flag=True, help="Write every step to stderr.")
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Evaluate many candidates for the problems at an address, and score them.

    PROBLEMS is a set (kernelbench), a part of it (kernelbench/level1, kernelbench/level1-12), the
    path of a problem, or `bundled`. Candidates come from files (--candidates), or a model writes
    them over several turns and samples (--model). Each result is stored at once. --resume
    continues a stopped run and repeats no evaluation.
    """
    if given["model"] or asks_a_model(given["resumed"]):
        return _of_model(given)
    sitting, settings = _resumed(given) if given["resumed"] else _begun(given)
    usable_home(settings)
    start, judged = time.monotonic(), 0
    before, total = len(sitting.told), len(sitting.sources)
    with (
        EventLog(sitting.folder, sitting.log_bytes) as log,
        Progress("bench", verbose=given["verbose"]) as progress,
    ):
        progress.reached(before, total)
        turns = _turns(sitting, settings, log, given, progress)
        try:
            for judged, turn in enumerate(turns, start=1):
                progress.reached(before + judged, total)
                progress.note(f"{before + judged} of {total}, {turn_text(turn)}")
        except BaseException:
            progress.note(f"to resume: tilewright bench --resume {sitting.folder}")
            raise
    told = turns_of(read_events(sitting.folder))
    summary = summary_of(told, sitting.begun.unsound_problems, _without_candidate(sitting))
    if given["as_json"]:
        document = {"run": str(sitting.folder), "left": total - len(told), **summary}
        click.echo(json.dumps(document, indent=1))
    else:
        show(bench_view(summary))
    print_line(f"{judged} judged in {time.monotonic() - start:.0f} s, {total - len(told)} left")
    unjudged = sum(is_unjudged(turn) for turn in told)
    if unjudged:
        print_line(f"{unjudged} unjudged: tilewright bench --resume {sitting.folder} tries again")
    verb = "report" if len(told) == total else "bench --resume"
    print_line(f"run {sitting.folder}; next: tilewright {verb} {sitting.folder}")
    return 0


def _of_model(given: dict[str, Any]) -> int:
    """Score a model by each turn, and by the best turn so far."""
    if given["candidates"] or given["protocols"]:
        raise ConfigError(
            "--model writes its own candidates, under one protocol: leave out --candidates, and "
            "give --set eval.protocol=official instead of --protocol"
        )
    asked = {**given, "problem": given["problems"]}
    session, settings, policy = opened(asked, "bench", _health)
    usable_home(settings)
    ended, told, judged = SearchResult(), list(session.told), 0
    with Progress("bench", verbose=given["verbose"]) as progress:
        turns = play(session, settings, policy, progress, ended)
        try:
            for turn in turns:
                told.append(turn)
                judged += 1
                progress.note(turn_text(turn))
                if judged == given["max_candidates"]:
                    turns.close()
        except BaseException:
            progress.note(f"to resume: tilewright bench --resume {session.folder}")
            raise
        finally:
            policy.close()
    summary = {
        **summary_of(told, session.begun.unsound_problems),
        "curves": curves(told, session.begun.unsound_problems),
        "spent": usage_of(told).model_dump(),
    }
    if given["as_json"]:
        click.echo(json.dumps({"run": str(session.folder), **summary}, indent=1))
    else:
        show(bench_view(summary))
    if ended.lacking:
        print_line(f"the budget of {ended.lacking} is used up")
    print_line(f"run {session.folder}; next: tilewright report {session.folder}")
    return 0


def _begun(given: dict[str, Any]) -> tuple[BenchRun, Config]:
    if not given["problems"] or not given["candidates"]:
        raise ConfigError(
            "bench needs PROBLEMS and --candidates WHERE or --model NAME, or --resume RUN"
        )
    flags = {"runs": ("--out", given["out"]), **device_flags(given["device"])}
    settings = load_settings(given["file"], given["overrides"], flags)
    ready_to_judge(settings)
    protocols = tuple(part.strip() for part in (given["protocols"] or "strict").split(","))
    for name in protocols:
        if name not in PROTOCOLS or protocols.count(name) > 1:
            raise ConfigError(f"--protocol {name!r}: {' or '.join(PROTOCOLS)}, each once")
    skipped: list[str] = []
    problems = find_problems(given["problems"], settings.home, skipped.append)
    answers = read_answers(given["candidates"], problems)
    print_skipped([*skipped, *answers.skipped])
    if not answers.sources:
        raise ConfigError(f"--candidates {given['candidates']}: no candidate for these problems")
    model = one_model(settings)
    begun = RunStarted(
        kind="bench",
        name=given["candidates"],
        problems=given["problems"],
        protocols=cast("tuple[Protocol, ...]", protocols),
        language=given["language"],
        evaluator=__version__,
        device=model,
        **_health(problems, settings, model),
    )
    folder = create_run(settings.runs, config.dump(settings))
    return begin(folder, begun, problems, answers.sources), settings


def _without_candidate(sitting: BenchRun) -> set[str]:
    return {item.id for item in sitting.problems} - {ask.problem for ask in sitting.sources}


def _health(problems: list[Problem], settings: Config, model: str) -> dict[str, Any]:
    """Return the problems that the linter found unsound, and how many were never linted."""
    found = {problem.id: known_health(settings.home, problem, model) for problem in problems}
    unseen = sum(health is None for health in found.values())
    if unseen:
        print_line(
            f"{unseen} of {len(problems)} problems were never linted: tilewright problems lint"
        )
    passing = {name: is_weak(h, "strict") for name, h in found.items() if h is not None}
    weak = {name: answers for name, answers in passing.items() if answers}
    return {"unsound_problems": weak, "problems_not_linted": unseen}


def _resumed(given: dict[str, Any]) -> tuple[BenchRun, Config]:
    for name in ("problems", "candidates", "protocols", "language", "device", "out", "file"):
        if given[name]:
            raise ConfigError(f"--resume keeps the settings of the run; leave out {name}")
    folder = Path(given["resumed"])
    sitting = resume(folder)
    settings = load_settings(str(folder / "run.yaml"), given["overrides"], {}, recorded=True)
    ready_to_judge(settings)
    model = one_model(settings)
    for name, then, now in (
        ("device", sitting.begun.device, model),
        ("version", sitting.begun.evaluator, __version__),
    ):
        if then != now:
            raise ConfigError(f"{folder} was begun with {name} {then!r}, this is {now!r}")
    return sitting, settings


def _turns(
    sitting: BenchRun, settings: Config, log: EventLog, given: dict[str, Any], progress: Progress
) -> Any:  # noqa: ANN401 - a generator, which the caller may close
    """Evaluate the remaining candidates. Running evaluations end with this generator."""
    workers, lock, total = given["workers"], threading.Lock(), len(sitting.sources)
    problems = {problem.id: problem for problem in sitting.problems}
    devices = settings.eval.devices
    executor = open_executor(settings, workers)
    room = iter(range(total if given["max_candidates"] is None else given["max_candidates"]))

    def shown(event: str, fields: dict[str, Any]) -> None:
        with lock:
            progress(event, fields)

    checks = None
    if settings.plugins is not None:
        checks = tuple(catalogue("checks", packages=settings.plugins))
    judge = AnswerEvaluator(
        sitting.folder, lambda request: executor.evaluate(request, shown, checks=checks)
    )

    def stop() -> None:
        judge.stop()
        executor.kill()

    def play(ask: Ask) -> Turn:
        text = "\n".join(item.text for item in sitting.sources[ask])
        judgements, _ = judged(
            judge,
            ask,
            problems[ask.problem],
            sitting.sources[ask],
            settings,
            sitting.begun.protocols,
            sitting.begun.language,
        )
        return Turn(ask=ask, source=digest_text(text), judgements=judgements)

    try:
        yield from drive(
            sitting.strategy,
            play,
            log,
            max_concurrency=max(workers, 2 * len(devices)),
            waiting=sitting.waiting,
            admit=lambda _: next(room, None) is not None,
            stop=stop,
        )
    finally:
        executor.close()
