"""A bar with its row, the table of all bars, and an executor with the settings of a benchmark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.config import Config, load
from tilewright.executors.local import LocalExecutor

ROOT = Path(__file__).parent.parent
"""The root of the repository."""


@dataclass(frozen=True)
class Bar:
    """One promise: the wanted figure, the measured one, and whether the promise held."""

    name: str
    wanted: str
    seen: str
    held: bool
    details: dict[str, Any] = field(default_factory=dict)

    def row(self) -> str:
        """Return the line of the table."""
        return f"{self.name} | {self.wanted} | {self.seen} | {'yes' if self.held else 'NO'}"


def finish(bars: Sequence[Bar]) -> int:
    """Print the table of `bars`; return the exit status, 1 if a bar is missed."""
    print("\nbar | wanted | seen | held\n--- | --- | --- | ---")
    for bar in bars:
        print(bar.row())
    return 0 if all(bar.held for bar in bars) else 1


def quick_settings(device: str = "cpu", more: Sequence[str] = ()) -> Config:
    """Return settings with a short timing plan, for verdicts; `more` are further settings."""
    return load(
        overrides=[
            f"eval.device={device}",
            "eval.timing.min_blocks=8",
            "eval.timing.max_blocks=16",
            "eval.timing.max_s=0.6",
            "eval.limits.call_timeout_s=10",
            *more,
        ],
        environ={},
    )


def home() -> Path:
    """Return the folder for builds and calibration, which is not the user's own."""
    return Path(tempfile.gettempdir()) / "tilewright-benchmarks"


@contextmanager
def executor(folder: Path | None = None) -> Iterator[LocalExecutor]:
    """Yield an executor with a home of its own."""
    with LocalExecutor(folder or home()) as local:
        yield local
