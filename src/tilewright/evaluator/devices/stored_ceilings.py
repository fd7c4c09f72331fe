"""The measured ceilings of devices, as `home` keeps them from one evaluation to the next."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from tilewright.evaluator.devices.recorded_environment import read_by_device, write_for_device
from tilewright.records import Ceilings
from tilewright.records.version1 import upgrade

FILE = "ceilings.json"


def read_ceilings(home: Path, key: str) -> Ceilings | None:
    """Return the ceilings of the device with this `device_key`, if they were measured."""
    with suppress(KeyError, TypeError, ValidationError):
        stored = read_by_device(home / FILE)[key]
        return Ceilings.model_validate(upgrade(Ceilings, stored))
    return None


def write_ceilings(home: Path, key: str, measured: Ceilings) -> None:
    """Store the ceilings of a device; others in the file are kept."""
    write_for_device(home / FILE, key, measured.model_dump())
