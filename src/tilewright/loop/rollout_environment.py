"""The environment of a search or of an RL loop: prompts, and the judging of answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Protocol as Interface

from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.answer_evaluator import (
    MAX_REASON,
    AnswerEvaluator,
    nondefault_tolerance,
    unjudged,
)
from tilewright.loop.candidate_text import files_of, logged_files, patched, text_of
from tilewright.loop.feedback import JudgedAnswer, feedback
from tilewright.loop.policies.base import Message, digest_of
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.material import Material
from tilewright.problems.candidates import make_candidate
from tilewright.problems.requests import build_request
from tilewright.records import EvalReport, EvalRequest, Problem, Protocol, SourceFile
from tilewright.records.base import digest_text
from tilewright.records.codes import FailureReason, Stage
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.scoring.report_text import cut
from tilewright.scoring.rewards import REWARDS


class AnswerJudge(Interface):
    """The part of an environment that a rollout needs."""

    def prompt(self, material: Material) -> tuple[Message, ...]:
        """Return the messages that ask for an answer."""

    def draft(
        self,
        ask: Ask,
        problem: Problem,
        reply: Reply,
        prompt: str = "",
        base: tuple[SourceFile, ...] = (),
    ) -> Turn:
        """Return the turn of a reply that is not judged yet; it patches the main file of `base`."""

    def evaluate(self, draft: Turn, problem: Problem) -> Turn:
        """Judge a draft."""

    def record_refusal(self, ask: Ask, prompt: str, reason: str) -> Turn:
        """Return the turn of a request that its policy refused."""


@dataclass(frozen=True)
class Step:
    """The result of an answer."""

    turn: Turn
    reward: float | None
    """`None` if the answer was not judged. A trainer masks it; it does not count as zero."""
    messages: tuple[Message, ...]
    """The prompt for the next answer."""


def judged(
    judge: AnswerEvaluator,
    ask: Ask,
    problem: Problem,
    files: tuple[SourceFile, ...],
    settings: Config,
    language: str | None = None,
) -> tuple[EvalSummary, EvalReport | None]:
    """Judge source files; return the summary for the log, and the report if there is one."""
    request = requested(files, problem, settings, language)
    return (request, None) if isinstance(request, EvalSummary) else judge.evaluate(ask, request)


def requested(
    files: tuple[SourceFile, ...], problem: Problem, settings: Config, language: str | None = None
) -> EvalRequest | EvalSummary:
    """Return the request for source files, or the summary of files that are no candidate."""
    try:
        made = make_candidate(files, problem, language=language)
    except ConfigError as error:
        # No language fits, or the entry point is missing: the candidate failed.
        return unusable(settings.eval.protocol, problem, str(error))
    return build_request(made[0] if isinstance(made, tuple) else made, problem, settings)


def unusable(protocol: Protocol, problem: Problem, reason: str) -> EvalSummary:
    """Return the summary of a reply without a candidate: it failed."""
    return EvalSummary(
        protocol=protocol,
        verdict="failed",
        reason=cut(f"{FailureReason.SYNTAX_ERROR} in {Stage.BUILD}: {reason}", MAX_REASON),
        code=FailureReason.SYNTAX_ERROR,
        stage=Stage.BUILD,
        tolerance=nondefault_tolerance(protocol, problem),
    )


class RolloutEnvironment:
    """Judges answers and writes the feedback about them. Lifetime: a run, or one episode.

    `evaluate_reply` may be called from several threads. `reset` and `step` belong to one episode.
    """

    def __init__(self, settings: Config, judge: AnswerEvaluator) -> None:
        self._settings = within_turn(settings)
        self._judge = judge
        self._reward = REWARDS[settings.loop.reward]
        self._problem: Problem | None = None
        self._episode = 0
        self._turns: list[Turn] = []

    def prompt(self, material: Material) -> tuple[Message, ...]:
        return messages_of(replace(material, language=self._settings.loop.language))

    def draft(
        self,
        ask: Ask,
        problem: Problem,
        reply: Reply,
        prompt: str = "",
        base: tuple[SourceFile, ...] = (),
    ) -> Turn:
        """Return the turn of a reply that is not judged yet.

        The reply patches the first file of `base`, if there is one. A reply without usable code is
        refused.
        """
        if base:
            change = patched(base[0].text, reply.text)
            main = SourceFile(path=base[0].path, text=f"{change.code.strip()}\n")
            files, refused = (main, *base[1:]), change.refused
        else:
            parsed = parse_reply(reply.text, problem.entry)
            files, refused = parsed.files, "" if parsed.files else parsed.reason
        if refused:
            return Turn(ask=ask, prompt=prompt, reply=reply, refused=refused)
        main_text = files[0].text
        return Turn(
            ask=ask,
            source=digest_text("\n".join(file.text for file in files)),
            prompt=prompt,
            reply=reply,
            code=main_text if main_text != text_of(reply.text) else "",
            files=logged_files(files) if base else (),
        )

    def evaluate(self, draft: Turn, problem: Problem) -> Turn:
        """Judge a draft; one that was refused is a failed candidate.

        Raises:
            InfrastructureError: internal errors repeat.
        """
        section, report = self._settings.loop, None
        if draft.refused:
            summary = unusable(self._settings.eval.protocol, problem, draft.refused)
        else:
            files = files_of(draft, problem.entry)
            summary, report = judged(self._judge, draft.ask, problem, files, self._settings)
        answer = JudgedAnswer(summary, report, self._reward(summary))
        said = feedback(answer, section.feedback, section.feedback_tokens)
        update = {"judgements": (summary,), "feedback": said}
        language = report.request.candidate.language if report is not None else ""
        return draft.model_copy(update={**update, "language": language})

    def evaluate_reply(self, ask: Ask, problem: Problem, reply: Reply, prompt: str = "") -> Turn:
        """Judge a reply; a reply without code is a failed candidate.

        Raises:
            InfrastructureError: internal errors repeat.
        """
        return self.evaluate(self.draft(ask, problem, reply, prompt), problem)

    def record_refusal(self, ask: Ask, prompt: str, reason: str) -> Turn:
        summary = unjudged(self._settings.eval.protocol, reason)
        return Turn(ask=ask, prompt=prompt, judgements=(summary,))

    def reset(self, problem: Problem) -> tuple[Message, ...]:
        """Begin an episode; return its first prompt."""
        self._problem, self._turns = problem, []
        self._episode = next(self._judge.episodes)
        return self.prompt(Material(problem))

    async def step(self, reply: str | Reply) -> Step:
        """Judge an answer of this episode without blocking the event loop.

        Raises:
            RuntimeError: `reset` was not called.
            InfrastructureError: internal errors repeat.
        """
        if self._problem is None:
            raise RuntimeError("no episode: call reset(problem) first")
        number, problem = len(self._turns), self._problem
        earlier = tuple(turn.ask.id for turn in self._turns)
        ask = Ask(
            id=f"{problem.id}#{self._episode}.{number}",
            problem=problem.id,
            sample=self._episode,
            turn=number,
            parents=earlier[-1:],
            shown_turns=earlier,
        )
        given = Reply(text=reply) if isinstance(reply, str) else reply
        prompt = digest_of(self.prompt(Material(problem, shown=self._turns)))
        turn = await asyncio.to_thread(self.evaluate_reply, ask, problem, given, prompt)
        self._turns.append(turn)
        reward = self._reward(turn.judgements[0])
        return Step(turn, reward, self.prompt(Material(problem, shown=self._turns)))


def within_turn(settings: Config) -> Config:
    """Return settings in which an evaluation takes at most `loop.eval_timeout_s`."""
    limits = settings.eval.limits
    most_s = min(limits.total_timeout_s, settings.loop.eval_timeout_s)
    return settings.with_eval(limits=limits.model_copy(update={"total_timeout_s": most_s}))
