"""The folder of a study: one set of settings, which a later invocation cannot change."""

from __future__ import annotations

import pytest
import yaml

from tilewright.errors import ConfigError, RecordError
from tilewright.records.event_log import EventLog
from tilewright.records.events import Stepped
from tilewright.rl.study.study_config import load_study
from tilewright.rl.study.study_folder import open_study, read_study, resumable_run

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


def test_a_run_that_was_killed_before_its_first_event_is_begun_anew(tmp_path):
    assert resumable_run(tmp_path) is None
    run = tmp_path / "20260101-000000-aaaa"
    run.mkdir()
    (run / "run.yaml").write_text("")
    assert resumable_run(tmp_path) is None
    assert not run.exists()
    run.mkdir()
    (run / "run.yaml").write_text("")
    with EventLog(run) as log:
        log.append(Stepped(step=1, batch="step00000", figures={}))
    assert resumable_run(tmp_path) == run
