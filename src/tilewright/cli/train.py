"""`tilewright train`: train a model on conversations and on verdicts."""

from __future__ import annotations

import importlib
import json
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright.cli.options import (
    JSON,
    RESUME,
    group,
    option,
    overrides,
    ready_to_judge,
    switch,
)
from tilewright.cli.output import print_line
from tilewright.cli.progress import Progress
from tilewright.cli.run_output import check_unchanged
from tilewright.cli.train_recipe import recipe
from tilewright.cli.train_replay import command as replay
from tilewright.cli.train_study import gate, scaling, study
from tilewright.cli.usage_errors import CommandGroup
from tilewright.errors import ConfigError, writing
from tilewright.integrations.run_loggers import check_loggers, logged
from tilewright.records.event_log import EventLog, read_events
from tilewright.records.run_folder import create_run
from tilewright.records.whole_files import write_whole
from tilewright.rl.engines.training_engine import TrainingEngine, find_engine
from tilewright.rl.training_config import TrainConfig, load_training, with_more_steps
from tilewright.rl.training_folder import has_samples
from tilewright.rl.worlds import EVALUATOR

ENGINE = "tilewright.rl.engines.trl"
CHOICES = "tilewright.rl.engines.choices"
CHECKS = {"check_sft": f"{ENGINE}.preflight", "check_choices": f"{CHOICES}.choice_checks"}
"""The module of each check of settings that no training engine makes."""
SHOW_HELP = "Print the settings of the engine itself, each with its origin; train nothing."
PLAN_HELP = "Print the memory that the training takes on its GPUs; train nothing."
ANYWAY_HELP = "Train a model that is too large by --plan. (machine.anyway)"
FLAGS_HELP = "Make the run folder, and print the arguments of the engine's own command."
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
command.add_command(recipe)
command.add_command(study)
command.add_command(gate)
command.add_command(scaling)
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
    settings, folder = _opened(given, "check_sft")
    engine = importlib.import_module(f"{ENGINE}.sft")
    with (
        _training("train sft", folder, fresh=not given["resumed"]) as progress,
        logged(folder, settings.health.log, progress.note),
    ):
        document = engine.train_sft(settings, folder, progress.note, reached=progress.in_phase)
    if given["as_json"]:
        click.echo(json.dumps(document, indent=1))
    model, file = document["model"], given["file"] or folder / "run.yaml"
    words = ["tilewright", "train", "rl", str(file), "--set", f"model.path={model}"]
    print_line(f"model {model}; next: {shlex.join(words)}")
    return 0


@command.command("rl")
@OPTIONS
@option("--engine", "NAME", "trl, on one device, or verl, on several GPUs. (engine)")
@switch("--show", SHOW_HELP, "shown")
@switch("--flags", FLAGS_HELP, "flagged")
@switch("--plan", PLAN_HELP, "planned")
@switch("--anyway", ANYWAY_HELP)
def rl(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Train a model on the verdicts of its own replies.

    CONFIG is a YAML file; docs/reference/config.md lists its settings. The event log holds every
    turn, and `tilewright view` shows it. --resume continues a run that was killed, and repeats no
    sample and no evaluation.
    """
    given["overrides"] = [*given["overrides"], *_engine_of(given)]
    if given["shown"] or given["planned"]:
        return _show(given)
    settings, folder = _opened(given, "check_rl")
    engine = find_engine(settings.engine)
    if given["flagged"]:
        click.echo(" ".join(_flags(engine, settings, folder)))
        return 0
    with (
        _training("train rl", folder, fresh=not given["resumed"]) as progress,
        logged(folder, settings.health.log, progress.note),
    ):
        document = engine.train_rl(
            settings, folder, progress.note, progress, reached=progress.in_phase
        )
    if given["as_json"]:
        click.echo(json.dumps(document, indent=1))
    model = document["model"]
    print_line(f"model {model}, as a policy: local:{model}; next: tilewright view {folder}")
    return 0


@command.command("choices")
@OPTIONS
def choices(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Train a model to choose edits, on action trees of programs with known verdicts.

    CONFIG is a YAML file; docs/reference/config.md lists its settings. No program runs. The event
    log holds every choice. --resume continues a run that was killed.
    """
    settings, folder = _opened(given, "check_choices")
    engine = importlib.import_module(f"{CHOICES}.training")
    with (
        _training("train choices", folder, fresh=not given["resumed"]) as progress,
        logged(folder, settings.health.log, progress.note),
    ):
        document = engine.train_choices(settings, folder, progress.note, reached=progress.in_phase)
    if given["as_json"]:
        click.echo(json.dumps(document, indent=1))
    model = document["model"]
    print_line(f"model {model}, as a policy: local:{model}; next: tilewright train replay {folder}")
    return 0


@contextmanager
def _training(verb: str, folder: Path, *, fresh: bool) -> Iterator[Progress]:
    """Show the progress of a run. If it ends early, name the command that resumes it.

    A run that has sampled nothing has nothing to resume; the folder of a fresh one is removed.
    """
    with Progress(verb) as progress:
        try:
            yield progress
        except BaseException:
            if has_samples(folder):
                progress.note(f"to resume: tilewright {verb} --resume {folder}")
            elif fresh:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _opened(given: dict[str, Any], check: str) -> tuple[TrainConfig, Path]:
    """Return the settings and the folder of a run, which `check` of the engine has accepted."""
    changes = _changes(given)
    if not given["resumed"]:
        settings = load_training(Path(_file_of(given)), changes)
        _check(settings, check, fresh=True)
        return settings, create_run(settings.settings.runs, config.dump(settings))
    if given["file"] or given["out"]:
        raise ConfigError("--resume keeps the settings of the run; leave out CONFIG and --out")
    folder = Path(given["resumed"])
    next(read_events(folder, left_out=lambda _: None), None)
    before = load_training(folder / "run.yaml", recorded=True)
    settings = load_training(folder / "run.yaml", changes, recorded=True)
    longer = with_more_steps(before, settings, folder)
    check_unchanged(folder, longer, settings, MAY_CHANGE)
    _check(settings, check, fresh=False)
    if settings != before:
        # The processes of an engine read the file. The log's lock keeps a running process of this
        # run from being changed.
        with EventLog(folder), writing(folder):
            write_whole(folder / "run.yaml", config.dump(settings))
    return settings, folder


def _show(given: dict[str, Any]) -> int:
    """Print the engine's own settings, or its plan of memory; make no run folder."""
    settings = load_training(Path(_file_of(given)), _changes(given))
    engine = find_engine(settings.engine)
    if given["planned"]:
        if engine.memory_table is None:
            raise ConfigError(f"--plan: the engine {settings.engine} has no plan of its memory")
        click.echo(engine.memory_table(settings), nl=False)
        return 0
    engine.require_packages()
    if engine.settings_text is None:
        raise ConfigError(f"--show: the engine {settings.engine} has no settings of its own")
    click.echo(engine.settings_text(settings), nl=False)
    return 0


def _flags(engine: TrainingEngine, settings: TrainConfig, folder: Path) -> list[str]:
    """Return the arguments of the engine's own command, which a shell splits at spaces."""
    if engine.flags is None:
        raise ConfigError(f"--flags: the engine {settings.engine} has no command of its own")
    found = engine.flags(settings, folder)
    if spaced := [flag for flag in found if any(letter.isspace() for letter in flag)]:
        raise ConfigError(f"--flags: a shell would split {spaced[0]!r}; use a path without spaces")
    return found


def _engine_of(given: dict[str, Any]) -> list[str]:
    """Return the engine as a setting; a resumed run keeps its own."""
    changes = ["machine.anyway=true"] if given["anyway"] else []
    if not given["engine"]:
        return changes
    if given["resumed"]:
        raise ConfigError("--resume keeps the engine of the run; leave out --engine")
    return [f"engine={given['engine']}", *changes]


def _changes(given: dict[str, Any]) -> list[str]:
    """Return the settings that the options of a command change, each `path=value`."""
    found = list(given["overrides"])
    for name, path in (("device", "machine.device"), ("out", "settings.runs")):
        found += [f"{path}={given[name]}"] if given[name] else []
    return found


def _file_of(given: dict[str, Any]) -> str:
    if not given["file"]:
        raise ConfigError("train needs a CONFIG, or --resume RUN")
    return str(given["file"])


def _check(settings: TrainConfig, name: str, *, fresh: bool) -> None:
    """Refuse settings that cannot be trained with."""
    check_loggers(settings.health.log, "health.log")
    if name == "check_rl":
        engine = find_engine(settings.engine)
        engine.require_packages()
        if settings.world == EVALUATOR:
            ready_to_judge(settings.settings)
        engine.check_rl(settings, fresh=fresh)
        return
    # The others train with the packages of the engine `trl`.
    find_engine("trl").require_packages()
    getattr(importlib.import_module(CHECKS[name]), name)(settings, fresh=fresh)
