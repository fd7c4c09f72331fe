"""Run folders of the verbs that evaluate: made, filled, and the exit code of a verdict."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

from tilewright import config
from tilewright._version import __version__
from tilewright.cli.progress import Progress
from tilewright.config import Config, Section
from tilewright.errors import ConfigError
from tilewright.records import EvalReport, Verdict
from tilewright.records.events import RunStarted
from tilewright.records.run_folder import create_run, write_report

__all__ = [
    "EXIT_CODES",
    "check_resumed",
    "check_unchanged",
    "fresh_run",
    "refuse_with_resume",
    "resume_hint",
    "save",
    "usable_home",
]

EXIT_CODES: Mapping[Verdict, int] = {
    "correct": 0,
    "incorrect": 1,
    "failed": 1,
    "rejected": 1,
    "unjudged": 4,
}


def usable_home(settings: Config) -> Path:
    """Return the folder for builds and calibrations. Create it if it is missing.

    Raises:
        ConfigError: the folder cannot be created.
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
    """Create a run folder. Remove it if an error left nothing in it.

    Raises:
        ConfigError: the folder cannot be written.
    """
    folder = create_run(settings.runs, config.dump(settings))
    try:
        yield folder
    except BaseException:
        if [item.name for item in folder.iterdir()] == ["run.yaml"]:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def refuse_with_resume(given: Mapping[str, Any], names: Iterable[str]) -> None:
    """Do nothing unless an option of `names` was given, all of which a resumed run keeps.

    Raises:
        ConfigError: one was given.
    """
    for name in names:
        if given.get(name):
            raise ConfigError(f"--resume keeps the settings of the run; leave out {name}")


@contextmanager
def resume_hint(progress: Progress, verb: str, folder: Path) -> Iterator[None]:
    """Print the command that resumes a run if the run ends early."""
    try:
        yield
    except BaseException:
        progress.note(f"to resume: tilewright {verb} --resume {folder}")
        raise


def check_resumed(folder: Path, begun: RunStarted, model: str) -> None:
    """Do nothing if a run began on this kind of device, with this version.

    Raises:
        ConfigError: it did not; results of both could not be compared.
    """
    for name, then, now in (
        ("device", begun.device, model),
        ("version", begun.evaluator, __version__),
    ):
        if then != now:
            raise ConfigError(
                f"{folder} began with {name} {then!r}, and this is {now!r}; start a new run"
            )


def check_unchanged(
    folder: Path, before: Section, now: Section, may_change: tuple[str, ...]
) -> None:
    """Do nothing if a resumed run has the settings with which it began.

    `may_change` lists the settings that may differ, by the beginning of their path.

    Raises:
        ConfigError: a setting was changed; the message names it.
    """
    for leaf in config.leaves(type(before)):
        get = attrgetter(leaf.path)
        if get(before) != get(now) and not leaf.path.startswith(may_change):
            raise ConfigError(
                f"{folder} began with {leaf.path} {get(before)!r}, which a resumed run keeps: "
                "leave it out, or start a new run"
            )


def save(folder: Path, report: EvalReport, home: Path) -> str | None:
    """Write a report, or write it under `home` if that fails. Return the error, if any."""
    try:
        write_report(folder, report)
    except ConfigError as error:
        rescue = home / "rescued" / folder.name
        try:
            rescue.mkdir(parents=True, exist_ok=True)
            write_report(rescue, report)
        except (ConfigError, OSError):
            return f"{error}; the report was not stored anywhere"
        return f"{error}; the report was written to {rescue} instead"
    return None
