"""The table over the interfaces that need no package: KernelGYM, MCP, TRL, verl, CLI exit codes."""

from __future__ import annotations

import json

import pytest

from tests import sample_reports as reports
from tests.unit.integrations.test_judged_answers import REPORTS
from tilewright.config import Config, load
from tilewright.errors import InfrastructureError
from tilewright.integrations.verdict_table import HARNESSES, KERNELGYM, Ours, row_of
from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.records.events import Ask, Turn
from tilewright.rl import reward_scorer
from tilewright.rl.trl_reward import TrlReward
from tilewright.rl.verl_score import compute_score
from tilewright.scoring.rewards import REWARDS
from tilewright.serve.agent_answers import turn_facts
from tilewright.serve.kernelgym_schemas import task_answer
from tilewright.serve.store.tables import Task

EACH = pytest.mark.parametrize("report", REPORTS, ids=lambda item: str(row_of(item)))
SUCCESSES = (Ours.CORRECT_TIMED, Ours.CORRECT_NOT_TIMED)
REPLY = f"```python\n{reports.SOURCE}\n```"


@EACH
def test_kernelgym_answers_with_its_cell(report):
    cell = KERNELGYM[row_of(report)]
    task = Task("1", "client", "problem", 1, 0.0, sequence=1, state="done")
    answer = task_answer("1", task, report.to_json().encode(), "strict")
    names = ("status", "compiled", "correctness", "error_code", "decoy_kernel")
    wanted = (cell.status, cell.compiled, cell.correctness, cell.code, cell.unused)
    assert tuple(answer[name] for name in names) == wanted
    timed = (answer["speedup"] > 0, answer["kernel_runtime"] > 0, answer["reference_runtime"] > 0)
    assert timed == (cell.timed,) * 3


@EACH
def test_mcp_names_the_verdict_and_has_a_number_for_a_timed_one_alone(report):
    summary = summary_of_report(report, "", 1.0)
    turn = Turn(ask=Ask(id="1", problem="p"), judgements=(summary,))
    facts = turn_facts(1, turn, "")
    assert facts.verdict == report.verdict
    timed = row_of(report) is Ours.CORRECT_TIMED
    assert (facts.speedup is not None, facts.speedup_low is not None) == (timed, timed)


class Stored:
    """An executor that answers every request with one stored report."""

    def __init__(self, report) -> None:
        self.report = report

    def evaluate(self, *_, **__):
        return self.report

    def close(self) -> None:
        pass


@pytest.fixture
def trainer(monkeypatch, tmp_path):
    """Return a function that gives settings whose scorer answers with a stored report."""

    def made(report, on_unjudged: str) -> Config:
        changes = [f"home={tmp_path}", f"runs={tmp_path}", "reward.retries=0"]
        chosen = load(overrides=[*changes, f"reward.on_unjudged={on_unjudged}"], environ={})
        monkeypatch.setattr(reward_scorer, "open_executor", lambda *_: Stored(report))
        monkeypatch.setattr(reward_scorer, "_scorers", {})
        return chosen

    return made


@EACH
def test_trl_gets_the_reward_of_the_cell(report, trainer):
    chosen = trainer(report, "none")
    problem = report.request.problem.to_json()
    (reward,) = TrlReward(chosen)(["p"], [REPLY], problem=[problem])
    rule = REWARDS[chosen.reward.name](summary_of_report(report, "", 1.0))
    match HARNESSES[row_of(report)].reward:
        case "none":
            assert reward is None
        case "zero":
            assert reward == 0
        case _:
            assert reward == rule > 0


@EACH
def test_verl_gets_the_reward_of_the_cell_and_raises_for_an_unjudged_reply(
    report, trainer, monkeypatch
):
    chosen = trainer(report, "raise")
    monkeypatch.setattr("tilewright.rl.verl_score._settings", lambda *_: chosen)
    given = ("set", REPLY, report.request.problem.to_json())
    row = row_of(report)
    if row is Ours.UNJUDGED:
        with pytest.raises(InfrastructureError, match="could not be judged"):
            compute_score(*given)
        return
    found = compute_score(*given, details=True)
    assert found["acc"] == (row in SUCCESSES)
    assert (found["score"] > 0) == (row in SUCCESSES)


@EACH
def test_the_exit_code_of_eval_is_the_verdict(report, run, monkeypatch, tmp_path):
    monkeypatch.setattr("tilewright.cli.eval.api.evaluate_request", lambda *_, **__: report)
    candidate = tmp_path / "fast.py"
    candidate.write_text(reports.SOURCE)
    done = run(
        *("eval", str(candidate), "--problem", "add_relu", "--json"),
        *("--set", f"runs={tmp_path}", "--set", f"home={tmp_path}"),
    )
    row = row_of(report)
    assert done.exit_code == (0 if row in SUCCESSES else 4 if row is Ours.UNJUDGED else 1)
    shown = json.loads(done.stdout)
    assert shown["outcome"]["verdict"] == report.verdict
