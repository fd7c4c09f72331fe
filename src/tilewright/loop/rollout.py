"""Rollouts: a request goes to a model, and its reply to the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.errors import RecordError, ReplyRefused
from tilewright.loop.budget import Usage
from tilewright.loop.candidate_text import code_of, files_of, is_patch, logged_files
from tilewright.loop.history import NO_SNAPSHOT, RecordedHistory
from tilewright.loop.judged_once import JudgedOnce
from tilewright.loop.policies.base import Message, Policy, digest_of, estimated_tokens
from tilewright.loop.policies.choosing import choice_request, choose
from tilewright.loop.prompts.material import Material
from tilewright.loop.rollout_environment import AnswerJudge
from tilewright.records import Problem
from tilewright.records.events import Ask, Turn

MAX_REPLIES_OF_A_CHOICE = 2


class RolloutWorker:
    """Answers requests. Lifetime: one run. `play` may be called from several threads."""

    def __init__(
        self,
        environment: AnswerJudge,
        policy: Policy,
        problems: Mapping[str, Problem],
        history: RecordedHistory,
        *,
        models: Mapping[str, Policy] | None = None,
        embed: Callable[[str], tuple[float, ...]] | None = None,
    ) -> None:
        self._environment, self._policy, self._models = environment, policy, models or {}
        self._problems, self._history, self._embed = problems, history, embed
        self._once = JudgedOnce()

    def play(self, ask: Ask) -> Turn:
        """Return the turn of a request.

        Raises:
            PolicyError: the policy cannot answer.
            InfrastructureError: internal errors repeat.
        """
        problem = self._problems[ask.problem]
        if ask.role == "measure":
            return self._measure(ask, problem)
        messages = self._messages(ask)
        policy, prompt = self.policy_of(ask), digest_of(messages)
        try:
            if ask.role == "choose":
                reply, choice = choose(policy, messages, ask)
                return Turn(ask=ask, prompt=prompt, reply=reply, choice=choice)
            reply = policy.answer(messages, ask)
        except ReplyRefused as error:
            # The turn is unjudged, and the other requests continue.
            return self._environment.record_refusal(ask, prompt, str(error))
        if ask.role == "say":
            return Turn(ask=ask, prompt=prompt, reply=reply)
        base = files_of(self._finished(ask.parents[0]), problem.entry) if is_patch(ask) else ()
        draft = self._environment.draft(ask, problem, reply, prompt, base)
        if self._embed is not None and draft.source:
            draft = draft.model_copy(update={"embedding": self._embed(code_of(draft))})
        return draft if ask.role == "draft" else self._judge(draft, problem)

    def _measure(self, ask: Ask, problem: Problem) -> Turn:
        """Judge the parent's code, a draft or a judged candidate, as one more trial."""
        before = self._finished(ask.parents[0])
        if not (code := code_of(before)):
            raise RecordError(f"{ask.id}: {ask.parents[0]} has no code to measure")
        # The reply and its cost belong to the request that wrote it.
        update = {"ask": ask, "reply": None, "judgements": (), "feedback": "", "repeats": ""}
        files = logged_files(files_of(before, problem.entry))
        draft = before.model_copy(update={**update, "code": code, "files": files})
        return self._environment.evaluate(draft, problem)

    def _judge(self, draft: Turn, problem: Problem) -> Turn:
        """Judge a draft, unless the same code was judged before or is being judged."""
        if draft.refused:
            return self._environment.evaluate(draft, problem)
        known = self._history.judged_before(draft.ask, draft.source)
        if known is None:
            key = (problem.id, draft.ask.sample, draft.source)
            known = self._once.judge(key, lambda: self._environment.evaluate(draft, problem))
            if known.ask.id == draft.ask.id:
                return known
        update = {"judgements": known.judgements, "feedback": known.feedback}
        return draft.model_copy(update={**update, "language": known.language})

    def policy_of(self, ask: Ask) -> Policy:
        """Return the model that answers a request: the run's own, unless it has one by its name."""
        return self._models.get(ask.policy, self._policy)

    def max_cost(self, ask: Ask) -> Usage:
        """Return the largest usage of a request, without its evaluation."""
        if ask.role == "measure":
            return Usage(turns=1, trials=1)
        times = MAX_REPLIES_OF_A_CHOICE if ask.role == "choose" else 1
        once = self.policy_of(ask).max_cost(estimated_tokens(self._messages(ask)))
        total = sum([once] * times, Usage(turns=1))
        if ask.role == "draft":
            return total + Usage(drafts=1)
        return total + Usage(judged=1, trials=1) if ask.role == "propose" else total

    def _messages(self, ask: Ask) -> tuple[Message, ...]:
        then = self._history.snapshots.get(ask.id, NO_SNAPSHOT)
        library = self._history.documents
        documents = tuple(map(library.document, ask.documents)) if library else ()
        material = Material(
            self._problems[ask.problem],
            form=ask.form,
            shown=[self._finished(name) for name in ask.shown_turns],
            parents=[self._finished(name) for name in ask.parents],
            estimates=then.estimates,
            failed=then.failed,
            documents=documents,
            instruction=choice_request(ask) if ask.choices else ask.instruction,
            is_choice=bool(ask.choices),
        )
        return self._environment.prompt(material)

    def _finished(self, name: str) -> Turn:
        found = self._history.turns.get(name)
        if found is None:
            raise RecordError(f"a prompt shows {name}, which has no result yet")
        return found
