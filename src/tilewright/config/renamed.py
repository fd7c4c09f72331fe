"""Old names of settings: accepted for one release, and renamed before anything else reads them.

`renamed.json` maps an old dotted path to the new one, which differs in its last part alone. A path
may be a section. Files that tilewright wrote itself (the `run.yaml` of a run) are renamed silently.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
RENAMED_SETTINGS: Mapping[str, str] = _TABLE["settings"]
"""Settings of every verb but `train`."""
RENAMED_TRAINING: Mapping[str, str] = {
    **_TABLE["training"],
    **{f"settings.{old}": f"settings.{new}" for old, new in RENAMED_SETTINGS.items()},
}
"""Settings of `tilewright train`, with those of every other verb under `settings`."""


class Renaming:
    """Renames the layers of one configuration. Lifetime: one load.

    A configuration is refused when it gives both names of one setting, in one layer or in two.
    """

    def __init__(self, table: Mapping[str, str]) -> None:
        self._table = table
        self._sources: dict[str, str] = {}
        """Each path that a layer gave, and that layer's source."""
        self._used: dict[str, str] = {}

    def layer(self, source: str, tree: dict[str, Any]) -> dict[str, Any]:
        """Return a layer under the new names."""
        made = self._renamed(source, tree, "")
        for old, new in self._table.items():
            if old in self._sources and new in self._sources:
                raise ConfigError(
                    f"{self._sources[old]} gives {old} and {self._sources[new]} gives {new}: "
                    f"both name one setting; keep {new}"
                )
        return made

    def _renamed(self, source: str, tree: dict[str, Any], prefix: str) -> dict[str, Any]:
        made = {}
        for key, value in tree.items():
            path = f"{prefix}{key}"
            self._sources[path] = source
            name = key
            if path in self._table:
                self._used[path] = self._table[path]
                name = self._table[path].rpartition(".")[2]
            below = isinstance(value, dict)
            made[name] = self._renamed(source, value, f"{path}.") if below else value
        return made

    def report(self) -> None:
        """Print one line that names every old setting that was used, and its new name."""
        if self._used:
            pairs = ", ".join(f"{old} is now {new}" for old, new in self._used.items())
            sys.stderr.write(f"tilewright: deprecated setting: {pairs}\n")
