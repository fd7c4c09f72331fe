"""Every record survives its JSON, and arbitrary text raises only a RecordError."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.records import (
    Baseline,
    Candidate,
    Case,
    CaseResult,
    Comparison,
    Correct,
    EvalReport,
    EvalRequest,
    Failed,
    Finding,
    Incorrect,
    IsolationStatus,
    Label,
    Limits,
    Problem,
    Rejected,
    ReportEnvironment,
    Rules,
    SourceFile,
    StageRecord,
    Timing,
    TimingPlan,
    Unjudged,
)
from tilewright.records.codes import (
    FailureReason,
    IncorrectKind,
    InputOrigin,
    IsolationLayer,
    Stage,
    UnjudgedReason,
)
from tilewright.records.request import COMPILE_MODES, RESERVED, collide

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
NAME = st.from_regex(r"[A-Za-z0-9_]{1,8}(\.py)?", fullmatch=True)
POSITIVE = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
COUNT = st.integers(1, 1 << 40)
SCALAR = st.booleans() | st.integers(-(1 << 60), 1 << 60) | NUMBER | TEXT
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def few(strategy: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, min_size=least, max_size=3).map(tuple)


FILES = few(st.builds(SourceFile, path=NAME, text=TEXT), 1)
CASE = st.builds(Case, name=TEXT, params=st.dictionaries(TEXT, SCALAR, max_size=3))
PROBLEM = st.builds(
    Problem,
    id=TEXT,
    revision=TEXT,
    kind=st.sampled_from(["module", "function"]),
    source=st.builds(SourceFile, path=NAME, text=TEXT),
    entry=TEXT,
    cases=few(CASE, 1),
    mode=st.sampled_from(["train", "eval"]),
    precision=st.sampled_from(["fp32", "tf32", "fp16", "bf16"]),
    grads=few(TEXT),
    writable_inputs=few(TEXT),
    buffers=few(TEXT),
    keyword_args=few(TEXT),
    description=TEXT,
    input_variations=st.none() | few(TEXT),
    size_ranges=st.dictionaries(TEXT, st.tuples(COUNT, COUNT), max_size=2),
    tolerance=st.none() | POSITIVE,
)


def lie_apart(files):
    return not any(collide(one.path, other.path) for one, other in itertools.combinations(files, 2))


CANDIDATE = st.builds(
    Candidate,
    language=TEXT,
    files=FILES.filter(lie_apart),
    entry=TEXT,
    allow_imports=few(TEXT),
)
BASELINE = st.one_of(
    st.just(Baseline(name="eager", kind="eager")),
    st.builds(
        Baseline,
        name=st.sampled_from(sorted(COMPILE_MODES)),
        kind=st.just("compile"),
        candidate=st.none() | CANDIDATE,
    ),
    st.builds(
        Baseline,
        name=TEXT.filter(lambda name: name not in RESERVED),
        kind=st.just("candidate"),
        candidate=CANDIDATE,
    ),
)
BASELINES = st.lists(BASELINE, max_size=3, unique_by=lambda one: one.name).map(tuple)
REQUEST = st.builds(
    EvalRequest,
    problem=PROBLEM,
    candidate=CANDIDATE,
    baselines=BASELINES,
    protocol=st.sampled_from(["strict", "official"]),
    rules=st.builds(Rules, require_custom_kernel=st.booleans(), deny_labels=few(TEXT)),
    timing=st.builds(TimingPlan, max_s=POSITIVE, target_ci_half_width=POSITIVE),
    limits=st.builds(Limits, call_timeout_s=POSITIVE, memory_bytes=COUNT),
    device=TEXT,
    require_isolation=few(TEXT),
    seed=st.none() | st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
)
TIMING = st.builds(
    Timing,
    median_us=POSITIVE,
    low_us=POSITIVE,
    high_us=POSITIVE,
    samples=COUNT,
    method=st.sampled_from(["host_clock", "cuda_events_trusted", "cuda_events_candidate"]),
)
COMPARISON = st.builds(
    Comparison,
    case=TEXT,
    baseline=TEXT,
    candidate=TIMING,
    baseline_timing=TIMING,
    speedup=POSITIVE,
    speedup_low=st.none() | POSITIVE,
    speedup_high=st.none() | POSITIVE,
    blocks=COUNT,
    conclusion=st.sampled_from(["faster", "slower", "no measurable difference", "no interval"]),
    labels=few(TEXT),
    raw_us=few(few(NUMBER)),
)
FINDING = st.builds(
    Finding,
    check=TEXT,
    code=TEXT,
    summary=TEXT,
    weight=st.sampled_from(["note", "decisive"]),
    evidence=st.dictionaries(TEXT, JSON, max_size=3),
)
OUTCOME = st.one_of(
    st.just(Correct()),
    st.builds(
        Incorrect,
        kind=st.sampled_from(IncorrectKind),
        inputs=st.none() | st.sampled_from(InputOrigin),
        case=TEXT,
        message=TEXT,
        error_over_tolerance=st.none() | POSITIVE,
    ),
    st.builds(
        Failed,
        stage=st.sampled_from(Stage),
        reason=st.sampled_from(FailureReason),
        message=TEXT,
    ),
    st.builds(Rejected, findings=few(FINDING, 1)),
    st.builds(Unjudged, reason=st.sampled_from(UnjudgedReason), message=TEXT),
)


@st.composite
def reports(draw: st.DrawFn) -> EvalReport:
    outcome = draw(OUTCOME)
    right = isinstance(outcome, Correct)
    return EvalReport(
        verdict=outcome.verdict,
        outcome=outcome,
        speedup=draw(st.none() | POSITIVE) if right else None,
        findings=draw(few(FINDING)),
        labels=draw(few(st.builds(Label, name=TEXT, detail=TEXT))),
        comparisons=draw(few(COMPARISON)),
        cases=draw(
            few(st.builds(CaseResult, case=TEXT, input_variation=TEXT, result=st.just("pass")))
        ),
        stages=draw(few(st.builds(StageRecord, name=TEXT, wall_s=POSITIVE, detail=TEXT))),
        isolation=draw(
            few(
                st.builds(
                    IsolationStatus, name=st.sampled_from(IsolationLayer), active=st.booleans()
                )
            )
        ),
        environment=draw(
            st.builds(
                ReportEnvironment,
                device=TEXT,
                device_name=TEXT,
                host=st.dictionaries(TEXT, JSON, max_size=3),
                versions=st.dictionaries(TEXT, TEXT, max_size=3),
            )
        ),
        seed=draw(TEXT),
        candidate_output=draw(TEXT),
        request=draw(REQUEST),
        evaluator=draw(TEXT),
    )


@given(REQUEST)
def test_a_request_survives_its_json(request):
    assert EvalRequest.from_json(request.to_json()) == request
    assert EvalRequest.from_json(request.to_json(indent=2).encode()) == request
    assert EvalRequest.from_json(request.to_json()).digest() == request.digest()


@given(reports())
def test_a_report_survives_its_json(report):
    read = EvalReport.from_json(report.to_json())

    assert read == report
    assert read.to_json() == report.to_json()
    # Equality lets 1 == 1.0 == True pass; the bytes do not.
    assert json.loads(read.to_json()) == json.loads(report.to_json())


@given(REQUEST, REQUEST)
def test_digests_differ_where_records_differ(first, second):
    same = first.to_json() == second.to_json()

    assert same == (first.digest() == second.digest())


@given(st.text(st.characters(exclude_categories=()), max_size=60) | JSON.map(json.dumps))
def test_arbitrary_text_raises_only_a_record_error(text):
    for record in (EvalReport, EvalRequest, Candidate):
        try:
            made = record.from_json(text)
        except RecordError as error:
            assert str(error)  # noqa: PT017 - either outcome is right
        else:
            assert record.from_json(made.to_json()) == made


@given(reports(), st.data())
def test_a_report_with_a_piece_cut_out_is_refused(report, data):
    text = report.to_json()
    start = data.draw(st.integers(0, len(text) - 1))
    cut = text[:start] + text[start + data.draw(st.integers(1, 40)) :]
    try:
        read = EvalReport.from_json(cut)
    except RecordError:
        return

    # What is left is a report in which a text or a number is shorter: still consistent.
    assert read.verdict == read.outcome.verdict
