"""`tilewright optimize`: a model writes candidates and receives their verdicts, turn by turn."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright._version import __version__
from tilewright.cli import completion, options
from tilewright.cli.lint import lint_results
from tilewright.cli.options import (
    group,
    load_settings,
    one_model,
    option,
    repeated,
    setting,
    switch,
)
from tilewright.cli.output import print_line, print_skipped
from tilewright.cli.render import reason
from tilewright.cli.render_bench import turn_text
from tilewright.cli.run_output import check_resumed, check_unchanged, resumed_run, run_progress
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, RecordError
from tilewright.integrations.run_loggers import check_loggers, logged
from tilewright.languages.python_template import require_templates
from tilewright.loop import run_state
from tilewright.loop.budget import Usage, UsageMeter, usage_of
from tilewright.loop.candidate_store import keep
from tilewright.loop.final_measurement import race_best, remeasure_best
from tilewright.loop.leaders import Leaders, nothing_judged
from tilewright.loop.policies.base import Policy
from tilewright.loop.policies.factory import choose_policy
from tilewright.loop.run_search import SearchResult, play
from tilewright.loop.run_state import CANDIDATES, SearchRun
from tilewright.loop.size_dispatcher import add_dispatchers
from tilewright.loop.warm_start import (
    earlier_candidate,
    earlier_candidates,
    examples,
    stored_candidates,
    write_examples,
    write_seeds,
)
from tilewright.problems.imported_sets import find_problems
from tilewright.records import EvalReport
from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import RequestsIssued, RunStarted, Turn
from tilewright.records.run_folder import create_run
from tilewright.scoring.report_text import speed_text

MAY_CHANGE = (
    *("home", "runs", "executor", "host", "loop.max_", "loop.max_concurrency", "model.base_url"),
    *("model.key_variable", "model.timeout_s", "model.retries", "model.retry_delay_s"),
    *("model.concurrency", "model.requests_per_minute", "model.usd_per_million_"),
    *("model.device", "eval.device", "loop.dispatcher", "loop.log"),
)
"""Settings that a resumed run may change, by the beginning of their path."""
FIXED = (
    *("problem", "problems", "model", "strategy", "turns", "samples", "language", "out", "file"),
    "warm_start",
)
"""Options that a resumed run may not be given."""
SHOWN = ("verdict", "speedup", "speedup_low", "speedup_high")
STOPPED = {
    "stalled": "no candidate was better for as many turns as its option allows",
    "reached": "a candidate reached the speed-up of its option",
}


MODEL_HELP = "Name of a model at its server, local:PATH, recorded:RUN or scripted:FILE.py."
MODEL_OPTIONS = group(
    option("--model", "NAME", MODEL_HELP),
    setting("--base-url", "model.base_url", "URL of the model server.", metavar="URL"),
    setting("--strategy", "loop.strategy", "Search strategies, with commas.", metavar="NAMES"),
    setting("--turns", "loop.turns", "Turns of each trajectory.", type=int),
    setting("--samples", "loop.samples", "Trajectories of each problem.", "--seeds", type=int),
    setting(
        "--knowledge",
        "loop.knowledge",
        "Notes that prompts show: `bundled`, or a folder that is added to them.",
        metavar="DIR",
    ),
    repeated(
        "--from",
        "RUN",
        "Begin with the best candidates of a run, or of `home`.",
        "warm_start",
    ),
    setting("--max-concurrency", "loop.max_concurrency", "Most turns at the same time.", type=int),
    setting("--max-turns", "loop.max_turns", "Most turns over all trajectories.", type=int),
    setting("--max-tokens", "loop.max_tokens", "Most tokens of prompts and replies.", type=int),
    setting("--max-device-s", "loop.max_device_s", "Most seconds of evaluations.", type=float),
    setting("--max-wall-s", "loop.max_wall_s", "Most seconds of this invocation.", type=float),
    setting("--max-usd", "loop.max_usd", "Most US dollars of a run.", type=float),
    switch("--strict-recording", "Refuse a recording of other prompts."),
)
"""Options about a model, its strategy and its budget."""


ASKING = "asking the model"
"""The first stage of a run whose candidates a model writes."""


@click.command("optimize")
@click.argument("problem", required=False, default="", shell_complete=completion.problems)
@MODEL_OPTIONS
@options.LANGUAGE
@options.RESUME
@options.DEVICE
@options.JSON
@options.OUT
@options.HOST
@options.SETTINGS
@options.VERBOSE
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Let a model write candidates for PROBLEM and improve them.

    The evaluator judges each turn, and the next prompt shows the verdict. At the end the candidates
    that may be the best race. The winner is measured once more and written to a file that runs on
    its own.
    """
    require_templates("the file of the best candidate")
    run, settings, policy = opened(given, "optimize")
    ended, score, turns = SearchResult(), run_state.score_of(settings.loop), list(run.finished)
    leaders, meter = Leaders(score, turns), UsageMeter(turns)
    shown = run_progress("optimize", run.folder, now=ASKING, verbose=given["verbose"])
    with (
        closing(policy),
        further_models(settings) as models,
        shown as progress,
        logged(run.folder, settings.loop.log, progress.note),
    ):
        for turn in play(run, settings, policy, progress, ended, models):
            turns.append(turn)
            leaders.add(turn)
            meter.add(turn)
            progress.note(_line(turn, meter.spent, leaders))
        best = leaders.best()
        raced = {name: race_best(run, settings, turns, best[name], progress) for name in best}
        best = {name: item.turn for name, item in raced.items()}
        dispatched = add_dispatchers(run, settings, best, progress)
        best |= {name: item.best for name, item in dispatched.items()}
        measured = {
            name: remeasure_best(run, settings, turn, progress) for name, turn in best.items()
        }
    document = _document(run, turns, measured, ended)
    document["dispatchers"] = {name: item.document() for name, item in dispatched.items()}
    document["races"] = {
        name: {"candidates": item.candidates, "trials": item.trials} for name, item in raced.items()
    }
    if given["as_json"]:
        click.echo(json.dumps(document, indent=1))
    print_end(document, run.folder)
    if settings.loop.keep_candidates:
        _keep(settings.home, run.folder.name, [report for _, report in measured.values()])
    if any(report.verdict == "correct" for _, report in measured.values()):
        return 0
    return InfrastructureError.exit_code if nothing_judged(turns) else 1


def _keep(home: Path, run: str, reports: Sequence[EvalReport]) -> None:
    """Store winners for later searches. A folder that cannot be written costs no result."""
    for report in reports:
        item = earlier_candidate(report, f"{run} winner")
        if item is not None:
            try:
                keep(home, item)
            except ConfigError as error:
                print_line(f"the winner is not stored for later searches: {error}")


def opened(given: dict[str, Any], kind: str) -> tuple[SearchRun, Config, Policy]:
    """Return a run, new or resumed, its settings and its policy."""
    if given["resumed"]:
        return _resumed(given)
    if not given["problem"] or not given["model"]:
        raise ConfigError(f"{kind} needs a problem and --model NAME, or --resume RUN")
    settings = load_settings(given)
    options.ready_to_judge(settings)
    check_loggers(settings.loop.log, "loop.log")
    problems = find_problems(given["problem"], settings.home)
    policy, model = _policy(given["model"], settings, given), one_model(settings)
    begun = RunStarted(
        kind=kind,
        name=given["model"],
        problems=given["problem"],
        protocols=(settings.eval.protocol,),
        language=settings.loop.language,
        strategies=tuple(run_state.strategy_names(settings.loop)),
        samples=settings.loop.samples,
        evaluator=__version__,
        device=model,
        **(lint_results(problems, given["problem"], settings, model) if kind == "bench" else {}),
    )
    earlier = earlier_candidates(given["warm_start"], settings.home)
    seeds = stored_candidates(earlier, problems, settings.loop.warm_start)
    folder = create_run(settings.runs, config.dump(settings))
    write_seeds(folder, seeds)
    skipped: list[str] = []
    shown = examples(earlier, problems, settings.loop.document_tokens, skipped.append)
    print_skipped(skipped)
    write_examples(folder, shown)
    return run_state.begin_session(folder, begun, problems, settings), settings, policy


@contextmanager
def further_models(settings: Config) -> Iterator[dict[str, Policy]]:
    """Yield the models of the setting `models` by their role, and close them."""
    with ExitStack() as stack:
        yield {
            role: stack.enter_context(closing(choose_policy(model.name, model, warn=print_line)))
            for role, model in settings.models.items()
        }


def asks_a_model(run: str | None) -> bool:
    """Tell whether a model writes the answers of a run: then its folder holds no candidates."""
    if run is None or not os.path.exists(Path(run) / EVENTS):
        return False
    if os.path.exists(Path(run) / CANDIDATES):
        return False
    events = read_events(Path(run), left_out=lambda _: None)
    first = next((event.asks[0] for event in events if isinstance(event, RequestsIssued)), None)
    if first is not None and first.id == f"{first.problem}#{first.sample}":
        missing = Path(run) / CANDIDATES
        raise RecordError(f"{missing}: missing; without it this run cannot be resumed")
    return True


def _resumed(given: dict[str, Any]) -> tuple[SearchRun, Config, Policy]:
    folder, settings = resumed_run(given, FIXED)
    before = config.load(folder / "run.yaml", recorded=True)
    check_unchanged(folder, before, settings, MAY_CHANGE)
    run = run_state.resume_session(folder, settings)
    check_resumed(folder, run.begun, one_model(settings))
    return run, settings, _policy(run.begun.name, settings, given)


def _policy(name: str, settings: Config, given: dict[str, Any]) -> Policy:
    section = settings.loop
    strict = given["strict_recording"]
    policy = choose_policy(name, settings.model, strict_recording=strict, warn=print_line)
    priced = policy.max_cost(1000).usd or name.startswith(("recorded:", "local:"))
    if section.max_usd is not None and not priced:
        raise ConfigError(
            "--max-usd has no effect without prices: give --set model.usd_per_million_in=... and "
            "--set model.usd_per_million_out=..."
        )
    if section.max_device_s is not None and section.max_device_s < section.eval_timeout_s:
        raise ConfigError(
            f"--max-device-s {section.max_device_s:g} is less than one turn may take "
            f"(loop.eval_timeout_s {section.eval_timeout_s:g}): no turn could begin; raise it"
        )
    return policy


def _line(turn: Turn, spent: Usage, leaders: Leaders) -> str:
    best = leaders.best_of_problem(turn.ask.problem)
    parts = [f"turn {turn.ask.turn + 1}, {turn_text(turn)}", f"{spent.tokens} tokens"]
    if spent.usd:
        parts.append(f"{spent.usd:.2f} USD")
    if best is not None and (found := best.judgements[0]).speedup is not None:
        speed = speed_text(found.speedup, found.low, found.high)
        parts.append(f"best: turn {best.ask.turn + 1}, {speed}")
    return " | ".join(parts)


def _document(
    run: SearchRun, turns: list[Turn], measured: dict[str, Any], ended: SearchResult
) -> dict[str, Any]:
    best = {}
    for name, (path, report) in measured.items():
        why = None if report.verdict == "correct" else reason(report)
        best[name] = {"file": path, "reason": why, **{key: getattr(report, key) for key in SHOWN}}
    return {
        "run": str(run.folder),
        "turns": len(turns),
        "spent": usage_of(turns).model_dump(),
        "ended_for": ended.lacking or None,
        "stopped": ended.stopped or None,
        "winners": best,
        "nothing_judged": nothing_judged(turns),
    }


def _dispatcher_line(item: dict[str, Any]) -> str:
    """Return what became of a dispatcher, in words."""
    lost = f"the candidate loses on {', '.join(item['losing_cases'])}"
    if item["rule"] is None:
        return f"{lost}, and there is no dispatcher: {item['reason']}"
    speed = ""
    if item["speedup"] is not None:
        speed = f" ({speed_text(item['speedup'], item['speedup_low'], item['speedup_high'])})"
    verb = "kept" if item["kept"] else f"not kept, {item['reason']}"
    return f"{lost}; a dispatcher with the reference {item['rule']} was {verb}{speed}"


def print_end(document: dict[str, Any], folder: Path) -> None:
    """Print the best candidates, the reason for the end, and the next command."""
    for name, item in document.get("dispatchers", {}).items():
        print_line(f"{name}: {_dispatcher_line(item)}")
    for name, item in document.get("races", {}).items():
        if item["trials"]:
            print_line(f"{name}: {item['candidates']} candidates raced in {item['trials']} trials")
    for name, item in document["winners"].items():
        text = f"{item['verdict']} ({item['reason']})" if item["reason"] else item["verdict"]
        if item["speedup"] is not None:
            text = speed_text(item["speedup"], item["speedup_low"], item["speedup_high"])
        print_line(f"{name}: measured once more: {text}; {item['file']}")
    if document.get("nothing_judged"):
        print_line("no answer was judged: all evaluations ended in a failure of tilewright")
    elif not document["winners"]:
        print_line("no answer was correct")
    if document["ended_for"]:
        print_line(f"the budget of {document['ended_for']} is used up")
    if document["stopped"]:
        print_line(f"the strategy ended: {STOPPED[document['stopped']]}")
    verb = "optimize --resume" if document["ended_for"] else "report"
    print_line(f"run {folder}; next: tilewright {verb} {folder}")
