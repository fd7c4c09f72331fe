"""Bar: each recipe that is killed at random moments ends like an undisturbed one."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.bars import Bar, finish
from benchmarks.faults.killed_commands import MAX_RUNS, newest_log, run_with_kills
from tilewright.registry import catalogue
from tilewright.rl.recipes.recipe import Recipe, find_recipe
from tilewright.rl.recipes.recipe_folder import read_recipe
from tilewright.rl.study.study_folder import figures_of, finished_model

KILLS = 5
SEED = 5
TIMED = "seconds/"
"""Beginning of the names of figures that depend on time."""


def small_config(recipe: Recipe) -> dict[str, Any]:
    """Return settings with three steps of each stage that learns from rewards."""
    steps = {
        "overrides.sampling.prompts": 2,
        "overrides.sampling.rollouts": 8,
        "overrides.optimizer.steps": 3,
        "checkpoints.every": 1,
    }
    changes = {
        s.name: {"overrides.sft.epochs": 1} if s.verb == "sft" else steps for s in recipe.stages
    }
    base = {"scale": "small", "problems": "nano/rehearsal", "verdicts": "synthetic"}
    return {**base, "last_steps": 1, "changes": changes}


def result_of(folder: Path) -> dict[str, Any]:
    """Return the weights and the figures of each training, without those that depend on time."""
    made, found = read_recipe(folder), dict[str, Any]()
    for run in made.runs():
        model = finished_model(made.place(run))
        weights = "" if model is None else _digest(Path(model) / "model.safetensors")
        figures = [
            {name: value for name, value in step.items() if not name.startswith(TIMED)}
            for step in figures_of(made.place(run))
        ]
        found[run.name] = {"weights": weights, "figures": figures}
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _start(name: str, folder: Path) -> subprocess.Popen[bytes]:
    words = ["train", "recipe", name, str(folder / "small.yaml"), "--out", str(folder / "out")]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", "tilewright", *words, "--minutes", "30"], stdout=quiet, stderr=quiet
    )


def run(match: str = "", kills: int = KILLS) -> list[Bar]:
    """Return a bar for each recipe whose name contains a text."""
    choices = random.Random(SEED)
    names = [name for name in catalogue("recipes", packages=()) if match in name]
    with tempfile.TemporaryDirectory() as place:
        return [_bar(name, Path(place), kills, choices) for name in names]


def _bar(name: str, place: Path, kills: int, choices: random.Random) -> Bar:
    undisturbed = _folder(place / f"{name}-undisturbed", name)
    began = time.monotonic()
    if _start(name, undisturbed).wait():
        raise SystemExit(f"the undisturbed recipe {name} failed: see {undisturbed}")
    longest_s, wanted = time.monotonic() - began, result_of(undisturbed / "out")
    made = begun = wrong = runs = 0
    while made < kills and begun < MAX_RUNS:
        folder = _folder(place / f"{name}-{runs}", name)

        def show(number: int, hit: str, folder: Path = folder) -> None:
            logs = folder / "out" / "logs"
            print(f"{folder.name}: kill {number} hits {hit}; newest log: {newest_log(logs)}")

        more, starts = run_with_kills(
            partial(_start, name, folder), kills - made, longest_s, choices, show
        )
        made, begun, runs = made + more, begun + starts, runs + 1
        wrong += result_of(folder / "out") != wanted
    return Bar(
        f"recipes: {name} killed at random moments",
        f"{kills} kills, and each run ends like the undisturbed one",
        f"{made} kills of {runs} runs, {wrong} end otherwise",
        made == kills and not wrong,
        {"invocations": begun},
    )


def _folder(path: Path, name: str) -> Path:
    path.mkdir()
    tree = small_config(find_recipe(name))
    (path / "small.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(finish(run("".join(sys.argv[1:2]))))
