"""Checks that every search strategy must pass: determinism, replay, budget, end and options."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, RecordError, TilewrightError
from tilewright.loop.driver import drive, replay
from tilewright.loop.history import RecordedHistory
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.random_values import chooser
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.strategies.base import Factory, Plan
from tilewright.loop.strategies.trajectory import LimitedTrajectory, TrajectoryLimits
from tilewright.records import Problem
from tilewright.records.event_log import EVENTS, EventLog, read_events
from tilewright.records.events import Ask, RequestsIssued, RunStarted, Turn
from tilewright.testing.synth import LEVELS, Program, render
from tilewright.testing.synth_world import SynthWorld

TURNS = 24
JUDGED = 10
"""Requests of a checked trajectory, and the candidates that its limit allows."""
LOST_SHARE = 0.1
"""Share of evaluations that end in a failure of our own."""
PROBLEM = SynthWorld().problems("synth")[0]
UNKNOWN_OPTION = "no_such_option"
BEGUN = RunStarted(
    kind="optimize", name="x", problems="p", protocols=("strict",), evaluator="0", device="none"
)


class StrategyFault(TilewrightError):
    """A strategy breaks a rule of the interface."""


@dataclass(frozen=True)
class FinishedSearch:
    """One finished search."""

    asks: tuple[Ask, ...]
    turns: tuple[Turn, ...]
    log: str


def check_strategy(
    make: Factory, options: Mapping[str, Any] | None = None, *, seeds: Sequence[int] = (0, 1)
) -> None:
    """Run a strategy on synthetic programs, and check the rules of its interface.

    The programs are those of SynthKernel-1. One in ten evaluations is lost, some replies hold no
    code, and some programs occur twice.

    Raises:
        StrategyFault: a rule is broken; the message names it.
    """
    chosen = dict(options or {})
    _refuses_unknown_options(make, chosen)
    try:
        _check_searches(make, chosen, seeds)
    except StrategyFault:
        raise
    except RecordError as error:
        raise StrategyFault(
            f"a replay of its log makes other requests, so that a run could not be resumed: {error}"
        ) from error
    except Exception as error:
        raise StrategyFault(f"it raises {type(error).__name__}: {error}") from error


def _check_searches(make: Factory, chosen: dict[str, Any], seeds: Sequence[int]) -> None:
    for seed in seeds:
        plan = Plan(problem=PROBLEM.id, turns=TURNS, seed=seed, options=chosen)
        for width in (1, 4):
            first = played(make, plan, width)
            _check(first, plan)
            if played(make, plan, width).log != first.log:
                raise StrategyFault(f"seed {seed}, {width} at a time: two runs have different logs")
        limited = played(make, plan, 4, TrajectoryLimits(judged=JUDGED))
        judged = {turn.source for turn in limited.turns if turn.judgements and turn.source}
        if len(judged) > JUDGED:
            raise StrategyFault(f"seed {seed}: {len(judged)} candidates, {JUDGED} are allowed")
    if make(Plan(problem=PROBLEM.id, turns=TURNS, options=chosen), score_of).ask(0):
        raise StrategyFault("it makes requests although the limit is 0")


def _refuses_unknown_options(make: Factory, options: dict[str, Any]) -> None:
    plan = Plan(problem="p", turns=TURNS, options={**options, UNKNOWN_OPTION: 1})
    try:
        make(plan, score_of)
    except ConfigError as error:
        if UNKNOWN_OPTION not in str(error):
            raise StrategyFault(f"the refusal does not name {UNKNOWN_OPTION}: {error}") from error
        return
    raise StrategyFault(f"it accepts the option {UNKNOWN_OPTION}")


def score_of(turn: Turn) -> float | None:
    """Return the speed-up of a turn, 0 for a wrong one, `None` for one that was not judged."""
    if not turn.judgements or turn.judgements[0].verdict == "unjudged":
        return None
    return turn.judgements[0].speedup or 0.0


def played(
    make: Factory, plan: Plan, width: int, limits: TrajectoryLimits | None = None
) -> FinishedSearch:
    """Return a search with so many requests at a time, after its log was replayed."""
    with tempfile.TemporaryDirectory() as folder:
        made = _history(make, plan, limits)
        worker = RolloutWorker(LossyWorld(), Scripted(random_reply), {PROBLEM.id: PROBLEM}, made)
        with EventLog(Path(folder)) as log:
            log.append(BEGUN)
            turns = tuple(
                drive(
                    made,
                    worker.play,
                    log,
                    max_concurrency=width,
                    settle=made.settle,
                    in_order=True,
                )
            )
        if made.ask(1):
            raise StrategyFault("it makes requests after its end")
        events = list(read_events(Path(folder)))
        waiting = replay(_history(make, plan, limits), events)
        if waiting:
            raise StrategyFault(f"after a replay {waiting[0].id} has no result")
        asks = [ask for event in events if isinstance(event, RequestsIssued) for ask in event.asks]
        text = (Path(folder) / EVENTS).read_text(encoding="utf-8")
    return FinishedSearch(tuple(asks), turns, text)


def _history(make: Factory, plan: Plan, limits: TrajectoryLimits | None) -> RecordedHistory:
    strategy = make(plan, score_of)
    if limits is None:
        return RecordedHistory(strategy)
    return RecordedHistory(LimitedTrajectory(strategy, plan, score_of, limits))


def _check(done: FinishedSearch, plan: Plan) -> None:
    names = [ask.id for ask in done.asks]
    if not names:
        raise StrategyFault("it makes no request at all")
    if len(names) > plan.turns:
        raise StrategyFault(f"it makes {len(names)} requests, {plan.turns} are allowed")
    if len(set(names)) < len(names):
        raise StrategyFault("two requests have one id")
    number = {turn.ask.id: place for place, turn in enumerate(done.turns)}
    for ask in done.asks:
        for earlier in (*ask.shown_turns, *ask.parents):
            if number.get(earlier, len(number)) >= number[ask.id]:
                raise StrategyFault(f"{ask.id} shows {earlier}, which has no result yet")
        if ask.role == "choose" and not ask.choices:
            raise StrategyFault(f"{ask.id} has nothing to choose from")


class LossyWorld(SynthWorld):
    """SynthKernel-1, of which some evaluations are lost. Lifetime: one run."""

    def evaluate(self, draft: Turn, problem: Problem) -> Turn:
        """Judge a draft, unless this evaluation is lost."""
        if chooser(0, draft.ask.id, "lost").random() < LOST_SHARE:
            return self.record_refusal(draft.ask, draft.prompt, "lost on purpose").model_copy(
                update={"source": draft.source, "reply": draft.reply, "code": draft.code}
            )
        return super().evaluate(draft, problem)


def random_reply(messages: Sequence[Message], ask: Ask) -> str:  # noqa: ARG001 - one signature
    """Return a random reply: a program, a repeated one, or no program."""
    draw = chooser(1, ask.id, "reply")
    if ask.choices:
        return str(draw.randrange(len(ask.choices)) + 1)
    if ask.role == "say":
        return "<summary>Tiles of 64 were fast.</summary>"
    kind = draw.random()
    if kind < 0.1:
        return "I have no idea."
    if kind < 0.3:
        draw = chooser(1, "repeated")
    return render(Program(*(draw.choice(levels) for levels in LEVELS.values())))
