"""What the verbs share: settings from flags, run folders, exit codes."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from tilewright import config
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.executors.choose import device_model
from tilewright.records import EvalReport, Verdict
from tilewright.records.runs import create_run, write_report

__all__ = [
    "EXIT_CODES",
    "device_flags",
    "fresh_run",
    "load_settings",
    "one_model",
    "out_option",
    "ready_to_judge",
    "save",
    "settings_options",
    "usable_home",
]

EXIT_CODES: Mapping[Verdict, int] = {
    "correct": 0,
    "incorrect": 1,
    "failed": 1,
    "rejected": 1,
    "unjudged": 4,
}
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
        "--out", metavar="DIR", help="Where the run folder is made. (runs)", default=None
    )(function)


def load_settings(
    file: str | None,
    overrides: Sequence[str],
    flags: Mapping[str, tuple[str, object]],
) -> Config:
    """Return the settings after the file, `--set` and flags; `flags` is path to (flag, value).

    A flag that was not given has the value `None`, `False` or `()`.

    Raises:
        ConfigError: a setting is wrong, or a flag and `--set` give the same one.
    """
    set_paths = {text.partition("=")[0].strip() for text in overrides}
    added = []
    for path, (flag, value) in flags.items():
        if value is None or value is False or value == ():
            continue
        if path in set_paths:
            raise ConfigError(f"{flag} and --set {path}=... set the same thing; give one of them")
        added.append(f"{path}={json.dumps(value)}")
    return config.load(None if file is None else Path(file), [*overrides, *added])


def device_flags(given: str | None) -> dict[str, tuple[str, object]]:
    """Return the settings that `--device` stands for: one device, or several with commas."""
    names = tuple(part.strip() for part in (given or "").split(",") if part.strip())
    return {
        "eval.device": ("--device", names[0] if names else None),
        "eval.devices": ("--device", list(names) if len(names) > 1 else None),
    }


def one_model(settings: Config) -> str:
    """Return the model of the devices that share a run's work.

    Raises:
        ConfigError: they are of several models, whose times cannot be compared.
        InfrastructureError: one of them is not here.
    """
    names = settings.eval.devices or (settings.eval.device,)
    models = {name: device_model(settings, name) for name in names}
    if len(set(models.values())) > 1:
        said = ", ".join(f"{name} is {model}" for name, model in models.items())
        raise ConfigError(f"--device: times of several models do not compare: {said}")
    return models[names[0]]


def ready_to_judge(settings: Config) -> None:
    """Refuse to judge where that cannot work; what a server judges needs nothing here.

    Raises:
        InfrastructureError: this is not Linux, or torch is missing.
    """
    if settings.executor != config.LOCAL:
        return
    if sys.platform != "linux":
        raise InfrastructureError(f"unjudged: judging needs Linux, this is {sys.platform}")
    if importlib.util.find_spec("torch") is None:
        raise InfrastructureError(
            "unjudged: torch is not installed; pip install 'tilewright[judge]'"
        )


def usable_home(settings: Config) -> Path:
    """Return the folder for builds and calibrations, made if it is not there.

    Raises:
        ConfigError: it cannot be made.
    """
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{settings.home}: cannot be made ({error.strerror}); name another folder with "
            f"--set home=DIR or {config.HOME_VARIABLE}"
        ) from error
    return settings.home


@contextmanager
def fresh_run(settings: Config) -> Iterator[Path]:
    """Make a run folder; take it away again where nothing was judged.

    Raises:
        ConfigError: it cannot be written.
    """
    folder = create_run(settings.runs, config.dump(settings))
    try:
        yield folder
    except BaseException:
        if [item.name for item in folder.iterdir()] == ["run.yaml"]:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def save(folder: Path, report: EvalReport, home: Path) -> str | None:
    """Write a report; where its folder takes none, under `home`. Return what went wrong, if any."""
    try:
        write_report(folder, report)
    except ConfigError as error:
        rescue = home / "rescued" / folder.name
        try:
            rescue.mkdir(parents=True, exist_ok=True)
            write_report(rescue, report)
        except (ConfigError, OSError):
            return f"{error}; the verdict above is all there is of it"
        return f"{error}; the report was written to {rescue} instead"
    return None
