"""Rewards: functions of a judgement, never stored, so that every rule can score one run.

Every rule returns `None` for an unjudged answer, which is not the candidate's fault.
`without_checks` returns the judgement that an ablation without checks would see.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.records import EvalReport
from tilewright.records.events import EvalSummary

MAX_SPEEDUP = 3.0
"""Ratio: the cap of the speed-up in a reward (Dr. Kernel, arXiv 2602.05885, equation 1)."""
RELEASED_WEIGHT = 0.5
"""Weight of each term in the released code (kernel_trainer.yaml)."""


def paper(judgement: EvalSummary) -> float | None:
    """Return C + C min(s, 3) + C PR (Dr. Kernel, arXiv 2602.05885, equations 1 and 8), 0 to 5.

    PR is the coverage, 0 if none was measured. An unused kernel is rejected, so C = 0.
    """
    speedup, coverage = judgement.speedup or 0.0, judgement.coverage or 0.0
    return _if_correct(judgement, 1.0 + min(speedup, MAX_SPEEDUP) + coverage)


def released_code(judgement: EvalSummary) -> float | None:
    """Return 0.5 C + 0.5 min(s, 3) + 0.5 C PR, as the paper's released code does: half of it."""
    whole = paper(judgement)
    return None if whole is None else RELEASED_WEIGHT * whole


def tilewright(judgement: EvalSummary) -> float | None:
    """Return C + min(max(l, 0), 3) with l the lower end of the speed-up's interval, 0 to 4.

    Noise earns nothing: a fast measurement by chance has a wide interval.
    """
    return _if_correct(judgement, 1.0 + min(max(judgement.low or 0.0, 0.0), MAX_SPEEDUP))


def speed(judgement: EvalSummary) -> float | None:
    """Return C + max(l, 0), the reward `tilewright` without its cap, for a search.

    A search that has reached a cap cannot tell candidates apart.
    """
    return _if_correct(judgement, 1.0 + max(judgement.low or 0.0, 0.0))


def _if_correct(judgement: EvalSummary, reward: float) -> float | None:
    if judgement.verdict == "unjudged":
        return None
    return reward if judgement.verdict == "correct" else 0.0


REWARDS: dict[str, Callable[[EvalSummary], float | None]] = {
    rule.__name__: rule for rule in (speed, tilewright, paper, released_code)
}


def measured(report: EvalReport) -> tuple[float, float | None] | None:
    """Return the speed-up against the first baseline, and the lower end of its interval.

    Both are geometric means over the timed cases, without unit. The mean of the lower ends treats
    the errors of the cases as fully dependent. `None` if nothing was timed.
    """
    name = report.request.baselines[0].name if report.request.baselines else None
    chosen = [item for item in report.comparisons if item.baseline == name]
    if not chosen:
        return None
    lows = [item.speedup_low for item in chosen if item.speedup_low is not None]
    low = _mean(lows) if len(lows) == len(chosen) else None
    return _mean([item.speedup for item in chosen]), low


def _mean(values: list[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def without_checks(judgement: EvalSummary) -> EvalSummary:
    """Return the judgement as if no check existed: a candidate rejected for a finding is correct.

    The evaluation itself ran with the sandbox and with all checks; only this view ignores their
    findings. The outputs of a rejected candidate were correct before the rejection.
    """
    if judgement.verdict != "rejected":
        return judgement
    return judgement.model_copy(
        update={
            "verdict": "correct",
            "speedup": judgement.unchecked,
            "low": judgement.unchecked_speedup_low,
            "high": None,
        }
    )
