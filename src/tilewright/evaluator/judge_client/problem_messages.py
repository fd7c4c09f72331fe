"""Messages by which the judge looks at a problem itself: at its generator and its weaknesses."""

from __future__ import annotations

from dataclasses import field

from tilewright.evaluator.judge_client.messages import Answer, ComparisonRule, Request
from tilewright.wire.frames import Fields


class LintAnswer(Answer):
    """Degenerate answers that pass on a case (records/problem_lint.py, `CaseHealth`)."""

    official: dict[str, list[str]]
    strict: list[str]
    random: bool
    deterministic: bool
    call_s: float
    input_bytes: int
    output_bytes: int
    peak_bytes: int | None


class LintCase(Request[LintAnswer], kind="lint"):
    """Find out which degenerate answers pass on a case, by each published rule and by ours."""

    params: Fields
    variations: list[str]
    rules: dict[str, ComparisonRule]


class VariationTried(Answer):
    """Why the reference cannot judge on a variation; empty if it can."""

    refusal: str


class TryVariation(Request[VariationTried], kind="try_variation"):
    """Find out whether the reference can judge on a variation of a case, without an oracle."""

    params: Fields
    variation: str
    seed: int
    forward_seed: int


class HealthAnswer(Answer):
    """The results of the check of a case (records/problem_health.py, `CaseCheck`)."""

    sample_s: float
    ignores_seed: bool = False
    repeatable: bool = True
    shapes_vary: bool = False
    shares_memory: bool = False
    passing: list[str] = field(default_factory=list)
    passing_own_inputs: list[str] = field(default_factory=list)
    constant: bool = False
    cuda_use: tuple[bool, bool] = (False, False)
    """Whether problem code, and whether the reference itself, asked for a CUDA device on a CPU."""
    undefined_share: float = 0.0
    tf32: bool = True
    constant_inputs: list[int] = field(default_factory=list)
    rows: tuple[int, int] | None = None
    writes_outside: bool = False
    unchecked: str = ""


class CheckHealth(Request[HealthAnswer], kind="check_health"):
    """Look at the generator of a case, and find out which answers without work pass.

    With `strict` they must pass on the input variations too, and the weights are new.
    """

    params: Fields
    variations: list[str]
    seed: int
    strict: bool
