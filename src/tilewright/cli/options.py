"""Options that several verbs share, and the settings that they give."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from tilewright import config
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.executors.factory import device_model

__all__ = [
    "DEVICE",
    "JSON",
    "LANGUAGE",
    "OUT",
    "RESUME",
    "SETTINGS",
    "VERBOSE",
    "group",
    "load_settings",
    "one_model",
    "ready_to_judge",
    "setting",
]

Command = TypeVar("Command", bound=Callable[..., object])


class SettingOption(click.Option):
    """An option that gives one setting. Its help ends with the path of the setting."""

    def __init__(self, names: Sequence[str], *, setting: str, help: str, **extra: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(names, help=f"{help} ({setting})", **extra)
        self.setting = setting

    def settings(self, value: Any) -> dict[str, object]:  # noqa: ANN401 - of the option's type
        """Return the settings that a value of this option gives."""
        return {self.setting: value}


class DeviceOption(SettingOption):
    """The option `--device`, which names one device or several with commas."""

    def settings(self, value: str | None) -> dict[str, object]:
        """Return the first device, and all devices if there are several."""
        names = [part.strip() for part in (value or "").split(",") if part.strip()]
        return {
            "eval.device": names[0] if names else None,
            "eval.devices": names if len(names) > 1 else None,
        }


def setting(flag: str, path: str, help: str, *names: str, **extra: Any) -> Callable[..., Any]:  # noqa: ANN401 - click's
    """Return a decorator that adds an option for the setting at `path`."""
    kind = extra.pop("cls", SettingOption)
    return click.option(flag, *names, cls=kind, setting=path, help=help, **extra)


def group(*decorators: Callable[..., Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds several options, in this order."""

    def add(function: Command) -> Command:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return add


SETTINGS = group(
    click.option("--config", "file", metavar="FILE", help="Read settings from a YAML file."),
    click.option(
        "--set",
        "overrides",
        metavar="PATH=VALUE",
        multiple=True,
        help="Set one setting, after the file, for example eval.timing.max_s=5. Repeatable.",
    ),
)
OUT = setting("--out", "runs", "Folder in which the run folder is made.", metavar="DIR")
DEVICE = setting(
    *("--device", "eval.device", "cpu, cuda, cuda:N, or several with commas."),
    cls=DeviceOption,
    metavar="NAME",
)
LANGUAGE = setting("--language", "loop.language", "Language of the candidates.", metavar="NAME")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
VERBOSE = click.option("-v", "--verbose", is_flag=True, help="Write every step to stderr.")
RESUME = click.option("--resume", "resumed", metavar="RUN", help="Resume a run that was stopped.")


def load_settings(
    given: Mapping[str, Any],
    extra: Mapping[str, tuple[str, object]] | None = None,
    *,
    first: Sequence[str] = (),
    recorded: Path | None = None,
) -> Config:
    """Return the settings after the file, `--set` and the options of the current command.

    Args:
        given: the values of the options by name; `None`, `False` and `()` are not given.
        extra: more settings by path: the flag that gives each, and its value.
        first: `path=value` texts that the user may override.
        recorded: the `run.yaml` of a run, which is read in place of `--config`.

    Raises:
        ConfigError: a setting is wrong, or a flag and `--set` give the same one.
    """
    flags = dict(extra or {})
    for option in click.get_current_context().command.params:
        if isinstance(option, SettingOption):
            values = option.settings(given[option.name or ""])
            flags |= {path: (option.opts[0], value) for path, value in values.items()}
    set_paths = {text.partition("=")[0].strip() for text in given["overrides"]}
    added = []
    for path, (flag, value) in flags.items():
        if value is None or value is False or value == ():
            continue
        if path in set_paths:
            raise ConfigError(f"{flag} and --set {path}=... give the same setting; use one of them")
        added.append(f"{path}={json.dumps(value)}")
    source = recorded or (Path(given["file"]) if given["file"] else None)
    overrides = [*first, *given["overrides"], *added]
    return config.load(source, overrides, recorded=recorded is not None)


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
