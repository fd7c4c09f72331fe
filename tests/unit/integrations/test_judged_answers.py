"""Answers judged for a harness: each row's reward, the figures as metrics, and real episodes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests import sample_reports as reports
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.integrations.judged_answers import (
    VERDICTS,
    Episode,
    harness_settings,
    judgeable_problems,
    judged_answer,
    reference_is_correct,
)
from tilewright.integrations.verdict_table import HARNESSES, INSPECT, Ours, row_of, row_of_summary
from tilewright.loop.answer_evaluator import summary_of_report, unjudged
from tilewright.problems.loader import find_problem
from tilewright.records import Correct, Failed
from tilewright.rl.episodes import Episodes
from tilewright.scoring.rewards import REWARDS

REPORTS = [
    *(reports.correct(), reports.report(Correct()), reports.incorrect(), reports.rejected()),
    *(reports.failed("build"), reports.failed("load"), reports.failed("correctness")),
    *(reports.failed_constructor(name) for name in ("RuntimeError", "TypeError")),
    reports.report(Failed(stage="correctness", reason="timeout", message="20 s")),
    reports.unjudged(),
]
RIGHT = "```python\nimport torch\n\ndef add_relu(x, y):\n    return torch.relu(x + y)\n```"


def answer_of(summary, rule="tilewright"):
    return judged_answer("p", summary, REWARDS[rule](summary), "said", Path("/runs/1"))


@pytest.mark.parametrize("report", REPORTS, ids=lambda item: str(row_of(item)))
@pytest.mark.parametrize("rule", REWARDS)
def test_each_row_has_the_reward_of_its_cell(report, rule):
    summary = summary_of_report(report, "reports/1.json", 2.0)
    row = row_of_summary(summary)
    assert row == row_of(report)
    answer = answer_of(summary, rule)
    metrics = answer.metrics()
    assert [name for name in VERDICTS if metrics[name]] == [report.verdict]
    match HARNESSES[row].reward:
        case "by rule":
            assert answer.reward == REWARDS[rule](summary) > 0
            assert (metrics["timed"], metrics["speedup"]) == (1, report.speedup)
        case "without speed":
            assert (metrics["timed"], metrics["speedup"], answer.low) == (0, None, None)
            assert answer.reward == REWARDS[rule](summary) > 0
        case "zero":
            assert (answer.reward, metrics["speedup"], metrics["low"]) == (0, None, None)
        case "none":
            assert (answer.reward, metrics["speedup"], metrics["coverage"]) == (None, None, None)
    assert answer.report == "/runs/1/reports/1.json"


@pytest.mark.parametrize("row", Ours)
def test_only_a_correct_candidate_earns_something(row):
    correct = row in (Ours.CORRECT_TIMED, Ours.CORRECT_NOT_TIMED)
    assert (HARNESSES[row].reward in ("by rule", "without speed")) == correct
    assert (INSPECT[row].correct == 1) == correct
    assert (
        (HARNESSES[row].reward == "none")
        == (row is Ours.UNJUDGED)
        == (INSPECT[row].correct is None)
    )


def test_a_finding_is_a_metric():
    summary = summary_of_report(reports.rejected(), "", 1.0)
    metrics = answer_of(summary).metrics()
    assert summary.findings
    assert all(metrics[f"finding_{name}"] == 1 for name in summary.findings)


def test_an_episode_has_a_verdict_feedback_and_a_report(settings):
    untimed = settings.with_eval(timing=settings.eval.timing.model_copy(update={"enabled": False}))
    with Episodes(untimed, "test") as episodes:
        episode = Episode(episodes, untimed)
        (*_, first) = episode.reset(find_problem("add_relu"))
        assert "add_relu" in first.text
        none, prompt = asyncio.run(episode.answer("I cannot."))
        assert (none.verdict, none.reward, none.report) == ("failed", 0, "")
        assert none.reason in prompt[-1].text
        right, _ = asyncio.run(episode.answer(RIGHT))
    assert (right.verdict, right.row, right.reward) == ("correct", "correct, not timed", 1), (
        right.reason
    )
    assert Path(right.report).is_file()
    assert Path(right.run) == episodes.folder.resolve()
    assert reference_is_correct(find_problem("add_relu"), untimed)


class LostExecutor:
    """An executor whose machine is gone."""

    def evaluate(self, *_, **__):
        raise InfrastructureError("the machine is gone")


def test_an_internal_error_is_an_unjudged_answer_and_never_a_number(settings, monkeypatch):
    monkeypatch.setattr("tilewright.loop.answer_evaluator.RETRIES", 0)
    with Episodes(settings, "test", LostExecutor()) as episodes:
        episode = Episode(episodes, settings)
        episode.reset(find_problem("add_relu"))
        for _ in range(4):
            found, _ = asyncio.run(episode.answer(RIGHT))
            assert (found.verdict, found.reward, found.speedup) == ("unjudged", None, None)
            assert "the machine is gone" in found.reason


def test_a_summary_without_a_report_names_none():
    lost = unjudged("strict", "no device")
    assert (answer_of(lost).report, answer_of(lost).reward) == ("", None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: harness_settings((), "paperr"), "reward 'paperr' is unknown; did you mean paper"),
        (lambda: harness_settings(("eval.devise=cpu",)), "eval.devise"),
        (lambda: judgeable_problems("add_rel", harness_settings(())), "did you mean add_relu"),
        (
            lambda: judgeable_problems("kernelbench/level1", harness_settings(())),
            "tilewright problems import kernelbench",
        ),
    ],
)
def test_a_wrong_value_is_named(monkeypatch, tmp_path, call, message):
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=message):
        call()
