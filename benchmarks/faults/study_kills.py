"""Bar: a study that is killed at random moments ends like an undisturbed one.

A study that ends before the last kill is followed by another one, which must end the same.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.bars import Bar, finish
from benchmarks.faults.killed_commands import MAX_RUNS, newest_log, run_with_kills
from tilewright.records.event_log import read_events
from tilewright.records.events import Stepped, TurnFinished
from tilewright.rl.study.study_config import load_study
from tilewright.rl.study.study_folder import run_in
from tilewright.rl.study.study_log import LOG, read_log

KILLS = 20
SEED = 3
TIMED = ("seconds/",)
"""Beginnings of the names of figures that depend on time."""


def small_study() -> dict[str, Any]:
    """Return the rehearsal with two arms of four steps, and half of the conversations."""
    tree = load_study("nano-rehearsal.yaml").model_dump(mode="json")
    tree |= {
        "name": "small-rehearsal",
        "arms": {name: tree["arms"][name] for name in ("base", "without-checks")},
        "directions": tree["directions"][:1],
        "gate": {"trajectories": 8, "turns": 2, "override": True},
        "last_steps": 1,
    }
    tree["cold_start"]["conversations"] = 800
    training = tree["training"]
    training["overrides"]["sampling"] |= {"prompts": 2, "rollouts": 8, "turns": 2}
    training["overrides"]["optimizer"]["steps"] = 4
    training["overrides"]["sft"] |= {"epochs": 2}
    return tree | {"training": training | {"checkpoints": {"every": 1}}}


def comparable(log: dict[str, Any]) -> dict[str, Any]:
    """Return a log without the figures that depend on time."""
    arms = {
        name: {
            seed: run | {"figures": list(map(_untimed, run["figures"]))}
            for seed, run in seeds.items()
        }
        for name, seeds in log["arms"].items()
    }
    return {**log, "arms": arms, "seconds": {}}


def _untimed(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if not name.startswith(TIMED)}


def repeated(folder: Path) -> int:
    """Return how many turns and steps the logs of a study have more than once."""
    found: Counter[tuple[object, ...]] = Counter()
    places = [folder / "cold", folder / "gate", *sorted((folder / "arms").iterdir())]
    for place in places:
        run = run_in(place)
        for event in read_events(run) if run is not None else ():
            if isinstance(event, TurnFinished):
                found[place.name, event.turn.ask.id] += 1
            elif isinstance(event, Stepped):
                found[place.name, event.batch, event.step] += 1
    return sum(count - 1 for count in found.values())


def _start(folder: Path) -> subprocess.Popen[bytes]:
    words = ["train", "study", str(folder / "small.yaml"), "--out", str(folder / "study")]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", "tilewright", *words, "--minutes", "30"], stdout=quiet, stderr=quiet
    )


def run(match: str = "", kills: int = KILLS) -> list[Bar]:  # noqa: ARG001 - one signature
    """Return the bars."""
    choices, made, begun, wrong, twice, studies = random.Random(SEED), 0, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as place:
        wanted, longest_s = _undisturbed(Path(place) / "undisturbed")
        while made < kills and begun < MAX_RUNS:
            folder = _folder(Path(place) / f"killed{studies}")
            name, logs = folder.name, folder / "study" / "logs"
            more, runs = run_with_kills(
                partial(_start, folder),
                kills - made,
                longest_s,
                choices,
                lambda kill, hit, name=name, logs=logs: print(  # type: ignore[misc]
                    f"{name}: kill {kill} hits {hit}; newest log: {newest_log(logs)}"
                ),
            )
            made, begun, studies = made + more, begun + runs, studies + 1
            log = folder / "study" / LOG
            wrong += not log.exists() or comparable(read_log(log)) != wanted
            twice += repeated(folder / "study")
    kills_text = f"{made} kills of {studies} studies"
    return [
        Bar(
            "study: killed at random moments",
            f"{kills} kills, and each study ends like the undisturbed one",
            f"{kills_text}, {wrong} end otherwise",
            made == kills and not wrong,
            {"invocations": begun},
        ),
        Bar("study: turns and steps repeated after a kill", "0", str(twice), twice == 0),
    ]


def _folder(path: Path) -> Path:
    path.mkdir()
    (path / "small.yaml").write_text(yaml.safe_dump(small_study()), encoding="utf-8")
    return path


def _undisturbed(path: Path) -> tuple[dict[str, Any], float]:
    """Run a study without a kill; return its log, and the seconds of its longest stage."""
    folder = _folder(path)
    if _start(folder).wait(1200):
        raise SystemExit(f"the undisturbed study failed: see {folder}")
    log = read_log(folder / "study" / LOG)
    if not all(step["gradient"] for step in log["arms"]["base"]["0"]["figures"]):
        raise SystemExit("a step without a gradient: equal logs of this study would show nothing")
    return comparable(log), max(log["seconds"].values()) * 1.5


if __name__ == "__main__":
    sys.exit(finish(run()))
