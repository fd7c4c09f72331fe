"""Which published rule a problem is scored by under `official`, as the judge is told it."""

from __future__ import annotations

from tilewright.evaluator.judge_client.messages import ComparisonRule
from tilewright.records import Problem, Protocol

__all__ = ["TRIALS", "comparison_rule"]

TOLERANCE = 1e-2
"""KernelBench's, where a problem names none."""
TRIALS = {"allclose": 5, "by_dtype": 1, "runs": 1}
"""How many inputs are drawn of a case."""


def comparison_rule(problem: Problem, protocol: Protocol) -> ComparisonRule | None:
    """Return the rule by which outputs are compared; `None`: ours, against a float64 oracle.

    Who quantizes cannot be held against an oracle: strictly the problem's `thresholds` stand, with
    the root mean square error in units of the reference's own (defect K2 of KernelBench-X, whose
    absolute bound refuses textbook quantization).
    """
    if problem.thresholds is not None:
        numbers = dict(zip(("cosine", "l1", "rmse"), problem.thresholds, strict=True))
        return {"name": "quantized", **numbers, "relative": protocol == "strict"}
    if protocol == "strict":
        return None
    if problem.official_comparison == "allclose":
        return {"name": "allclose", "tolerance": problem.tolerance or TOLERANCE}
    return {"name": problem.official_comparison}
