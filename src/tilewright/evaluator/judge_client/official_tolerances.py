"""The published rule that scores a problem under `official`, in the form that the judge gets."""

from __future__ import annotations

from tilewright.evaluator.judge_client.messages import ComparisonRule
from tilewright.records import Problem, Protocol

TOLERANCE = 1e-2
"""KernelBench's, where a problem names none."""
TRIALS = {"allclose": 5, "by_dtype": 1, "runs": 1}
"""How many inputs are drawn of a case."""


def comparison_rule(problem: Problem, protocol: Protocol) -> ComparisonRule | None:
    """Return the rule by which outputs are compared; `None`: ours, against a float64 oracle.

    A candidate that quantizes cannot be compared with an oracle. Under `strict` the problem's
    `thresholds` apply, with the root mean square error in units of the reference error. The
    absolute threshold of KernelBench-X refuses textbook quantization (its defect K2).
    """
    if problem.thresholds is not None:
        numbers = dict(zip(("cosine", "l1", "rmse"), problem.thresholds, strict=True))
        return {"name": "quantized", **numbers, "relative": protocol == "strict"}
    if protocol == "strict":
        return None
    if problem.official_comparison == "allclose":
        return {"name": "allclose", "tolerance": problem.tolerance or TOLERANCE}
    return {"name": problem.official_comparison}
