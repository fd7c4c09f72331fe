"""Ten KernelBench references that need most memory, evaluated at the same time on 80 GiB.

On a larger device another process holds all memory but 80 GiB. A reference that is not `correct`
among three workers is evaluated again alone, beside the same process: the verdict has to be equal.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import Bar, home
from benchmarks.gpu.requests import DEVICE, request, row
from tilewright.errors import TilewrightError
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.devices.nvml import conditions
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalReport

WORKERS = 3
LEFT_BYTES = 80 << 30
"""Memory of the device that evaluations may use: that of an H100."""
LARGEST = (
    *("level1-11", "level1-66", "level1-68", "level2-3", "level2-26"),
    *("level2-34", "level2-72", "level3-6", "level3-25", "level3-31"),
)
"""The references of most peak memory (docs/measurements/2026-11-28-gpu.md)."""
HOLD = """import sys, torch

held = torch.empty(int(sys.argv[2]), dtype=torch.uint8, device=sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


CORRECT, LATE = "correct", "no time was left"


@dataclass(frozen=True)
class Seen:
    """How an evaluation ended: its verdict with the reason, or the class of an error."""

    end: str
    report: EvalReport | None = None


def run(path: Path, budget_s: float, out: Path) -> list[Bar]:
    """Evaluate the ten references against themselves, and those that fail once more alone."""
    stop = time.monotonic() + budget_s
    problems = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    codes = {f"level{item['level']}-{item['problem_id']}": item["code"] for item in problems}
    with _memory_held():
        with LocalExecutor(home(), WORKERS) as local, ThreadPoolExecutor(WORKERS) as pool:
            work = [pool.submit(_judged, local, name, codes[name], stop) for name in LARGEST]
            found = dict(zip(LARGEST, (item.result() for item in work), strict=True))
        alone = dict[str, Seen]()
        for name, seen in found.items():
            if seen.end != CORRECT:
                with LocalExecutor(home(), 1) as local:
                    alone[name] = _judged(local, name, codes[name], stop)
    named = [*found.items(), *((f"{name} alone", seen) for name, seen in alone.items())]
    rows = [row(name, seen.report) for name, seen in named if seen.report is not None]
    (out / "gpu_large_references.json").write_text(json.dumps(rows), encoding="utf-8")
    return [_bar(found, alone)]


def _judged(local: LocalExecutor, name: str, code: str, stop: float) -> Seen:
    """Evaluate a reference against itself, if time is left."""
    if time.monotonic() > stop:
        return Seen(LATE)
    began = time.monotonic()
    text = f"{code}\n\nModelNew = Model\n"
    try:
        report = local.evaluate(request(code, text, name, entry="ModelNew"))
    except TilewrightError as error:
        print(f"{name}: {error}"[:400], flush=True)
        return Seen(type(error).__name__)
    labels = ", ".join(label.name for label in report.labels)
    seconds = f"{time.monotonic() - began:.1f} s"
    oracles = ", ".join(sorted({case.oracle for case in report.cases}))
    text = f"{name}: {report.verdict} {report.outcome} {labels} {oracles} {seconds}"
    print(text[:600], flush=True)
    reason = getattr(report.outcome, "reason", None)
    return Seen(report.verdict if reason is None else f"{report.verdict}: {reason}", report)


@contextmanager
def _memory_held() -> Iterator[None]:
    """Let another process hold what the device has above `LEFT_BYTES`."""
    found = conditions(find_device(DEVICE).uuid)
    if found is None or found.total_bytes is None or found.used_bytes is None:
        raise SystemExit(f"the driver does not tell the memory of {DEVICE}")
    size = found.total_bytes - found.used_bytes - LEFT_BYTES
    if size <= 0:
        yield
        return
    command = [sys.executable, "-c", HOLD, DEVICE, str(size)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            raise SystemExit(f"no process can hold {size >> 20} MiB of {DEVICE}")
        print(f"another process holds {size >> 20} MiB", flush=True)
        yield
        holder.kill()


def _bar(found: dict[str, Seen], alone: dict[str, Seen]) -> Bar:
    correct = sum(seen.end == CORRECT for seen in found.values())
    same = sum(LATE != seen.end == found[name].end for name, seen in alone.items())
    text = f"{correct} correct, {same} with a reason that is true alone"
    held = correct + same == len(LARGEST)
    return Bar("large references on 80 GiB, three workers", f"{len(LARGEST)}", text, held)
