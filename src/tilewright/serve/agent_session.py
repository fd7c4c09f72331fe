"""The run of a coding agent, in which each candidate that the agent sends is a turn."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from tilewright import config
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, writing
from tilewright.loop.answer_evaluator import RETRY_DELAY_S, AnswerEvaluator, Evaluate
from tilewright.loop.feedback import redacted
from tilewright.loop.leaders import best_of
from tilewright.loop.prompts.opening import opening
from tilewright.loop.rollout_environment import RolloutEnvironment
from tilewright.loop.run_state import score_of
from tilewright.records import Problem
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, Reply, RequestsIssued, RunStarted, Turn, TurnFinished
from tilewright.records.run_folder import PROBLEMS, create_run, read_report
from tilewright.serve.agent_answers import (
    BestCode,
    EvaluatedTurn,
    History,
    ProblemFacts,
    ToolAnswer,
    TurnFacts,
    problem_facts,
    turn_facts,
)
from tilewright.serve.agent_text import best_text, explained_text, history_text, reason_text

MODEL = "agent"
"""Model name in the log: the server does not know which model an agent uses."""
HOW_TO_SEND = "- Do not put the file into your reply: pass its whole text to the tool `evaluate`."
_FENCES = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


class AgentRun:
    """Evaluates an agent's candidates and stores them as a run. Lifetime: until `close`.

    The first candidate creates the run folder. Call `evaluate` from one thread at a time.
    """

    def __init__(
        self,
        settings: Config,
        problem: Problem,
        begun: RunStarted,
        evaluate: Evaluate,
        *,
        retry_delay_s: float = RETRY_DELAY_S,
    ) -> None:
        self._settings = settings
        self._problem = problem
        self._begun = begun
        self._evaluate = evaluate
        self._retry_delay_s = retry_delay_s
        self._score = score_of(settings.loop)
        self._asks: list[Ask] = []
        self._turns: dict[int, Turn] = {}
        """Turns by the number that the agent sees, from 1, without those that raised an error."""
        self._turns_lock = threading.Lock()
        """Held while a turn is added to both the log and `_turns`."""
        self._over = threading.Event()
        self._log: EventLog | None = None
        self._judge: AnswerEvaluator | None = None
        self.folder: Path | None = None
        """The run folder; `None` before the first answer."""
        self.doing = "waiting for the evaluation before it"
        """The latest step of the running evaluation."""

    @property
    def address(self) -> str:
        """The address of the problem."""
        return self._problem.id

    def evaluate(self, code: str) -> ToolAnswer[EvaluatedTurn]:
        """Evaluate a candidate and return the feedback; an exception if it has no verdict."""
        if self._over.is_set():
            raise InfrastructureError("the server ends, so it evaluates no more candidates")
        log, judge = self._opened()
        problem, past = self._problem.id, len(self._asks)
        parents = tuple(ask.id for ask in self._asks[-1:])
        ask = Ask(id=f"{problem}#0.{past}", problem=problem, turn=past, parents=parents)
        log.append(RequestsIssued(limit=1, asks=(ask,)))
        self._asks.append(ask)
        number = past + 1
        reply = Reply(text=fenced(code), model=MODEL)
        turn = RolloutEnvironment(self._settings, judge).evaluate_reply(ask, self._problem, reply)
        if self._over.is_set():
            # An interrupted evaluation is no result.
            raise InfrastructureError(f"turn {number} was not judged: the server ends")
        with self._turns_lock:
            log.append(TurnFinished(turn=turn))
            self._turns[number] = turn
        verdict = turn.judgements[0]
        if verdict.verdict == "unjudged":
            raise InfrastructureError(
                f"turn {number} could not be judged, which is not the fault of the code: "
                f"{redacted(verdict.reason)}. Send it again; if that does not help, tell your "
                "user that the problem or the machine is at fault"
            )
        best = self._best()
        facts = turn_facts(number, turn, reason_text(turn)).model_dump()
        return ToolAnswer(
            f"Turn {number}.\n\n{turn.feedback}\n\n{best_text(best)}",
            EvaluatedTurn(**facts, best_turn=best and best[0]),
        )

    def explain(self, number: int) -> ToolAnswer[TurnFacts]:
        """Return the details of a turn; `ConfigError` if there is no such turn."""
        turns = self._finished()
        turn = turns.get(number)
        if turn is None or self.folder is None:
            known = ", ".join(str(item) for item in list(turns)[-10:]) or "none yet"
            raise ConfigError(f"there is no turn {number}; the last ones are: {known}")
        path = turn.judgements[0].report
        report = read_report(self.folder / path) if path else None
        text = explained_text(number, turn, report)
        return ToolAnswer(text, turn_facts(number, turn, reason_text(turn)))

    def problem(self) -> ToolAnswer[ProblemFacts]:
        """Return what must be computed and what an answer looks like."""
        text = f"{opening(self._problem, self._settings.loop.language)}\n{HOW_TO_SEND}"
        return ToolAnswer(text, problem_facts(self._problem))

    def best_code(self) -> ToolAnswer[BestCode]:
        """Return the source of the best turn; `ConfigError` if no turn is correct."""
        best = self._best()
        if best is None or self.folder is None:
            raise ConfigError("no turn is correct yet, so there is no best code")
        report = best[1].judgements[0].report
        if not report:
            raise ConfigError(f"turn {best[0]} has no report")
        code = read_report(self.folder / report).request.candidate.files[0].text
        return ToolAnswer(code, BestCode(turn=best[0], code=code))

    def history(self) -> ToolAnswer[History]:
        """Return one line for each turn."""
        turns, best = self._finished(), self._best()
        facts = tuple(turn_facts(number, turn, reason_text(turn)) for number, turn in turns.items())
        return ToolAnswer(
            history_text(turns, best_text(best)), History(turns=facts, best_turn=best and best[0])
        )

    def stop(self) -> None:
        """Repeat no evaluation, and store nothing of a running one."""
        self._over.set()
        if self._judge is not None:
            self._judge.stop()

    def close(self) -> None:
        """Close the event log; no evaluation may run any more."""
        if self._log is not None:
            self._log.close()

    def _opened(self) -> tuple[EventLog, AnswerEvaluator]:
        """Return the log and the evaluator of the run; the first call creates them."""
        if self._log is None or self._judge is None:
            folder = create_run(self._settings.runs, config.dump(self._settings))
            with writing(folder):
                text = f"{self._problem.to_json()}\n"
                (folder / PROBLEMS).write_text(text, encoding="utf-8")
            log = EventLog(folder)
            log.append(self._begun)
            self.folder, self._log = folder, log
            self._judge = AnswerEvaluator(folder, self._evaluate, retry_delay_s=self._retry_delay_s)
        return self._log, self._judge

    def _finished(self) -> dict[int, Turn]:
        with self._turns_lock:
            return dict(self._turns)

    def _best(self) -> tuple[int, Turn] | None:
        turns = self._finished()
        best = best_of(list(turns.values()), self._score).get(self._problem.id)
        if best is None:
            return None
        return next((number, turn) for number, turn in turns.items() if turn is best)


def fenced(code: str) -> str:
    """Return source as a reply with a fenced block; a reply with blocks stays as it is."""
    # A model may write half of a surrogate pair, which has no UTF-8 for the log.
    text = code.encode("utf-8", "replace").decode("utf-8")
    if text.lstrip().startswith("```"):
        return text
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}\n"
