"""Which torch operators a call used: self-reported, for labels, never for a verdict alone."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

MAX_NAMES = 64
"""Operators that are counted by name; further names are left out of the answer."""


class OperatorCounts(TorchDispatchMode):
    """Counts dispatched operators by name while active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: dict[str, int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler, a second and a thread, for our first operator."""
        return False

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
