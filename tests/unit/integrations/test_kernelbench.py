"""`eval_kernel_against_ref`: real evaluations, and every row of the table from stored reports."""

from __future__ import annotations

import inspect
import json
import statistics
from pathlib import Path

import pytest

from tests import sample_reports as reports
from tests.kernelbench_sources import PROBLEM, RAISING, RANDOM, RIGHT, WRONG
from tilewright.errors import ConfigError, InfrastructureError, NoVerdict, ProblemError
from tilewright.integrations.kept_report import KeptReport
from tilewright.integrations.kernelbench import (
    NOT_TIMED,
    REASONS,
    Arguments,
    KernelExecResult,
    eval_kernel_against_ref,
    not_honoured,
    result_of,
)
from tilewright.integrations.verdict_table import TABLE, row_of
from tilewright.records.run_folder import read_report

ARGUMENTS = (
    *("original_model_src", "custom_model_src", "seed_num", "num_correct_trials"),
    *("num_perf_trials", "measure_performance", "timing_method", "verbose", "build_dir"),
    *("device", "backend", "precision", "check_for_excessive_speedup"),
    "excessive_speedup_threshold",
)
"""KernelBench's, in its order, at commit 423217d."""
FIELDS = (
    *("compiled", "correctness", "metadata", "runtime", "runtime_stats"),
    *("ref_runtime", "ref_runtime_stats"),
)


def torch_device(name: str) -> object:
    import torch

    return torch.device(name)


def kept(report) -> KeptReport:
    return KeptReport(report, Path("/runs/1"))


def test_arguments_and_fields_are_those_of_kernelbench():
    parameters = inspect.signature(eval_kernel_against_ref).parameters
    own = [name for name, item in parameters.items() if item.kind is item.KEYWORD_ONLY]
    assert tuple(name for name in parameters if name not in own) == ARGUMENTS
    assert own == ["protocol", "config"]
    assert tuple(KernelExecResult.model_fields) == FIELDS


@pytest.mark.slow
def test_a_correct_candidate_is_timed_in_milliseconds(settings):
    result = eval_kernel_against_ref(
        PROBLEM,
        RIGHT,
        num_correct_trials=5,
        num_perf_trials=100,
        measure_performance=True,
        config=settings,
    )
    assert (result.compiled, result.correctness) == (True, True)
    report = read_report(Path(result.metadata["report"]))
    assert report.request.protocol == "official"
    (comparison,) = report.comparisons
    mine = [time for row in comparison.raw_us for time in row[1:3]]
    assert result.runtime == pytest.approx(statistics.fmean(mine) / 1000)
    assert result.runtime_stats["num_trials"] == len(mine) == 100
    assert result.runtime_stats["min"] <= result.runtime <= result.runtime_stats["max"]
    theirs = [time for row in comparison.raw_us for time in (row[0], row[3])]
    assert result.ref_runtime == pytest.approx(statistics.fmean(theirs) / 1000)
    assert result.metadata["speedup"] == report.speedup
    assert result.metadata["correctness_trials"] == "(5 / 5)"
    assert set(result.metadata["not_honoured"]) == {"seed_num", "timing_method"}
    json.dumps(result.model_dump())


def test_without_performance_no_time_is_written(settings):
    result = eval_kernel_against_ref(PROBLEM, RIGHT, config=settings)
    assert result.correctness
    assert (result.runtime, result.runtime_stats) == (NOT_TIMED, {})
    assert (result.ref_runtime, result.ref_runtime_stats) == (NOT_TIMED, {})
    assert result.metadata["verdict"] == "correct"


@pytest.mark.parametrize(
    ("source", "compiled", "key", "name"),
    [
        (WRONG, True, "correctness_issue", "values"),
        (RAISING, True, "runtime_error", "exception"),
        ("def broken(:\n", False, "compilation_error", "syntax_error"),
        ("x = 1\n", False, "compilation_error", "missing_entry"),
        ("", False, "compilation_error", "missing_entry"),
    ],
)
def test_other_candidates_get_the_reason_in_the_metadata(settings, source, compiled, key, name):
    result = eval_kernel_against_ref(PROBLEM, source, measure_performance=True, config=settings)
    assert (result.compiled, result.correctness) == (compiled, False)
    assert result.runtime == result.ref_runtime == NOT_TIMED
    assert result.metadata[f"{key}_name"] == name
    assert result.metadata[key]
    assert Path(result.metadata["report"]).is_file()


def test_source_text_is_never_read_as_a_path(settings, tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    result = eval_kernel_against_ref(PROBLEM, str(tmp_path / "right.py"), config=settings)
    assert (result.compiled, result.correctness) == (False, False)


@pytest.mark.parametrize("device", [77, "cuda:77", torch_device("cuda:77")])
def test_a_device_has_the_forms_of_torch(settings, device):
    with pytest.raises(InfrastructureError, match="cuda:77 is not here"):
        eval_kernel_against_ref(PROBLEM, RIGHT, device=device, config=settings)


def test_a_rejected_candidate_is_not_correct_and_the_finding_is_named(settings):
    rules = settings.eval.rules.model_copy(update={"require_custom_kernel": True})
    strict = settings.with_eval(rules=rules)
    result = eval_kernel_against_ref(PROBLEM, RIGHT, protocol="strict", config=strict)
    assert (result.compiled, result.correctness) == (True, False)
    assert result.metadata["verdict"] == "rejected"
    assert result.metadata["protocol"] == "strict"
    assert result.metadata["correctness_issue_name"] in result.metadata["findings"]


def test_an_unjudged_candidate_has_no_result(settings):
    with pytest.raises(NoVerdict, match="unjudged: nondeterministic_reference") as error:
        eval_kernel_against_ref(RANDOM, RIGHT, config=settings)
    folder = Path(str(error.value).rpartition(" ")[2])
    assert read_report(folder).verdict == "unjudged"
    assert error.value.exit_code == 4


@pytest.mark.parametrize(
    "report",
    [
        *(reports.correct(), reports.report(), reports.incorrect(), reports.rejected()),
        *(reports.failed("build"), reports.failed("load"), reports.failed("correctness")),
    ],
)
def test_each_row_of_the_table_is_what_the_result_says(report):
    cell = TABLE[row_of(report)].kernelbench
    result = result_of(kept(report), {}, 10)
    assert (result.compiled, result.correctness) == (cell.compiled, cell.correctness)
    assert (result.runtime > 0) == (result.ref_runtime > 0) == cell.timed
    told = [name for name in result.metadata if f"{name}_name" in result.metadata]
    assert told == ([cell.metadata] if cell.metadata else [])


def test_unjudged_raises_from_a_stored_report_too():
    with pytest.raises(NoVerdict, match="no_device"):
        result_of(kept(reports.unjudged()), {}, None)


def test_an_excessive_speedup_is_named_only_above_the_threshold():
    report = reports.correct()
    assert "excessive_speedup" not in result_of(kept(report), {}, 1.5).metadata
    assert result_of(kept(report), {}, 1.4).metadata["excessive_speedup"] is True
    unchecked = result_of(kept(report), {}, None)
    assert "excessive_speedup" not in unchecked.metadata
    assert (unchecked.ref_runtime, unchecked.ref_runtime_stats) == (NOT_TIMED, {})


def test_an_argument_without_effect_is_named_and_warned_of(settings):
    with pytest.warns(UserWarning, match="build_dir='/tmp/x': .*home"):
        result = eval_kernel_against_ref(PROBLEM, WRONG, build_dir="/tmp/x", config=settings)
    assert result.metadata["not_honoured"]["build_dir"] == REASONS["build_dir"]


def test_every_argument_is_honoured_or_named(settings):
    official, strict = (settings.with_eval(protocol=name) for name in ("official", "strict"))
    changed = Arguments(7, 9, 33, "do_bench", True, "/tmp/x")
    assert set(not_honoured(changed, official)) == set(REASONS)
    assert set(vars(changed)) == set(REASONS)
    whole = Arguments(num_correct_trials=5, num_perf_trials=100)
    on_gpu = official.with_eval(device="cuda")
    assert set(not_honoured(whole, on_gpu)) == {"seed_num"}
    trials = {"num_correct_trials", "num_perf_trials"}
    assert set(not_honoured(whole, strict)) == {"seed_num", "timing_method"} | trials


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": "tilelang"}, "backend='tilelang' is not supported; give cuda or triton"),
        ({"backend": "trition"}, "did you mean triton"),
        ({"precision": "torch.bfloat16"}, "keep the dtypes of the problem's source"),
        ({"protocol": "ours"}, "protocol='ours': give official or strict"),
        ({"device": "gpu"}, "device 'gpu' is unknown"),
    ],
)
def test_a_value_that_would_change_the_meaning_is_refused(settings, arguments, message):
    with pytest.raises(ConfigError, match=message):
        eval_kernel_against_ref(PROBLEM, RIGHT, config=settings, **arguments)


def test_a_problem_in_another_form_is_refused(settings):
    functions = "CASES = [{'name': 'a'}]\ndef inputs(c, g): ...\ndef reference(x): ...\n"
    with pytest.raises(ConfigError, match="define `Model`"):
        eval_kernel_against_ref(functions, RIGHT, config=settings)
    with pytest.raises(ProblemError, match="original_model_src: not a problem"):
        eval_kernel_against_ref("x = 1\n", RIGHT, config=settings)
