"""The reward of one optimisation step: a ladder of stages, less a decay that grows with the step.

The rungs are those of MTMC (QiMeng-Kernel, arXiv 2511.20100, figure of the environment). The paper
publishes neither whether they add up nor the form of the decay, so both are arguments.
"""

from __future__ import annotations

import math
from typing import Literal

from tilewright.records.codes import FailureReason, Stage
from tilewright.records.events import EvalSummary
from tilewright.scoring.process_replicates import NORMAL_95

Rung = Literal["not_compiled", "not_executed", "executed", "faster"]
"""The highest stage that a step reached; `executed` means that its outputs are correct."""
NOT_COMPILED = -1.0
"""Reward of a program that does not compile."""
COMPILED = 0.1
"""Reward of compiling."""
NOT_EXECUTED = -0.5
"""Reward of a program that compiles and does not run, or computes a wrong result."""
EXECUTED = 0.5
"""Reward of a correct run."""
FASTER = 1.0
"""Reward of a correct run that is faster than the previous step."""
DECAY = 0.05
"""Reward that each further step costs. The paper gives no number: 20 steps use up a gain."""
MIN_GAIN = 0.01
"""Least relative gain that counts as faster: smaller differences change from device to device."""
GAIN_ERRORS = 2.0
"""Standard errors of a gain that it must exceed, so that noise earns nothing."""
_UNCOMPILED_STAGES = frozenset({Stage.BUILD, Stage.PRECOMPILE})
_UNCOMPILED_REASONS = frozenset(
    {
        FailureReason.SYNTAX_ERROR,
        FailureReason.MISSING_ENTRY,
        FailureReason.BUILD,
        FailureReason.NO_CANDIDATE,
    }
)


def is_faster(before: EvalSummary, after: EvalSummary) -> bool:
    """Tell whether a step is faster than the one before it, beyond noise.

    The logarithm of the gain must exceed 1 % and two standard errors, which follow from the
    intervals of both speed-ups.
    """
    if before.speedup is None or after.speedup is None:
        return False
    error = math.hypot(_error(before), _error(after))
    return math.log(after.speedup / before.speedup) > max(MIN_GAIN, GAIN_ERRORS * error)


def _error(judgement: EvalSummary) -> float:
    """Return the standard error of the logarithm of a speed-up; 0 without an interval."""
    if judgement.low is None or judgement.high is None:
        return 0.0
    return math.log(judgement.high / judgement.low) / (2 * NORMAL_95)


def rung(before: EvalSummary, after: EvalSummary) -> Rung | None:
    """Return how far a step came; `None` if it was not judged."""
    if after.verdict == "unjudged":
        return None
    if after.verdict == "correct":
        return "faster" if is_faster(before, after) else "executed"
    unbuilt = after.stage in _UNCOMPILED_STAGES or after.code in _UNCOMPILED_REASONS
    return "not_compiled" if after.verdict == "failed" and unbuilt else "not_executed"


def ladder_reward(
    reached: Rung,
    step: int,
    *,
    cumulative: bool = True,
    decay: float = DECAY,
    form: Literal["additive", "multiplicative"] = "additive",
) -> float:
    """Return the reward of step number `step`, counted from 0.

    Cumulative rewards add up the rungs below; otherwise the highest rung counts alone. The decay
    gives r - decay * step, or r * max(1 - decay * step, 0).
    """
    if cumulative:
        passed = {
            "not_compiled": NOT_COMPILED,
            "not_executed": COMPILED + NOT_EXECUTED,
            "executed": COMPILED + EXECUTED,
            "faster": COMPILED + EXECUTED + FASTER,
        }
    else:
        passed = {
            "not_compiled": NOT_COMPILED,
            "not_executed": NOT_EXECUTED,
            "executed": EXECUTED,
            "faster": FASTER,
        }
    reward = passed[reached]
    if form == "additive":
        return reward - decay * step
    return reward * max(1 - decay * step, 0.0)
