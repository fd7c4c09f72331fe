"""Records: impossible states are refused, and unreadable text says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tilewright import errors, records
from tilewright.records import (
    SCHEMA_VERSION,
    Baseline,
    Candidate,
    Case,
    Comparison,
    Correct,
    EvalReport,
    EvalRequest,
    Failed,
    Finding,
    Incorrect,
    Limits,
    Problem,
    Record,
    Rejected,
    ReportEnvironment,
    Rules,
    SourceFile,
    Timing,
    TimingPlan,
    Unjudged,
    digest_text,
)

REPOSITORY = Path(__file__).parents[3]
GOLDEN = REPOSITORY / "tests" / "golden" / "report_fields.txt"
SCHEMA = REPOSITORY / "docs" / "reference" / "schema" / "eval-report.json"
SOURCE = SourceFile(path="problem.py", text="x = 1\n")
PROBLEM = Problem(
    id="one", kind="function", source=SOURCE, entry="work", cases=(Case(name="only"),)
)
CANDIDATE = Candidate(language="torch", files=(SOURCE,), entry="work")
REQUEST = EvalRequest(problem=PROBLEM, candidate=CANDIDATE)
FINDING = Finding(check="inputs", code="input_mutation", summary="it overwrote input 0")
TIMING = Timing(median_us=2.0, low_us=1.0, high_us=3.0, samples=4, method="host_clock")


def comparison(**changes: Any) -> Comparison:
    fields = {"case": "only", "baseline": "eager", "candidate": TIMING}
    fields["baseline_timing"] = TIMING
    fields |= {"speedup": 1.0, "speedup_low": 0.9, "speedup_high": 1.1, "blocks": 4}
    return Comparison(**{**fields, "conclusion": "faster", **changes})


def report(outcome: Any = None, **changes: Any) -> EvalReport:
    chosen = outcome or Correct()
    fields: dict[str, Any] = {
        "verdict": chosen.verdict,
        "outcome": chosen,
        "environment": ReportEnvironment(device="cpu", device_name="x", host={}, versions={}),
        "seed": "0" * 32,
        "request": REQUEST,
        "evaluator": "0.1.0",
    }
    return EvalReport(**{**fields, **changes})


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../up.py", "a/../b.py", "a//b.py", " a.py", "a /b.py"]
)
def test_a_source_file_has_a_plain_relative_path(name):
    with pytest.raises(ValidationError, match="plain relative path"):
        SourceFile(path=name, text="")


def test_a_record_is_frozen_and_refuses_unknown_fields():
    with pytest.raises(ValidationError, match="frozen"):
        CANDIDATE.entry = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Case(name="x", parms={})  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rejected(findings=()),
        lambda: Incorrect(kind="values", case="x", message="m", error_over_tolerance=0.0),
        lambda: Incorrect(kind="odd", case="x", message="m"),  # type: ignore[arg-type]
        lambda: Failed(stage="load", reason="bad weather", message="m"),  # type: ignore[arg-type]
        lambda: Failed(stage="lunch", reason="unexpected_exit", message="m"),  # type: ignore[arg-type]
        lambda: Correct(verdict="incorrect"),  # type: ignore[arg-type]
        lambda: TIMING.model_validate({**TIMING.model_dump(), "median_us": 0.0}),
        lambda: TIMING.model_validate({**TIMING.model_dump(), "median_us": -1.0}),
        lambda: TIMING.model_validate({**TIMING.model_dump(), "high_us": float("inf")}),
        lambda: TIMING.model_validate({**TIMING.model_dump(), "low_us": float("nan")}),
        lambda: TIMING.model_validate({**TIMING.model_dump(), "method": "guess"}),
        lambda: comparison(speedup=0.0),
        lambda: comparison(speedup_low=-1.0),
        lambda: comparison(blocks=0),
        lambda: comparison(moved_bytes=-1),
        lambda: comparison(conclusion="maybe"),
        lambda: PROBLEM.model_validate({**PROBLEM.model_dump(), "cases": ()}),
        lambda: PROBLEM.model_validate({**PROBLEM.model_dump(), "tolerance": 0.0}),
        lambda: PROBLEM.model_validate({**PROBLEM.model_dump(), "mode": "test"}),
        lambda: CANDIDATE.model_validate({**CANDIDATE.model_dump(), "files": ()}),
        lambda: Baseline(name="x", kind="faster"),  # type: ignore[arg-type]
        lambda: Baseline(name="torch.compile", kind="compile"),
        lambda: Baseline(name="compile", kind="eager"),
        lambda: Baseline(name="eager", kind="eager", candidate=CANDIDATE),
        lambda: Baseline(name="mine", kind="candidate"),
        lambda: Baseline(name="eager", kind="candidate", candidate=CANDIDATE),
        lambda: Baseline(name="candidate", kind="candidate", candidate=CANDIDATE),
        lambda: REQUEST.model_validate(
            {**REQUEST.model_dump(), "baselines": [{"name": "eager", "kind": "eager"}] * 2}
        ),
        lambda: TimingPlan(min_blocks=1),
        lambda: TimingPlan(max_s=0),
        lambda: Limits(call_timeout_s=0),
        lambda: REQUEST.model_validate({**REQUEST.model_dump(), "seed": "abc"}),
        lambda: REQUEST.model_validate({**REQUEST.model_dump(), "protocol": "loose"}),
        lambda: report(verdict="failed"),
        lambda: report(Unjudged(reason="no_device", message="m"), verdict="correct"),
        lambda: report(Failed(stage="load", reason="unexpected_exit", message="m"), speedup=2.0),
        lambda: report(speedup=0.0),
        lambda: report(speedup=float("nan")),
    ],
)
def test_an_impossible_state_is_refused(make):
    with pytest.raises(ValidationError):
        make()


@pytest.mark.parametrize(
    "outcome",
    [
        Correct(),
        Incorrect(kind="values", case="c", message="m", error_over_tolerance=3.5),
        Failed(stage="build", reason="build", message="m"),
        Rejected(findings=(FINDING,)),
        Unjudged(reason="no_device", message="m"),
    ],
)
def test_every_verdict_survives_its_json(outcome):
    made = report(outcome)
    read = EvalReport.from_json(made.to_json())

    assert read == made
    assert type(read.outcome) is type(outcome)
    assert json.loads(made.to_json())["verdict"] == outcome.verdict
    assert EvalReport.from_json(made.to_json(indent=1).encode()) == made


def test_a_report_from_before_a_field_with_a_default_is_read():
    made = report(comparisons=(comparison(moved_bytes=0),))
    document = json.loads(made.to_json())
    del document["comparisons"][0]["moved_bytes"]

    assert EvalReport.from_json(json.dumps(document)) == made


def test_a_newer_report_is_refused_by_its_number():
    document = json.loads(report().to_json())
    document |= {"schema_version": SCHEMA_VERSION + 6, "unheard_of": True}

    with pytest.raises(errors.RecordError, match="schema version 8, this tilewright reads up to 2"):
        EvalReport.from_json(json.dumps(document))


@pytest.mark.parametrize("version", [0, -1, "2", None, [3], 1.5])
def test_a_report_of_no_known_version_is_refused(version):
    document = {**json.loads(report().to_json()), "schema_version": version}

    with pytest.raises(errors.RecordError, match="schema_version"):
        EvalReport.from_json(json.dumps(document))


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "7", '"x"', "{}", '{"verdict": "correct"}', "\x00", "NaN"),
        "[" * 100_000,
        '{"schema_version": 99999999999999999999999, ',
    ],
)
def test_damaged_text_is_refused(text):
    with pytest.raises(errors.RecordError, match="damaged: "):
        EvalReport.from_json(text)


def test_bytes_that_are_not_utf8_are_refused():
    with pytest.raises(errors.RecordError):
        EvalReport.from_json(b"\xff\xfe\x00")


def test_the_message_names_the_field():
    document = json.loads(report().to_json())
    document["request"]["limits"]["call_timeout_s"] = "soon"

    with pytest.raises(errors.RecordError, match=r"damaged: request\.limits\.call_timeout_s: "):
        EvalReport.from_json(json.dumps(document))


def test_a_digest_depends_on_content_alone():
    same = Case(name="x", params={"b": 1, "a": 2})

    assert same.digest() == Case(name="x", params={"a": 2, "b": 1}).digest()
    assert same.digest() != Case(name="x", params={"a": 2, "b": 2}).digest()
    assert digest_text("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_every_exported_record_is_a_record():
    found = [getattr(records, name) for name in records.__all__]
    made = [item for item in found if isinstance(item, type)]

    assert len(made) > 20
    assert all(issubclass(item, Record) for item in made)


def field_lines() -> str:
    """Return one line for each field of each record that a report holds."""
    schema = EvalReport.model_json_schema()
    lines = []
    for name, item in {"EvalReport": schema, **schema["$defs"]}.items():
        for field in item.get("properties", {}):
            need = "required" if field in item.get("required", ()) else "optional"
            lines.append(f"{name}.{field} {need}\n")
    return f"schema version {SCHEMA_VERSION}\n" + "".join(sorted(lines))


def test_the_fields_are_those_of_this_schema_version():
    # Where a field was changed on purpose: raise SCHEMA_VERSION if readers of the old version
    # would stumble, and write `field_lines()` into the golden file.
    assert field_lines() == GOLDEN.read_text(encoding="utf-8")


def test_a_report_follows_the_published_schema():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    made = report(Rejected(findings=(FINDING,)), comparisons=(comparison(),))

    jsonschema.validate(json.loads(made.to_json()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(made.to_json()), "verdict": "fine"}, schema)


@pytest.mark.parametrize(
    ("rule", "problem", "allowed"),
    [("tf32", "tf32", True), ("fp32", "tf32", False), ("tf32", "fp32", False)],
)
def test_tf32_is_allowed_where_neither_the_run_nor_the_problem_forbids_it(rule, problem, allowed):
    request = REQUEST.model_copy(
        update={
            "rules": Rules(precision=rule),
            "problem": PROBLEM.model_copy(update={"precision": problem}),
        }
    )
    assert request.allows_tf32 is allowed


def test_bytes_that_are_not_utf8_travel_in_base64():
    made = SourceFile.of_bytes("a table.bin", b"\xff\x00")

    assert (made.encoding, made.data) == ("base64", b"\xff\x00")
    assert SourceFile.from_json(made.to_json()) == made
    assert SourceFile.of_bytes("a.txt", b"\r\n") == SourceFile(path="a.txt", text="\r\n")


@pytest.mark.parametrize("text", ["/w=", "/wA", "/wB=", "/wA=\n", "eA=="])
def test_a_content_has_one_form(text):
    with pytest.raises(ValidationError):
        SourceFile(path="a.bin", text=text, encoding="base64")


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((1.2, 1.15, 1.25), "faster"),
        ((0.8, 0.78, 0.82), "slower"),
        ((1.01, 0.99, 1.03), "no measurable difference"),
        ((1.16, 1.03, 1.33), "no measurable difference"),
        ((1.2, None, None), None),
        ((None, None, None), None),
    ],
)
def test_a_report_says_what_its_interval_shows(ends, said):
    names = ("speedup", "speedup_low", "speedup_high")
    made = report(**dict(zip(names, ends, strict=True)))
    document = json.loads(made.to_json())
    assert (made.conclusion, document["conclusion"]) == (said, said)
    del document["conclusion"]
    older = EvalReport.from_json(json.dumps(document))
    assert older.conclusion == said
