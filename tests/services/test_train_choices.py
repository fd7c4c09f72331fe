"""Learning to choose, end to end: values rise, a killed run ends equal, the log gives all again."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import json
import shutil
import statistics

import pytest
import yaml
from click.testing import CliRunner

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

from tests.choice_trees import small_tree
from tests.tiny_model import make_tiny_model
from tilewright.cli.main import cli
from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import Stepped, TurnFinished
from tilewright.rl.choices.action_tree import write_trees
from tilewright.rl.choices.choice_replay import replay_choices
from tilewright.rl.engines.choices.training import train_choices
from tilewright.rl.recipes.recipe_results import gain_of
from tilewright.rl.training_config import load_training

NAMES = ("nano/scale_silu_bias", "nano/square_bias_silu")
HELD_OUT = "nano/bias_softmax_scale"
OVERRIDES = {
    "sampling": {"turns": 4, "prompts": 2, "rollouts": 4},
    "choices": {
        "history": 0,
        "coder_success": 0.8,
        "normalisation": "token",
        "gae_lambda": 0.9,
        "critic_hidden": 16,
        "critic_learning_rate": 0.01,
        "critic_only_batches": 1,
        "epochs": 2,
        "minibatches": 2,
    },
    "loss": {"kl": 0.01, "clip_high": 0.2},
    "returns": {"gamma": 0.95},
    "optimizer": {"learning_rate": 0.01, "steps": 6, "weight_decay": 0.0},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a model, trees and settings."""
    import torch

    made = tmp_path_factory.mktemp("choices")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        make_tiny_model(made / "model")
    write_trees(made / "trees.jsonl", map(small_tree, NAMES))
    write_trees(made / "held_out.jsonl", [small_tree(HELD_OUT)])
    tree = {
        "seed": 3,
        "overrides": OVERRIDES,
        "model": {"path": str(made / "model")},
        "data": {
            "problems": "nano/rehearsal",
            "trees": str(made / "trees.jsonl"),
            "held_out_trees": str(made / "held_out.jsonl"),
        },
        "machine": {"threads": 1, "train_batch_size": 4},
        "scores": {"every": 3},
        "checkpoints": {"every": 2},
        "settings": {"runs": str(made / "runs")},
    }
    (made / "choices.yaml").write_text(yaml.safe_dump(tree))
    return made


def begun(place, name):
    folder = place / name
    folder.mkdir()
    shutil.copy(place / "choices.yaml", folder / "run.yaml")
    return folder


def trained(folder, note=lambda _: None):
    return train_choices(load_training(folder / "run.yaml"), folder, note)


@pytest.fixture(scope="module")
def whole(place):
    """Return a finished run."""
    folder = begun(place, "whole")
    trained(folder)
    return folder


def events_in(folder):
    return list(read_events(folder))


def steps_in(folder):
    """Return the figures of each batch, without those that depend on time."""
    return {
        (event.batch, event.step): {
            name: value for name, value in event.figures.items() if not name.startswith("seconds/")
        }
        for event in events_in(folder)
        if isinstance(event, Stepped)
    }


def turns_in(folder):
    return {
        e.turn.ask.id: e.turn.model_dump() for e in events_in(folder) if isinstance(e, TurnFinished)
    }


@pytest.mark.reads_settings
def test_the_value_of_the_policy_rises_and_no_value_is_above_the_best(whole):
    steps = steps_in(whole)
    first, last = steps["score00000", 0], steps["score00006", 6]
    assert last["train/sampled_share"] > first["train/sampled_share"]
    for figures in (first, steps["score00003", 3], last):
        for where, names in (("train", NAMES), ("held_out", (HELD_OUT,))):
            for problem in names:
                for policy in ("greedy", "sampled", "uniform", "first_action"):
                    value = figures[f"{where}/{problem}/{policy}"]
                    assert value <= figures[f"{where}/{problem}/best"] + 1e-9
    assert [step for batch, step in steps if batch.startswith("step")] == [1, 2, 3, 4, 5, 6]
    # The first batch trained the critic alone.
    assert steps["step00000", 1]["gradient"] == 0.0
    assert steps["step00001", 2]["gradient"] > 0.0


@pytest.mark.parametrize(("stop", "lost"), [("step 1 of", 0), ("step 3 of", 0), ("step 5 of", 7)])
def test_a_killed_run_ends_like_an_undisturbed_one(place, whole, stop, lost):
    folder = begun(place, f"killed-{stop.split()[1]}")

    def note(text):
        if text.startswith(stop):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(folder, note)
    if lost:
        # A kill in the middle of a write loses the last turns of a batch.
        lines = (folder / EVENTS).read_bytes().splitlines(keepends=True)
        (folder / EVENTS).write_bytes(b"".join(lines[:-lost]) + lines[-lost][:40])
    trained(folder)
    assert steps_in(folder) == steps_in(whole)
    assert turns_in(folder) == turns_in(whole)
    weights = [(item / "model" / "model.safetensors").read_bytes() for item in (folder, whole)]
    assert weights[0] == weights[1]


def test_the_log_gives_the_trained_rewards_and_advantages_again(whole):
    steps = steps_in(whole)
    parts = replay_choices(whole)
    assert [part.batch for part in parts] == [f"step{n:05}" for n in range(6)]
    for number, part in enumerate(parts):
        figures = steps[part.batch, number + 1]
        assert {name: figures[name] for name in part.figures} == part.figures
        rows = list(part.rows())
        assert len(rows) == figures["turns"]
    shown = CliRunner().invoke(cli, ["train", "replay", str(whole), "--json", "--explain"])
    assert shown.exit_code == 0, shown.output
    (batch,) = json.loads(shown.stdout)["presets"]["as trained"]["batches"]
    assert batch["masks"] == list(parts[0].rows())
    for words in ((), ("--explain", "--batch", "step00001")):
        assert CliRunner().invoke(cli, ["train", "replay", str(whole), *words]).exit_code == 0
    for words, said in ((("--seed", "1"), "leave out"), (("--batch", "x"), "no such batch")):
        refused = CliRunner().invoke(cli, ["train", "replay", str(whole), *words])
        assert refused.exit_code == 2
        assert said in refused.output


def test_the_gain_of_a_training_is_that_of_the_sums_of_its_rewards(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "ppo-0" / "run")
    settings = load_training(whole / "run.yaml")
    gain = gain_of(tmp_path / "ppo-0", settings, 2)
    sums = [[sum(item.rewards) for item in p.estimate.episodes] for p in replay_choices(whole)]
    assert gain.start == pytest.approx(statistics.fmean(sums[0]))
    assert gain.end == pytest.approx(statistics.fmean(sums[4] + sums[5]))
    assert gain.low < gain.end - gain.start < gain.high
    rows = [row for part in replay_choices(whole) for row in part.rows()]
    assert gain.programs == sum(row["rung"] != "stop" for row in rows)


def test_the_log_is_that_of_a_search_whose_actions_are_exported(whole, tmp_path):
    target = tmp_path / "actions.jsonl"
    words = ["data", "export", str(whole), "--format", "actions", "--to", str(target)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    rows = {row["id"]: row for row in map(json.loads, target.read_text().splitlines())}
    made = [row for part in replay_choices(whole) for row in part.rows()]
    judged = [row for row in made if row["rung"] != "stop"]
    assert judged
    for row in judged:
        assert rows[row["ask"]]["rung"] == row["rung"]


@pytest.mark.reads_settings
def test_with_a_history_values_are_those_of_played_episodes(place):
    folder = begun(place, "history")
    words = ["overrides.choices.history=2", "overrides.optimizer.steps=1"]
    words += ["overrides.evaluation.samples=3", "overrides.choices.coder_success=1.0"]
    config = load_training(folder / "run.yaml", words)
    train_choices(config, folder, lambda _: None)
    first = steps_in(folder)["score00000", 0]
    for problem in NAMES:
        assert first[f"train/{problem}/sampled"] <= first[f"train/{problem}/best"]
    assert first["train/greedy_share"] is not None


def test_the_command_trains_and_names_what_is_missing(place):
    config = str(place / "choices.yaml")
    words = ["train", "choices", config, "--json", "--set", "overrides.optimizer.steps=1"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["steps"] == 1
    for change, said in (
        ("data.trees=''", "data.trees is empty"),
        ("data.trees=none.jsonl", "no such file"),
        ("model.lora.rank=4", "model.lora.rank"),
        (f"data.held_out_trees={place / 'trees.jsonl'}", "is a training problem"),
    ):
        refused = CliRunner().invoke(cli, ["train", "choices", config, "--set", change])
        assert refused.exit_code == 2, refused.output
        assert said in refused.output
