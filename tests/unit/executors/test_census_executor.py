"""A census answers with resampled measurements of a program, and knows no other code."""

from __future__ import annotations

import math
import statistics

import pytest

from tests.space_programs import bad_row, changed, correct_row, problem_of, write_census
from tilewright import config
from tilewright.errors import ConfigError, RecordError
from tilewright.executors import census_executor as census
from tilewright.executors.census_executor import CensusExecutor
from tilewright.executors.factory import device_model, open_executor
from tilewright.problems.candidates import make_candidate
from tilewright.problems.requests import build_request
from tilewright.records import EvalReport, SourceFile
from tilewright.spaces import SPACES
from tilewright.spaces.space import source

CPP = SPACES["cpp_matmul"]
COLS = {"failed": 16, "incorrect": 32, "rejected": 64}
KNOWN, NOISY, TWICE = changed(CPP), changed(CPP, rows=2), changed(CPP, rows=4)
BAD = {
    "failed": {"stage": "build", "reason": "build", "message": "static assertion failed"},
    "incorrect": {"kind": "values", "case": "layer", "message": "at [0, 0]"},
    "rejected": {"findings": [{"check": "c", "code": "c", "summary": "s", "weight": "decisive"}]},
}


@pytest.fixture
def path(tmp_path):
    rows = [
        correct_row(CPP, KNOWN, 2.0, error=0.0),
        correct_row(CPP, NOISY, 1.0, error=0.1),
        correct_row(CPP, TWICE, 1.0, error=0.0),
        correct_row(CPP, TWICE, 3.0, error=0.0),
    ]
    for verdict, outcome in BAD.items():
        knobs = changed(CPP, rows=8, cols=COLS[verdict])
        rows.append(bad_row(CPP, knobs, {"verdict": verdict, **outcome}))
    return write_census(tmp_path / "census.jsonl", CPP, rows, programs=420)


def request_for(code, seed=None, settings=()):
    made = make_candidate((SourceFile(path="candidate.cpp", text=code),), problem_of(CPP))
    return build_request(made, problem_of(CPP), config.load(None, list(settings)), seed=seed)


def speeds(path, knobs, count):
    executor, request = CensusExecutor(path), request_for(source(CPP, knobs))
    return [executor.evaluate(request).speedup for _ in range(count)]


def test_a_trial_is_a_whole_report(path):
    request = request_for(source(CPP, KNOWN), settings=["eval.device=cuda:0"])
    report = CensusExecutor(path).evaluate(request)
    assert EvalReport.from_json(report.to_json()) == report
    assert (report.verdict, report.request, report.speedup) == ("correct", request, 2.0)
    (case,) = report.comparisons
    assert case.baseline_us / case.candidate_us == pytest.approx(case.speedup)
    assert case.conclusion == "faster"
    assert {stage.name: stage.wall_s for stage in report.stages} == {"total": 1.5}
    assert report.environment.device_name == "a test's device"


def test_trials_scatter_as_the_measurement_states(path):
    logs = [math.log(speed) for speed in speeds(path, NOISY, 400)]
    stated = math.log(1.1 / 0.9) / (2 * 1.96)
    assert statistics.stdev(logs) == pytest.approx(stated, rel=0.15)
    assert statistics.fmean(logs) == pytest.approx(0.0, abs=4 * stated / 20)
    report = CensusExecutor(path).evaluate(request_for(source(CPP, NOISY)))
    assert report.speedup_high / report.speedup_low == pytest.approx(1.1 / 0.9)
    assert report.speedup_low < report.speedup < report.speedup_high


def test_each_measurement_of_a_program_is_drawn(path):
    found = speeds(path, TWICE, 100)
    assert set(found) == {1.0, 3.0}
    assert 30 < found.count(1.0) < 70


def test_a_second_executor_continues_the_trials_of_the_first(path, monkeypatch):
    """Otherwise the final measurement of a search would repeat the one that selected."""
    monkeypatch.setattr(census, "_trials", type(census._trials)())
    together = speeds(path, NOISY, 4)
    monkeypatch.setattr(census, "_trials", type(census._trials)())
    assert speeds(path, NOISY, 2) + speeds(path, NOISY, 2) == together
    assert len(set(together)) == 4


def test_a_seed_decides_the_trial(path):
    executor = CensusExecutor(path)
    one, other = (request_for(source(CPP, NOISY), seed=digit * 32) for digit in "ab")
    first = executor.evaluate(one)
    assert executor.evaluate(one) == first
    assert executor.evaluate(other).speedup != first.speedup
    assert first.seed == "a" * 32


@pytest.mark.parametrize("verdict", BAD)
def test_other_verdicts_come_with_their_reason(path, verdict):
    code = source(CPP, changed(CPP, rows=8, cols=COLS[verdict]))
    report = CensusExecutor(path).evaluate(request_for(code))
    outcome = report.outcome.model_dump(mode="json", exclude_defaults=True)
    for name, value in BAD[verdict].items():
        assert outcome[name] == value
    assert (report.verdict, report.speedup, report.comparisons) == (verdict, None, ())
    assert bool(report.findings) == (verdict == "rejected")


def test_unknown_code_fails_with_the_reason(path):
    code = source(CPP, changed(CPP, order="columns"))
    report = CensusExecutor(path).evaluate(request_for(code))
    assert report.verdict == "failed"
    assert "no program of the space cpp_matmul" in report.outcome.message
    assert "the census has 6 of 420 programs" in report.outcome.message


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ('eval.baselines=["compile"]', "baselines"),
        ("eval.rules.require_custom_kernel=true", "rules"),
        ("eval.protocol=official", "protocol"),
    ],
)
def test_a_request_by_other_rules_is_refused(path, setting, what):
    request = request_for(source(CPP, KNOWN), settings=[setting])
    with pytest.raises(ConfigError, match=f"its {what} is"):
        CensusExecutor(path).evaluate(request)


def test_a_request_for_another_problem_is_refused(path):
    request = request_for(source(CPP, KNOWN))
    text = request.problem.source.model_copy(update={"text": "# changed"})
    problem = request.problem.model_copy(update={"source": text})
    other = request.model_copy(update={"problem": problem})
    with pytest.raises(ConfigError, match="source of the problem"):
        CensusExecutor(path).evaluate(other)


def test_the_setting_executor_names_a_census(path, tmp_path):
    settings = config.load(None, [f"executor=census:{path}"])
    assert device_model(settings, "cpu") == "a test's device"
    with open_executor(settings) as executor:
        assert executor.evaluate(request_for(source(CPP, KNOWN)), print).speedup == 2.0
    with pytest.raises(ConfigError, match="no such file"):
        open_executor(config.load(None, [f"executor=census:{tmp_path / 'x'}"]))
    (tmp_path / "empty").write_text("{}\n")
    with pytest.raises(RecordError, match="empty:1"):
        open_executor(config.load(None, [f"executor=census:{tmp_path / 'empty'}"]))
