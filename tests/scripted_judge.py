"""A judge client that answers from a script, and keeps every request that it was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import ProbeAnswer
from tilewright.evaluator.judge_client.messages import (
    Answer,
    Done,
    InputsWritten,
    Request,
    SampleRenewed,
    TimedAnswer,
)
from tilewright.wire.frames import Tree


class ScriptedReply:
    """The reply to one request; `get` marks it and those to earlier requests as received."""

    def __init__(self, judge: ScriptedJudge, answer: Answer) -> None:
        self._judge = judge
        self._answer = answer

    def get(self, timeout_s: float = 0.0) -> Answer:  # noqa: ARG002
        if self in self._judge.unanswered:
            del self._judge.unanswered[: self._judge.unanswered.index(self) + 1]
        return self._answer


class ScriptedJudge(JudgeClient):
    """Logs (kind, fields) of each request; answers calls with `verdict` and `seconds`."""

    def __init__(self, context: Any, log: list[Any], seconds: float | None = None) -> None:
        super().__init__(context)
        self.log = log
        self.seconds = seconds
        self.first_seconds: list[float] = []
        """The seconds of the first calls; `seconds` holds after them."""
        self.verdict = TimedAnswer("", "", None, [], [])
        self.renewals: list[bool] = []
        """Whether the next renewals succeed; those after them do."""
        self.tree: Tree = {"t": "tuple", "v": []}
        """The tree of every renewed sample."""
        self.unanswered: list[ScriptedReply] = []

    def request(self, message: Request[Any], timeout_s: float = 0.0) -> Any:
        return self.send(message).get(timeout_s)

    def send(self, message: Request[Any]) -> Any:
        self.log.append((message.KIND, dict(vars(message))))
        reply = ScriptedReply(self, self._answer(message.ANSWER))
        self.unanswered.append(reply)
        return reply

    def drain(self) -> None:
        self.log.append("drain")
        self.unanswered.clear()

    def _answer(self, kind: type[Answer]) -> Answer:
        if kind is TimedAnswer:
            seconds = self.first_seconds.pop(0) if self.first_seconds else self.seconds
            return replace(self.verdict, seconds=seconds)
        if kind is SampleRenewed:
            return SampleRenewed(self.renewals.pop(0) if self.renewals else True, self.tree)
        known = {Done: Done(), InputsWritten: InputsWritten(True), ProbeAnswer: ProbeAnswer(True)}
        return known[kind]
