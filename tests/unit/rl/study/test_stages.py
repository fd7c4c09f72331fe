"""The stages of a study: their order, and what is refused before one of them runs."""

from __future__ import annotations

import time

import pytest
from click.testing import CliRunner

from tilewright.cli.main import cli
from tilewright.errors import ConfigError, InfrastructureError, RecordError
from tilewright.rl.stage_runner import held
from tilewright.rl.study.arm_faults import record_failure
from tilewright.rl.study.stages import (
    check_judged,
    check_study,
    run_stages,
    stages_of,
)
from tilewright.rl.study.study_config import ArmSection, ScalingSection, load_study
from tilewright.rl.study.study_folder import STORE, open_study
from tilewright.rl.synthetic_verdicts import synthetic_store
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.verdict_census import store_key
from tilewright.rl.verdict_store import VerdictStore

REHEARSAL = load_study("nano-rehearsal.yaml")


def test_a_wrong_setting_of_an_arm_is_found_before_anything_runs(tmp_path):
    arms = {**REHEARSAL.arms, "odd": ArmSection(changes={"overrides.reward.coverage": -1})}
    folder = open_study(tmp_path, REHEARSAL.model_copy(update={"arms": arms}))
    with pytest.raises(ConfigError, match=r"arms\.odd: .*coverage"):
        check_study(folder)


def test_a_gate_that_crashes_is_our_failure_and_lets_no_arm_run(tmp_path):
    """Without a cold-started model `train gate` ends with an error, and leaves no lines."""
    folder = open_study(tmp_path, REHEARSAL)
    (gate,) = [stage for stage in stages_of(folder, lambda _: None) if stage.name == "gate"]
    with pytest.raises(InfrastructureError, match=r"gate: exit status 2: .*no cold-started model"):
        gate.run(time.monotonic() + 100)
    assert not gate.is_done()


@pytest.mark.parametrize("name", ["nano.yaml", "nano-rehearsal.yaml"])
def test_the_studies_that_come_with_tilewright_can_be_trained(tmp_path, name):
    check_study(open_study(tmp_path, load_study(name)))


def test_an_arm_that_failed_comes_after_the_others(tmp_path):
    folder = open_study(tmp_path, REHEARSAL)
    arms = lambda: [s.name for s in stages_of(folder, lambda _: None) if s.is_arm]  # noqa: E731
    before = arms()
    record_failure(folder.arm("base", 0), -9, "step 3")
    assert arms() == [*before[1:], before[0]]
    assert before[0] == "arm base, seed 0"


def test_scaling_waits_for_the_first_seed_of_its_arm(tmp_path):
    arms = {**REHEARSAL.arms, "base": ArmSection(seeds=2, first_seed=3)}
    changes = {"arms": arms, "scaling": ScalingSection(arm="base")}
    folder = open_study(tmp_path, REHEARSAL.model_copy(update=changes))
    (stage,) = [s for s in stages_of(folder, lambda _: None) if s.name == "test-time scaling"]
    record_failure(folder.arm("base", 0), 2, "it is no arm of this study")
    assert not stage.is_done()
    record_failure(folder.arm("base", 3), 2, "mismatch rejection keeps nothing")
    assert stage.is_done()


def test_two_processes_cannot_train_in_the_folder_of_one_study(tmp_path):
    words = ["train", "study", "nano-rehearsal.yaml", "--out", str(tmp_path)]
    open_study(tmp_path, REHEARSAL)
    with held(tmp_path):
        found = CliRunner().invoke(cli, words)
    assert found.exit_code == 2
    assert "another process trains" in found.output


def census_study(path):
    """Return a study whose verdicts are those of this machine's processor."""
    training = {**REHEARSAL.training, "settings": {"eval": {"device": "cpu"}}}
    return open_study(
        path, REHEARSAL.model_copy(update={"verdicts": "census", "training": training})
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("evaluator", "0.0.1"),
        ("device", "NVIDIA H200"),
        ("rules", TrainConfig().settings.eval.rules),
    ],
)
def test_a_store_of_another_key_is_refused_and_both_are_named(tmp_path, field, value):
    folder = census_study(tmp_path)
    ours = store_key(TrainConfig().settings)
    VerdictStore(tmp_path / STORE, ours.model_copy(update={field: value})).save()
    with pytest.raises(ConfigError) as refused:
        run_stages(folder, time.monotonic() + 100, lambda _: None)
    for one in (value, getattr(ours, field)):
        assert str(one) in str(refused.value)
    assert not (tmp_path / "census-done").exists()


def test_a_truncated_store_is_refused(tmp_path):
    folder = census_study(tmp_path)
    store = synthetic_store(tmp_path / STORE, "rehearsal")
    store.save()
    data = (tmp_path / STORE).read_bytes()
    (tmp_path / STORE).write_bytes(data[: len(data) // 2])
    with pytest.raises(
        RecordError, match=r"verdicts\.jsonl\.gz:\d+ after program \w+ .*truncated store"
    ):
        run_stages(folder, time.monotonic() + 100, lambda _: None)


def test_computed_verdicts_never_enter_a_census(tmp_path):
    folder = census_study(tmp_path)
    synthetic_store(tmp_path / STORE, "rehearsal").save()
    with pytest.raises(ConfigError, match=r"evaluator is synthetic"):
        run_stages(folder, time.monotonic() + 100, lambda _: None)


def test_a_stage_that_leaves_many_programs_unjudged_is_not_finished():
    here = TrainConfig()
    check_judged(5, 100, here)
    with pytest.raises(InfrastructureError, match="6 of 100 programs"):
        check_judged(6, 100, here)
    section = here.settings.eval.model_copy(update={"device": "cuda:77"})
    settings = here.settings.model_copy(update={"eval": section})
    lost = here.model_copy(update={"settings": settings})
    check_judged(0, 100, lost)
    with pytest.raises(InfrastructureError, match="1 of 100 programs"):
        check_judged(1, 100, lost)
