"""The policy of a model's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tilewright.config import ModelSection
from tilewright.loop.policies.base import Policy
from tilewright.loop.policies.chat import Chat
from tilewright.loop.policies.local_model import Local
from tilewright.loop.policies.recorded import BUNDLED_RUN, Recorded
from tilewright.loop.policies.scripted import load_script


def choose_policy(
    name: str,
    section: ModelSection,
    *,
    strict_recording: bool = False,
    warn: Callable[[str], None] = lambda _: None,
) -> Policy:
    """Return the policy of a name.

    `recorded:RUN` replays a run, and `recorded:bundled` the run that comes with tilewright.
    `scripted:FILE.py` calls a program. `local:PATH` samples from a model in this process. Any other
    name is that of a model at `model.base_url`.

    Raises:
        ConfigError: a package or a key is missing.
        PolicyError: a script or a model cannot be loaded.
        RecordError: a recording cannot be read.
    """
    kind, _, rest = name.partition(":")
    if kind == "recorded" and rest:
        folder = BUNDLED_RUN if rest == "bundled" else Path(rest)
        return Recorded(folder, strict=strict_recording, warn=warn)
    if kind == "scripted" and rest:
        return load_script(Path(rest), section.seed or 0)
    if kind == "local" and rest:
        return Local(rest, section)
    return Chat(name, section, warn)
