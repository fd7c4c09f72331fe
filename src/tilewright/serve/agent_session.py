"""The run of a coding agent: it decides what to try, and each answer that it sends is a turn."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from tilewright import config
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.loop.answer_evaluator import RETRY_DELAY_S, AnswerEvaluator, Evaluate
from tilewright.loop.environment import Environment
from tilewright.loop.feedback import redacted
from tilewright.loop.prompts import opening
from tilewright.loop.run_state import PROBLEMS, best_of, score_of
from tilewright.records import Problem
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, Reply, RequestsIssued, RunStarted, Turn, TurnFinished
from tilewright.records.run_folder import create_run, read_report
from tilewright.serve.agent_text import evaluated_text, explained_text, history_text

__all__ = ["MODEL", "AgentRun"]

MODEL = "agent"
"""Who wrote the replies: which model an agent asks is not known here."""
SENT = "- Here you do not reply with it: pass the whole file's text to the tool `evaluate`."
_FENCES = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


class AgentRun:
    """Judges what an agent sends and keeps it as a run. Lifetime: one visit of an agent.

    The run folder is made with the first answer: clients start servers that nobody then asks.
    `evaluate` is called from one thread at a time, the rest from others meanwhile.
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
        self._asked: list[Ask] = []
        self._turns: dict[int, Turn] = {}
        """By the number that the agent knows, from 1. One that raised is missing."""
        self._telling = threading.Lock()
        """So that whoever has seen a turn in the log finds it here."""
        self._over = threading.Event()
        self._log: EventLog | None = None
        self._judge: AnswerEvaluator | None = None
        self.folder: Path | None = None
        """The run folder; `None` before the first answer."""

    def evaluate(self, code: str) -> str:
        """Judge an answer; return what there is to say of it.

        Raises:
            InfrastructureError: it could not be judged, which is not its fault.
            ConfigError: the run cannot be written.
        """
        if self._over.is_set():
            raise InfrastructureError("nothing is judged any more: the server ends")
        log, judge = self._opened()
        ask = self._next()
        log.append(RequestsIssued(limit=1, asks=(ask,)))
        self._asked.append(ask)
        number = len(self._asked)
        reply = Reply(text=fenced(code), model=MODEL)
        turn = Environment(self._settings, judge).evaluate_reply(ask, self._problem, reply)
        if self._over.is_set():
            # What was cut off says nothing of the answer.
            raise InfrastructureError(f"turn {number} was not judged: the server ends")
        with self._telling:
            log.append(TurnFinished(turn=turn))
            self._turns[number] = turn
        verdict = turn.judgements[0]
        if verdict.verdict == "unjudged":
            raise InfrastructureError(
                f"turn {number} could not be judged, which is not the fault of the code: "
                f"{redacted(verdict.reason)}. It may be sent again; if that does not help, tell "
                "whoever runs this server that the problem or the machine is at fault"
            )
        return evaluated_text(number, turn, self._best())

    def explain(self, number: int) -> str:
        """Return all that may be known of a turn.

        Raises:
            ConfigError: there is no such turn.
            RecordError: its report cannot be read.
        """
        turns = self._told()
        turn = turns.get(number)
        if turn is None or self.folder is None:
            known = ", ".join(str(item) for item in list(turns)[-10:]) or "none yet"
            raise ConfigError(f"there is no turn {number}; the last ones are: {known}")
        path = turn.judgements[0].report
        report = read_report(self.folder / path) if path else None
        return explained_text(number, turn, report)

    def problem(self) -> str:
        """Return what must be computed and what an answer looks like."""
        return f"{opening(self._problem, self._settings.loop.language)}\n{SENT}"

    def history(self) -> str:
        """Return a line a turn."""
        return history_text(self._told(), self._best())

    def stop(self) -> None:
        """Repeat nothing from now on, and write nothing of what is under way."""
        self._over.set()
        if self._judge is not None:
            self._judge.stop()

    def close(self) -> None:
        """Close the event log; nothing is under way any more."""
        if self._log is not None:
            self._log.close()

    def _opened(self) -> tuple[EventLog, AnswerEvaluator]:
        """Return the log and the judge of the run, made now if this is the first answer."""
        if self._log is None or self._judge is None:
            folder = create_run(self._settings.runs, config.dump(self._settings))
            try:
                text = f"{self._problem.to_json()}\n"
                (folder / PROBLEMS).write_text(text, encoding="utf-8")
            except OSError as error:
                raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
            log = EventLog(folder)
            log.append(self._begun)
            self.folder, self._log = folder, log
            self._judge = AnswerEvaluator(folder, self._evaluate, retry_delay_s=self._retry_delay_s)
        return self._log, self._judge

    def _next(self) -> Ask:
        number = len(self._asked)
        return Ask(
            id=f"{self._problem.id}#0.{number}",
            problem=self._problem.id,
            turn=number,
            parents=tuple(ask.id for ask in self._asked[-1:]),
        )

    def _told(self) -> dict[int, Turn]:
        with self._telling:
            return dict(self._turns)

    def _best(self) -> tuple[int, Turn] | None:
        """Return the number of the best correct turn, and the turn."""
        turns = self._told()
        best = best_of(list(turns.values()), self._score).get(self._problem.id)
        if best is None:
            return None
        return next((number, turn) for number, turn in turns.items() if turn is best)


def fenced(code: str) -> str:
    """Return source as a reply that holds it in a fenced block; what has blocks stays as it is."""
    # Half a surrogate pair, as models write them, cannot be written to the log.
    text = code.encode("utf-8", "replace").decode("utf-8")
    if text.lstrip().startswith("```"):
        return text
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}\n"
