"""The folder of a study: one set of settings, and arms that are done, stopped or tried again."""

from __future__ import annotations

import json

import pytest
import yaml

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.study import study_folder
from tilewright.rl.study.study_config import load_study
from tilewright.rl.study.study_folder import open_study, read_study, stopped_because

CONFIG = load_study("nano-rehearsal.yaml")


def test_a_folder_keeps_its_settings(tmp_path):
    made = open_study(tmp_path / "s", CONFIG)
    assert open_study(tmp_path / "s", CONFIG).path == made.path
    assert read_study(tmp_path / "s").config == CONFIG
    training = yaml.safe_load((tmp_path / "s" / "training.yaml").read_text())
    assert training["world"] == "book"
    assert training["data"]["problems"] == "nano/rehearsal"
    with pytest.raises(ConfigError, match="begun with another value of last_steps"):
        open_study(tmp_path / "s", CONFIG.model_copy(update={"last_steps": 7}))


def test_a_folder_without_a_study_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"has no study\.yaml"):
        read_study(tmp_path)
    (tmp_path / "study.yaml").write_text("name: [")
    with pytest.raises(RecordError, match=r"study\.yaml"):
        read_study(tmp_path)


@pytest.mark.parametrize(
    ("statuses", "stopped"),
    [([], False), ([4], False), ([2], True), ([4, 4], True), ([4, 2], True)],
)
def test_wrong_settings_stop_an_arm_and_other_faults_get_another_attempt(
    tmp_path, statuses, stopped
):
    rows = [json.dumps({"status": status, "reason": "why"}) for status in statuses]
    if rows:
        (tmp_path / study_folder.FAILURES).write_text("\n".join(rows))
    assert bool(stopped_because(tmp_path)) is stopped
