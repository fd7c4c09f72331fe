"""The observations of all stages, and the report that checks and rules make of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache

from tilewright._version import __version__
from tilewright.checks.evidence import Check, Evidence
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices.recorded_environment import environment
from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.runners.messages import Result
from tilewright.evaluator.runners.pool import CheckedCall
from tilewright.evaluator.timing.calibration import Calibration
from tilewright.evaluator.timing.call_plan import HALF_TYPES
from tilewright.evaluator.timing.case_timings import CaseTimes, is_short, untimed_cpu_excess_s
from tilewright.evaluator.timing.host_variation import host_half_widths, widened
from tilewright.evaluator.timing.speedup import (
    between_process_sigma,
    compare_official,
    compare_strict,
)
from tilewright.evaluator.timing.unfinished_work import unfinished_work_s
from tilewright.languages.static_features import static_features
from tilewright.records import (
    CaseResult,
    Ceilings,
    Comparison,
    Correct,
    EvalReport,
    EvalRequest,
    Finding,
    IsolationStatus,
    KernelTime,
    Label,
    LoopRemark,
    OperatorUse,
    Outcome,
    Profile,
    Rejected,
    StageRecord,
    Work,
)
from tilewright.records.codes import FindingCode, LabelName
from tilewright.records.problem import BY_SUMS
from tilewright.registry import catalogue, load
from tilewright.scoring import bootstrap, intervals
from tilewright.scoring.metrics import ratio_of_sums
from tilewright.scoring.paired_times import paired_times
from tilewright.scoring.process_replicates import NORMAL_95
from tilewright.wire.frames import Fields
from tilewright.wire.names import OutputMemory


@dataclass
class CorrectnessObservations:
    """Observations from build and calls of one candidate, other than whether outputs were right."""

    slots: dict[str, int] = field(default_factory=dict)
    """Where each case's inputs lay last: the second sample lies there again, with other values."""
    calls: list[Fields] = field(default_factory=list)
    """Shapes and dtypes of each nominal call of a declared case, without values."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of the inputs of each declared case, on nominal inputs."""
    half_outputs: dict[str, bool] = field(default_factory=dict)
    """Whether some output of each declared case has a 16-bit type."""
    operator_counts: dict[str, int] = field(default_factory=dict)
    loops: tuple[LoopRemark, ...] = ()
    """Remarks of the compiler that built it."""
    operators: OperatorUse | None = None
    """Those of the last counted call."""
    launches: list[int] = field(default_factory=list)
    mutated: list[str] = field(default_factory=list)
    misplaced: list[OutputMemory] = field(default_factory=list)
    unreproduced: Outcome | None = None
    """That of the first call whose outputs are not those of a reference that draws."""

    def record_nominal(self, sample: InputSampleInfo) -> None:
        """Add the form of a nominal call of a declared case: hidden sizes stay secret."""
        layout = sample.layout
        self.sizes[sample.case] = layout.size
        self.half_outputs[sample.case] = any(o["dtype"] in HALF_TYPES for o in layout.outputs)
        self.calls.append(sample.call_fields(0))

    def record_counted(self, result: Result, sample: InputSampleInfo) -> None:
        """Add the operators of a call, and whether it returned a view of an input."""
        self.operator_counts.update(result.operator_counts)
        ordered = sorted(result.operator_counts.items(), key=lambda item: (-item[1], item[0]))
        self.operators = OperatorUse(case=sample.case, counts=dict(ordered))
        # Later calls make a view dense, so that nothing shows it there.
        if any(item.alias for item in result.outputs) and not sample.layout.places.aliases:
            self.misplaced.append(OutputMemory.INPUT)

    def record(self, made: CheckedCall) -> None:
        """Add what one call shows, other than whether its outputs are right."""
        self.launches.append(made.result.launches)
        self.mutated += [item for item in made.answer.mutated if item not in self.mutated]
        self.misplaced += [item for item in made.answer.misplaced if item not in self.misplaced]


@dataclass
class WrongOutputCause:
    """The cause of a wrong output, as calls in new processes show it."""

    passes_with_initial_weights: bool | None = None
    stale_after_first_call: bool = False


@dataclass
class Observations:
    """All observations of the stages. Each stage appends; only the verdict reads all of it."""

    correctness: CorrectnessObservations = field(default_factory=CorrectnessObservations)
    cases: list[CaseResult] = field(default_factory=list)
    times: list[CaseTimes] = field(default_factory=list)
    right_when_suppressed: bool | None = None
    lacking_weights: list[str] = field(default_factory=list)
    cause: WrongOutputCause = field(default_factory=WrongOutputCause)
    profile: Profile | None = None
    kernels: list[KernelTime] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    stages: list[StageRecord] = field(default_factory=list)
    isolation: tuple[IsolationStatus, ...] = ()
    conditions: dict[str, Fields] = field(default_factory=dict)
    """The state of a GPU by moment, and what its runners were given."""
    work: list[Work] = field(default_factory=list)
    ceilings: Ceilings | None = None
    candidate_output: str = ""


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
    evidence = _evidence(context, observations)
    findings, labels = list[Finding](), list(observations.labels)
    for name, check in _checks().items():
        if checks is None or name in checks:
            found = check.inspect(evidence)
            findings += found.findings
            labels += found.labels
    findings += [_denied(label) for label in labels if label.name in request.rules.deny_labels]
    decisive = tuple(item for item in findings if item.weight == "decisive")
    if isinstance(outcome, Correct) and decisive:
        outcome = Rejected(findings=decisive)
    comparisons = _comparisons(context, observations.times, calibration)
    summary: Fields = {}
    if isinstance(outcome, Correct) and comparisons:
        chosen = [item for item in comparisons if item.baseline == request.baselines[0].name]
        summary = _summary(request, observations.times, chosen, calibration) if chosen else {}
    return EvalReport(
        verdict=outcome.verdict,
        **summary,
        outcome=outcome,
        findings=tuple(findings),
        labels=tuple(labels),
        comparisons=tuple(comparisons),
        profile=observations.profile,
        work=tuple(observations.work),
        ceilings=observations.ceilings,
        operators=observations.correctness.operators,
        loops=observations.correctness.loops,
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


@cache
def _checks() -> dict[str, Check]:
    """Load every installed check, once a process: looking entry points up takes long."""
    return {name: load("checks", name) for name in catalogue("checks")}


def _evidence(context: EvaluationContext, observations: Observations) -> Evidence:
    request, seen, times = context.request, observations.correctness, observations.times
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
        mutated=tuple(dict.fromkeys(seen.mutated + [m for t in times for m in t.memory.mutated])),
        misplaced=tuple(
            dict.fromkeys(seen.misplaced + [place for t in times for place in t.memory.misplaced])
        ),
        timed_wrong=tuple(message for case in times for message in case.wrong),
        call_s=max(calls, default=0.0),
        untimed_cpu_s=max((untimed_cpu_excess_s(case) for case in times), default=0.0),
        unfinished_work_s=max((unfinished_work_s(case) for case in times), default=0.0),
        disturbed=_median(times[-1].disturbed) if times else 0.0,
        lacking_weights=tuple(observations.lacking_weights),
        passes_with_initial_weights=observations.cause.passes_with_initial_weights,
        stale_after_first_call=observations.cause.stale_after_first_call,
    )


def _median(values: list[float]) -> float:
    return bootstrap.median(values) if values else 0.0


def _comparisons(
    context: EvaluationContext, times: list[CaseTimes], calibration: Calibration
) -> list[Comparison]:
    found = []
    for case in times:
        if case.wrong or not case.blocks:
            continue
        for name in list(case.total_s)[:-1]:
            labels = () if calibration.measured else (LabelName.UNCALIBRATED,)
            if is_short(case, name):
                labels = (*labels, LabelName.SHORT_CALL)
            if context.request.protocol == "official":
                found.append(compare_official(case, name, labels))
                continue
            sigma = between_process_sigma(case, name, calibration)
            item = compare_strict(case, name, sigma, labels)
            if intervals.is_noisy(_interval(item)):
                item = item.model_copy(update={"labels": (*item.labels, LabelName.WIDE_INTERVAL)})
            found.append(item)
    return found


def _interval(item: Comparison) -> intervals.Interval:
    """Return the interval of a speed-up; a comparison without one has its estimate at both ends."""
    low, high = item.speedup_low, item.speedup_high
    return intervals.Interval(item.speedup, low or item.speedup, high or item.speedup)


def _summary(
    request: EvalRequest,
    times: list[CaseTimes],
    chosen: list[Comparison],
    calibration: Calibration,
) -> Fields:
    """Return the geometric mean over cases, with its interval unless the protocol has none.

    If one process replicate serves all cases, the process-to-process variation does not shrink
    with the number of cases. It is left out of those cases and added once, at its mean. So is the
    variation between hosts.
    """
    if request.protocol == "official" and request.problem.official_comparison in BY_SUMS:
        # The rule of KernelBench-X and TritonBench: over cases, of sums.
        shown = [paired_times(item) for item in chosen]
        reference, own = [one.baseline_us for one in shown], [one.candidate_us for one in shown]
        return {"speedup": ratio_of_sums(reference, own)}
    if any(item.speedup_low is None for item in chosen):
        return {"speedup": math.exp(sum(math.log(item.speedup) for item in chosen) / len(chosen))}
    within, sigmas, hosts, baseline = [], [], [], chosen[0].baseline
    for case in times:
        if case.blocks and not case.wrong:
            sigma = between_process_sigma(case, baseline, calibration)
            several = len(case.replicate_starts) > 1
            between = sigma if several else 0.0
            compared = compare_strict(case, baseline, between, (), any_host=False)
            within.append(_interval(compared))
            sigmas.append(0.0 if several else sigma)
            hosts.append(host_half_widths(case))
    width = NORMAL_95 * sum(sigmas) / len(sigmas)
    below, above = (sum(widths) / len(hosts) for widths in zip(*hosts, strict=True))
    found = widened(intervals.geometric_mean_interval(within), width, width)
    found = widened(found, below, above)
    return {
        "speedup": found.estimate,
        "speedup_low": found.low,
        "speedup_high": found.high,
    }


def _denied(label: Label) -> Finding:
    return Finding(
        check="rules",
        code=FindingCode.LABEL_DENIED,
        summary=f"the rules of this run deny {label.name!r}: {label.detail}",
        weight="decisive",
        evidence={"label": label.name},
    )
