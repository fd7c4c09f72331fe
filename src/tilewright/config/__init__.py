"""One frozen tree of settings, and the only reader of the process environment.

Sources, lowest first: the defaults below, one YAML file, `--set path=value`. The environment
gives two defaults: `TILEWRIGHT_HOME` for `home`, `TILEWRIGHT_PLUGINS` for `plugins`.
"""

from __future__ import annotations

from tilewright.config.given import Given, settings_of
from tilewright.config.loader import (
    HOME_VARIABLE,
    PLUGINS_VARIABLE,
    dump,
    environment,
    leaves,
    load,
    load_around,
    whole_environment,
    with_defaults,
)
from tilewright.config.renamed import RENAMED_SETTINGS, RENAMED_TRAINING
from tilewright.config.schema import (
    LOCAL,
    RAY,
    Config,
    LoopSection,
    ModelSection,
    Section,
)

__all__ = [
    "HOME_VARIABLE",
    "LOCAL",
    "PLUGINS_VARIABLE",
    "RAY",
    "RENAMED_SETTINGS",
    "RENAMED_TRAINING",
    "Config",
    "Given",
    "LoopSection",
    "ModelSection",
    "Section",
    "dump",
    "environment",
    "leaves",
    "load",
    "load_around",
    "settings_of",
    "whole_environment",
    "with_defaults",
]
