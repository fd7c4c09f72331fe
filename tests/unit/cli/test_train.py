"""A resumed training: its folder has the settings that its processes read."""

from __future__ import annotations

import pytest

from tests.training_fixtures import toy
from tilewright import config
from tilewright.cli import train
from tilewright.errors import ConfigError
from tilewright.records.event_log import EventLog
from tilewright.records.events import RunStarted
from tilewright.records.run_folder import create_run
from tilewright.rl.training_config import load_training

BEGUN = RunStarted(
    kind="sft", name="toy", problems="", protocols=("strict",), evaluator="0", device="none"
)


@pytest.fixture
def folder(tmp_path):
    settings = toy(tmp_path)
    made = create_run(settings.settings.runs, config.dump(settings))
    with EventLog(made) as log:
        log.append(BEGUN)
    return made


def resumed(folder, *overrides):
    pytest.importorskip("trl")
    given = {"file": None, "out": None, "device": None}
    return train._opened({**given, "overrides": overrides, "resumed": str(folder)}, "check_sft")


def test_the_processes_of_a_resumed_training_read_its_changed_settings(folder):
    settings, _ = resumed(folder, "machine.threads=2", "checkpoints.every=3")
    assert (settings.machine.threads, settings.checkpoints.every) == (2, 3)
    assert load_training(folder / "run.yaml", recorded=True) == settings


def test_a_resumed_training_without_changes_keeps_its_file(folder):
    before = (folder / "run.yaml").stat()
    resumed(folder)
    assert (folder / "run.yaml").stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(ConfigError, match="which a resumed run keeps"):
        resumed(folder, "seed=4")
