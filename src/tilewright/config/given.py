"""Settings in the forms in which Python code gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.config.loader import load
from tilewright.config.schema import Config
from tilewright.errors import ConfigError

Given = Config | Mapping[str, Any] | Sequence[str] | None
"""A tree, a mapping of the same shape, a list of `path=value`, or nothing: the defaults."""


def settings_of(given: Given) -> Config:
    """Return the settings; raise ConfigError for an unknown name, value or type.

    Args:
        given: a mapping is nested as in a YAML file, or has dotted names: `{"eval.device": "cpu"}`.
    """
    if isinstance(given, Config):
        return given
    if given is None:
        return load()
    if isinstance(given, Mapping):
        return load(overrides=list(_assignments(given, "")), origin="config:")
    if isinstance(given, Sequence) and all(isinstance(item, str) for item in given):
        items = [given] if isinstance(given, str) else list(given)
        return load(overrides=items, origin="config:")
    raise ConfigError(
        f"config: expected a mapping, a list of path=value or a Config, got {type(given).__name__}"
    )


def _assignments(tree: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _assignments(value, f"{prefix}{name}.")
            continue
        try:
            yield f"{prefix}{name}={json.dumps(value, default=str)}"
        except (TypeError, ValueError) as error:
            raise ConfigError(f"config: {prefix}{name} cannot be written as YAML") from error
