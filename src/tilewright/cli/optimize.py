"""`tilewright optimize`: a model writes, the judge answers, again and again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from tilewright import __version__, config
from tilewright.cli.common import (
    device_flags,
    load_settings,
    one_model,
    out_option,
    ready_to_judge,
    settings_options,
    usable_home,
)
from tilewright.cli.lines import say
from tilewright.cli.play import Played, crown, play
from tilewright.cli.progress import Progress
from tilewright.cli.render import reason
from tilewright.cli.render_bench import turn_text
from tilewright.config import Config
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.budget import spent_on
from tilewright.loop.policies.base import Policy
from tilewright.loop.policies.choose import choose_policy
from tilewright.loop.sessions import (
    Session,
    begin_session,
    best_of,
    resume_session,
    score_of,
)
from tilewright.loop.sitting import CANDIDATES
from tilewright.loop.strategies.base import Score
from tilewright.problems.store import find_problems
from tilewright.records import Problem
from tilewright.records.events import Asked, Begun, Turn
from tilewright.records.log import EVENTS, read_events
from tilewright.records.runs import create_run
from tilewright.scoring.words import speed_text

__all__ = ["asks_a_model", "command", "model_options", "opened"]

FLAGS = {
    "base_url": ("--base-url", "model.base_url"),
    "strategy": ("--strategy", "loop.strategy"),
    "turns": ("--turns", "loop.turns"),
    "samples": ("--samples", "loop.samples"),
    "language": ("--language", "loop.language"),
    "in_flight": ("--in-flight", "loop.in_flight"),
    "max_turns": ("--max-turns", "loop.max_turns"),
    "max_tokens": ("--max-tokens", "loop.max_tokens"),
    "max_device_s": ("--max-device-s", "loop.max_device_s"),
    "max_wall_s": ("--max-wall-s", "loop.max_wall_s"),
    "max_usd": ("--max-usd", "loop.max_usd"),
    "out": ("--out", "runs"),
}
Health = Callable[[list[Problem], Config, str], dict[str, Any]]
MAY_CHANGE = (
    *("home", "runs", "executor", "loop.max_", "loop.in_flight", "model.base_url"),
    *("model.key_variable", "model.timeout_s", "model.retries", "model.pause_s"),
    *("model.concurrency", "model.requests_per_minute", "model.usd_per_million_"),
    *("model.device", "eval.device"),
)
"""Settings that a run does not depend on, by the beginning of their path."""
FIXED = ("problem", "problems", "model", "strategy", "turns", "samples", "language", "out", "file")
"""What a run keeps from its beginning."""


def model_options(function: Any) -> Any:  # noqa: ANN401 - click's decorators
    """Add the options about a model and how it is asked."""
    for option in (
        click.option("--strict-replay", is_flag=True, help="Refuse a recording of other prompts."),
        click.option("--max-usd", type=float, help="Money for a run. (loop.max_usd)"),
        click.option("--max-wall-s", type=float, help="Seconds of a sitting. (loop.max_wall_s)"),
        click.option("--max-device-s", type=float, help="Of evaluations. (loop.max_device_s)"),
        click.option("--max-tokens", type=int, help="Prompts and replies. (loop.max_tokens)"),
        click.option("--max-turns", type=int, help="Over all trajectories. (loop.max_turns)"),
        click.option("--in-flight", type=int, help="Turns at once. (loop.in_flight)"),
        click.option("--samples", type=int, help="Trajectories a problem. (loop.samples)"),
        click.option("--turns", type=int, help="Answers a trajectory. (loop.turns)"),
        click.option("--strategy", metavar="NAME", help="What to ask next. (loop.strategy)"),
        click.option("--base-url", metavar="URL", help="The model's server. (model.base_url)"),
        click.option(
            "--model",
            metavar="NAME",
            help="A model's name at its server, local:PATH, recorded:RUN or scripted:FILE.py.",
        ),
    ):
        function = option(function)
    return function


@click.command("optimize")
@click.argument("problem", required=False, default="")
@model_options
@click.option("--language", metavar="NAME", help="Write it in this language. (loop.language)")
@click.option("--resume", "resumed", metavar="RUN", help="Go on with a run that was stopped.")
@click.option("--device", metavar="NAME", help="cpu, cuda, cuda:N, or several. (eval.device)")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as one document.")
@out_option
@settings_options
@click.option("-v", "--verbose", is_flag=True, help="Write every step to stderr.")
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Have a model write better and better candidates for PROBLEM.

    Each turn is judged, and what the verdict says is shown to the model in the next. The best
    candidate is measured once more at the end and written out as a file that runs by itself.
    """
    session, settings, policy = opened(given, "optimize")
    usable_home(settings)
    ended = Played()
    score = score_of(settings.loop)
    told, tally = list(session.told), Tally(session.told, score)
    with Progress("optimize", verbose=given["verbose"]) as progress:
        try:
            for turn in play(session, settings, policy, progress, ended):
                told.append(turn)
                progress.note(tally.line(turn))
            best = best_of(told, score)
            crowned = {
                name: crown(session, settings, turn, progress) for name, turn in best.items()
            }
        except BaseException:
            progress.note(f"to go on: tilewright optimize --resume {session.folder}")
            raise
        finally:
            policy.close()
    document = _document(session, told, crowned, ended)
    if given["as_json"]:
        click.echo(json.dumps(document, indent=1))
    _say_end(document, session.folder)
    return 0 if any(report.verdict == "correct" for _, report in crowned.values()) else 1


def opened(
    given: dict[str, Any], kind: str, health: Health = lambda *_: {}
) -> tuple[Session, Config, Policy]:
    """Return the run that is meant, begun now or gone on with, and its policy.

    Raises:
        ConfigError: options are missing, or contradict what the run was begun with.
    """
    if given["resumed"]:
        return _resumed(given)
    if not given["problem"] or not given["model"]:
        raise ConfigError(f"{kind} wants a problem and --model NAME, or --resume RUN")
    settings = load_settings(given["file"], given["overrides"], _flags(given))
    ready_to_judge(settings)
    problems = find_problems(given["problem"], settings.home)
    policy, model = _policy(given["model"], settings, given), one_model(settings)
    begun = Begun(
        kind=kind,
        name=given["model"],
        problems=given["problem"],
        protocols=(settings.eval.protocol,),
        language=settings.loop.language,
        evaluator=__version__,
        device=model,
        **health(problems, settings, model),
    )
    folder = create_run(settings.runs, config.dump(settings))
    return begin_session(folder, begun, problems, settings), settings, policy


def asks_a_model(run: str | None) -> bool:
    """Tell whether a run's answers come from a model: then none stand in its folder.

    Raises:
        RecordError: they came from files, and are gone.
    """
    if run is None or not (Path(run) / EVENTS).exists():
        return False
    if (Path(run) / CANDIDATES).exists():
        return False
    events = read_events(Path(run), left_out=lambda _: None)
    first = next((event.asks[0] for event in events if isinstance(event, Asked)), None)
    if first is not None and first.id == f"{first.problem}#{first.sample}":
        raise RecordError(f"{Path(run) / CANDIDATES}: gone; without it this run cannot go on")
    return True


def _resumed(given: dict[str, Any]) -> tuple[Session, Config, Policy]:
    for name in FIXED:
        if given.get(name):
            raise ConfigError(f"--resume goes on with what the run was given; leave {name} out")
    folder = Path(given["resumed"])
    if not (folder / EVENTS).exists():
        raise RecordError(f"{folder / EVENTS}: no event log can be read here")
    # A log that is damaged from the start is told of before files that lie beside one.
    next(read_events(folder), None)
    settings = load_settings(str(folder / "run.yaml"), given["overrides"], _flags(given))
    ready_to_judge(settings)
    _refuse_changes(folder, settings)
    session = resume_session(folder, settings)
    model = one_model(settings)
    for name, then, now in (
        ("device", session.begun.device, model),
        ("version", session.begun.evaluator, __version__),
    ):
        if then != now:
            raise ConfigError(f"{folder} was begun with {name} {then!r}, this is {now!r}")
    return session, settings, _policy(session.begun.name, settings, given)


def _refuse_changes(folder: Path, settings: Config) -> None:
    """Refuse settings that would make another run of it than its log says.

    Raises:
        ConfigError: one was changed; the message names it.
    """
    before = config.load(folder / "run.yaml")
    for leaf in config.leaves():
        then, now = (_at(tree, leaf.path) for tree in (before, settings))
        if then != now and not leaf.path.startswith(MAY_CHANGE):
            raise ConfigError(
                f"{folder} was begun with {leaf.path} {then!r}; a run that goes on keeps it"
            )


def _at(settings: Config, path: str) -> object:
    found: object = settings
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _flags(given: dict[str, Any]) -> dict[str, tuple[str, object]]:
    found = {path: (flag, given.get(name)) for name, (flag, path) in FLAGS.items()}
    return {**found, **device_flags(given.get("device"))}


def _policy(name: str, settings: Config, given: dict[str, Any]) -> Policy:
    section = settings.loop
    policy = choose_policy(name, settings.model, strict_replay=given["strict_replay"], warn=say)
    free = not policy.most(1000).usd
    if section.max_usd is not None and free and not name.startswith(("recorded:", "local:")):
        raise ConfigError(
            "--max-usd is no limit without prices: give --set model.usd_per_million_in=... and "
            "--set model.usd_per_million_out=..."
        )
    if section.max_device_s is not None and section.max_device_s < section.turn_s:
        raise ConfigError(
            f"--max-device-s {section.max_device_s:g} is less than one turn may take "
            f"(loop.turn_s {section.turn_s:g}): nothing could be judged"
        )
    return policy


class Tally:
    """What is spent and the best so far, kept up turn by turn. Lifetime: one sitting."""

    def __init__(self, told: Sequence[Turn], score: Score) -> None:
        self._score = score
        self._spent = spent_on(told)
        self._best = best_of(told, score)

    def line(self, turn: Turn) -> str:
        """Take a turn in; return what is shown of it."""
        self._spent += spent_on([turn])
        problem = turn.ask.problem
        known = [self._best[problem], turn] if problem in self._best else [turn]
        self._best |= best_of(known, self._score)
        best = self._best.get(problem)
        parts = [turn_text(turn), f"{self._spent.tokens} tokens"]
        if self._spent.usd:
            parts.append(f"{self._spent.usd:.2f} USD")
        if best is not None and best.judgements[0].speedup is not None:
            item = best.judgements[0]
            parts.append(f"best: turn {best.ask.turn + 1}, {item.speedup:.2f}x")
        return " | ".join(parts)


def _document(
    session: Session, told: list[Turn], crowned: dict[str, Any], ended: Played
) -> dict[str, Any]:
    winners = {
        name: {
            "file": path,
            "verdict": report.verdict,
            "reason": None if report.verdict == "correct" else reason(report),
            "speedup": report.speedup,
            "speedup_low": report.speedup_low,
            "speedup_high": report.speedup_high,
        }
        for name, (path, report) in crowned.items()
    }
    return {
        "run": str(session.folder),
        "turns": len(told),
        "spent": spent_on(told).model_dump(),
        "ended_for": ended.lacking or None,
        "winners": winners,
    }


def _say_end(document: dict[str, Any], folder: Path) -> None:
    for name, item in document["winners"].items():
        text = f"{item['verdict']} ({item['reason']})" if item["reason"] else item["verdict"]
        if item["speedup"] is not None:
            text = speed_text(item["speedup"], item["speedup_low"], item["speedup_high"])
        say(f"{name}: measured once more: {text}; {item['file']}")
    if not document["winners"]:
        say("no answer was correct")
    if document["ended_for"]:
        say(f"the budget of {document['ended_for']} is used up")
    verb = "optimize --resume" if document["ended_for"] else "report"
    say(f"run {folder}; next: tilewright {verb} {folder}")
