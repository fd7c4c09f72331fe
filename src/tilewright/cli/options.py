"""Options that several verbs share, and the settings that they set."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click

from tilewright import config
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.executors.factory import device_model

__all__ = [
    "device_flags",
    "load_settings",
    "one_model",
    "out_option",
    "ready_to_judge",
    "settings_options",
]

Command = TypeVar("Command", bound=Callable[..., object])


def settings_options(function: Command) -> Command:
    """Add `--config` and `--set` to a verb."""
    for option in (
        click.option(
            "--set",
            "overrides",
            metavar="PATH=VALUE",
            multiple=True,
            help="Set one setting, after the file, for example eval.timing.max_s=5. Repeatable.",
        ),
        click.option("--config", "file", metavar="FILE", help="Read settings from a YAML file."),
    ):
        function = option(function)
    return function


def out_option(function: Command) -> Command:
    """Add `--out` to a verb."""
    return click.option(
        "--out", metavar="DIR", help="Folder in which the run folder is made. (runs)", default=None
    )(function)


def load_settings(
    file: str | None,
    overrides: Sequence[str],
    flags: Mapping[str, tuple[str, object]],
    *,
    recorded: bool = False,
) -> Config:
    """Return the settings after the file, `--set` and flags; `flags` is path to (flag, value).

    A flag that was not given has the value `None`, `False` or `()`. `recorded` says that the file
    is the `run.yaml` of a run.

    Raises:
        ConfigError: a setting is wrong, or a flag and `--set` give the same one.
    """
    set_paths = {text.partition("=")[0].strip() for text in overrides}
    added = []
    for path, (flag, value) in flags.items():
        if value is None or value is False or value == ():
            continue
        if path in set_paths:
            raise ConfigError(f"{flag} and --set {path}=... give the same setting; use one of them")
        added.append(f"{path}={json.dumps(value)}")
    source = None if file is None else Path(file)
    return config.load(source, [*overrides, *added], recorded=recorded)


def device_flags(given: str | None) -> dict[str, tuple[str, object]]:
    """Return the settings of `--device`, which names one device or several with commas."""
    names = tuple(part.strip() for part in (given or "").split(",") if part.strip())
    return {
        "eval.device": ("--device", names[0] if names else None),
        "eval.devices": ("--device", list(names) if len(names) > 1 else None),
    }


def one_model(settings: Config) -> str:
    """Return the hardware model of the devices that share the work of a run.

    Raises:
        ConfigError: the devices have different models, whose times cannot be compared.
        InfrastructureError: this machine lacks one of the devices.
    """
    names = settings.eval.devices or (settings.eval.device,)
    models = {name: device_model(settings, name) for name in names}
    if len(set(models.values())) > 1:
        shown = ", ".join(f"{name} is {model}" for name, model in models.items())
        raise ConfigError(f"--device: times of different models cannot be compared: {shown}")
    return models[names[0]]


def ready_to_judge(settings: Config) -> None:
    """Refuse to judge on a machine that cannot. A remote executor needs nothing here.

    Raises:
        InfrastructureError: this is not Linux, or torch is missing.
    """
    if settings.executor != config.LOCAL:
        return
    if sys.platform != "linux":
        raise InfrastructureError(f"unjudged: judging needs Linux, and this is {sys.platform}")
    if importlib.util.find_spec("torch") is None:
        raise InfrastructureError(
            "unjudged: torch is not installed; pip install 'tilewright[judge]'"
        )
