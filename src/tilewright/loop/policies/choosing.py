"""Choices: a model takes one of several legal answers, by log-probabilities or in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tilewright.loop.policies.base import Message, Policy
from tilewright.records.events import Ask, Choice, Reply

AGAIN = "That is none of the choices. Reply with the number of one choice and nothing else."


@runtime_checkable
class ChoiceScorer(Protocol):
    """A policy that can state how likely it would write each of several texts."""

    def score_choices(
        self, messages: Sequence[Message], choices: Sequence[str]
    ) -> tuple[tuple[float, ...], ...]:
        """Return the log-probabilities of the tokens of each choice, after the prompt."""


@runtime_checkable
class ScoringPolicy(Policy, ChoiceScorer, Protocol):
    """A policy that answers, and states log-probabilities of choices."""


def choice_request(ask: Ask) -> str:
    """Return the instruction of a request with choices: its own, then the numbered choices."""
    lines = [f"{number}. {text}" for number, text in enumerate(ask.choices, start=1)]
    request = "Choose one of these. Reply with its number and nothing else."
    return "\n\n".join(filter(None, (ask.instruction, request, "\n".join(lines))))


def choose(policy: Policy, messages: Sequence[Message], ask: Ask) -> tuple[Reply, Choice]:
    """Return a model's choice and the reply that cost something.

    With log-probabilities the choice with the highest mean per token is taken. In words the model
    is asked at most twice; if it names no choice, the first one is taken.

    Raises:
        PolicyError: the policy cannot answer.
        ReplyRefused: it refused.
    """
    if isinstance(policy, ChoiceScorer):
        logprobs = policy.score_choices(messages, ask.choices)
        means = [sum(row) / max(len(row), 1) for row in logprobs]
        taken = max(range(len(means)), key=means.__getitem__)
        return Reply(text=ask.choices[taken], model=policy.name), Choice(
            taken=taken, logprobs=logprobs
        )
    reply = policy.answer(messages, ask)
    taken_or_none = named_choice(reply.text, ask.choices)
    if taken_or_none is None:
        said = (Message(role="assistant", text=reply.text), Message(role="user", text=AGAIN))
        second = policy.answer((*messages, *said), ask)
        taken_or_none = named_choice(second.text, ask.choices)
        total = {name: getattr(reply, name) + getattr(second, name) for name in COSTS}
        reply = second.model_copy(update=total)
    unclear = taken_or_none is None
    return reply, Choice(taken=taken_or_none or 0, unclear=unclear)


COSTS = ("prompt_tokens", "reply_tokens", "usd", "seconds")


def named_choice(text: str, choices: Sequence[str]) -> int | None:
    """Return the place of the choice that a reply names by number or by its words, if any.

    The last number counts, since a model may think in words first.
    """
    words = text.strip().casefold()
    same = [place for place, choice in enumerate(choices) if choice.casefold() == words]
    if same:
        return same[0]
    if re.fullmatch(r"\W*\d+\W*", words):
        place = int(re.sub(r"\D", "", words)) - 1
        return place if 0 <= place < len(choices) else None
    named = [place for place, choice in enumerate(choices) if choice.casefold() in words]
    return named[0] if len(named) == 1 else None
