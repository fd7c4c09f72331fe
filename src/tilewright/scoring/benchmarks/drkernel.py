"""The score of *Dr. Kernel* (arXiv 2602.05885, tables 1 and 2), from verdicts by published rules.

The paper runs five trials with an absolute and relative tolerance of 1e-2. That is KernelBench's
published rule (`official`) in its first versions. Judgements by another tolerance do not count. A
candidate with an unused kernel counts as incorrect, and `fast@p` requires at least p times the
speed. `last` is each trajectory's last turn. `best` is the fastest correct turn of its history,
selected by the same measurement that scores it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from tilewright.records.codes import FindingCode
from tilewright.records.events import Turn
from tilewright.scoring import metrics
from tilewright.scoring.benchmarks.kernelbench_x import BENCHMARKS
from tilewright.scoring.metrics import Score

THRESHOLDS = (1.0, 1.2, 1.5, 2.0)
"""Ratios: the thresholds p of the paper's tables."""


def drkernel(turns: Sequence[Turn]) -> dict[str, Any] | None:
    """Return correct and fast@p of last turns and of the best of each history.

    `None` without any judgement by those rules. Unjudged turns do not count.
    """
    histories: dict[tuple[str, int], list[tuple[int, Score]]] = defaultdict(list)
    for turn in turns:
        # The paper did not score benchmarks with rules of their own.
        elsewhere = turn.ask.problem.startswith(tuple(BENCHMARKS))
        for item in () if elsewhere else turn.judgements:
            published = item.protocol == "official" and item.tolerance is None
            if published and item.verdict != "unjudged":
                right = item.verdict == "correct"
                right = right and FindingCode.UNUSED_KERNEL not in item.findings + item.labels
                score = Score(right, item.speedup if right else None)
                histories[turn.ask.problem, turn.ask.sample].append((turn.ask.turn, score))
    if not histories:
        return None
    in_order = [
        [score for _, score in sorted(found, key=itemgetter(0))] for found in histories.values()
    ]
    last = [scores[-1] for scores in in_order]
    best = [metrics.best_so_far(scores)[-1] or scores[-1] for scores in in_order]
    return {"trajectories": len(last), "last": _numbers(last), "best": _numbers(best)}


def _numbers(scores: Sequence[Score]) -> dict[str, float | None]:
    """Return the shares; no fast@p if some candidates are right and none of them was timed."""
    found: dict[str, float | None] = {"correct": sum(item.ok for item in scores) / len(scores)}
    untimed = metrics.untimed(scores)
    return found | {
        f"fast@{p:g}": None if untimed else metrics.fast_p_at_least(scores, p) for p in THRESHOLDS
    }
