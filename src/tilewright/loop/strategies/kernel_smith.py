"""Kernel-Smith: the islands of OpenEvolve, with whole programs and a score of its own.

This is the search loop of Kernel-Smith (arXiv 2603.28342), without its training. No code was
published. The score has three levels: not built, built, and correct, which counts its speed-up.
"""

from __future__ import annotations

from pydantic import Field

from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Plan, Score
from tilewright.loop.strategies.openevolve import IslandOptions, IslandSearch, check_budget
from tilewright.records.codes import FailureReason, Stage
from tilewright.records.events import EvalSummary, Turn

NOT_BUILT = (
    FailureReason.SYNTAX_ERROR,
    FailureReason.MISSING_ENTRY,
    FailureReason.BUILD,
    FailureReason.NO_CANDIDATE,
)
BUILD_STAGES = (Stage.BUILD, Stage.PRECOMPILE)
"""A failure in these stages, for example a time limit, means that there was nothing to run."""


class KernelSmithOptions(IslandOptions):
    """The archive as in OpenEvolve, and the score.

    The paper's grid has the dimensions complexity and score. Users of OpenEvolve report worse
    results with `score` (openevolve#152), so the default is complexity and diversity. Set
    `features` to `[complexity, score]` for the published ones.
    """

    not_built: float = Field(default=0.0, ge=0)
    """Score of a program that does not build, or that cheats. The paper gives no value; 0 is the
    least."""
    built: float = Field(default=0.1, ge=0)
    """Score of a program that builds and is not correct. The paper gives no value; 0.1 is below
    the speed-up of almost every correct program."""
    slope: float = Field(default=1.0, gt=0)
    """Score of a correct program for each unit of its speed-up. The paper calls the score linear
    in the speed-up and gives no value; 1 keeps it readable."""


def score_of(judgement: EvalSummary, options: KernelSmithOptions) -> float | None:
    """Return the score of a judgement; `None` if the program was not judged."""
    match judgement.verdict:
        case "unjudged":
            return None
        case "correct":
            # Without a measured speed a correct program still counts as built.
            return options.slope * judgement.speedup if judgement.speedup else options.built
        case "incorrect":
            return options.built
        case "failed":
            ran = judgement.code not in NOT_BUILT and judgement.stage not in BUILD_STAGES
            return options.built if ran else options.not_built
        case "rejected":
            return options.not_built


def make(plan: Plan, score: Score) -> Strategy:  # noqa: ARG001 - it has a score of its own
    """Return a new strategy; `KernelSmithOptions` lists its options."""
    options = KernelSmithOptions.read("kernel_smith", plan.options)
    check_budget("kernel_smith", plan, options)

    def own_score(turn: Turn) -> float | None:
        return score_of(turn.judgements[0], options)

    return IslandSearch(plan, own_score, options, "evolve")
