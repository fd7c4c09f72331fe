"""Bars: imports and exports of many turns take constant memory.

Each operation runs in a process of its own, on a tenth of the rows and on all of them. The bar
compares the peak memory. `python -m benchmarks.training.data_rows OPERATION FROM TO` is one such
process.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from tilewright.loop.table_input import RowWriter, read_rows
from tilewright.rl.data.exports import FORMATS, ExportPlan, export
from tilewright.rl.data.imports import import_rows

TURNS, IN_ROW = 100_000, 5
MAX_GROWTH_MIB = 96.0
"""Growth of the peak memory from a tenth of the rows to all of them, in MiB."""
MAX_S = {"import": 120.0, "sft": 120.0, "turns": 180.0}
"""Most seconds for all turns, on two cores that other processes use too."""
MAX_DUPLICATE_CHECK_MS = 20.0
"""Most milliseconds per turn, to parse, normalise and fingerprint its program."""
REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * {number}) + torch.softmax(x, -1)


def get_inputs():
    return [torch.randn({size}, 1024)]


def get_init_inputs():
    return []
"""


def _program(sample: random.Random) -> str:
    """Return a kernel of about 60 lines that differs from all others."""
    lines = [
        f"    v{n} = tl.load(x{sample.randrange(9)} + {sample.randrange(10**6)})"
        f" * {sample.random():.6f}"
        for n in range(60)
    ]
    return "```python\nclass ModelNew:\n  def forward(self, x0):\n" + "\n".join(lines) + "\n```"


def _rows(count: int) -> Iterator[dict[str, Any]]:
    sample = random.Random(3)
    for number in range(count):
        messages = []
        for turn in range(IN_ROW):
            messages.append({"role": "user", "content": f"Feedback {turn}. " * 40})
            messages.append({"role": "assistant", "content": _program(sample)})
        yield {
            "messages": messages,
            "uuid": number,
            "entry_point": "Model",
            "original_python_code": REFERENCE.format(number=number, size=1 + number % 512),
            "num_rounds": IN_ROW,
        }


def _refuse(what: str) -> None:
    raise AssertionError(f"left out: {what}")


def _one(operation: str, source: Path, target: Path) -> None:
    """Run one operation and print its seconds and peak memory."""
    start = time.monotonic()
    if operation == "import":
        target.mkdir()
        import_rows(read_rows(source, _refuse), target, source.name, "drkernel-coldstart", _refuse)
    elif operation == "near":
        export(ExportPlan((str(source),), target, format="sft", dedupe="near"), _refuse)
    else:
        export(ExportPlan((str(source),), target, format=operation), _refuse)  # type: ignore[arg-type]
    print(json.dumps({"seconds": time.monotonic() - start, "mib": _peak_mib()}))


def _peak_mib() -> float:
    """Return the peak memory of this program; `ru_maxrss` would include that of its parent."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def _measured(operation: str, source: Path, target: Path) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.training.data_rows",
        operation,
        str(source),
        str(target),
    ]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def run(only: str = "") -> list[Bar]:
    """Return the bars of `only`: import, sft, turns or near; all of them if it is empty."""
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory() as name:
        place, seen = Path(name), dict[str, list[dict[str, float]]]()
        for share in (10, 1):
            given = place / f"rows{share}.parquet"
            with RowWriter(given, FORMATS["drkernel-coldstart"], _refuse) as writer:
                for row in _rows(TURNS // IN_ROW // share):
                    writer.write(row)
            run_folder = place / f"run{share}"
            for operation in (*MAX_S, "near"):
                if (only not in ("", operation) and operation != "import") or (
                    operation == "near" and share == 1
                ):
                    continue
                source = given if operation == "import" else run_folder
                target = (
                    run_folder if operation == "import" else place / f"{operation}{share}.jsonl"
                )
                seen.setdefault(operation, []).append(_measured(operation, source, target))
                print(f"{operation}, {TURNS // share} turns: {seen[operation][-1]}", flush=True)
                if operation != "import":
                    target.unlink()
        for near in seen.pop("near", ()):
            each = near["seconds"] / (TURNS // 10) * 1e3
            text = f"{each:.1f} ms, {near['mib']:.0f} MiB"
            wanted = f"< {MAX_DUPLICATE_CHECK_MS:g} ms each"
            bars.append(
                Bar("data: near-duplicates", wanted, text, each < MAX_DUPLICATE_CHECK_MS, near)
            )
        for operation, (small, whole) in seen.items():
            growth = whole["mib"] - small["mib"]
            text = f"{whole['seconds']:.0f} s, {whole['mib']:.0f} MiB, {growth:+.0f} MiB"
            held = whole["seconds"] < MAX_S[operation] and growth < MAX_GROWTH_MIB
            wanted = f"< {MAX_S[operation]:.0f} s, < {MAX_GROWTH_MIB:.0f} MiB more than for a tenth"
            bars.append(Bar(f"data: {operation}, {TURNS} turns", wanted, text, held, whole))
    return bars


if __name__ == "__main__":
    _one(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
