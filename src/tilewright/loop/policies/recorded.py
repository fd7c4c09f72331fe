"""A policy that repeats the replies of an earlier run: every run is a recording.

Replies are found by problem, trajectory and turn. A prompt contains measured numbers, so it differs
between machines. A different prompt causes a warning, or an error with --strict-recording.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tilewright.errors import PolicyError
from tilewright.loop.budget import Usage
from tilewright.loop.policies.base import Message, digest_of
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, Reply, TurnFinished

BUNDLED_RUN = Path(__file__).parent.parent / "recordings" / "rmsnorm"
"""The run that comes with tilewright: RMS normalisation, from wrong to fast."""


class Recorded:
    """Replays the replies of a run. Lifetime: one run.

    Raises:
        RecordError: the folder holds no event log.
    """

    def __init__(
        self, folder: Path, *, strict: bool = False, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        self.name = "recorded:bundled" if folder == BUNDLED_RUN else f"recorded:{folder}"
        # The prompts of the bundled run hold times of another machine, so they always differ.
        self._strict, self._warn, self._warned = strict, warn, folder == BUNDLED_RUN
        self._replies: dict[tuple[str, int, int], tuple[str, Reply]] = {}
        for event in read_events(folder):
            if isinstance(event, TurnFinished) and event.turn.reply is not None:
                self._replies[_key(event.turn.ask)] = (event.turn.prompt, event.turn.reply)

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:
        found = self._replies.get(_key(ask))
        if found is None:
            known = sorted({problem for problem, _, _ in self._replies}) or ["no problem"]
            raise PolicyError(
                f"{self.name}: no reply of problem {ask.problem}, trajectory {ask.sample}, turn "
                f"{ask.turn} was recorded; it has replies for {', '.join(known)}"
            )
        prompt, reply = found
        if prompt and prompt != digest_of(messages):
            text = f"{self.name}: {ask.id} was recorded for another prompt"
            if self._strict:
                raise PolicyError(f"{text}; leave out --strict-recording to use it anyway")
            if not self._warned:
                self._warned = True
                self._warn(f"{text} (prompts hold measured numbers); its reply is used")
        return reply

    def max_cost(self, prompt_tokens: int) -> Usage:  # noqa: ARG002 - every policy gets it
        """Return the usage of the most expensive recorded reply."""
        replies = [reply for _, reply in self._replies.values()]
        return Usage(
            tokens=max((r.prompt_tokens + r.reply_tokens for r in replies), default=0),
            usd=max((r.usd for r in replies), default=0.0),
        )

    def close(self) -> None:
        """Do nothing."""


def _key(ask: Ask) -> tuple[str, int, int]:
    return ask.problem, ask.sample, ask.turn
