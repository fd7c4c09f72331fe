"""A run in which a model writes the candidates: the common part of `optimize` and `bench`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass

from tilewright.config import Config
from tilewright.errors import InfrastructureError, PolicyError
from tilewright.executors.factory import open_executor
from tilewright.loop.answer_evaluator import AnswerEvaluator
from tilewright.loop.best_candidate import write_winner
from tilewright.loop.driver import drive
from tilewright.loop.environment import Environment
from tilewright.loop.policies.base import Policy
from tilewright.loop.rollout import BudgetGuard, RolloutWorker
from tilewright.loop.run_state import SearchRun, budget_of
from tilewright.problems.requests import build_request
from tilewright.records import EvalReport, Problem
from tilewright.records.event_log import EventLog
from tilewright.records.events import Turn
from tilewright.records.run_folder import read_report
from tilewright.registry import selected_checks

__all__ = ["SearchResult", "play", "remeasure_best"]

Shown = Callable[[str, dict[str, object]], None]


@dataclass
class SearchResult:
    """How an invocation ended."""

    lacking: str = ""
    """The resource of the budget that was used up."""


def play(
    session: SearchRun, settings: Config, policy: Policy, shown: Shown, ended: SearchResult
) -> Generator[Turn]:
    """Yield turns until the strategies end or the budget is used up.

    Raises:
        PolicyError: the model cannot answer.
        InfrastructureError: internal errors repeat.
    """
    section = settings.loop
    executor = open_executor(settings, min(section.max_concurrency, 4))
    checks = selected_checks(settings.plugins)
    lock = threading.Lock()

    def seen(event: str, fields: dict[str, object]) -> None:
        with lock:
            shown(event, fields)

    judge = AnswerEvaluator(
        session.folder, lambda request: executor.evaluate(request, seen, checks=checks)
    )
    environment = Environment(settings, judge)
    problems = {problem.id: problem for problem in session.problems}
    player = RolloutWorker(environment, policy, problems, session.strategy.turns)
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
        policy.close()

    late = threading.Event()
    timer = _timer(section.max_wall_s, late, stop)
    try:
        with EventLog(session.folder, session.log_bytes) as log:
            for turn in drive(
                session.strategy,
                player.play,
                log,
                max_concurrency=section.max_concurrency,
                waiting=session.waiting,
                admit=budget.reserve,
                stop=stop,
            ):
                budget.commit(turn)
                yield turn
    except (InfrastructureError, PolicyError):
        # The next invocation repeats the requests that ran when the time was up.
        if not late.is_set():
            raise
    finally:
        timer.cancel()
        executor.close()
    ended.lacking = "wall_s" if late.is_set() else budget.lacking


def _timer(
    wall_s: float | None, late: threading.Event, stop: Callable[[], None]
) -> threading.Timer:
    def end() -> None:
        late.set()
        stop()

    timer = threading.Timer(wall_s or 0.0, end)
    timer.daemon = True
    if wall_s is not None:
        timer.start()
    return timer


def remeasure_best(
    session: SearchRun, settings: Config, best: Turn, shown: Shown
) -> tuple[str, EvalReport]:
    """Measure the best candidate again in new processes; return its file and the report.

    The first measurement overestimates, because it selected the candidate. The second does not.
    """
    problem: Problem = next(item for item in session.problems if item.id == best.ask.problem)
    first = read_report(session.folder / best.judgements[0].report)
    checks = selected_checks(settings.plugins)
    with open_executor(settings) as executor:
        request = build_request(first.request.candidate, problem, settings)
        report = executor.evaluate(request, shown, checks=checks)
    return str(write_winner(session.folder, problem, report)), report
