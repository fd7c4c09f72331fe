"""The budget of a run and its usage. A turn begins only if its largest cost fits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from pydantic import Field

from tilewright.records.base import Record
from tilewright.records.events import Ask, Turn


class Usage(Record):
    """Resources that turns used, or may use at most."""

    turns: int = Field(default=0, ge=0)
    drafts: int = Field(default=0, ge=0)
    """Candidates that were written without being judged at once."""
    judged: int = Field(default=0, ge=0)
    """Different candidates that were judged."""
    trials: int = Field(default=0, ge=0)
    """Evaluations, several of one candidate among them."""
    tokens: int = Field(default=0, ge=0)
    """Tokens of prompts and replies together."""
    device_s: float = Field(default=0.0, ge=0)
    """Wall seconds of evaluations."""
    usd: float = Field(default=0.0, ge=0)

    def __add__(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(**{name: value + getattr(other, name) for name, value in self})


class Budget(Record):
    """Most resources of a run. `None`: no limit."""

    turns: int | None = Field(default=None, ge=0)
    drafts: int | None = Field(default=None, ge=0)
    judged: int | None = Field(default=None, ge=0)
    trials: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    device_s: float | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)

    def exceeded(self, spent: Usage) -> str:
        """Return the name of the first resource beyond this budget, or an empty text."""
        limits = ((name, most) for name, most in self if most is not None)
        return next((name for name, most in limits if getattr(spent, name) > most), "")


class UsageMeter:
    """Counts what turns used, in the order of the log. Lifetime: one run."""

    def __init__(self, finished: Iterable[Turn] = ()) -> None:
        self._judged: set[tuple[str, int, str]] = set()
        self.spent = Usage()
        for turn in finished:
            self.add(turn)

    def add(self, turn: Turn) -> None:
        """Count a turn; code that was judged before is no further candidate."""
        reply, key = turn.reply, (turn.ask.problem, turn.ask.sample, turn.source)
        evaluated = bool(turn.source and turn.judgements and not turn.repeats)
        self.spent += Usage(
            turns=1,
            drafts=int(turn.ask.role == "draft"),
            judged=int(evaluated and key not in self._judged),
            trials=int(evaluated),
            tokens=reply.prompt_tokens + reply.reply_tokens if reply else 0,
            device_s=sum(item.seconds for item in turn.judgements),
            usd=reply.usd if reply else 0.0,
        )
        if evaluated:
            self._judged.add(key)


def usage_of(turns: Iterable[Turn]) -> Usage:
    """Return the usage of turns."""
    return UsageMeter(turns).spent


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
        self._meter = UsageMeter(finished)
        self.lacking = ""
        """The resource that the last refused request lacked; empty if none was refused."""

    @property
    def spent(self) -> Usage:
        """Return what the finished turns used."""
        return self._meter.spent

    def reserve(self, ask: Ask) -> bool:
        """Reserve the largest usage of a request if the budget has that much left."""
        if self._until is not None and time.monotonic() >= self._until:
            self.lacking = "wall_s"
            return False
        judged_s = self._turn_s if ask.role in ("propose", "measure") else 0.0
        most = self._most(ask).model_copy(update={"device_s": judged_s})
        self.lacking = self._budget.exceeded(sum(self._reserved.values(), self.spent) + most)
        if not self.lacking:
            self._reserved[ask.id] = most
        return not self.lacking

    def commit(self, turn: Turn) -> None:
        """Replace the reservation of a turn by its usage."""
        self._reserved.pop(turn.ask.id, None)
        self._meter.add(turn)
