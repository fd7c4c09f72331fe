"""The steps of a training: each is logged once, more can be added, and idle ones end it."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

from tests.training_fixtures import begun, cold_start, settings, silent, toy, weights
from tilewright.cli.main import cli
from tilewright.config import ModelSection
from tilewright.errors import ConfigError
from tilewright.evaluator.devices.devices import find_device, plan_cores
from tilewright.evaluator.processes.host import lease_name
from tilewright.evaluator.processes.prefork import open_lock
from tilewright.loop.policies.factory import choose_policy
from tilewright.records.event_log import read_events
from tilewright.records.events import EvalSummary, Stepped
from tilewright.records.file_lock import lock, unlock
from tilewright.rl import training_run
from tilewright.rl.engines.trl.checkpoints import latest
from tilewright.rl.engines.trl.reinforce import train_rl
from tilewright.rl.engines.trl.sft import train_sft
from tilewright.testing.synth_world import SynthWorld


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return cold_start(tmp_path_factory.mktemp("steps"))


@pytest.fixture(scope="module")
def whole(place):
    """Return a finished run."""
    folder = begun(place, "whole")
    train_rl(settings(place), folder, print, silent)
    return folder


def test_supervised_training_that_is_killed_logs_each_step_once(place):
    folder = place / "colder"
    folder.mkdir()
    config = toy(place, "checkpoints.every=4", "overrides.sft.epochs=1")
    losses = []

    def stop(text):
        losses.append(text)
        if len(losses) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_sft(config, folder, stop)
    assert Path(latest(folder / "checkpoints")).name == "checkpoint-4"
    train_sft(config, folder, silent)
    steps = [event.step for event in read_events(folder) if isinstance(event, Stepped)]
    assert steps == list(range(1, 21))


def test_a_finished_run_continues_with_more_steps(place, whole):
    longer, straight = begun(place, "longer"), begun(place, "six", "overrides.optimizer.steps=6")
    shutil.copytree(whole, longer, dirs_exist_ok=True)
    train_rl(settings(place, "overrides.optimizer.steps=6"), straight, print, silent)

    def resume(*overrides):
        given = [word for text in overrides for word in ("--set", text)]
        return CliRunner().invoke(cli, ["train", "rl", "--resume", str(longer), *given])

    fewer = resume("overrides.optimizer.steps=3")
    assert fewer.exit_code == 2
    assert "a resumed run accepts only a larger number" in fewer.output
    other = resume("overrides.optimizer.steps=6", "overrides.optimizer.learning_rate=1")
    assert other.exit_code == 2
    assert resume("overrides.optimizer.steps=6").exit_code == 0
    assert weights(longer) == weights(straight)
    # The run knows its new length.
    tool = [sys.executable, "-m", "tilewright", "train", "rl", "--resume", str(longer)]
    again = subprocess.run(tool, capture_output=True, text=True, timeout=200)
    assert again.returncode == 0, again.stderr
    assert weights(longer) == weights(straight)
    # No other package prints anything, such as bars and names of tied weights.
    assert all(line.startswith("tilewright: ") for line in again.stderr.splitlines()), again.stderr
    steps = [event.step for event in read_events(longer) if isinstance(event, Stepped)]
    assert steps == [1, 2, 3, 4, 4, 5, 6, 6]


class Even(SynthWorld):
    """Judges every reply to be wrong, as those of a collapsed model."""

    def evaluate(self, draft, problem):
        said = EvalSummary(protocol="strict", verdict="incorrect")
        return super().evaluate(draft, problem).model_copy(update={"judgements": (said,)})


@pytest.mark.reads_settings
def test_a_collapsed_model_warns_and_stops(place, monkeypatch):
    monkeypatch.setattr(training_run, "open_world", lambda *_: Even())
    lines = []
    folder = begun(place, "collapsed")
    with pytest.raises(ConfigError, match=r"health\.stop_silent is 3"):
        train_rl(settings(place, "health.stop_silent=3"), folder, lines.append, silent)
    warned = [line for line in lines if "had no advantage (mean reward 0)" in line]
    assert [line.partition(" ")[0] for line in warned] == ["2", "3"]
    stepped = [event for event in read_events(folder) if isinstance(event, Stepped)]
    assert [event.figures["groups_equal"] for event in stepped] == [1.0, 1.0, 1.0]
    # A resumed run counts the batches of the sessions before it.
    with pytest.raises(ConfigError, match="3 batches in a row"):
        train_rl(settings(place, "health.stop_silent=3"), folder, silent, silent)
    train_rl(settings(place, "health.stop_silent=0"), folder, silent, silent)


def test_a_replay_repeats_what_was_trained_on(place):
    changes = ("overrides.mismatch.level=turn", "overrides.reward.speed=2", "data.held_out=''")
    changes += ("machine.precision=bf16",)
    folder = begun(place, "narrow", *changes)
    train_rl(settings(place, *changes), folder, print, silent)
    steps = [event.figures for event in read_events(folder) if isinstance(event, Stepped)]
    assert any(0.0 < figures["kept_mismatch"] < 1.0 for figures in steps), "else nothing is shown"
    result = CliRunner().invoke(cli, ["train", "replay", str(folder), "--json"])
    found = json.loads(result.stdout)["presets"]["as trained"]["batches"]
    for name, trained in (("learned", "trained"), ("reward",) * 2, ("kept_mismatch",) * 2):
        assert [row[name] for row in found] == pytest.approx([row[trained] for row in steps]), name


class Ranked(SynthWorld):
    """Judges held-out replies by the next of its marks, and the others as they are."""

    def __init__(self, marks):
        self.marks = marks

    def evaluate(self, draft, problem):
        turn = super().evaluate(draft, problem)
        if not draft.ask.id.startswith("score"):
            return turn
        right = self.marks[int(draft.ask.id[5:10])]
        said = EvalSummary(protocol="strict", verdict="correct" if right else "incorrect")
        return turn.model_copy(update={"judgements": (said,)})


@pytest.mark.reads_settings
def test_the_checkpoint_with_the_best_held_out_score_is_kept(place, monkeypatch):
    monkeypatch.setattr(training_run, "open_world", lambda *_: Ranked([0, 0, 0, 1, 0, 1, 0]))
    changes = ("scores.every=1", "checkpoints.every=2", "checkpoints.keep=1")
    changes += ("overrides.optimizer.steps=6",)
    folder, lines = begun(place, "best", *changes), []
    document = train_rl(settings(place, *changes), folder, lines.append, silent)
    kept = folder / "checkpoints" / "checkpoint-3"
    assert document["best"] == {"step": 3, "checkpoint": str(kept)}
    assert sorted(path.name for path in kept.parent.iterdir()) == ["checkpoint-3", "checkpoint-6"]
    assert lines[-1] == f"the held-out reward was best after step 3: {kept}"
    assert latest(folder / "checkpoints").endswith("checkpoint-6")
    policy = choose_policy(f"local:{kept}", ModelSection(max_tokens=4))
    policy.close()


def test_a_run_that_waits_for_the_device_says_so_and_names_the_step(place, monkeypatch):
    class OnDevice(SynthWorld):
        device = "cpu"

    monkeypatch.setattr(training_run, "open_world", lambda *_: OnDevice())
    changes = ("overrides.optimizer.steps=1", "data.held_out=''")
    folder, seen = begun(place, "waits", *changes), []
    name = lease_name(find_device("cpu"), plan_cores(list(os.sched_getaffinity(0))))
    with open_lock(name) as other:
        lock(other)

        def reached(_, __, phase):
            seen.append(phase)
            if "waiting" in phase:
                unlock(other)

        train_rl(settings(place, *changes), folder, print, silent, reached=reached)
    assert seen[:3] == [
        "step 1: sampling and judging replies",
        "step 1: waiting for the device",
        "step 1: sampling and judging replies",
    ]
