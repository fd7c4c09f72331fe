"""AutoTriton: independent samples, of which each one is worth 1 or 0.

A sample is worth 1 if it is correct and written in Triton (arXiv 2507.05687, section on the
reward). Speed does not count. The model is the policy of the run: no sample shows another one.
"""

from __future__ import annotations

from pydantic import Field

from tilewright.languages.triton_rules import TritonRule, is_triton
from tilewright.loop.candidate_text import code_of
from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import FixedList, Options, Plan, Score, next_ask
from tilewright.records.events import Ask, Turn


class AutoTritonOptions(Options):
    """The rule for Triton, and the end. The number of samples is that of the requests."""

    rule: TritonRule = "strict"
    """`paper_minimal` is the published rule. `strict` refuses kernels that only decorate a program,
    which later papers found in samples of this model."""
    stop_after: int | None = Field(default=None, ge=1)
    """Samples that are worth 1 after which the search stops; `None`: it makes all. The paper takes
    every sample into a group; a user often needs one."""


class AutoTriton:
    """Issues all samples, and scores them. Lifetime: one run."""

    def __init__(self, plan: Plan, options: AutoTritonOptions) -> None:
        self._asks = FixedList(
            [next_ask(plan, turn, operator="sample") for turn in range(plan.turns)]
        )
        self._options = options
        self.stopped = ""
        """`reached` after enough samples were worth 1."""
        self.scores: dict[str, float] = {}
        """Worth of each judged sample, by its request."""

    def ask(self, limit: int) -> list[Ask]:
        """Return samples, at most `limit`."""
        return [] if self.stopped else self._asks.ask(limit)

    def tell(self, turn: Turn) -> None:
        """Score a sample; a further trial replaces the score."""
        score = binary_score(turn, self._options.rule)
        if score is None:
            return
        self.scores[turn.ask.parents[0] if turn.ask.role == "measure" else turn.ask.id] = score
        wanted = self._options.stop_after
        if wanted is not None and sum(self.scores.values()) >= wanted:
            self.stopped = "reached"


def binary_score(turn: Turn, rule: TritonRule) -> float | None:
    """Return 1 for a correct program in Triton, else 0; `None` for one that was not judged."""
    if not turn.judgements or turn.judgements[0].verdict == "unjudged":
        return None
    correct = turn.judgements[0].verdict == "correct"
    return float(correct and is_triton(code_of(turn), rule))


def make(plan: Plan, score: Score) -> Strategy:  # noqa: ARG001 - one signature
    """Return a new strategy; options: `rule`, `stop_after`."""
    return AutoTriton(plan, AutoTritonOptions.read("autotriton", plan.options))
