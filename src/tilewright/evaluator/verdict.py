"""From observations to a report: evidence, checks, rules, outcome."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from tilewright._version import __version__
from tilewright.checks.evidence import Check, Evidence, Observation
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices.recorded_environment import environment
from tilewright.evaluator.evidence import Observations
from tilewright.evaluator.timing.calibration import Calibration
from tilewright.evaluator.timing.case_timings import (
    CaseTimes,
    is_short,
    untimed_cpu_excess_s,
)
from tilewright.evaluator.timing.speedup import (
    between_process_sigma,
    compare_official,
    compare_strict,
)
from tilewright.languages.static_features import static_features
from tilewright.records import (
    Comparison,
    Correct,
    EvalReport,
    Finding,
    Label,
    Outcome,
    Rejected,
)
from tilewright.registry import catalogue, load
from tilewright.scoring import bootstrap, intervals
from tilewright.scoring.metrics import ratio_of_sums

__all__ = ["build_report"]


def build_report(
    context: EvaluationContext,
    observations: Observations,
    outcome: Outcome,
    calibration: Calibration,
    *,
    checks: tuple[str, ...] | None = None,
) -> EvalReport:
    """Run the checks on the evidence and build the report.

    A decisive finding turns `correct` into `rejected`; it never softens another verdict.
    `checks` restricts which ones run, for the test that each of them catches something alone.
    """
    request, host = context.request, context.host
    observed = _inspect(_evidence(context, observations), checks)
    labels = (*observations.labels, *observed.labels)
    denied = [label for label in labels if label.name in request.rules.deny_labels]
    findings = (*observed.findings, *(_denied(label) for label in denied))
    decisive = tuple(item for item in findings if item.weight == "decisive")
    if isinstance(outcome, Correct) and decisive:
        outcome = Rejected(findings=decisive)
    comparisons = _comparisons(context, observations.times, calibration)
    summary: dict[str, Any] = {}
    if isinstance(outcome, Correct) and comparisons:
        summary = _summary(observations.times, comparisons, calibration, request.baselines[0].name)
        if request.protocol == "official" and request.problem.official_comparison != "allclose":
            summary = _ratio_of_sums(comparisons, request.baselines[0].name)
    return EvalReport(
        verdict=outcome.verdict,
        **summary,
        outcome=outcome,
        findings=findings,
        labels=labels,
        comparisons=comparisons,
        profile=observations.profile,
        work=tuple(observations.work),
        ceilings=observations.ceilings,
        kernels=tuple(observations.kernels),
        cases=tuple(observations.cases),
        stages=tuple(observations.stages),
        isolation=observations.isolation,
        environment=environment(host.cores, host.device, observations.conditions),
        seed=context.root,
        candidate_output=observations.candidate_output,
        request=request,
        evaluator=__version__,
    )


def _inspect(evidence: Evidence, names: tuple[str, ...] | None) -> Observation:
    findings: list[Finding] = []
    labels: list[Label] = []
    for name, check in _checks().items():
        if names is not None and name not in names:
            continue
        observation = check.inspect(evidence)
        findings += observation.findings
        labels += observation.labels
    return Observation(tuple(findings), tuple(labels))


@cache
def _checks() -> dict[str, Check]:
    """Load every installed check, once a process: looking entry points up takes long."""
    return {name: load("checks", name) for name in catalogue("checks")}


def _evidence(context: EvaluationContext, observations: Observations) -> Evidence:
    request, seen, times = context.request, observations.correctness, observations.times
    largest = times[-1] if times else None
    calls = [_median(case.total_s["candidate"]) for case in times]
    return Evidence(
        language=request.candidate.language,
        rules=request.rules,
        strict=request.protocol == "strict",
        features=static_features(request.candidate.files),
        operator_counts=seen.operator_counts,
        launches=tuple(seen.launches),
        timed_launches=tuple(count for case in times for count in case.launches),
        right_when_suppressed=observations.right_when_suppressed,
        mutated=tuple(dict.fromkeys(seen.mutated + [m for case in times for m in case.mutated])),
        alias=seen.alias or any(case.alias for case in times),
        timed_wrong=tuple(message for case in times for message in case.wrong),
        call_s=max(calls, default=0.0),
        untimed_cpu_s=max((untimed_cpu_excess_s(case) for case in times), default=0.0),
        disturbed=_median(largest.disturbed) if largest and largest.disturbed else 0.0,
        lacking_weights=tuple(observations.lacking_weights),
        passes_with_initial_weights=observations.passes_with_initial_weights,
    )


def _median(values: list[float]) -> float:
    return bootstrap.median(values) if values else 0.0


def _comparisons(
    context: EvaluationContext, times: list[CaseTimes], calibration: Calibration
) -> tuple[Comparison, ...]:
    official = context.request.protocol == "official"
    found = []
    for case in times:
        if case.wrong or not case.blocks:
            continue
        for name in list(case.total_s)[:-1]:
            labels = [] if calibration.measured else ["uncalibrated"]
            if is_short(case, name):
                labels.append("short_call")
            if official:
                found.append(compare_official(case, name, tuple(labels)))
                continue
            sigma = between_process_sigma(case, name, calibration)
            found.append(_label_width(compare_strict(case, name, sigma, tuple(labels))))
    return tuple(found)


def _label_width(item: Comparison) -> Comparison:
    low, high = item.speedup_low, item.speedup_high
    if low is None or high is None:
        return item
    if not intervals.is_noisy(intervals.Interval(item.speedup, low, high)):
        return item
    return item.model_copy(update={"labels": (*item.labels, "wide_interval")})


def _summary(
    times: list[CaseTimes],
    comparisons: tuple[Comparison, ...],
    calibration: Calibration,
    baseline: str,
) -> dict[str, Any]:
    """Return the geometric mean over cases, with its interval unless the protocol has none.

    If one process replicate serves all cases, the process-to-process variation does not shrink
    with the number of cases. It is left out of those cases and added once, at its mean.
    """
    chosen = [item for item in comparisons if item.baseline == baseline]
    if not chosen:
        return {}
    mean = math.exp(sum(math.log(item.speedup) for item in chosen) / len(chosen))
    if any(item.speedup_low is None for item in chosen):
        return {"speedup": mean}
    within, sigmas = [], []
    for case in times:
        if case.blocks and not case.wrong:
            sigma = between_process_sigma(case, baseline, calibration)
            several = len(case.replicate_starts) > 1
            alone = compare_strict(case, baseline, sigma if several else 0.0, ())
            low, high = alone.speedup_low or alone.speedup, alone.speedup_high or alone.speedup
            within.append(intervals.Interval(alone.speedup, low, high))
            sigmas.append(0.0 if several else sigma)
    inner = intervals.geometric_mean_interval(within)
    between = 1.96 * sum(sigmas) / len(sigmas)
    below = intervals.combine(math.log(inner.estimate / inner.low), between)
    above = intervals.combine(math.log(inner.high / inner.estimate), between)
    return {
        "speedup": inner.estimate,
        "speedup_low": inner.estimate * math.exp(-below),
        "speedup_high": inner.estimate * math.exp(above),
    }


def _ratio_of_sums(comparisons: tuple[Comparison, ...], baseline: str) -> dict[str, Any]:
    """Return the speed-up by the rule of KernelBench-X and TritonBench: over cases, of sums."""
    chosen = [item for item in comparisons if item.baseline == baseline]
    if not chosen:
        return {}
    reference = [item.baseline_timing.median_us for item in chosen]
    ratio = ratio_of_sums(reference, [item.candidate.median_us for item in chosen])
    return {} if ratio is None else {"speedup": ratio}


def _denied(label: Label) -> Finding:
    return Finding(
        check="rules",
        code="label_denied",
        summary=f"the rules of this run deny {label.name!r}: {label.detail}",
        weight="decisive",
        evidence={"label": label.name},
    )
