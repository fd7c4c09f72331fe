"""Whole trainings with verl on a CPU: a tiny model, three turns, verdicts, checkpoints, kills."""

# ruff: noqa: E402 - a machine without verl skips all of it
from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("verl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]

from safetensors.torch import load_file

from benchmarks.process_tree import command_of, descendants
from benchmarks.training.verl_without_gpu import ON_CPU, ROOT, WITHOUT_GPU
from tests.training_fixtures import toy, write_model
from tilewright.records.event_log import read_events, turns_of
from tilewright.records.events import Stepped


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("verl")
    write_model(toy(made), made / "model")
    return made


def write_config(folder: Path, name: str, ranks: int = 1, **changes: object) -> Path:
    """Write a configuration of a training with verl; return its file."""
    sampling = {"prompts": 2, "rollouts": 4, "turns": 3, "context_tokens": 224, "reply_tokens": 24}
    overrides = {
        "sampling": sampling,
        "optimizer": {"learning_rate": 0.003, "steps": 3},
        "evaluation": {"samples": 2, "turns": 2, "context_tokens": 224},
    }
    tree = {
        "world": "synth",
        "engine": "verl",
        "overrides": overrides,
        "model": {"path": str(folder / "model")},
        "data": {"problems": "synth", "held_out": "synth/5-6"},
        "machine": {
            "gpus": ranks,
            "train_batch_size": 4,
            "verl": {**WITHOUT_GPU, "+ray_kwargs.ray_init.resources": {"NPU": ranks}},
        },
        "health": {"stop_silent": 0},
        "checkpoints": {"every": 1},
        "settings": {"runs": str(folder / name)},
        **changes,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tilewright", "train", "rl", *words]


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        env={**os.environ, **ON_CPU, **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )


def turns(folder: Path) -> list[str]:
    return [turn.ask.id for turn in turns_of(read_events(folder))]


def steps(folder: Path) -> list[tuple[str, int]]:
    return [(e.batch, e.step) for e in read_events(folder) if isinstance(e, Stepped)]


def test_a_training_leaves_turns_metrics_and_a_model(folder):
    done = run(str(write_config(folder, "whole")), "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    place = Path(found["run"])
    assert steps(place) == [("step00000", 1), ("step00001", 2), ("step00002", 3), ("score00003", 3)]
    names = turns(place)
    assert len(names) == len(set(names)) == 3 * 24 + 2 * 2 * 2
    assert (place / "model" / "model.safetensors").stat().st_size > 10_000
    assert found["last"]["kept_mismatch"] == 1.0, "sampler and trainer agree in fp32"
    assert found["last"]["kl"] >= 0.0
    lines = [line for line in done.stderr.splitlines() if re.search(r"step \d of 3", line)]
    assert len(lines) == 3
    replayed = subprocess.run(
        [sys.executable, "-m", "tilewright", "train", "replay", str(place), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)["mismatch"] == "", "log ratios of the trainer are there"


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*words),
        env={**os.environ, **ON_CPU},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def with_turns(process: subprocess.Popen[str], runs: Path, wanted: int) -> Path:
    """Wait until the run has so many turns; return its folder."""
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        made = sorted(runs.glob("*/events.jsonl"))
        if made and len(turns(made[0].parent)) >= wanted:
            return made[0].parent
        time.sleep(0.3)
    raise AssertionError(f"it has ended, or has no {wanted} turns")


def named(process: subprocess.Popen[str], name: bytes) -> int:
    """Return the process of a training that Ray calls so."""
    (found,) = (pid for pid in descendants(process.pid) if command_of(pid).startswith(name))
    return found


def resumed(place: Path) -> None:
    """Resume a run to its end; no turn is lost or repeated."""
    done = run("--resume", str(place))
    assert done.returncode == 0, done.stderr[-3000:]
    names = turns(place)
    assert len(names) == len(set(names)) == 3 * 24 + 2 * 2 * 2
    assert [at for batch, at in steps(place) if batch.startswith("step")] == [1, 2, 3]


def test_a_killed_training_resumes_without_a_lost_or_repeated_verdict(folder):
    """Kill the whole process group three times, at different moments."""
    words = [str(write_config(folder, "killed"))]
    for wanted in (1, 30, 50):
        process = started(*words)
        place = with_turns(process, folder / "killed", wanted)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        words = ["--resume", str(place)]
    resumed(place)


def test_a_full_disk_and_a_dead_trainer_end_the_run_which_resumes(folder):
    """The writer of the event log may write no longer; then the trainer's process is killed."""
    process = started(str(write_config(folder, "hurt")))
    place = with_turns(process, folder / "hurt", 2)
    size = (place / "events.jsonl").stat().st_size
    writer = named(process, b"ray::RunService")
    resource.prlimit(writer, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    _, text = process.communicate(timeout=300)
    assert process.returncode == 2, text[-3000:]
    assert "events.jsonl: cannot be written: file too large" in text
    assert "to resume: tilewright train rl --resume" in text

    process = started("--resume", str(place))
    with_turns(process, folder / "hurt", 30)
    os.kill(named(process, b"ray::TaskRunner"), signal.SIGKILL)
    _, text = process.communicate(timeout=300)
    assert process.returncode == 4, text[-3000:]
    assert "to resume: tilewright train rl --resume" in text
    resumed(place)


def test_the_platform_of_the_tests_is_refused_elsewhere():
    env = {name: value for name, value in os.environ.items() if name != "TILEWRIGHT_VERL_ON_CPU"}
    command = [sys.executable, "-c", "import tests.verl_on_cpu"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "in tests and in `make bars ONLY=engines` alone" in done.stderr


def test_a_plug_in_that_is_not_loaded_is_refused_by_place(folder):
    config = str(write_config(folder, "unplugged"))
    here = run(config, VERL_USE_EXTERNAL_PLUGINS="none")
    assert here.returncode == 2, here.stderr
    assert "has not loaded the plug-in of tilewright in this process" in here.stderr
    assert not (folder / "unplugged").exists() or not list((folder / "unplugged").iterdir())


def test_mismatch_rejection_that_keeps_nothing_ends_the_run_and_keeps_its_verdicts(folder):
    mismatch = {"level": "turn", "low": 1.5, "high": 2.0}
    config = write_config(folder, "mismatched")
    tree = yaml.safe_load(config.read_text(encoding="utf-8"))
    tree["overrides"]["mismatch"] = mismatch
    config.write_text(yaml.safe_dump(tree), encoding="utf-8")
    done = run(str(config))
    assert done.returncode == 2, done.stderr[-3000:]
    assert "mismatch rejection kept none of 24 turns" in done.stderr
    assert "to resume: tilewright train rl --resume" in done.stderr
    (place,) = (folder / "mismatched").iterdir()
    assert len(turns(place)) == 24


def test_a_worker_without_the_plug_in_is_refused_before_it_samples(folder):
    config = write_config(folder, "half")
    tree = yaml.safe_load(config.read_text(encoding="utf-8"))
    name = "+ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_PLUGINS"
    tree["machine"]["verl"][name] = "none"
    config.write_text(yaml.safe_dump(tree), encoding="utf-8")
    done = run(str(config))
    assert done.returncode == 2, done.stderr[-3000:]
    assert "has not loaded the plug-in of tilewright in the trainer's process" in done.stderr
    assert not list((folder / "half").iterdir()), "a run that sampled nothing leaves no folder"


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"overrides": {"loss": {"dual_clip": None}}}, 2, "overrides.loss.dual_clip"),
        ({"overrides": {"optimizer": {"schedule": "cosine"}}}, 2, "overrides.optimizer.schedule"),
        ({"machine": {"verl": {"algorithm.rollout_correction.rollout_rs": "seq_mean_k1"}}}, 2,
         "machine.verl.algorithm.rollout_correction.rollout_rs"),
        ({"machine": {"gpus": 4, "tensor_parallel": 3}}, 4, "does not divide"),
        ({"machine": {"device": "cuda"}}, 4, "machine.gpus is 1"),
        ({"machine": {"verl": {"trainer.nonsense": 1}}}, 2, "verl refuses its settings"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_applied_are_named(folder, change, status, text):
    done = run(str(write_config(folder, "refused", **change)))
    assert done.returncode == status, done.stderr
    assert text in done.stderr
    assert not (folder / "refused").exists()


def test_fine_tuning_is_refused_here_with_the_environment_of_trl(folder):
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "train", "sft", str(write_config(folder, "tuned"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "trl is not installed; verl 0.9.1 needs an environment of its own" in done.stderr
    assert "in an environment without verl; in a clone: make install" in done.stderr


def test_the_settings_of_verl_are_shown_with_their_origin(folder):
    done = run(str(write_config(folder, "shown")), "--show")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert 'actor_rollout_ref.actor.loss_agg_mode: "token-sum"' in done.stdout
    assert any(line.endswith("# preset, loss.clip_high") for line in lines)
    assert any(line.endswith("# machine section, machine.gpus") for line in lines)
    assert sum(line.endswith("# verl") for line in lines) > 300
    assert all("  # " in line for line in lines)
    assert "critic.enable=True" not in done.stderr, "advice that machine.verl refuses"


def test_the_command_of_verl_runs_the_same_training(folder):
    made = run(str(write_config(folder, "flagged")), "--flags")
    assert made.returncode == 0, made.stderr
    done = subprocess.run(
        [sys.executable, "-m", "verl.trainer.main_ppo", *made.stdout.split()],
        env={**os.environ, **ON_CPU},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (place,) = (folder / "flagged").iterdir()
    assert [at for batch, at in steps(place) if batch.startswith("step")] == [1, 2, 3]


def test_adapters_are_trained_and_merged_into_the_model(folder):
    config = write_config(
        folder, "adapters", model={"path": str(folder / "model"), "lora": {"rank": 4}}
    )
    done = run(str(config), "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["last"]["kept_mismatch"] == 1.0, "the server has the merged weights"
    before, after = (
        load_file(Path(place) / "model.safetensors") for place in (folder / "model", found["model"])
    )
    assert before.keys() == after.keys()


def test_two_ranks_train_with_padding_rows(folder):
    """Nine rows of a batch are no equal shares, so verl adds rows, which must not count."""
    config = write_config(folder, "ranks", ranks=2)
    tree = yaml.safe_load(config.read_text(encoding="utf-8"))
    tree["overrides"]["sampling"] |= {"prompts": 1, "rollouts": 3}
    config.write_text(yaml.safe_dump(tree), encoding="utf-8")
    done = run(str(config), "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    place = Path(json.loads(done.stdout)["run"])
    assert len(steps(place)) == 4
