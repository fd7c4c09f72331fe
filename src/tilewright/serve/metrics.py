"""Counts and times of the server, and their text as Prometheus reads it (format 0.0.4)."""

from __future__ import annotations

import bisect
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping

__all__ = ["Metrics", "exposition"]

BOUNDS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
ON_DEVICE = frozenset(
    {
        *("start_judge", "load", "correctness", "launch_suppression", "profile", "trace"),
        *("timing", "shutdown", "cleanup"),
    }
)
"""Stages of an evaluation in which it holds its device."""
Labels = tuple[tuple[str, str], ...]
KINDS: dict[str, tuple[str, str]] = {
    "accepted_total": ("counter", "Submissions accepted, those of known work included."),
    "cache_hits_total": ("counter", "Submissions of work that was done, or under way, already."),
    "requests_total": ("counter", "Requests by method and status."),
    "internal_errors_total": ("counter", "Attempts that ended with an internal error."),
    "expired_tasks_total": ("counter", "Ended tasks that retention has deleted."),
    "device_busy_seconds_total": ("counter", "Seconds in which evaluations held a device."),
    "stage_seconds": ("summary", "Seconds of evaluations by stage."),
    "wait_seconds": ("histogram", "Seconds from acceptance to the beginning of an attempt."),
    "answer_seconds": ("histogram", "Seconds until a request was answered, streams left out."),
}


class Metrics:
    """Counters and histograms. Lifetime: the server. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._seconds: dict[str, list[int]] = {}
        self._sums: dict[str, float] = defaultdict(float)

    def count(self, name: str, by: float = 1.0, **labels: str) -> None:
        """Add to a counter of `KINDS`."""
        with self._lock:
            self._counts[name][tuple(sorted(labels.items()))] += by

    def took(self, name: str, seconds: float) -> None:
        """Add one time to a histogram of `KINDS`."""
        with self._lock:
            rows = self._seconds.setdefault(name, [0] * (len(BOUNDS_S) + 1))
            rows[bisect.bisect_left(BOUNDS_S, seconds)] += 1
            self._sums[name] += seconds

    def judged(self, stages: Iterable[tuple[str, float]], device: str) -> None:
        """Add the stages of one evaluation, in seconds."""
        for name, seconds in stages:
            self.count("stage_seconds_sum", seconds, stage=name)
            self.count("stage_seconds_count", stage=name)
            if name in ON_DEVICE:
                self.count("device_busy_seconds_total", seconds, device=device)

    def text(self) -> list[str]:
        """Return the lines of everything in `KINDS`."""
        with self._lock:
            lines = []
            for name, (kind, said) in KINDS.items():
                lines += [f"# HELP tilewright_{name} {said}", f"# TYPE tilewright_{name} {kind}"]
                if kind == "histogram":
                    lines += self._histogram(name)
                elif kind == "summary":
                    for part in ("sum", "count"):
                        lines += _samples(f"{name}_{part}", self._counts[f"{name}_{part}"])
                else:
                    lines += _samples(name, self._counts[name] or {(): 0.0})
        return lines

    def _histogram(self, name: str) -> list[str]:
        rows, total, lines = self._seconds.get(name, [0] * (len(BOUNDS_S) + 1)), 0, []
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), rows, strict=True):
            total += count
            lines.append(f'tilewright_{name}_bucket{{le="{bound}"}} {total}')
        lines.append(f"tilewright_{name}_sum {self._sums[name]:.6f}")
        lines.append(f"tilewright_{name}_count {total}")
        return lines


def exposition(
    name: str, kind: str, said: str, values: Mapping[str, float] | float, by: str = ""
) -> list[str]:
    """Return the lines of one figure that is read at the moment, or of several by a label."""
    rows: dict[Labels, float] = (
        {((by, text),): float(value) for text, value in values.items()}
        if isinstance(values, Mapping)
        else {(): float(values)}
    )
    head = [f"# HELP tilewright_{name} {said}", f"# TYPE tilewright_{name} {kind}"]
    return head + _samples(name, rows)


def _samples(name: str, values: Mapping[Labels, float]) -> list[str]:
    lines = []
    for labels, value in sorted(values.items()):
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        number = f"{value:.0f}" if value == int(value) else f"{value:.6f}"
        lines.append(f"tilewright_{name}{f'{{{inner}}}' if inner else ''} {number}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
