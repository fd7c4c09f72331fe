"""Old names of settings: accepted for one release, and renamed before anything else reads them.

Each table maps an old dotted path to the new one. A path may be a section; the settings below it
move along. Files that tilewright wrote itself (the `run.yaml` of a run) are renamed silently.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from tilewright.errors import ConfigError

__all__ = ["RENAMED_SETTINGS", "RENAMED_TRAINING", "Renaming"]

RENAMED_SETTINGS: Mapping[str, str] = {
    "eval.require_layers": "eval.require_isolation",
    "eval.rules.require_own_kernel": "eval.rules.require_custom_kernel",
    "eval.timing.target_half_width": "eval.timing.target_ci_half_width",
    "eval.timing.more_pairs": "eval.timing.extra_replicates",
    "eval.limits.output_bytes": "eval.limits.stdout_bytes",
    "eval.limits.tmp_bytes": "eval.limits.tmpfs_bytes",
    "eval.limits.call_s": "eval.limits.call_timeout_s",
    "eval.limits.total_s": "eval.limits.total_timeout_s",
    "model.pause_s": "model.retry_delay_s",
    "loop.in_flight": "loop.max_concurrency",
    "loop.turn_s": "loop.eval_timeout_s",
    "reward.pause_s": "reward.retry_delay_s",
    "serve.most_waiting": "serve.max_queue",
    "serve.most_waiting_each": "serve.max_queue_per_client",
    "serve.body_s": "serve.body_timeout_s",
    "serve.headers_s": "serve.header_timeout_s",
    "serve.drain_s": "serve.shutdown_grace_s",
    "serve.keep_days": "serve.retention_days",
    "serve.keep_tasks": "serve.max_finished_tasks",
}
"""Settings of every verb but `train`."""

RENAMED_TRAINING: Mapping[str, str] = {
    "own_kernels": "require_custom_kernel",
    "model.fresh": "model.from_scratch",
    "data.longest": "data.max_tokens",
    "machine.sampled_together": "machine.sampling_batch_size",
    "machine.rows_together": "machine.train_batch_size",
    "machine.recompute": "machine.gradient_checkpointing",
    "overrides.reward.most_speedup": "overrides.reward.max_speedup",
    "overrides.reward.speed_from": "overrides.reward.speedup_estimate",
    "overrides.advantage.singleton": "overrides.advantage.singleton_advantage",
    "overrides.mismatch.veto": "overrides.mismatch.min_ratio",
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
        """Each old or new path that a layer gave, and that layer's source."""
        self._used: dict[str, str] = {}

    def layer(self, source: str, tree: dict[str, Any]) -> dict[str, Any]:
        """Return a layer under the new names.

        Raises:
            ConfigError: the configuration gives both names of one setting.
        """
        for old, new in self._table.items():
            for path in (old, new):
                if _holds(tree, path):
                    self._sources[path] = source
            if old in self._sources and new in self._sources:
                raise ConfigError(
                    f"{self._sources[old]} gives {old} and {self._sources[new]} gives {new}: "
                    f"both name one setting; keep {new}"
                )
        return self._moved(tree)

    def recorded(self, source: str, tree: dict[str, Any]) -> dict[str, Any]:
        """Return a layer that tilewright wrote under the new names, without a deprecation line.

        Raises:
            ConfigError: the layer gives both names of one setting.
        """
        apart = Renaming(self._table)
        return apart.layer(source, tree)

    def report(self) -> None:
        """Print one line that names every old setting that was used, and its new name."""
        if self._used:
            pairs = ", ".join(f"{old} is now {new}" for old, new in self._used.items())
            sys.stderr.write(f"tilewright: deprecated setting: {pairs}\n")

    def _moved(self, tree: dict[str, Any]) -> dict[str, Any]:
        for old, new in self._table.items():
            if _holds(tree, old):
                self._used[old] = new
                tree = _put(_without(tree, old.split(".")), new.split("."), _at(tree, old))
        return tree


def _holds(tree: object, path: str) -> bool:
    for name in path.split("."):
        if not isinstance(tree, dict) or name not in tree:
            return False
        tree = tree[name]
    return True


def _at(tree: dict[str, Any], path: str) -> object:
    found: Any = tree
    for name in path.split("."):
        found = found[name]
    return found


def _without(tree: dict[str, Any], parts: Iterable[str]) -> dict[str, Any]:
    first, *rest = parts
    if not rest:
        return {name: value for name, value in tree.items() if name != first}
    return {**tree, first: _without(tree[first], rest)}


def _put(tree: dict[str, Any], parts: Iterable[str], value: object) -> dict[str, Any]:
    first, *rest = parts
    return {**tree, first: _put(tree.get(first, {}), rest, value) if rest else value}
