"""A run in which a model writes the candidates: the common part of `optimize` and `bench`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, PolicyError
from tilewright.loop.answer_evaluator import OnEvent, open_evaluator
from tilewright.loop.budget import BudgetGuard
from tilewright.loop.driver import drive
from tilewright.loop.policies.base import Policy
from tilewright.loop.policies.chat import Chat
from tilewright.loop.policies.choosing import ChoiceScorer
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.rollout_environment import RolloutEnvironment
from tilewright.loop.run_state import SearchRun, budget_of, options_of, strategy_names
from tilewright.loop.strategies.raced_admissions import RACED
from tilewright.loop.warm_start import read_seeds, with_seeds
from tilewright.records.event_log import EventLog
from tilewright.records.events import SearchStopped, Turn
from tilewright.registry import load


@dataclass
class SearchResult:
    """How an invocation ended."""

    lacking: str = ""
    """The resource of the budget that was used up."""
    stopped: str = ""
    """The rule by which a strategy stopped itself: `stalled` or `reached`."""


def play(
    session: SearchRun,
    settings: Config,
    policy: Policy,
    shown: OnEvent,
    ended: SearchResult,
    models: Mapping[str, Policy] | None = None,
) -> Generator[Turn]:
    """Yield turns until the strategies end or the budget is used up.

    `models` holds further models by their role; `policy` plays all other roles.

    Raises:
        PolicyError: the model cannot answer.
        InfrastructureError: internal errors repeat.
    """
    section = settings.loop
    check_deciders(settings, policy, models or {})
    executor, judge = open_evaluator(settings, session.folder, shown)
    environment = RolloutEnvironment(settings, judge)
    problems = {problem.id: problem for problem in session.problems}
    seeds, places = read_seeds(session.folder), session.strategy.places
    # Seeds take the place of the model that writes programs.
    models = {role: with_seeds(model, seeds, places) for role, model in (models or {}).items()}
    embed = policy.embed if isinstance(policy, Chat) and settings.model.embeddings else None
    policy = with_seeds(policy, seeds, places)
    player = RolloutWorker(
        environment, policy, problems, session.strategy, models=models, embed=embed
    )
    budget = BudgetGuard(
        budget_of(section),
        session.finished,
        player.max_cost,
        eval_timeout_s=section.eval_timeout_s,
        wall_s=section.max_wall_s,
    )

    def stop() -> None:
        judge.stop()
        executor.kill()
        for model in (policy, *models.values()):
            model.close()

    with closing(executor), ended_after(section.max_wall_s, stop) as late:
        yield from _driven(session, settings, player, budget, stop, late)
    ended.lacking = _lacking(budget, late)
    ended.stopped = session.strategy.stopped


def _driven(
    session: SearchRun,
    settings: Config,
    player: RolloutWorker,
    budget: BudgetGuard,
    stop: Callable[[], None],
    late: threading.Event,
) -> Generator[Turn]:
    """Yield the turns of a search within its budget, and log at the end why it stopped."""
    with EventLog(session.folder, session.log_bytes) as log:
        try:
            for turn in drive(
                session.strategy,
                player.play,
                log,
                max_concurrency=settings.loop.max_concurrency,
                waiting=session.waiting,
                admit=budget.reserve,
                stop=stop,
                settle=session.strategy.settle,
                in_order=settings.loop.order == "asked",
            ):
                budget.commit(turn)
                yield turn
        except (InfrastructureError, PolicyError):
            # The next invocation repeats the requests that ran when the time was up.
            if not late.is_set():
                raise
        log.append(stop_of(_lacking(budget, late), session.strategy.stopped))


def _lacking(budget: BudgetGuard, late: threading.Event) -> str:
    """Return the resource of the budget that was used up; empty if none was."""
    return "wall_s" if late.is_set() else budget.lacking


@contextmanager
def ended_after(wall_s: float | None, stop: Callable[[], None]) -> Iterator[threading.Event]:
    """Call `stop` after so many seconds, and tell by the yielded event that this happened."""
    late = threading.Event()

    def end() -> None:
        late.set()
        stop()

    timer = threading.Timer(wall_s or 0.0, end)
    timer.daemon = True
    if wall_s is not None:
        timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def check_deciders(settings: Config, policy: Policy, models: Mapping[str, Policy]) -> None:
    """Refuse a model that states no log-probabilities where a strategy draws by them.

    Raises:
        ConfigError: there is such a model.
    """
    for name in strategy_names(settings.loop):
        make = load("strategies", name.removesuffix(RACED), packages=settings.plugins)
        needs = getattr(sys.modules[make.__module__], "decider_that_needs_log_probabilities", None)
        role = needs(options_of(settings.loop, name)) if needs is not None else ""
        decider = models.get(role, policy)
        if role and not isinstance(decider, ChoiceScorer):
            raise ConfigError(
                f"strategy {name} draws decisions by their log-probabilities, and {decider.name} "
                f"states none: give models.{role}.name=local:PATH, or the option decision=argmax"
            )


def stop_of(lacking: str, own: str) -> SearchStopped:
    """Return why a search stops: its budget, the strategy's own rule, or nothing left to ask."""
    if lacking:
        return SearchStopped(reason="budget", detail=lacking)
    return SearchStopped.model_validate({"reason": own or "nothing to do"})
