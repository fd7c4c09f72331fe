"""Rollouts: a request goes to the policy, and its reply to the evaluator, within the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from tilewright.errors import RecordError, ReplyRefused
from tilewright.loop.budget import Budget, Usage, usage_of
from tilewright.loop.driver import Strategy
from tilewright.loop.policies.base import Message, Policy, digest_of, estimated_tokens
from tilewright.loop.rollout_environment import AnswerJudge
from tilewright.records import Problem
from tilewright.records.events import Ask, Turn


class RecordedHistory:
    """A strategy that keeps the finished turns for later prompts. Lifetime: one run."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self.turns: dict[str, Turn] = {}
        """Turns by the id of their request, without the parts that no prompt shows."""

    def ask(self, limit: int) -> list[Ask]:
        return self._strategy.ask(limit)

    def tell(self, turn: Turn) -> None:
        """Keep a turn, and give it to the strategy."""
        reply = turn.reply
        if reply is not None:
            reply = reply.model_copy(update={"reasoning": "", "tokens": (), "logprobs": ()})
        self.turns[turn.ask.id] = turn.model_copy(update={"reply": reply})
        self._strategy.tell(turn)


class RolloutWorker:
    """Answers requests. Lifetime: one run. `play` may be called from several threads."""

    def __init__(
        self,
        environment: AnswerJudge,
        policy: Policy,
        problems: Mapping[str, Problem],
        turns: Mapping[str, Turn],
    ) -> None:
        self._environment, self._policy = environment, policy
        self._problems, self._turns = problems, turns

    def play(self, ask: Ask) -> Turn:
        """Return the turn of a request.

        Raises:
            PolicyError: the policy cannot answer.
            InfrastructureError: internal errors repeat.
        """
        problem = self._problems[ask.problem]
        if ask.role == "measure":
            before = self._finished(ask.parents[0])
            if before.reply is None:
                raise RecordError(f"{ask.id}: {ask.parents[0]} has no reply to measure again")
            return self._environment.evaluate_reply(ask, problem, before.reply, before.prompt)
        messages = self._messages(ask)
        try:
            reply = self._policy.answer(messages, ask)
        except ReplyRefused as error:
            # The turn is unjudged, and the other requests continue.
            return self._environment.record_refusal(ask, digest_of(messages), str(error))
        if ask.role == "say":
            return Turn(ask=ask, prompt=digest_of(messages), reply=reply)
        return self._environment.evaluate_reply(ask, problem, reply, digest_of(messages))

    def max_cost(self, ask: Ask) -> Usage:
        """Return the largest usage of a request, without its evaluation."""
        if ask.role == "measure":
            return Usage(turns=1)
        return self._policy.max_cost(estimated_tokens(self._messages(ask))) + Usage(turns=1)

    def _messages(self, ask: Ask) -> tuple[Message, ...]:
        shown = [self._finished(name) for name in ask.shown_turns]
        return self._environment.prompt(self._problems[ask.problem], shown, ask.instruction)

    def _finished(self, name: str) -> Turn:
        found = self._turns.get(name)
        if found is None:
            raise RecordError(f"a prompt shows {name}, which has no result yet")
        return found


class BudgetGuard:
    """Admits requests while the budget covers their largest cost. Lifetime: one invocation."""

    def __init__(
        self,
        budget: Budget,
        finished: Sequence[Turn],
        most: Callable[[Ask], Usage],
        *,
        eval_timeout_s: float,
        wall_s: float | None = None,
    ) -> None:
        self._budget, self._most, self._turn_s = budget, most, eval_timeout_s
        self._reserved: dict[str, Usage] = {}
        self._until = None if wall_s is None else time.monotonic() + wall_s
        self.spent = usage_of(finished)
        self.lacking = ""
        """The resource that the last refused request lacked; empty if none was refused."""

    def reserve(self, ask: Ask) -> bool:
        """Reserve the largest usage of a request if the budget has that much left."""
        if self._until is not None and time.monotonic() >= self._until:
            self.lacking = "wall_s"
            return False
        judged_s = 0.0 if ask.role == "say" else self._turn_s
        most = self._most(ask).model_copy(update={"device_s": judged_s})
        self.lacking = self._budget.exceeded(sum(self._reserved.values(), self.spent) + most)
        if not self.lacking:
            self._reserved[ask.id] = most
        return not self.lacking

    def commit(self, turn: Turn) -> None:
        """Replace the reservation of a turn by its usage."""
        self._reserved.pop(turn.ask.id, None)
        self.spent += usage_of([turn])
