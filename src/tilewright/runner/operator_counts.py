"""Which torch operators a call used: self-reported, for labels, never for a verdict alone."""

from __future__ import annotations

from typing import Any

from tilewright.wire.dispatch_mode import OperatorMode

MAX_NAMES = 64
"""Operators that are counted by name; further names are left out of the answer."""


class OperatorCounts(OperatorMode):
    """Counts dispatched operators by name while active."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - an operator overload
        types: Any,  # noqa: ANN401 - demanded by the interface
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        name = f"{func.namespace}::{func._opname}"
        if name in self.counts or len(self.counts) < MAX_NAMES:
            self.counts[name] = self.counts.get(name, 0) + 1
        return func(*args, **(kwargs or {}))
