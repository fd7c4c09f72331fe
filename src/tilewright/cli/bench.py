"""`tilewright bench`: evaluate many candidates in one run, which can be killed and resumed."""

from __future__ import annotations

from contextlib import closing
from typing import Any, cast

import click

from tilewright import config
from tilewright._version import __version__
from tilewright.cli import completion, options
from tilewright.cli.lint import lint_results
from tilewright.cli.optimize import ASKING, MODEL_OPTIONS, asks_a_model, further_models, opened
from tilewright.cli.options import load_settings, number, one_model, option, ready_to_judge
from tilewright.cli.output import print_line, print_skipped
from tilewright.cli.progress import Progress
from tilewright.cli.render import show_result
from tilewright.cli.render_bench import bench_view, rates_document, rates_text, turn_text
from tilewright.cli.run_output import check_resumed, check_unchanged, resumed_run, run_progress
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.integrations.run_loggers import check_loggers, logged
from tilewright.loop.answer_evaluator import OnEvent, open_evaluator
from tilewright.loop.budget import UsageMeter, usage_of
from tilewright.loop.driver import drive
from tilewright.loop.existing_answers import read_answers
from tilewright.loop.rollout_environment import judged
from tilewright.loop.run_search import SearchResult, play
from tilewright.loop.run_state import BenchRun, begin, is_unjudged, resume
from tilewright.loop.throughput import ThroughputMeter
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Protocol
from tilewright.records.base import digest_text
from tilewright.records.event_log import EventLog, read_events, turns_of
from tilewright.records.events import Ask, RunStarted, Turn
from tilewright.records.run_folder import create_run
from tilewright.scoring.learning_curves import curves
from tilewright.scoring.strategy_table import strategy_table
from tilewright.scoring.summary import summary_of, weak_problems

PROTOCOLS = ("strict", "official")
FIXED = (
    *("problems", "candidates", "protocols", "language", "device", "out", "file"),
    # It names a model's first candidates, and here no model writes any.
    "warm_start",
)
MAY_CHANGE = ("home", "runs", "executor", "host", "eval.device", "loop.log")
"""Settings that a resumed run of files may change, by the beginning of their path."""


@click.command("bench")
@click.argument("problems", required=False, default="", shell_complete=completion.problems)
@option(
    "--candidates",
    "WHERE",
    "A folder, JSON lines, parquet, a run, or `reference`: the reference of each problem as "
    "its candidate.",
)
@MODEL_OPTIONS
@option("--protocol", "LIST", "strict (default), official, or strict,official", "protocols")
@option("--language", "NAME", "Language of all candidates.")
@number("--workers", options.WORKERS_HELP, 1, 64, 1)
@options.RESUME
@click.option(
    "--max-candidates", type=options.WholeNumber(1), help="Most evaluations of this invocation."
)
@options.DEVICE
@options.JSON
@options.OUT
@options.SETTINGS
@options.VERBOSE
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Evaluate many candidates for the problems at an address, and score them.

    PROBLEMS is a set (kernelbench), a part of it (kernelbench/level1, kernelbench/level1-12), the
    path of a problem, `bundled`, or a space of programs (spaces/cpp_matmul). Candidates come from
    files (--candidates), or a model writes them over several turns and samples (--model). Each
    result is stored at once. --resume continues a stopped run and repeats no evaluation.
    """
    if given["model"] or asks_a_model(given["resumed"]):
        return _of_model(given)
    if given["resumed"]:
        folder, settings = resumed_run(given, FIXED)
        recorded = config.load(folder / "run.yaml", recorded=True)
        check_unchanged(folder, recorded, settings, MAY_CHANGE)
        run = resume(folder)
        check_resumed(folder, run.begun, one_model(settings))
    else:
        run, settings = _begun(given)
    count, before, total = 0, len(run.finished), len(run.sources)
    meter, protocols = ThroughputMeter(), len(run.begun.protocols)
    with (
        EventLog(run.folder, run.log_bytes) as log,
        run_progress("bench", run.folder, verbose=given["verbose"]) as progress,
        logged(run.folder, settings.loop.log, progress.note),
    ):
        progress.reached(before, total)
        on_event = _followed(progress, meter, protocols)
        for count, turn in enumerate(_turns(run, settings, log, given, on_event), start=1):
            progress.reached(before + count, total)
            progress.note(f"{before + count} of {total}, {turn_text(turn)}")
    turns = turns_of(read_events(run.folder))
    unanswered = {item.id for item in run.problems} - {ask.problem for ask in run.sources}
    summary = summary_of(turns, run.begun.unsound_problems, unanswered)
    left = total - len(turns)
    made = meter.read()
    document = {"run": str(run.folder), "left": left, **summary}
    document["throughput"] = rates_document(made, protocols)
    show_result(given["as_json"], document, bench_view(summary))
    rates = rates_text(made, protocols)
    print_line(f"{count} judged in {made.wall_s:.0f} s, {left} left{rates and f', {rates}'}")
    unjudged = sum(is_unjudged(turn) for turn in turns)
    if unjudged:
        print_line(f"{unjudged} unjudged: tilewright bench --resume {run.folder} tries again")
    verb = "bench --resume" if left else "report"
    print_line(f"run {run.folder}; next: tilewright {verb} {run.folder}")
    return 0


def _of_model(given: dict[str, Any]) -> int:
    if given["candidates"] or given["protocols"]:
        raise ConfigError(
            "--model writes its own candidates, under one protocol: leave out --candidates, and "
            "give --set eval.protocol=official instead of --protocol"
        )
    if given["workers"] > 1:
        raise ConfigError(
            "--workers is for candidates of --candidates; with a model give --max-concurrency N"
        )
    run, settings, policy = opened({**given, "problem": given["problems"]}, "bench")
    ended, turns, made_here = SearchResult(), list(run.finished), UsageMeter()
    meter, before = ThroughputMeter(), len(turns)
    with (
        closing(policy),
        further_models(settings) as models,
        run_progress("bench", run.folder, now=ASKING, verbose=given["verbose"]) as progress,
        logged(run.folder, settings.loop.log, progress.note),
        closing(play(run, settings, policy, _followed(progress, meter), ended, models)) as played,
    ):
        for turn in played:
            turns.append(turn)
            made_here.add(turn)
            progress.note(turn_text(turn))
            # A turn that only chooses or advises is no evaluation.
            if made_here.spent.trials == given["max_candidates"]:
                break
    made = meter.read()
    weak = weak_problems(turns).union(run.begun.unsound_problems)
    spent = usage_of(turns).model_dump()
    summary = {**summary_of(turns, weak), "curves": curves(turns, weak), "spent": spent}
    summary["throughput"] = rates_document(made)
    begun = run.begun
    if len(begun.strategies) > 1:
        summary["strategies"] = strategy_table(turns, begun.strategies, begun.samples)
    show_result(given["as_json"], {"run": str(run.folder), **summary}, bench_view(summary))
    rates = rates_text(made)
    print_line(f"{len(turns) - before} turns in {made.wall_s:.0f} s{rates and f', {rates}'}")
    if ended.lacking:
        print_line(f"the budget of {ended.lacking} is used up")
    print_line(f"run {run.folder}; next: tilewright report {run.folder}")
    return 0


def _followed(progress: Progress, meter: ThroughputMeter, protocols: int = 1) -> OnEvent:
    """Return the receiver of all events for the meter and the progress, which shows its rates."""
    progress.show_rates(lambda: rates_text(meter.read(), protocols))

    def on_event(event: str, fields: dict[str, Any]) -> None:
        meter(event, fields)
        progress(event, fields)

    return on_event


def _begun(given: dict[str, Any]) -> tuple[BenchRun, Config]:
    if not given["problems"] or not given["candidates"]:
        needed = "PROBLEMS and --candidates WHERE or --model NAME, or --resume RUN"
        raise ConfigError(f"bench needs {needed}")
    settings = load_settings(given)
    ready_to_judge(settings)
    check_loggers(settings.loop.log, "loop.log")
    protocols = tuple(part.strip() for part in (given["protocols"] or "strict").split(","))
    for name in protocols:
        if name not in PROTOCOLS or protocols.count(name) > 1:
            raise ConfigError(f"--protocol {name!r}: write strict, official or strict,official")
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
        **lint_results(problems, given["problems"], settings, model),
    )
    folder = create_run(settings.runs, config.dump(settings))
    return begin(folder, begun, problems, answers.sources), settings


def _turns(
    run: BenchRun, settings: Config, log: EventLog, given: dict[str, Any], on_event: OnEvent
) -> Any:  # noqa: ANN401 - a generator, which the caller may close
    """Evaluate the remaining candidates. Running evaluations end with this generator."""
    workers, devices, most = given["workers"], settings.eval.devices, given["max_candidates"]
    problems = {problem.id: problem for problem in run.problems}
    room = iter(range(len(run.sources) if most is None else most))
    executor, judge = open_evaluator(settings, run.folder, on_event, workers)

    def stop() -> None:
        judge.stop()
        executor.kill()

    def play(ask: Ask) -> Turn:
        text = "\n".join(item.text for item in run.sources[ask])
        problem, files, language = problems[ask.problem], run.sources[ask], run.begun.language
        judgements = []
        for protocol in run.begun.protocols:
            chosen = settings.with_eval(protocol=protocol)
            judgements.append(judged(judge, ask, problem, files, chosen, language)[0])
        return Turn(ask=ask, source=digest_text(text), judgements=tuple(judgements))

    with closing(executor):
        yield from drive(
            run.strategy,
            play,
            log,
            max_concurrency=max(workers, 2 * len(devices)),
            waiting=run.waiting,
            admit=lambda _: next(room, None) is not None,
            stop=stop,
        )
