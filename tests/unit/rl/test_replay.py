"""An estimator over an existing log: numbers, masks, rewards without checks."""

from __future__ import annotations

import json
import math

import pytest
import torch
from click.testing import CliRunner

from tests import sample_reports as reports
from tests.unit.loop.test_rollout import CODE, play
from tilewright.cli.main import cli
from tilewright.config import load
from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.records import EvalReport
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, Reply, RunStarted, Turn, TurnFinished
from tilewright.rl.coverage_sampling import uniform
from tilewright.rl.presets import PAPER, RELEASED_CODE, TILEWRIGHT
from tilewright.rl.replay import Place, masks, place_of, read_batches, replay, replay_metrics
from tilewright.rl.tokens import log_ratio_file, write_log_ratios
from tilewright.scoring.rewards import REWARDS, measured, without_checks

BEGUN = RunStarted(
    kind="train", name="paper", problems="p", protocols=("strict",), evaluator="0", device="cpu"
)


def said(verdict="correct", **fields):
    return EvalSummary(protocol="strict", verdict=verdict, **fields)


FAST = said(speedup=2.0, low=1.5, high=2.5, coverage=0.9)
LAZY = said(speedup=1.0, low=0.9, high=1.1, coverage=0.34)
WRONG = said("incorrect")
UNUSED = said("rejected", unchecked=9.0, unchecked_speedup_low=8.0, coverage=0.0)
LOST = said("unjudged")


def a_training(folder, batches):
    """Write a log as a training does: batches of groups of rollouts of turns."""
    sample = 0
    with EventLog(folder) as log:
        log.append(BEGUN)
        for name, groups in batches.items():
            for group, rollouts in groups.items():
                for number, turns in enumerate(rollouts):
                    problem = group.rpartition(".")[0]
                    for place, item in enumerate(turns):
                        if item is None:
                            continue
                        ask = Ask(
                            id=f"{name}/{group}#{number}.{place}",
                            problem=problem,
                            sample=sample,
                            turn=place,
                        )
                        reply = Reply(text="x")
                        log.append(
                            TurnFinished(turn=Turn(ask=ask, reply=reply, judgements=(item,)))
                        )
                    sample += 1
    return folder


def test_a_turn_id_gives_batch_group_sample_and_turn():
    ask = Ask(id="step00003/set/p.1#2.0", problem="set/p", sample=99)
    assert place_of(ask) == Place("step00003", "step00003/set/p.1", 2, 0)
    assert place_of(Ask(id="set/p#4.1", problem="set/p", sample=4, turn=1)) == Place(
        "", "set/p", 4, 1
    )
    odd = Ask(id="a/p.1#2.0", problem="other", sample=7)
    assert place_of(odd) == Place("", "other", 7, 0)


def test_rewards_returns_and_advantages_are_those_of_the_preset(tmp_path):
    a_training(tmp_path, {"step00000": {"p.0": [[FAST, WRONG], [WRONG, LAZY]]}})
    (batch,) = read_batches(tmp_path)
    part = replay(batch, PAPER)
    assert part.turns.rewards.values.tolist() == [[3.9, 0.0], [0.0, 2.34]]
    advantages = part.estimate.advantages.values.flatten().tolist()
    assert advantages == pytest.approx([1.56, -2.34, -1.56, 2.34])
    half = replay(batch, RELEASED_CODE)
    assert half.turns.rewards.values.tolist() == [[1.95, 0.0], [0.0, 1.17]]
    # The second turn of the first trajectory is a relapse.
    assert half.estimate.filtered.tolist() == [[False, True], [False, False]]
    sure = replay(batch, TILEWRIGHT)
    assert sure.turns.rewards.values.tolist() == [[2.5, 0.0], [0.0, 1.9]]


@pytest.mark.reads_settings
@pytest.mark.parametrize("chosen", [PAPER, RELEASED_CODE, TILEWRIGHT], ids=lambda p: p.name)
@pytest.mark.parametrize("item", [FAST, LAZY, WRONG, UNUSED, LOST, said(), said("failed")])
def test_a_replayed_reward_equals_the_rule_of_its_name(tmp_path, chosen, item):
    """`TurnRewardSection` and the functions of `scoring.rewards` say the same."""
    a_training(tmp_path, {"step0": {"p.0": [[item], [FAST]]}})
    (batch,) = read_batches(tmp_path)
    (found, _) = masks(replay(batch, chosen))
    assert found["reward"] == pytest.approx(REWARDS[chosen.name](item))


def test_masks_name_the_reason_of_each_excluded_turn(tmp_path):
    turns = [[FAST, LOST, FAST], [WRONG, LAZY, FAST], [FAST, FAST, None]]
    a_training(tmp_path, {"step00000": {"p.0": turns}, "score00000": {"p.0": [[FAST]]}})
    (batch,) = read_batches(tmp_path)
    assert sum(name is not None for row in batch.asks for name in row) == 8
    found = {row["ask"].rpartition("#")[2]: row for row in masks(replay(batch, PAPER, seed=5))}
    assert "2.2" not in found
    assert (found["0.0"]["out"], found["0.1"]["out"]) == ("another turn unjudged", "unjudged")
    lazy, draw = found["1.1"], uniform(5, "step00000/p.0", 1, 1)
    assert (lazy["draw"], lazy["chance"]) == (draw, pytest.approx(0.4))
    assert lazy["out"] == ("" if draw < 0.4 else "PRS")
    assert found["1.0"]["chance"] is None
    alone = {row["ask"]: row for row in masks(replay(batch, TILEWRIGHT))}
    assert alone["step00000/p.0#0.2"]["out"] == ""
    total = replay_metrics([replay(batch, PAPER)])
    assert (total["turns"], total["unjudged"]) == (8, 1)
    assert total["correct"] == pytest.approx(6 / 7)
    assert replay_metrics([replay(batch, PAPER)], 2)["turns"] == 2


def test_groups_are_of_a_batch_and_an_occurrence(tmp_path):
    one, two = [[FAST], [WRONG]], [[WRONG], [WRONG]]
    a_training(tmp_path, {"step0": {"p.0": one, "p.1": two}, "step1": {"p.0": two}})
    first, second = read_batches(tmp_path)
    assert (first.name, second.name) == ("step0", "step1")
    values = replay(first, PAPER).estimate.advantages.values.flatten().tolist()
    assert values == pytest.approx([3.9, -3.9, 0.0, 0.0])


def test_rewards_without_checks_use_the_measured_speedup(tmp_path):
    assert without_checks(UNUSED).speedup == 9.0
    assert without_checks(WRONG) is WRONG
    a_training(tmp_path, {"step0": {"p.0": [[UNUSED], [WRONG]]}})
    (batch,) = read_batches(tmp_path)
    assert replay(batch, PAPER).turns.rewards.values.flatten().tolist() == [0.0, 0.0]
    (batch,) = read_batches(tmp_path, checks=False)
    part = replay(batch, PAPER)
    # Capped at 3; its kernels do nothing, so PRS drops it.
    assert part.turns.rewards.values.flatten().tolist() == [4.0, 0.0]
    assert masks(part)[0]["out"] == "PRS"


def a_rejected_report() -> EvalReport:
    return reports.rejected().model_copy(update={"comparisons": reports.correct().comparisons})


def test_a_rejected_report_keeps_its_measured_speed():
    found = measured(a_rejected_report())
    assert found is not None
    assert found[0] == pytest.approx((1.005 * 2.0) ** 0.5)
    made = summary_of_report(a_rejected_report(), "", 1.0)
    assert (made.verdict, made.speedup, made.unchecked) == ("rejected", None, found[0])
    assert summary_of_report(reports.correct(), "", 1.0).unchecked is None
    assert measured(reports.rejected()) is None


def test_an_older_log_takes_the_measured_speedup_from_its_reports(tmp_path):
    script = (a_rejected_report(), reports.incorrect())
    play(tmp_path, lambda *_: CODE, "loop.turns=1", "loop.samples=2", script=script)
    log = tmp_path / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        for item in line.get("turn", {}).get("judgements", ()):
            item["unchecked"] = item["unchecked_speedup_low"] = None
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (batch,) = read_batches(tmp_path, checks=False)
    assert replay(batch, PAPER).turns.rewards.values[0, 0] == pytest.approx(1 + (2.01) ** 0.5)


def invoke(*words):
    return CliRunner().invoke(cli, ["train", "replay", *map(str, words)])


def test_the_replay_command_compares_presets(tmp_path):
    a_training(tmp_path, {"step0": {"p.0": [[FAST, WRONG], [WRONG, LAZY]]}})
    result = invoke(tmp_path)
    assert result.exit_code == 0, result.output
    assert "all batches" in result.output
    assert "step0, 1" in result.output
    assert "MRS) is not computed" in result.output
    found = json.loads(invoke(tmp_path, "--json", "--preset", "paper", "--seed", 3).stdout)
    assert list(found["presets"]) == ["paper"]
    assert found["presets"]["paper"]["total"]["reward"] == pytest.approx((3.9 + 2.34) / 4)
    assert found["seed"] == 3
    assert len(found["presets"]["paper"]["batches"][0]["by_turn"]) == 2


def test_the_replay_uses_the_seed_of_the_training(tmp_path):
    a_training(tmp_path, {"step0": {"p.0": [[FAST]]}})
    (tmp_path / "run.yaml").write_text("seed: 11\n")
    assert json.loads(invoke(tmp_path, "--json").stdout)["seed"] == 11


def test_a_dry_run_prints_formulas_and_masks(tmp_path):
    a_training(tmp_path, {"step0": {"p.0": [[FAST], [LOST]]}, "step1": {"p.0": [[FAST]]}})
    text = invoke(tmp_path, "--dry-run", "--preset", "tilewright").stdout
    assert "R = C (1 + 1 min(s, 3) + 0 PR)   (eq. 1, 7, 8)" in text
    assert "step0/p.0#1.0" in text
    assert "alone in its group" in text
    assert "step1" not in text
    assert "batch step1" in invoke(tmp_path, "--explain", "--batch", "step1").stdout
    assert invoke(tmp_path, "--batch", "step9").exit_code == 2


def test_the_settings_of_the_run_and_its_mismatch_rejection_are_replayed(tmp_path):
    a_training(tmp_path, {"step0": {"p.0": [[FAST, WRONG], [WRONG, LAZY]]}})
    text = "preset: paper\noverrides: {reward: {correct: 3}, mismatch: {level: turn}, "
    text += "profiling: {mode: 'off'}}\n"
    (tmp_path / "run.yaml").write_text(text)
    total = json.loads(invoke(tmp_path, "--json").stdout)["presets"]["as trained"]["total"]
    # Without log-probabilities there is no mismatch rejection.
    assert (total["kept_mismatch"], total["learned"]) == (None, 1.0)
    assert total["reward"] == pytest.approx((5.9 + 4.34) / 4)
    gaps = {"step0/p.0#0.0": [0.0, 0.0, 0.1], "step0/p.0#0.1": [2e-4], "step0/p.0#1.0": [0.0]}
    gaps["step0/p.0#1.1"] = [-math.inf]
    ratios = {name: torch.tensor(row) for name, row in gaps.items()}
    write_log_ratios(log_ratio_file(tmp_path, "step0"), ratios)
    result = invoke(tmp_path, "--json")
    found = json.loads(result.stdout)
    assert found["mismatch"] == ""
    assert "MRS) is not computed" not in result.output
    total = found["presets"]["as trained"]["total"]
    assert (total["kept_mismatch"], total["learned"]) == (2 / 6, 0.5)
    # The trajectory of the first turn is rejected as well, under the preset itself.
    assert found["presets"]["paper"]["total"]["learned"] == 0.0
    assert "as trained" in invoke(tmp_path).stdout
    explained = invoke(tmp_path, "--explain").stdout
    assert "MRS" in explained


@pytest.mark.parametrize("content", ["", BEGUN.model_dump_json() + "\n"])
def test_a_folder_without_a_run_has_its_exit_code(tmp_path, content):
    (tmp_path / "events.jsonl").write_text(content)
    assert invoke(tmp_path).exit_code == 6
    assert invoke(tmp_path / "nowhere").exit_code == 6


def test_the_default_reward_is_tilewright():
    assert load(environ={}).reward.name == "tilewright"
