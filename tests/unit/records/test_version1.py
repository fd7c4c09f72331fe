"""Files that schema version 1 wrote are read: their names become those of version 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.errors import RecordError
from tilewright.records import EvalReport, Problem
from tilewright.records.event_log import parse_event, read_events
from tilewright.records.events import RunStarted, TurnFinished
from tilewright.records.version1 import FIELDS, VALUES, upgrade

VERSION_1 = Path(__file__).parents[2] / "golden" / "v1"
REPORTS = sorted(path.name for path in VERSION_1.glob("eval_*.json"))


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_of_version_1_is_read_and_written_as_version_2(name):
    text = (VERSION_1 / name).read_text(encoding="utf-8")
    old = json.loads(text)
    made = EvalReport.from_json(text)

    assert (old["schema_version"], made.schema_version) == (1, 2)
    assert made.verdict == old["verdict"]
    assert made.speedup == old["speedup"]
    assert [item.active for item in made.isolation] == [
        item["active"] for item in old["protections"]
    ]
    assert [item.raw_us for item in made.comparisons] == [
        tuple(map(tuple, item["raw_us"])) for item in old["comparisons"]
    ]
    assert EvalReport.from_json(made.to_json()) == made


def test_values_of_version_1_have_their_present_names():
    rejected = EvalReport.from_json((VERSION_1 / "eval_rejected.json").read_text("utf-8"))
    failed = EvalReport.from_json((VERSION_1 / "eval_failed.json").read_text("utf-8"))
    correct = EvalReport.from_json((VERSION_1 / "eval_correct.json").read_text("utf-8"))

    assert [item.code for item in rejected.findings] == ["unused_kernel"]
    assert (failed.outcome.stage, failed.outcome.reason) == ("build", "syntax_error")
    assert {item.result for item in correct.cases} <= {"pass", "skipped"}
    assert {item.candidate.method for item in correct.comparisons} == {"host_clock"}
    assert "device_wait" in [item.name for item in correct.stages]
    assert "pid_namespace" in [item.name for item in correct.isolation]


@pytest.mark.parametrize("name", ["bench", "optimize", "rl"])
def test_the_log_of_a_version_1_run_is_read_whole(name):
    lines = (VERSION_1 / name / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = list(read_events(VERSION_1 / name))

    assert len(events) == len(lines)
    assert isinstance(events[0], RunStarted)
    assert events[0].schema_version == 2
    for line in (VERSION_1 / name / "problems.jsonl").read_text(encoding="utf-8").splitlines():
        assert Problem.from_json(line).id == json.loads(line)["id"]


def test_findings_and_labels_of_old_turns_have_their_present_names():
    lines = (VERSION_1 / "bench" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    old = json.loads(next(line for line in lines if '"told"' in line))
    old["turn"]["judgements"][0] |= {"findings": ["decoy"], "labels": ["not timed", "short"]}
    made = parse_event(json.dumps(old).encode())

    assert isinstance(made, TurnFinished)
    assert made.turn.judgements[0].findings == ("unused_kernel",)
    assert made.turn.judgements[0].labels == ("not_timed", "short_call")


def test_a_damaged_report_of_version_1_is_refused_with_its_field():
    document = json.loads((VERSION_1 / "eval_correct.json").read_text(encoding="utf-8"))
    document["comparisons"][0]["candidate"]["median_us"] = "soon"

    with pytest.raises(RecordError, match=r"comparisons\.0\.candidate\.median_us"):
        EvalReport.from_json(json.dumps(document))


def test_an_unknown_field_of_a_version_1_report_is_refused():
    document = json.loads((VERSION_1 / "eval_correct.json").read_text(encoding="utf-8"))
    document["unheard_of"] = 1

    assert upgrade(EvalReport, document)["unheard_of"] == 1
    with pytest.raises(RecordError, match="unheard_of"):
        EvalReport.from_json(json.dumps(document))


def test_no_old_name_is_also_a_new_name():
    for names in FIELDS.values():
        assert not set(names) & set(names.values())
    for fields in VALUES.values():
        for values in fields.values():
            assert not set(values) & set(values.values())
