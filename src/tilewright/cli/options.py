"""Options that several verbs share, the settings that they give, and what judging needs."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright import config
from tilewright.cli import completion
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, reason_of, suggestion
from tilewright.executors.factory import device_model
from tilewright.registry import catalogue

if TYPE_CHECKING:
    _Words = click.Choice[str]
else:
    # Older versions of click have no type in brackets.
    _Words = click.Choice


class SettingOption(click.Option):
    """An option that gives one setting. Its help ends with the path of the setting."""

    def __init__(self, names: Sequence[str], *, setting: str, help: str, **extra: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(names, help=f"{help} ({setting})", **extra)
        self.setting = setting

    def settings(self, value: Any) -> dict[str, object]:  # noqa: ANN401 - of the option's type
        return {self.setting: value}


class DeviceOption(SettingOption):
    """The option `--device`, which names one device or several with commas."""

    def settings(self, value: str | None) -> dict[str, object]:
        """Return the first device, and all devices if there are several."""
        names = [part.strip() for part in (value or "").split(",") if part.strip()]
        first, several = next(iter(names), None), names if len(names) > 1 else None
        return {"eval.device": first, "eval.devices": several}


class HostOption(SettingOption):
    """The options `--host` and `--no-host`."""

    def settings(self, value: bool | None) -> dict[str, object]:
        """Return the value of the setting, if one of the options is given."""
        words = {None: None, True: "always", False: "never"}
        return {self.setting: words[value]}


class OneOf(_Words):
    """One of several words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's
        """Return the word; a message names the most similar one, or all of them."""
        if value in self.choices:
            return str(value)
        words = " or ".join(self.choices)
        hint = suggestion(str(value), self.choices)
        self.fail("; ".join(filter(None, (f"expected {words}, got {value!r}", hint))), param, ctx)


class WholeNumber(click.IntRange):
    """A whole number between two limits, or without an upper one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's
        """Return the number; a message names the limits."""
        limits = f"of at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"expected a whole number {limits}, got {value!r}", param, ctx)


Decorator = Callable[[Any], Any]


def setting(flag: str, path: str, help: str, *names: str, **extra: Any) -> Decorator:  # noqa: ANN401 - click's
    """Return a decorator that adds an option for the setting at `path`."""
    return click.option(flag, *names, **{"cls": SettingOption, **extra}, setting=path, help=help)


def option(flag: str, metavar: str | None, help: str, *names: str, **extra: Any) -> Decorator:  # noqa: ANN401 - click's
    return click.option(flag, *names, metavar=metavar, help=help, **extra)


def repeated(flag: str, metavar: str | None, help: str, *names: str, **extra: Any) -> Decorator:  # noqa: ANN401 - click's
    extra |= {"metavar": metavar, "help": f"{help} Repeatable.", "multiple": True}
    return click.option(flag, *names, **extra)


def choice(flag: str, values: Sequence[str], default: str, help: str, *names: str) -> Decorator:
    kind = OneOf(values)
    return click.option(flag, *names, type=kind, default=default, show_default=True, help=help)


def switch(flag: str, help: str, *names: str) -> Decorator:
    return click.option(flag, *names, is_flag=True, help=help)


def number(flag: str, help: str, least: int, most: int, default: int, **extra: Any) -> Decorator:  # noqa: ANN401 - click's
    extra |= {"default": default, "show_default": True, "help": help}
    return click.option(flag, type=WholeNumber(least, most), **extra)


def group(*decorators: Decorator) -> Decorator:
    """Return a decorator that adds several options, in this order."""
    return lambda function: functools.reduce(lambda f, add: add(f), reversed(decorators), function)


def overrides(example: str) -> Decorator:
    help = f"Set one setting, after the file, for example {example}."
    return repeated("--set", "PATH=VALUE", help, "overrides", shell_complete=completion.settings)


SETTINGS = group(
    option("--config", "FILE", "Read settings from a YAML file.", "file"),
    overrides("eval.timing.max_s=5"),
)
PROBLEM = option(
    "--problem",
    "ADDRESS",
    "A problem file, or the name of a bundled problem.",
    "-p",
    shell_complete=completion.problems,
)
OUT = setting("--out", "runs", "Folder in which the run folder is made.", metavar="DIR")
HOST = setting(
    "--host/--no-host",
    "host",
    "Use a warm host, or go without; default: one is started at a terminal.",
    cls=HostOption,
    default=None,
)
DEVICE_HELP = "cpu, cuda, cuda:N, or several with commas."
DEVICE = setting("--device", "eval.device", DEVICE_HELP, cls=DeviceOption, metavar="NAME")
LANGUAGE = setting("--language", "loop.language", "Language of the candidates.", metavar="NAME")
JSON = switch("--json", "Print one JSON document.", "as_json")
VERBOSE = switch("--verbose", "Write every step to stderr.", "-v")
WORKERS_HELP = "Evaluations at the same time; a device times one of them at a time."
RESUME = option("--resume", "RUN", "Resume a run that was stopped.", "resumed")


def load_settings(
    given: Mapping[str, Any],
    extra: Mapping[str, tuple[str, object]] | None = None,
    *,
    first: Sequence[str] = (),
    recorded: Path | None = None,
) -> Config:
    """Return the settings after the file, `--set` and the options of the current command.

    `extra` maps more settings to their flags and values. The user may override the texts of
    `first`. `recorded` is the `run.yaml` of a run, which is read in place of `--config`.
    """
    flags = dict(extra or {})
    for param in click.get_current_context().command.params:
        if isinstance(param, SettingOption):
            values = param.settings(given[param.name or ""])
            flags |= {path: (param.opts[0], value) for path, value in values.items()}
    set_paths = {text.partition("=")[0].strip() for text in given["overrides"]}
    added: dict[str, str] = {}
    for path, (flag, value) in flags.items():
        if value is None or value is False or value == ():
            continue
        if path in set_paths:
            raise ConfigError(f"{flag} and --set {path}=... give the same setting; use one of them")
        shown = value if isinstance(value, str) else json.dumps(value)
        added[f"{path}={json.dumps(value)}"] = f"{flag} {shown}"
    source = recorded or (Path(given["file"]) if given["file"] else None)
    overrides = [*first, *given["overrides"], *added]
    settings = config.load(source, overrides, recorded=recorded is not None, flags=added)
    _check_language(given.get("language") or settings.loop.language, settings)
    return settings


def _check_language(name: str | None, settings: Config) -> None:
    """Refuse an unknown language before a run begins."""
    known = catalogue("languages", packages=settings.plugins)
    if name is not None and name not in known:
        hint = suggestion(name, known) or f"known: {', '.join(known)}"
        raise ConfigError(f"no language is called {name!r}; {hint}")


def one_model(settings: Config) -> str:
    """Return the hardware model that all devices of a run have, so that times are comparable."""
    names = settings.eval.devices or (settings.eval.device,)
    models = {name: device_model(settings, name) for name in names}
    if len(set(models.values())) > 1:
        shown = ", ".join(f"{name} is {model}" for name, model in models.items())
        raise ConfigError(f"--device: times of different models cannot be compared: {shown}")
    return models[names[0]]


def ready_to_judge(settings: Config) -> None:
    """Make the home folder, and refuse to judge on a machine that cannot."""
    if settings.executor == config.LOCAL:
        if sys.platform != "linux":
            raise InfrastructureError(f"unjudged: judging needs Linux, and this is {sys.platform}")
        if importlib.util.find_spec("torch") is None:
            missing = "torch is not installed; pip install 'tilewright[judge]'"
            raise InfrastructureError(f"unjudged: {missing}")
    usable_home(settings)


def usable_home(settings: Config) -> Path:
    """Return the folder for builds and calibrations. Create it if it is missing."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        advice = f"name another folder with --set home=DIR or {config.HOME_VARIABLE}"
        text = f"{settings.home}: cannot be made: {reason_of(error)}; {advice}"
        raise ConfigError(text) from error
    return settings.home
