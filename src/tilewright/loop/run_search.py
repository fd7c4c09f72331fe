"""A run in which a model writes the candidates: the common part of `optimize` and `bench`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tilewright.config import Config
from tilewright.errors import InfrastructureError, PolicyError, writing
from tilewright.executors.factory import open_executor
from tilewright.languages.python_template import render_python
from tilewright.loop.answer_evaluator import OnEvent, open_evaluator
from tilewright.loop.budget import BudgetGuard
from tilewright.loop.driver import drive
from tilewright.loop.policies.base import Policy
from tilewright.loop.policies.chat import Chat
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.rollout_environment import RolloutEnvironment
from tilewright.loop.run_state import SearchRun, budget_of
from tilewright.loop.warm_start import WarmStart, read_seeds
from tilewright.problems.requests import build_request
from tilewright.records import Candidate, EvalReport, Problem
from tilewright.records.event_log import EventLog
from tilewright.records.events import SearchStopped, Turn
from tilewright.records.run_folder import read_report
from tilewright.registry import selected_checks

TEMPLATE = Path(__file__).with_name("best_candidate.py.j2")


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
    executor, judge = open_evaluator(settings, session.folder, shown)
    environment = RolloutEnvironment(settings, judge)
    problems = {problem.id: problem for problem in session.problems}
    seeds = read_seeds(session.folder)
    # Seeds take the place of the model that writes programs.
    models = {role: WarmStart(model, seeds) for role, model in (models or {}).items()}
    embed = policy.embed if isinstance(policy, Chat) and settings.model.embeddings else None
    policy = WarmStart(policy, seeds)
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
        try:
            yield from _driven(session, settings, player, budget, stop)
        except (InfrastructureError, PolicyError):
            # The next invocation repeats the requests that ran when the time was up.
            if not late.is_set():
                raise
    ended.lacking = "wall_s" if late.is_set() else budget.lacking
    ended.stopped = session.strategy.stopped


def _driven(
    session: SearchRun,
    settings: Config,
    player: RolloutWorker,
    budget: BudgetGuard,
    stop: Callable[[], None],
) -> Generator[Turn]:
    """Yield the turns of a search within its budget, and log at the end why it stopped."""
    with EventLog(session.folder, session.log_bytes) as log:
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
        log.append(stop_of(budget.lacking, session.strategy.stopped))


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


def stop_of(lacking: str, own: str) -> SearchStopped:
    """Return why a search stops: its budget, the strategy's own rule, or nothing left to ask."""
    if lacking:
        return SearchStopped(reason="budget", detail=lacking)
    return SearchStopped.model_validate({"reason": own or "nothing to do"})


def remeasure_best(
    session: SearchRun, settings: Config, best: Turn, shown: OnEvent
) -> tuple[str, EvalReport]:
    """Measure the best candidate again in new processes; return its file and the report.

    The first measurement overestimates, because it selected the candidate. The second does not.
    """
    problem = next(item for item in session.problems if item.id == best.ask.problem)
    candidate = read_report(session.folder / best.judgements[0].report).request.candidate
    with open_executor(settings) as executor:
        request = build_request(candidate, problem, settings)
        report = executor.evaluate(request, shown, checks=selected_checks(settings.plugins))
    target = session.folder / "winner" / problem.id.replace("/", "-")
    with writing(target):
        for file in candidate.files:
            path = target / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
        main = target / candidate.files[0].path
        main.write_text(standalone(problem, candidate), encoding="utf-8")
        (target / "report.json").write_text(report.to_json(indent=1), encoding="utf-8")
    return str(main), report


def standalone(problem: Problem, candidate: Candidate) -> str:
    """Return the candidate's main file with a check against its reference at the end.

    A main file in another language than Python is returned unchanged.
    """
    main = candidate.files[0]
    if not main.path.endswith(".py"):
        return main.text
    return render_python(
        TEMPLATE,
        candidate=main.text.rstrip(),
        reference=problem.source.text,
        entry=candidate.entry,
        is_module=problem.kind == "module",
    )
