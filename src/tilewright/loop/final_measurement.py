"""The winner of a search: a race of those that may be the best, and a last measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.config import Config
from tilewright.errors import writing
from tilewright.executors.base import Executor
from tilewright.executors.factory import open_executor
from tilewright.languages.python_template import render_python
from tilewright.loop.answer_evaluator import OnEvent, summary_of_report
from tilewright.loop.estimates import Estimate, Estimates, trial_of
from tilewright.loop.racing import Contender, RaceRules, next_trials, outcome, rivals, with_trial
from tilewright.loop.run_state import SearchRun
from tilewright.problems.requests import build_request
from tilewright.records import Candidate, EvalReport, Problem
from tilewright.records.events import Turn
from tilewright.records.run_folder import read_report
from tilewright.registry import selected_checks

TEMPLATE = Path(__file__).with_name("best_candidate.py.j2")


@dataclass(frozen=True)
class RacedWinner:
    """The turn that won a race, and the size of the race."""

    turn: Turn
    candidates: int
    trials: int


def race_best(
    session: SearchRun, settings: Config, turns: Sequence[Turn], best: Turn, shown: OnEvent
) -> RacedWinner:
    """Let the candidates race whose intervals overlap with that of the best one.

    Their trials are whole evaluations in new processes. The trials that made a candidate look good
    do not count. If no candidate of a race is correct again, the next best ones race.
    """
    left, candidates, trials = _ranked(turns, best), 0, 0
    while left:
        names = rivals([(name, found) for name, found, _ in left], settings.loop.race_candidates)
        if not names:
            return RacedWinner(left[0][2], candidates, trials)
        by_name = {name: turn for name, _, turn in left if name in names}
        entrants, won = _raced(session, settings, by_name, shown)
        candidates += len(entrants)
        trials += sum(item.trials for item in entrants)
        if won is not None:
            return RacedWinner(by_name[won], candidates, trials)
        left = [item for item in left if item[0] not in by_name]
    return RacedWinner(best, candidates, trials)


def _raced(
    session: SearchRun, settings: Config, turns: Mapping[str, Turn], shown: OnEvent
) -> tuple[list[Contender], str | None]:
    """Let candidates race; return them, and the winner. `None`: none was correct."""
    found = {name: Contender(name) for name in turns}
    rules = RaceRules(max_trials=settings.loop.race_trials)
    with open_executor(settings) as executor:
        while due := next_trials(list(found.values()), rules):
            for name in due:
                report = _measured(executor, session, settings, turns[name], shown)
                found[name] = with_trial(found[name], trial_of(summary_of_report(report, "", 0.0)))
    entrants = list(found.values())
    return entrants, outcome(entrants, rules).best


def _ranked(turns: Sequence[Turn], best: Turn) -> list[tuple[str, Estimate, Turn]]:
    """Return the candidates of the best one's problem with their estimates, the best first."""
    estimates, first = Estimates(), dict[str, Turn]()
    for turn in turns:
        estimates.add(turn)
        if turn.ask.problem == best.ask.problem and turn.judgements and turn.judgements[0].report:
            first.setdefault(turn.source, turn)
    first[best.source] = best
    found = [(name, estimates.of(turn.ask.id), turn) for name, turn in first.items()]
    timed = [item for item in found if item[1].speedup is not None]
    # The first one is the one that the search called the best, whatever score it maximised.
    return sorted(timed, key=lambda item: (item[2] is not best, -(item[1].speedup or 0.0)))


def _measured(
    executor: Executor, session: SearchRun, settings: Config, turn: Turn, shown: OnEvent
) -> EvalReport:
    problem = next(item for item in session.problems if item.id == turn.ask.problem)
    request = build_request(candidate_of(session, turn), problem, settings)
    return executor.evaluate(request, shown, checks=selected_checks(settings.plugins))


def candidate_of(session: SearchRun, turn: Turn) -> Candidate:
    """Return the candidate that a turn's report is about."""
    return read_report(session.folder / turn.judgements[0].report).request.candidate


def remeasure_best(
    session: SearchRun, settings: Config, best: Turn, shown: OnEvent
) -> tuple[str, EvalReport]:
    """Measure the best candidate again in new processes; return its file and the report.

    The first measurement overestimates, because it selected the candidate. The second does not.
    """
    problem = next(item for item in session.problems if item.id == best.ask.problem)
    candidate = candidate_of(session, best)
    with open_executor(settings) as executor:
        report = _measured(executor, session, settings, best, shown)
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
