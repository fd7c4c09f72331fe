"""Engines: the trainers that a run is put into. Plug-ins of the kind `engines` are such objects."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from tilewright.errors import ConfigError
from tilewright.loop.answer_evaluator import OnEvent
from tilewright.registry import load
from tilewright.rl.training_config import TrainConfig


class EngineTraining(Protocol):
    """Trains until all steps are done, and returns a summary.

    `note` receives a line for each step, `reached` each phase, and `on_event` the progress of
    evaluations.
    """

    def __call__(
        self,
        config: TrainConfig,
        folder: Path,
        note: Callable[[str], None],
        on_event: OnEvent,
        *,
        reached: Callable[[int, int, str], None],
    ) -> dict[str, Any]: ...


class EngineCheck(Protocol):
    """Refuses settings with which a training cannot begin, before its run folder exists."""

    def __call__(self, config: TrainConfig, *, fresh: bool) -> None: ...


@dataclass(frozen=True)
class TrainingEngine:
    """A trainer. Its functions import their packages when they are called."""

    summary: str
    needed: Mapping[str, str]
    """Packages, and the version of each that is needed; empty: any."""
    excluded: Mapping[str, str]
    """Packages that cannot be in one environment with it, and the first version of each."""
    install: str
    """The command that makes the right environment."""
    check_rl: EngineCheck
    train_rl: EngineTraining
    settings_text: Callable[[TrainConfig], str] | None = None
    """Returns the engine's own settings, a line for each, with their origins."""
    memory_table: Callable[[TrainConfig], str] | None = None
    """Returns the memory of a training on its GPUs, as a table."""
    flags: Callable[[TrainConfig, Path], list[str]] | None = None
    """Returns the arguments of the engine's own command for a run in a folder."""

    def require_packages(self) -> None:
        """Refuse an environment without the packages of this engine.

        Raises:
            ConfigError: one is missing, has another version, or excludes this engine.
        """
        faults = []
        for name, wanted in self.needed.items():
            found = _version(name)
            if found is None:
                faults.append(f"{name} is not installed")
            elif wanted and found != wanted:
                faults.append(f"{name} is {found}, and {wanted} is needed")
        for name, first in self.excluded.items():
            found = _version(name)
            if found is not None and _numbers(found) >= _numbers(first):
                faults.append(f"{name} {found} needs an environment of its own")
        if faults:
            raise ConfigError(
                f"training needs another environment: {'; '.join(faults)}; {self.install}"
            )


def find_engine(name: str) -> TrainingEngine:
    """Return the engine of a name.

    Raises:
        PluginError: it is unknown, or cannot be imported.
    """
    return cast("TrainingEngine", load("engines", name))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
