"""Bars: trainings with verl on a CPU, and the same estimators in both engines.

    make verl && make bars ONLY=engines

`VERL_PYTHON` names the Python of verl's environment, by default that of `make verl`. The platform
that lets verl run on a CPU is that of the tests.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from benchmarks.bars import Bar
from benchmarks.training.cpu_training import TOY
from benchmarks.training.killed_judge import killed_judge
from benchmarks.training.verl_without_gpu import ON_CPU, ROOT, WITHOUT_GPU
from tilewright.records.event_log import read_events
from tilewright.records.events import Stepped
from tilewright.rl.engines.trl.sft import train_sft
from tilewright.rl.training_config import load_training
from tilewright.testing.synth_world import conversations

VERL_PYTHON = os.environ.get("VERL_PYTHON", str(ROOT / ".venv-verl" / "bin" / "python"))
SMALL = {"prompts": 2, "rollouts": 4, "turns": 3, "context_tokens": 192, "reply_tokens": 24}
SECONDS = {1: 240.0, 2: 300.0}
"""Most seconds of three steps, by the number of ranks, on two quiet cores."""
SEEDS, STEPS, LAST = 3, 12, 3
"""Seeds and steps of the comparison; its reward is the mean of the last steps."""

T_TWO = 4.303
"""Student's t quantile (95 %, 2 d.f.) for the three differences of paired seeds."""


def run(match: str) -> list[Bar]:
    """Return the bars of the engines; none without verl's environment."""
    if not Path(VERL_PYTHON).exists():
        print(f"not measured: {VERL_PYTHON} is not there; `make verl` makes it", flush=True)
        return []
    with tempfile.TemporaryDirectory(prefix="tilewright-engines-") as place:
        folder = Path(place)
        bars = [_three_steps(folder, ranks) for ranks in SECONDS if match in f"{ranks} ranks"]
        if match in "killed judge":
            bars += [_killed_judge(engine, folder) for engine in ("trl", "verl")]
        return bars + (_comparison(folder) if match in "comparison" else [])


def _killed_judge(engine: str, folder: Path) -> Bar:
    resources = {"+ray_kwargs.ray_init.resources": {"NPU": 1}}
    machine = {"verl": {**WITHOUT_GPU, **resources}} if engine == "verl" else {}
    place = folder / f"killed-{engine}"

    def start(config: Path) -> subprocess.Popen[bytes]:
        with place.joinpath("log.txt").open("wb") as log:
            return subprocess.Popen(
                _command(engine, config), env=_environment(engine), cwd=ROOT, stdout=log, stderr=log
            )

    return killed_judge(engine, start, place, machine)


def _three_steps(folder: Path, ranks: int) -> Bar:
    model = _cold_start(folder / f"cold{ranks}", 0)
    overrides = {"sampling": SMALL, "optimizer": {"steps": 3}, "loss": {"scale": 10}}
    start = time.monotonic()
    figures = _trained(folder / f"ranks{ranks}", "verl", model, overrides, ranks)
    seconds = time.monotonic() - start
    kept = [item["kept_mismatch"] for item in figures]
    seen = f"{seconds:.0f} s, {len(figures)} steps, MRS keeps {min(kept):.3f}"
    most = SECONDS[ranks]
    held = seconds <= most and len(figures) == 3 and min(kept) > 0.99
    return Bar(f"verl: 3 steps, 3 turns, ranks: {ranks}", f"at most {most:g} s", seen, held)


def _comparison(folder: Path) -> list[Bar]:
    gains: dict[str, list[float]] = {"trl": [], "verl": []}
    ends: dict[str, list[float]] = {"trl": [], "verl": []}
    for seed in range(SEEDS):
        model = _cold_start(folder / f"cold-{seed}", seed)
        for engine in gains:
            place = folder / f"{engine}-{seed}"
            rewards = [
                item["reward"]
                for item in _trained(place, engine, model, {"optimizer": {"steps": STEPS}}, 1, seed)
            ]
            end = statistics.fmean(rewards[-LAST:])
            gains[engine].append(end - rewards[0])
            ends[engine].append(end)
            print(f"seed {seed}, {engine}: {rewards[0]:.2f} to {end:.2f}", flush=True)
    bars = []
    for engine, found in gains.items():
        rose = sum(gain > 0 for gain in found)
        wanted, seen = f"the reward rises in {SEEDS} of {SEEDS}", f"{rose} of {SEEDS}"
        bars.append(Bar(f"{engine}: {STEPS} steps", wanted, seen, rose == SEEDS))
    differences = [b - a for a, b in zip(ends["trl"], ends["verl"], strict=True)]
    mean = statistics.fmean(differences)
    noise = T_TWO * statistics.stdev(differences) / SEEDS**0.5
    wanted, seen = "0 within the 95 % interval", f"{mean:+.2f} +- {noise:.2f}"
    bars.append(Bar("verl less trl: last rewards of a seed", wanted, seen, abs(mean) <= noise))
    return bars


def _cold_start(folder: Path, seed: int) -> Path:
    """Train the toy of the bar `train` on conversations; return the folder of its model."""
    folder.mkdir()
    (folder / "toy.yaml").write_text(TOY, encoding="utf-8")
    rows = "".join(json.dumps(row) + "\n" for row in conversations(1024, 1, seed))
    (folder / "sft.jsonl").write_text(rows, encoding="utf-8")
    changes = [f"seed={seed}", f"data.conversations=[{folder / 'sft.jsonl'}]"]
    (folder / "sft").mkdir()
    train_sft(load_training(folder / "toy.yaml", changes), folder / "sft", lambda *_: None)
    return folder / "sft" / "model"


def _trained(
    folder: Path,
    engine: str,
    model: Path,
    overrides: dict[str, Any],
    ranks: int,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Train with an engine in its environment; return the metrics of its steps."""
    tree = yaml.safe_load(TOY)
    tree |= {"engine": engine, "seed": seed, "model": {"path": str(model)}}
    for section, values in overrides.items():
        tree["overrides"][section] = {**tree["overrides"].get(section, {}), **values}
    if engine == "verl":
        # verl has a constant rate alone, and so has the other engine here.
        resources = {"+ray_kwargs.ray_init.resources": {"NPU": ranks}}
        tree["machine"] |= {"gpus": ranks, "verl": {**WITHOUT_GPU, **resources}}
    tree["data"]["held_out"] = ""
    tree |= {"settings": {"runs": str(folder)}, "health": {"stop_silent": 0}}
    path = folder.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    with folder.with_suffix(".log").open("w", encoding="utf-8") as log:
        subprocess.run(
            _command(engine, path),
            env=_environment(engine), cwd=ROOT, stdout=log, stderr=log, check=True,
        )  # fmt: skip
    (run_folder,) = folder.iterdir()
    steps = [event for event in read_events(run_folder) if isinstance(event, Stepped)]
    return [event.figures for event in steps if event.batch.startswith("step")]


def _command(engine: str, config: Path) -> list[str]:
    python = VERL_PYTHON if engine == "verl" else sys.executable
    return [python, "-m", "tilewright", "train", "rl", str(config)]


def _environment(engine: str) -> dict[str, str]:
    return {**os.environ, **(ON_CPU if engine == "verl" else {})}
