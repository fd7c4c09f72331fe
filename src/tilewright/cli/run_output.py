"""Run folders of the verbs that evaluate: made, filled, and the exit code of a verdict."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tilewright import config
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.records import EvalReport, Verdict
from tilewright.records.run_folder import create_run, write_report

__all__ = ["EXIT_CODES", "fresh_run", "save", "usable_home"]

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
