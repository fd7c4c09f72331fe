"""From what a user calls a model to a policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tilewright.config import ModelSection
from tilewright.loop.policies.base import Policy
from tilewright.loop.policies.chat import Chat
from tilewright.loop.policies.local import Local
from tilewright.loop.policies.recorded import BUNDLED, Recorded, bundled
from tilewright.loop.policies.scripted import load_script

__all__ = ["choose_policy"]


def choose_policy(
    name: str,
    section: ModelSection,
    *,
    strict_recording: bool = False,
    warn: Callable[[str], None] = lambda _: None,
) -> Policy:
    """Return the policy of a name.

    `recorded:RUN` replays a run, or the one that comes with tilewright (`recorded:bundled`),
    `scripted:FILE.py` calls a program, `local:PATH` samples from a
    model in this process, anything else is a model's name at `model.base_url`.

    Raises:
        ConfigError: a package or a key is missing.
        PolicyError: a script or a model cannot be loaded.
        RecordError: a recording cannot be read.
    """
    kind, _, rest = name.partition(":")
    if kind == "recorded" and rest:
        folder = bundled() if rest == BUNDLED else Path(rest)
        return Recorded(folder, strict=strict_recording, warn=warn)
    if kind == "scripted" and rest:
        return load_script(Path(rest))
    if kind == "local" and rest:
        return Local(rest, section)
    return Chat(name, section)
