"""The summariser of POLCA: a model condenses trials into a text for the next prompts.

POLCA (arXiv 2603.14769, section on the summariser). Each call shows trials of candidates that no
earlier call has shown; its summary replaces the one before.
"""

from __future__ import annotations

import random
import re
from collections.abc import Generator, Mapping, Sequence

from tilewright.loop.archives.heap import Copy
from tilewright.loop.random_values import chooser
from tilewright.loop.strategies.phases import Batch
from tilewright.records.events import Turn

MAX_CANDIDATES = 5
"""Candidates that one call shows (the value of the original's code)."""
PREFIX = "What earlier attempts at this problem teach:"
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)


class Summariser:
    """The present summary, and the candidates that it has used. Lifetime: one run."""

    def __init__(self, seed: int, name: str) -> None:
        self._seed, self._name = seed, name
        self._used: set[str] = set()
        self._calls = 0
        self._text = ""

    @property
    def instruction(self) -> str:
        """Return the text that a prompt adds; empty before the first summary."""
        return f"{PREFIX}\n\n{self._text}" if self._text else ""

    def update(self, copies: Sequence[Copy]) -> Generator[Batch, list[Turn], None]:
        """Ask for a new summary of unused candidates, if there are any.

        A reply without a summary leaves the old one.
        """
        unused: Mapping[str, Copy] = {
            copy.program: copy for copy in copies if copy.scores and copy.program not in self._used
        }
        if not unused:
            return
        draw = chooser(self._seed, self._name, "summary", self._calls)
        self._calls += 1
        names = draw.sample(sorted(unused), min(MAX_CANDIDATES, len(unused)))
        self._used |= set(names)
        shown = tuple(trial for name in names for trial in _shown(unused[name], draw))
        (turn,) = yield [
            {
                "shown": shown,
                "role": "say",
                "form": "summary",
                "instruction": self._text,
                "operator": "summarise",
            }
        ]
        found = _SUMMARY.search(turn.reply.text) if turn.reply is not None else None
        if found is not None and found[1].strip():
            self._text = found[1].strip()


def _shown(copy: Copy, draw: random.Random) -> list[str]:
    """Return one successful and one failed trial of a candidate, as far as there are any."""
    trials = list(zip(copy.trials, copy.scores, strict=True))
    groups = ([t for t, score in trials if score > 0], [t for t, score in trials if score <= 0])
    return [draw.choice(group) for group in groups if group]
