"""`tilewright train`: train a model on conversations and on verdicts."""

from __future__ import annotations

import importlib
import importlib.util
import json
import shlex
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright.cli.options import JSON, RESUME, group, option, overrides, ready_to_judge
from tilewright.cli.output import print_line
from tilewright.cli.run_output import check_unchanged, run_progress
from tilewright.cli.train_replay import command as replay
from tilewright.cli.usage_errors import CommandGroup
from tilewright.errors import ConfigError
from tilewright.records.event_log import read_events
from tilewright.records.run_folder import create_run
from tilewright.rl.training_config import TrainConfig, load_training
from tilewright.rl.worlds import EVALUATOR

ENGINE = "tilewright.rl.engines.trl"
NEEDED = ("trl", "transformers", "datasets", "peft")
MAY_CHANGE = (
    "machine.",
    "health.",
    "checkpoints.",
    "settings.home",
    "settings.executor",
    "settings.host",
)
"""Settings that a resumed run may change, by the beginning of their path."""


@click.group("train", cls=CommandGroup)
def command() -> None:
    """Train a model to write kernels: first on conversations, then on verdicts."""


command.add_command(replay)
OPTIONS = group(
    click.argument("file", required=False, metavar="CONFIG"),
    JSON,
    overrides("seed=1"),
    option("--device", "NAME", "cpu or cuda. (machine.device)"),
    option("--out", "DIR", "Folder in which the run folder is made. (settings.runs)"),
    RESUME,
)


@command.command("sft")
@OPTIONS
def sft(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Train a model on conversations (supervised fine-tuning), before any reward.

    CONFIG is a YAML file; docs/reference/config.md lists its settings. The loss covers the
    assistant's messages. The model is written to RUN/model, for `train rl` and
    `local:RUN/model`.
    """
    settings, folder = _opened(given)
    engine = importlib.import_module(f"{ENGINE}.sft")
    with run_progress("train sft", folder) as progress:
        document = engine.train_sft(settings, folder, progress.note, reached=progress.in_phase)
    if given["as_json"]:
        click.echo(json.dumps(document, indent=1))
    model, file = document["model"], given["file"] or folder / "run.yaml"
    words = ["tilewright", "train", "rl", str(file), "--set", f"model.path={model}"]
    print_line(f"model {model}; next: {shlex.join(words)}")
    return 0


@command.command("rl")
@OPTIONS
def rl(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Train a model on the verdicts of its own replies.

    CONFIG is a YAML file; docs/reference/config.md lists its settings. The event log holds every
    turn, and `tilewright view` shows it. --resume continues a run that was killed, and repeats no
    sample and no evaluation.
    """
    settings, folder = _opened(given)
    engine = importlib.import_module(f"{ENGINE}.reinforce")
    if settings.world == EVALUATOR:
        ready_to_judge(settings.settings)
    with run_progress("train rl", folder) as progress:
        document = engine.train_rl(
            settings, folder, progress.note, progress, reached=progress.in_phase
        )
    if given["as_json"]:
        click.echo(json.dumps(document, indent=1))
    model = document["model"]
    print_line(f"model {model}, as a policy: local:{model}; next: tilewright view {folder}")
    return 0


def _opened(given: dict[str, Any]) -> tuple[TrainConfig, Path]:
    changes = list(given["overrides"])
    for name, path in (("device", "machine.device"), ("out", "settings.runs")):
        changes += [f"{path}={given[name]}"] if given[name] else []
    if not given["resumed"]:
        if not given["file"]:
            raise ConfigError("train needs a CONFIG, or --resume RUN")
        settings = _installed(load_training(Path(given["file"]), changes))
        return settings, create_run(settings.settings.runs, config.dump(settings))
    if given["file"] or given["out"]:
        raise ConfigError("--resume keeps the settings of the run; leave out CONFIG and --out")
    folder = Path(given["resumed"])
    next(read_events(folder, left_out=lambda _: None), None)
    before = load_training(folder / "run.yaml", recorded=True)
    settings = load_training(folder / "run.yaml", changes, recorded=True)
    check_unchanged(folder, before, settings, MAY_CHANGE)
    return _installed(settings), folder


def _installed(settings: TrainConfig) -> TrainConfig:
    log = settings.health.log
    if log != "none" and importlib.util.find_spec(log) is None:
        raise ConfigError(f"health.log is {log}, which is not installed: pip install {log}")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"training needs {', '.join(missing)}: pip install 'tilewright[train]'")
    return settings
