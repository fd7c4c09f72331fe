"""The answers of an agent's tools: a text to read, and the same facts as structured output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import Field

from tilewright.problems.description import about
from tilewright.records import Problem, Verdict
from tilewright.records.base import Record
from tilewright.records.events import Turn

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class ToolAnswer(Generic[R]):
    """A text for the agent, and its facts for the client."""

    text: str
    facts: R


class TurnFacts(Record):
    """A turn and its verdict. A speed-up is that of the baseline's time over the candidate's."""

    turn: int = Field(ge=1)
    verdict: Verdict
    reason: str = ""
    speedup: float | None = None
    speedup_low: float | None = None
    """Lower end of the 95 % interval."""
    speedup_high: float | None = None


class EvaluatedTurn(TurnFacts):
    """The turn that `evaluate` made, and the best one so far."""

    best_turn: int | None = None
    """`None`: no turn is correct yet."""


class History(Record):
    """All turns in order."""

    turns: tuple[TurnFacts, ...]
    best_turn: int | None = None


class BestCode(Record):
    """The fastest correct turn and its source file."""

    turn: int = Field(ge=1)
    code: str


class ProblemFacts(Record):
    """A problem: its address, what it computes, and what a candidate must define."""

    address: str
    about: str
    entry: str
    """The name that a candidate must define."""
    cases: tuple[str, ...] = ()


class ProblemList(Record):
    """Problems that can be chosen, at most as many as the list shows."""

    problems: tuple[ProblemFacts, ...]
    matching: int = Field(ge=0)
    """Number of all problems that match."""


def problem_facts(problem: Problem) -> ProblemFacts:
    """Return the facts of a problem."""
    return ProblemFacts(
        address=problem.id.removeprefix("bundled/"),
        about=about(problem),
        entry=problem.entry,
        cases=tuple(case.name for case in problem.cases),
    )


def turn_facts(number: int, turn: Turn, reason: str) -> TurnFacts:
    """Return the facts of a judged turn; `reason` is free of seeds, tolerances and paths."""
    summary = turn.judgements[0]
    return TurnFacts(
        turn=number,
        verdict=summary.verdict,
        reason=reason,
        speedup=summary.speedup,
        speedup_low=summary.low,
        speedup_high=summary.high,
    )
