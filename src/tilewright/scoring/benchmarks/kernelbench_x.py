"""The scores of KernelBench-X and TritonBench, from verdicts by their published rules. Pure.

Call accuracy: the candidate ran through the tests; execute accuracy: its outputs passed. A task's
speed-up is the ratio of the sums over its sizes, and so is that of all tasks together
(arXiv 2605.04956; arXiv 2502.14752). Each benchmark leaves out tasks that it calls abnormal. These
functions keep intended differences of the published scripts, and do not repeat their defects: a
task with a failed size has no time (K5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.records.events import EvalSummary

MAX_CANDIDATE_US = 1e7
"""Microseconds: KernelBench-X calls a slower candidate abnormal."""
Pair = tuple[float, float]
"""Microseconds of reference and candidate, summed over sizes."""


BENCHMARKS: dict[str, Callable[[Pair], bool]] = {
    "kernelbenchx/": lambda pair: pair[1] <= MAX_CANDIDATE_US and pair[0] / pair[1] >= 0.01,
    "tritonbench/g/": lambda pair: pair[0] / pair[1] < 10,
    "tritonbench/t/": lambda pair: 0.1 < pair[0] / pair[1] < 10,
}
"""Beginning of a problem's id, and whether the benchmark takes a pair as normal."""


def call_and_execute(judged: Sequence[tuple[str, EvalSummary]]) -> dict[str, dict[str, Any]]:
    """Return the published numbers of each benchmark among the problems' ids; empty without any.

    Unjudged candidates do not count. A candidate that broke a rule passed neither stage.
    """
    found: dict[str, dict[str, Any]] = {}
    for prefix, usual in BENCHMARKS.items():
        own = [
            item
            for problem, item in judged
            if problem.startswith(prefix) and item.verdict != "unjudged"
        ]
        if own:
            found[prefix.strip("/")] = _numbers(own, usual)
    return found


def _numbers(judged: list[EvalSummary], usual: Callable[[Pair], bool]) -> dict[str, Any]:
    pairs = [
        (item.reference_us, item.candidate_us)
        for item in judged
        if item.verdict == "correct" and item.reference_us and item.candidate_us
    ]
    kept = [pair for pair in pairs if usual(pair)]
    called = sum(item.verdict in ("correct", "incorrect") for item in judged)
    return {
        "tasks": len(judged),
        "call_accuracy": called / len(judged),
        "execute_accuracy": sum(item.verdict == "correct" for item in judged) / len(judged),
        "timed": len(pairs),
        "abnormal": len(pairs) - len(kept),
        "speedup_global": sum(p[0] for p in kept) / sum(p[1] for p in kept) if kept else None,
        "speedup_per_task": sum(p[0] / p[1] for p in kept) / len(kept) if kept else None,
    }
