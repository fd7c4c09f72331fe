"""Which device of a cluster suits a request, and which may be used at all; pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["DeviceLoad", "least_loaded", "reject_reason"]


@dataclass(frozen=True)
class DeviceLoad:
    """An actor with room for one more, as far as the choice depends on it."""

    load: int
    known: Sequence[str]
    """Problems whose judges are warm there."""


def least_loaded(problem: str, rooms: Sequence[DeviceLoad]) -> int:
    """Return the index of the room that suits a problem best.

    Idle devices first, since a second request on a device mostly waits for the first; among
    equals one that knows the problem, then one that knows least and so has most to learn.
    """
    return min(
        range(len(rooms)),
        key=lambda i: (rooms[i].load, problem not in rooms[i].known, len(rooms[i].known), i),
    )


def reject_reason(about: Mapping[str, str], version: str, model: str | None) -> str:
    """Return why a leased device may not be used; empty: it may.

    `about` is what its actor says of itself, `version` ours of tilewright, `model` that of the
    devices that are in use already, if there are any.
    """
    if about["trouble"]:
        return about["trouble"]
    if about["tilewright"] != version:
        return f"tilewright {about['tilewright']} is there, {version} is here"
    here = ".".join(map(str, sys.version_info[:2]))
    if about["python"].rpartition(".")[0] != here:
        return f"Python {about['python']} is there, {here} is here"
    if model is not None and about["model"] != model:
        return (
            f"it is a {about['model']}, the others are {model}, and times of several models "
            "do not compare; name one: ray:ADDRESS?accelerator=NAME"
        )
    return ""
