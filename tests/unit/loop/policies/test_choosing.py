"""Choices of a model, by log-probabilities and in words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tilewright.loop.policies.base import Message
from tilewright.loop.policies.choosing import choice_request, choose, named_choice
from tilewright.loop.policies.scripted import Scripted
from tilewright.records.events import Ask

CHOICES = ("tile the loop of `sum`", "fuse `exp` and `sum`", "stop")
ASK = Ask(id="a", problem="p", role="choose", choices=CHOICES, instruction="What next?")


class Scorer(Scripted):
    """A policy with known log-probabilities."""

    def score_choices(
        self, messages: Sequence[Message], choices: Sequence[str]
    ) -> tuple[tuple[float, ...], ...]:
        assert (messages, choices) == ((), CHOICES)
        return ((-0.1, -0.2, -0.3), (-0.05, -0.4), (-1.0,))


def test_the_most_likely_choice_per_token_is_taken():
    _, choice = choose(Scorer(lambda *_: "unused"), (), ASK)
    assert (choice.taken, len(choice.logprobs), choice.unclear) == (0, 3, False)


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        ("2", 1),
        (" (3).", 2),
        ("Stop", 2),
        ("I would fuse `exp` and `sum` now.", 1),
        ("4", None),
        ("0", None),
        ("tile the loop of `sum`, then stop", None),
        ("whatever", None),
    ],
)
def test_a_choice_is_read_by_number_or_by_its_words(reply, place):
    assert named_choice(reply, CHOICES) == place


@pytest.mark.parametrize(
    ("replies", "taken", "unclear"),
    [(["1"], 0, False), (["hm", "2"], 1, False), (["hm", "well"], 0, True)],
)
def test_prose_is_asked_once_more_and_then_the_first_choice_counts(replies, taken, unclear):
    left = list(replies)
    reply, choice = choose(Scripted(lambda *_: left.pop(0)), (), ASK)
    assert (choice.taken, choice.unclear, left) == (taken, unclear, [])
    assert reply.reply_tokens >= 8 * len(replies)


def test_the_request_numbers_the_choices():
    assert "What next?" in choice_request(ASK)
    assert "3. stop" in choice_request(ASK)
