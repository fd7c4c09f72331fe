"""Bars: one step of a training whose judge, a server, is killed for 20 seconds.

The model is tiny, and learns a few right programs by heart before. Its replies are evaluated on
the CPU of this machine, so each verdict is real.
"""

from __future__ import annotations

import collections
import contextlib
import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.bars import Bar
from benchmarks.serve.faulty_server import World
from tilewright.config import load
from tilewright.executors.remote import RemoteExecutor
from tilewright.problems.imported_sets import find_problems
from tilewright.records.event_log import read_events, turns_of
from tilewright.rl.engines.trl.sft import train_sft
from tilewright.rl.episodes import Episodes
from tilewright.rl.training_config import load_training

PROBLEM = "add_relu"
DOWN_S = 20.0
BEGIN_S, END_S = 300.0, 600.0
"""Most seconds until the first verdict, and until the end of the training."""
PROMPTS, ROLLOUTS, TURNS = 2, 4, 2
BODIES = ("torch.relu(x + y)", "torch.relu(y + x)", "(x + y).clamp_min(0)", "(y + x).clamp(min=0)")
REPLY = "```python\nimport torch\n\n\ndef add_relu(x, y):\n    return {}  # {}\n```"
SETTINGS = f"""
world: evaluator
preset: tilewright
require_custom_kernel: false
overrides:
  sampling:
    prompts: {PROMPTS}
    rollouts: {ROLLOUTS}
    turns: {TURNS}
    context_tokens: 1536
    reply_tokens: 64
  optimizer: {{learning_rate: 0.001, steps: 1}}
  sft: {{learning_rate: 0.01, batch: 16, epochs: 4}}
model:
  from_scratch: {{hidden: 64, layers: 2, heads: 4, positions: 2048, vocabulary: 512}}
data: {{problems: {PROBLEM}}}
machine: {{train_batch_size: 8, sampling_batch_size: 8, threads: 1}}
health: {{stop_silent: 0}}
"""
Start = Callable[[Path], "subprocess.Popen[bytes]"]
"""Starts a training by a configuration file."""


@dataclass(frozen=True)
class Outcome:
    """How a training ended whose judge was killed."""

    status: int
    verdicts: Mapping[str, int]
    ended_before: int
    """Evaluations that had ended when the server was killed."""
    open_then: int
    """Evaluations that were queued or running at that moment."""


def killed_judge(engine: str, start: Start, folder: Path, machine: Mapping[str, Any]) -> Bar:
    """Train one step with an engine, kill the judge for `DOWN_S` seconds, and return the bar."""
    folder.mkdir()
    model = _cold_start(folder)
    with World(folder / "server", folder / "home") as world:
        tree = yaml.safe_load(SETTINGS)
        tree["machine"] |= machine
        tree |= {"engine": engine, "model": {"path": str(model)}}
        seen = _trained(start, world, folder, tree)
    planned = PROMPTS * ROLLOUTS * TURNS
    judged = sum(count for verdict, count in seen.verdicts.items() if verdict != "unjudged")
    found = ", ".join(f"{count} {verdict}" for verdict, count in sorted(seen.verdicts.items()))
    text = f"{judged}: {found}; {seen.ended_before} before, {seen.open_then} open at the kill"
    held = seen.status == 0 and judged == planned and seen.open_then > 0
    name = f"{engine}: turns judged by a server that is down for {DOWN_S:g} s"
    return Bar(name, f"{planned} of {planned}", text, held)


def _cold_start(folder: Path) -> Path:
    """Train a tiny model on right programs for the problem; return its folder."""
    settings = load(environ={}, overrides=["loop.language=torch", f"runs={folder / 'prompt'}"])
    # It asks for a prompt alone, so that no server needs to be there.
    with Episodes(settings, executor=RemoteExecutor("http://127.0.0.1:1")) as episodes:
        (problem,) = find_problems(PROBLEM, settings.home)
        prompt = episodes.environment().reset(problem)
    asked = [{"role": message.role, "content": message.text} for message in prompt]
    rows = [
        {"messages": [*asked, {"role": "assistant", "content": REPLY.format(body, number)}]}
        for number in range(64)
        for body in BODIES
    ]
    (folder / "sft.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "cold.yaml").write_text(SETTINGS, encoding="utf-8")
    (folder / "cold").mkdir()
    changes = [f"data.conversations=[{folder / 'sft.jsonl'}]"]
    train_sft(load_training(folder / "cold.yaml", changes), folder / "cold", lambda *_: None)
    return folder / "cold" / "model"


def _trained(start: Start, world: World, folder: Path, tree: Mapping[str, Any]) -> Outcome:
    """Train by these settings, and kill the server after its first verdict."""
    runs = folder / "runs"
    settings = {"runs": str(runs), "loop": {"language": "torch"}, "executor": world.url}
    text = yaml.safe_dump({**tree, "settings": settings})
    (folder / "rl.yaml").write_text(text, encoding="utf-8")
    process = start(folder / "rl.yaml")
    try:
        ended, waiting = _first_verdict(world, process)
        world.kill_for(DOWN_S)
        status = process.wait(END_S)
    finally:
        process.kill()
    (run_folder,) = runs.iterdir()
    turns = turns_of(read_events(run_folder))
    verdicts = collections.Counter[str](each.verdict for turn in turns for each in turn.judgements)
    return Outcome(status, verdicts, ended, waiting)


def _first_verdict(world: World, process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Wait until an evaluation has ended and another one has not; return the number of each."""
    until = time.monotonic() + BEGIN_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.closing(sqlite3.connect(world.store, timeout=30)) as store:
            states = dict(store.execute("select state, count(*) from tasks group by state"))
        ended = states.get("done", 0)
        if ended and sum(states.values()) > ended:
            return ended, sum(states.values()) - ended
        time.sleep(0.02)
    raise RuntimeError(f"the training ended, or asked for no verdict within {BEGIN_S:g} s")
