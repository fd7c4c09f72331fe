"""Run folders of the verbs that resume a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from tilewright import config
from tilewright._version import __version__
from tilewright.cli.options import load_settings, ready_to_judge
from tilewright.cli.progress import Progress
from tilewright.config import Config, Section
from tilewright.errors import ConfigError
from tilewright.records.event_log import read_events
from tilewright.records.events import RunStarted


def resumed_run(given: Mapping[str, Any], fixed: Iterable[str]) -> tuple[Path, Config]:
    """Return the folder of a run and its settings, unless an option of `fixed` was given."""
    for name in fixed:
        if given.get(name):
            raise ConfigError(f"--resume keeps the settings of the run; leave out {_flag(name)}")
    folder = Path(given["resumed"])
    # Report a log that is damaged from the start before other files of its folder.
    next(read_events(folder), None)
    settings = load_settings(given, recorded=folder / "run.yaml")
    ready_to_judge(settings)
    return folder, settings


def _flag(name: str) -> str:
    """Return what a user writes for a parameter of the current command."""
    params = click.get_current_context().command.params
    return next((param.opts[0] for param in params if param.name == name), name)


@contextmanager
def run_progress(
    verb: str, folder: Path, *, now: str = "starting", verbose: bool = False
) -> Iterator[Progress]:
    """Show the progress of a run. If the run ends early, print the command that resumes it."""
    with Progress(verb, now=now, verbose=verbose) as progress:
        try:
            yield progress
        except BaseException:
            progress.note(f"to resume: tilewright {verb} --resume {folder}")
            raise


def check_resumed(folder: Path, begun: RunStarted, model: str) -> None:
    """Refuse a run of another device or version, whose results could not be compared."""
    pairs = ("device", begun.device, model), ("version", begun.evaluator, __version__)
    for name, then, now in pairs:
        if then != now:
            text = f"{folder} began with {name} {then!r}, and this is {now!r}; start a new run"
            raise ConfigError(text)


def check_unchanged(folder: Path, before: Section, now: Section, allowed: tuple[str, ...]) -> None:
    """Refuse a changed setting of a resumed run, unless its path begins as in `allowed`."""
    for leaf in config.leaves(type(before)):
        get = attrgetter(leaf.path)
        if get(before) != get(now) and not leaf.path.startswith(allowed):
            raise ConfigError(
                f"{folder} began with {leaf.path} {get(before)!r}, which a resumed run keeps: "
                "leave it out, or start a new run"
            )
