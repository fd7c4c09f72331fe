"""Records which settings our own code reads, by class and field, while real code paths run.

As a plug-in of pytest (`-p tests.conventions.setting_reads`) it records a run of tests; as a
program (`python -m tests.conventions.setting_reads serve`) it records a command of tilewright.
Each process leaves a file of JSON in the folder that the variable `SETTING_READS` names.

A read counts if code of the package makes it. Code that copies, prints or lists settings does not
use them: `config`, `records` and the table of differences between presets do not count.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tilewright.config import Config
from tilewright.rl.presets import Preset
from tilewright.rl.training_config import TrainConfig

FOLDER = "SETTING_READS"
TREES = (Config, TrainConfig, Preset)
SOURCE = f"{Path(__file__).resolve().parents[2] / 'src' / 'tilewright'}/"
NO_USE = tuple(f"{SOURCE}{name}" for name in ("config/", "records/", "rl/paper_vs_code.py"))

READS: set[tuple[str, str]] = set()


def qualified(owner: type[BaseModel]) -> str:
    """Return the name of a class with its module, since two sections are called the same."""
    return f"{owner.__module__}.{owner.__qualname__}"


def classes(owner: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a section and all sections below it."""
    yield owner
    for field in owner.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from classes(field.annotation)


def record() -> None:
    """Record the reads of every section from now on; write them when the process ends."""
    for owner in {below for tree in TREES for below in classes(tree)}:
        _record_reads_of(owner)
    atexit.register(_write)


def _record_reads_of(owner: type[BaseModel]) -> None:
    fields, read, name = frozenset(owner.model_fields), owner.__getattribute__, qualified(owner)

    def recorded(self: BaseModel, attribute: str) -> object:
        if attribute in fields:
            reader = sys._getframe(1).f_code.co_filename
            if reader.startswith(SOURCE) and not reader.startswith(NO_USE):
                READS.add((name, attribute))
        return read(self, attribute)

    owner.__getattribute__ = recorded  # type: ignore[method-assign]


def _write() -> None:
    place = Path(os.environ[FOLDER]) / f"reads-{os.getpid()}.json"
    place.write_text(json.dumps(sorted(READS)), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Record from the start of pytest."""
    del config
    record()


if __name__ == "__main__":
    from tilewright.cli.main import main

    record()
    sys.argv[0] = "tilewright"
    main()
